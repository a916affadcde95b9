#include "daemon/chain.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/assets_cache.h"
#include "flows/loader.h"
#include "store/model/ids.h"
#include "store/store.h"
#include "tests/support/manual_clock.h"

namespace conversed::daemon {
namespace {

using model::Claim;
using model::Event;
using model::EventType;
using store::Outcome;

constexpr const char* bundle_text = R"(
conversed: 1
project: {name: Shop, locales: [en]}
flows:
  - name: Count
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
      - if: input.text == "profile"
        then: [{updateProfile: {seen: "{{(profile.seen || 0) + 1}}"}}]
      - if: input.text == "call"
        then:
          - httpRequest: {method: GET, url: "https://example.com/", storeIn: context.order,
                          onError: [{say: "failed {{input.error.code}}"}, {stop: true}]}
      - id: again
        if: input.text == "loop"
        then: [{goTo: again}]
      - say: "VERSION {{input.text}} {{context.count}}"
endpoints:
  - {name: plain, flow: Count}
  - {name: sorry, flow: Count, errorText: "Sorry."}
)";

// A store with one project, and records as the log would hand them out.
class ChainTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "chain_test.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    store::StoreSettings settings;
    settings.data_dir = folder_;
    auto opened = store::Store::open(settings, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    store_->committer().start();
    auto organisation = store_->accounts().create_first_organisation(
        "Acme", {.email = "a@example.com", .name = "A", .roles = {}, .password = std::nullopt});
    ASSERT_TRUE(organisation) << organisation.error().message;
    organisation_ = organisation->id;
    import("one");
    cache_ = std::make_unique<api::AssetsCache>(store_->assets());
    key_ = session("plain", "s");
  }

  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  void import(const std::string& version) {
    std::string text = bundle_text;
    text.replace(text.find("VERSION"), 7, version);
    auto bundle = flows::load_bundle(text, "shop.yaml", [](auto) { return std::nullopt; });
    ASSERT_TRUE(bundle) << flows::to_string(bundle.error());
    auto report = store_->assets().import_bundle(organisation_, *bundle);
    ASSERT_TRUE(report) << report.error().message;
    report_ = *report;
  }

  model::SessionKey session(const std::string& endpoint, const std::string& id) {
    for (const auto& known : report_["endpoints"]) {
      if (known["name"] == endpoint) {
        return {report_["project"]["_id"], known["_id"], "ann", id};
      }
    }
    return {};
  }

  ChainContext context() {
    return {.sessions = store_->sessions(),
            .outbox = store_->outbox(),
            .answers = store_->answers(),
            .dead_letters = store_->dead_letters(),
            .attempts = store_->attempts(),
            .assets = *cache_,
            .waiters = waiters_,
            .clock = clock_,
            .limits = {}};
  }

  Event event(const std::string& text, EventType type = EventType::inject) {
    Event made;
    made.id = model::new_id();
    made.type = type;
    made.session = key_;
    made.accepted_at = clock_.now();
    made.trace_id = model::new_trace_id();
    made.text = text;
    return made;
  }

  Event result_of(const std::string& call_id) {
    Event made = event("", EventType::call_result);
    made.text.reset();
    made.claim = Claim{Claim::Kind::pending_call, call_id};
    made.result = model::CallResult{call_id, 200, {{"state", "shipped"}}, "", ""};
    return made;
  }

  queue::LogRecord record(const Event& made) {
    return {{key_.encode(), made.id, std::string(to_string(made.type)), made.trace_id,
             encode_value(made)},
            {.epoch = 1, .partition = 0, .offset = next_offset_++}};
  }

  Chain build(const std::vector<queue::LogRecord>& records, Care care = Care::normal,
              bool spill = false) {
    auto chain = build_chain(context(), {.key = key_,
                                         .records = records,
                                         .spill = spill,
                                         .care = care,
                                         .refused = {},
                                         .attempted = {}});
    EXPECT_TRUE(chain) << chain.error().message;
    return chain ? std::move(*chain) : Chain{};
  }

  Outcome commit(const Chain& chain) {
    std::promise<Outcome> promise;
    store_->committer().submit(chain.unit, [&](Outcome outcome) { promise.set_value(outcome); });
    return promise.get_future().get();
  }

  Chain run(const std::vector<Event>& events, Care care = Care::normal, bool spill = false) {
    std::vector<queue::LogRecord> records;
    for (const auto& made : events) records.push_back(record(made));
    Chain chain = build(records, care, spill);
    if (chain.changes) {
      EXPECT_EQ(commit(chain), Outcome::committed);
    }
    return chain;
  }

  std::vector<std::string> texts() {
    std::vector<std::string> said;
    const auto outputs = store_->outbox().outputs(key_, 0, 1000);
    EXPECT_TRUE(outputs);
    for (const auto& output : *outputs) said.push_back(output.text);
    return said;
  }

  std::vector<store::DeadLetter> letters() {
    return *store_->dead_letters().list(key_.project_id, std::nullopt, 0, 100);
  }

  model::Session stored() { return **store_->sessions().load(key_); }

  std::filesystem::path folder_;
  tests::ManualClock clock_;
  std::unique_ptr<store::Store> store_;
  std::string organisation_;
  nlohmann::json report_;
  std::unique_ptr<api::AssetsCache> cache_;
  api::AnswerWaiters waiters_;
  model::SessionKey key_;
  std::int64_t next_offset_ = 0;
};

using Texts = std::vector<std::string>;

TEST_F(ChainTest, TurnsOfOneRunSeeWhatTheOnesBeforeThemLeft) {
  const Chain chain = run({event("a"), event("b"), event("c")});
  EXPECT_EQ(chain.turns, 3u);
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2", "one c 3"}));
  EXPECT_EQ(stored().version, 1);
}

TEST_F(ChainTest, RecordsThatCameAgainHaveNoEffects) {
  const std::vector records{record(event("a")), record(event("b"))};
  EXPECT_EQ(commit(build(records)), Outcome::committed);
  EXPECT_FALSE(build(records).changes);
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2"}));
}

TEST_F(ChainTest, AChainThatLostIsBuiltAgainFromWhatIsStored) {
  const Chain loser = build({record(event("a"))});
  run({event("b")});
  EXPECT_EQ(commit(loser), Outcome::conflict);
  EXPECT_EQ(texts(), (Texts{"one b 1"}));
}

TEST_F(ChainTest, APositionOfAPastEpochStopsConsumption) {
  auto newer = record(event("a"));
  newer.position.epoch = 2;
  EXPECT_EQ(commit(build({newer})), Outcome::committed);
  auto past = record(event("b"));
  past.position = {.epoch = 1, .partition = 0, .offset = 100};
  const std::vector records{past};
  const auto chain =
      build_chain(context(), {.key = key_, .records = records, .refused = {}, .attempted = {}});
  ASSERT_FALSE(chain);
  EXPECT_EQ(chain.error().code, model::Errc::conflict);
}

TEST_F(ChainTest, ATurnThatFailsIsADeadLetterAndItsNeighboursRun) {
  const Chain chain = run({event("a"), event("loop"), event("b")});
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2"}));
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_NE(letters()[0].reason.find("again"), std::string::npos) << letters()[0].reason;
  EXPECT_EQ(chain.unit.dead_letters.size(), 1u);
}

TEST_F(ChainTest, AFailedTurnSaysTheEndpointsErrorText) {
  key_ = session("sorry", "s");
  run({event("loop"), event("b")});
  EXPECT_EQ(texts(), (Texts{"Sorry.", "one b 1"}));
}

TEST_F(ChainTest, ARecordThatCannotBeReadIsADeadLetter) {
  auto bad = record(event("a"));
  bad.record.value = "{";
  EXPECT_EQ(commit(build({bad, record(event("b"))})), Outcome::committed);
  EXPECT_EQ(texts(), (Texts{"one b 1"}));
  EXPECT_EQ(letters().size(), 1u);
}

TEST_F(ChainTest, WhatComesDuringACallWaitsAndRunsInOrder) {
  const Chain called = run({event("call"), event("b"), event("c")});
  ASSERT_EQ(called.unit.calls_started.size(), 1u);
  EXPECT_TRUE(texts().empty());
  EXPECT_EQ(stored().inbox_size, 2);
  run({event("d")});
  run({result_of(called.unit.calls_started[0].id)});
  EXPECT_EQ(texts(), (Texts{"one call 1", "one b 2", "one c 3", "one d 4"}));
  EXPECT_EQ(stored().inbox_size, 0);
}

TEST_F(ChainTest, WhatIsSaidPastTheFlowWaitsForNoCall) {
  auto said = event("said", EventType::notify);
  said.data = {{"k", 1}};
  const std::string call = run({event("call"), event("b")}).unit.calls_started.at(0).id;
  const auto before = stored();
  const Chain chain = run({said});
  EXPECT_EQ(chain.turns, 0u);
  EXPECT_EQ(texts(), (Texts{"said"}));
  EXPECT_EQ(stored().execution, before.execution);
  EXPECT_EQ(stored().inbox_size, 1);
  EXPECT_EQ(stored().last_activity_at, before.last_activity_at);
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"said", "one call 1", "one b 2"}));
  const auto output = store_->outbox().outputs(key_, 0, 1)->front();
  EXPECT_EQ(output.data, said.data);
  EXPECT_EQ(output.source, "bot");
  EXPECT_EQ(output.input_id, said.id);
  EXPECT_EQ(output.trace_id, said.trace_id);
}

TEST_F(ChainTest, WhatIsSaidPastTheFlowBeginsNoConversation) {
  run({event("said", EventType::notify)});
  EXPECT_EQ(texts(), (Texts{"said"}));
  EXPECT_EQ(stored().last_activity_at, model::Timestamp{});
  // Spilled is only what a Flow has to run.
  run({event("a"), event("again", EventType::notify)}, Care::normal, true);
  EXPECT_EQ(texts(), (Texts{"said", "again"}));
  run({});
  EXPECT_EQ(texts(), (Texts{"said", "again", "one a 1"}));
}

TEST_F(ChainTest, WhatCanNotBeSaidLeavesTheExecutionAlone) {
  const std::string call = run({event("call")}).unit.calls_started.at(0).id;
  const auto said = event("said", EventType::notify);
  const std::vector records{record(said)};
  auto chain = build_chain(context(), {.key = key_,
                                       .records = records,
                                       .refused = {{said.id, "the store refuses it"}},
                                       .attempted = {}});
  ASSERT_TRUE(chain);
  EXPECT_EQ(commit(*chain), Outcome::committed);
  EXPECT_EQ(letters().size(), 1u);
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1"}));
}

TEST_F(ChainTest, AResultThatCameTwiceIsTakenOnce) {
  const std::string call = run({event("call")}).unit.calls_started.at(0).id;
  run({result_of(call), result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1"}));
}

TEST_F(ChainTest, AResultForAResetSessionFindsNoClaim) {
  const std::string call = run({event("call"), event("b")}).unit.calls_started.at(0).id;
  ASSERT_TRUE(store_->sessions().reset(key_));
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one b 1"}));
}

TEST_F(ChainTest, AnExecutionGoesOnInTheVersionItBeganIn) {
  const std::string call = run({event("call"), event("b")}).unit.calls_started.at(0).id;
  import("two");
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1", "two b 2"}));
}

TEST_F(ChainTest, AFullLaneSpillsToTheInboxAndKeepsItsOrder) {
  const Chain spilled = run({event("a"), event("b")}, Care::normal, true);
  EXPECT_TRUE(texts().empty());
  EXPECT_TRUE(spilled.drain_more);
  run({event("c")});
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2", "one c 3"}));
}

TEST_F(ChainTest, AnInboxIsDrainedInBoundedSteps) {
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) events.push_back(event(std::to_string(i)));
  run(events, Care::normal, true);
  EXPECT_TRUE(run({}).drain_more);
  EXPECT_EQ(texts().size(), 64u);
  EXPECT_FALSE(run({}).drain_more);
  EXPECT_EQ(texts().size(), 100u);
  EXPECT_EQ(texts()[99], "one 99 100");
}

TEST_F(ChainTest, AKeyedEventThatWasAppendedTwiceHasOneEffect) {
  Event keyed = event("a");
  keyed.claim = Claim{Claim::Kind::keyed_event, keyed.id};
  run({keyed, keyed});
  run({keyed});
  EXPECT_EQ(texts(), (Texts{"one a 1"}));
}

TEST_F(ChainTest, AKeyedEventInTheInboxHasConsumedItsClaim) {
  const std::string call = run({event("call")}).unit.calls_started.at(0).id;
  Event keyed = event("a");
  keyed.claim = Claim{Claim::Kind::keyed_event, keyed.id};
  run({keyed});
  run({keyed});
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1", "one a 2"}));
}

TEST_F(ChainTest, AReplayedDeadLetterRunsOnce) {
  run({event("loop")});
  const auto letter = letters().at(0);
  Event replay = event("mended");
  replay.claim = Claim{Claim::Kind::dead_letter, letter.id};
  run({replay});
  replay.id = model::new_id();
  run({replay});
  EXPECT_EQ(texts(), (Texts{"one mended 1"}));
  EXPECT_EQ(letters().at(0).state, store::DeadLetterState::replayed);
}

TEST_F(ChainTest, TwoReplaysOfOneDeadLetterInOneRunHaveOneEffect) {
  run({event("loop")});
  Event replay = event("mended");
  replay.claim = Claim{Claim::Kind::dead_letter, letters().at(0).id};
  Event again = replay;
  again.id = model::new_id();
  run({replay, again});
  EXPECT_EQ(texts(), (Texts{"one mended 1"}));
}

TEST_F(ChainTest, AfterAnUncleanStopOneEventIsStartedAtATime) {
  run({event("a"), event("b")}, Care::normal, true);
  const Chain first = run({event("c")}, Care::record_attempts);
  EXPECT_EQ(first.turns, 1u);
  EXPECT_TRUE(first.drain_more);
  run({}, Care::record_attempts);
  run({}, Care::record_attempts);
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2", "one c 3"}));
}

TEST_F(ChainTest, AProfileThatAnotherSessionChangedIsAConflict) {
  const Chain mine = build({record(event("profile"))});
  const auto first_key = key_;
  key_ = session("plain", "other");
  run({event("profile")});
  key_ = first_key;
  EXPECT_EQ(commit(mine), Outcome::conflict);
  run({event("profile")});
  EXPECT_EQ(store_->sessions().profile(key_.project_id, "ann")->data["seen"], 2);
}

TEST_F(ChainTest, WhatBringsTheDaemonDownThreeTimesIsADeadLetter) {
  const std::vector records{record(event("a"))};
  for (int crash = 0; crash < 3; ++crash) {
    EXPECT_EQ(build(records, Care::record_attempts).turns, 1u);  // and the daemon goes down
  }
  EXPECT_EQ(commit(build(records, Care::record_attempts)), Outcome::committed);
  EXPECT_TRUE(texts().empty());
  ASSERT_EQ(letters().size(), 1u);
}

TEST_F(ChainTest, AWaitingClientGetsTheAnswerOfTheWholeExecution) {
  const Event message = event("call", EventType::user_message);
  std::promise<model::Result<api::Answer>> answered;
  waiters_.wait(message.id, std::chrono::steady_clock::now() + std::chrono::minutes(1),
                [&](auto answer) { answered.set_value(std::move(answer)); });
  const Chain began = run({message});
  EXPECT_TRUE(began.answered.empty());
  const Chain ended = run({result_of(began.unit.calls_started.at(0).id)});
  ASSERT_EQ(ended.answered.size(), 1u);
  ASSERT_TRUE(ended.answered[0].answer);
  EXPECT_NE(ended.answered[0].answer->body.find("one call 1"), std::string::npos);
  waiters_.finish(message.id, *ended.answered[0].answer);
  EXPECT_EQ(answered.get_future().get()->status, 200);
}

TEST_F(ChainTest, AKeyedMessageKeepsItsAnswerAndAFailedOneSaysSo) {
  Event message = event("a", EventType::user_message);
  message.claim = Claim{Claim::Kind::keyed_event, message.id};
  run({message});
  const auto kept = store_->answers().find(message.id, clock_.now());
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->status, 200);
  Event failing = event("loop", EventType::user_message);
  failing.claim = Claim{Claim::Kind::keyed_event, failing.id};
  run({failing});
  const auto failed = store_->answers().find(failing.id, clock_.now());
  ASSERT_TRUE(failed && *failed);
  EXPECT_EQ((*failed)->status, 500);
}

}  // namespace
}  // namespace conversed::daemon
