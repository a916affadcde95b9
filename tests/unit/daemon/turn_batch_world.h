#pragma once

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/live/assets_cache.h"
#include "daemon/timers/timer_clock.h"
#include "daemon/turns/recovery.h"
#include "daemon/turns/turn_batch.h"
#include "flows/bundle/loader.h"
#include "store/conversation/answers.h"
#include "store/model/ids.h"
#include "store/sql/sql.h"
#include "store/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/store_place.h"
#include "tests/support/temp_folder.h"

namespace conversed::daemon {

using model::Claim;
using model::Event;
using model::EventType;
using store::Outcome;
using Texts = std::vector<std::string>;

inline constexpr std::chrono::seconds turn_timeout{30};

inline constexpr const char* batch_bundle = R"(
conversed: 1
project: {name: Shop, locales: [en]}
lexicons:
  - {name: Cities, slots: [city], entries: [{mainKeyphrase: Paris, slots: [city]}]}
flows:
  - name: Count
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}"}
      - if: input.text == "profile"
        then: [{updateProfile: {seen: "{{(profile.seen || 0) + 1}}"}}]
      - if: input.text == "tell"
        then:
          - say: "looking"
          - httpRequest: {method: GET, url: "https://example.com/", storeIn: context.order}
      - if: input.text == "ask"
        then:
          - say: "looking"
          - httpRequest: {method: GET, url: "https://example.com/", storeIn: context.order}
          - say: "found"
          - httpRequest: {method: GET, url: "https://example.com/", storeIn: context.order}
      - if: input.text == "call"
        then:
          - httpRequest: {method: GET, url: "https://example.com/", storeIn: context.order,
                          onError: [{say: "failed {{input.error.code}}"}, {stop: true}]}
      - id: again
        if: input.text == "loop"
        then: [{goTo: again}]
      - say: "VERSION {{input.text}} {{context.count}}"
  - name: Trip
    lexicons: [Cities]
    nodes: [{executeFlow: Greet}, {say: "to {{input.slots.city[0].keyphrase}}"}]
  - name: Greet
    nodes: [{say: "hello"}, {wait: true}]
  - name: Handler
    nodes:
      - id: endless
        if: input.source == "inject"
        then: [{goTo: endless}]
      - say: "sorry for {{input.text}}"
      - httpRequest: {method: GET, url: "https://example.com/", storeIn: context.order}
      - say: "{{context.order.state}}"
endpoints:
  - {name: handled, flow: Count, onError: Handler, errorText: "Sorry."}
  - {name: plain, flow: Count}
  - {name: trip, flow: Trip}
  - {name: sorry, flow: Count, errorText: "Sorry."}
  - name: hooked
    flow: Count
    errorText: "Sorry."
    output: {webhook: {url: "https://example.com/", secret: "${SECRET}"}}
)";

// A store with one project, and records as the log hands them out. Batches are built and committed
// without worker and lanes.
class TurnBatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = store::Store::open(store_settings(), clock_);
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

  store::StoreSettings store_settings() {
    auto settings = place_.store();
    settings.committer.timer_clock = &timers_;
    return settings;
  }

  void import(const std::string& version) {
    std::string text = batch_bundle;
    text.replace(text.find("VERSION"), 7, version);
    auto bundle = flows::load_bundle(text, "shop.yaml", [](auto) -> std::optional<std::string> {
      return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    });
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

  TurnBatchContext context() {
    return {.store = *store_,
            .assets = *cache_,
            .pending_replies = pending_replies_,
            .clock = clock_,
            .timer_clock = timer_clock_,
            .limits = {},
            .slice = std::chrono::milliseconds(20),
            .stopwatch = [this] { return stopwatch_ += a_look_; },
            .recovery = recovery_};
  }

  Event event(const std::string& text, EventType type = EventType::inject) {
    Event made;
    made.id = model::new_id();
    made.type = type;
    made.session = key_;
    made.accepted_at = clock_.now();
    made.trace_id = model::new_trace_id();
    made.text = text;
    if (type == EventType::user_message) made.answer_until = timers_.now() + turn_timeout;
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
    positions_[made.id] = {.epoch = 1, .partition = 0, .offset = next_offset_};
    return {{key_.encode(), made.id, std::string(to_string(made.type)), made.trace_id,
             encode_value(made)},
            {.epoch = 1, .partition = 0, .offset = next_offset_++}};
  }

  struct How {
    bool alone = false;
    FlightRecorder::Notes* noted = nullptr;
  };
  TurnBatch build(const std::vector<queue::LogRecord>& records) { return build(records, {}); }
  TurnBatch build(const std::vector<queue::LogRecord>& records, How how) {
    FlightRecorder::Notes unnoted;
    auto& notes = how.noted == nullptr ? unnoted : *how.noted;
    const auto begin = [&](const Beginning& beginning) {
      if (recovery_ != nullptr && beginning.crashes) {
        EXPECT_TRUE(recovery_->start(beginning.event, *beginning.crashes));
      }
      notes.note(beginning.event);
      return model::Result<void>();
    };
    auto batch = build_turn_batch(
        context(), {.key = key_, .records = records, .alone = how.alone, .begin = begin});
    EXPECT_TRUE(batch) << batch.error().message;
    return batch ? std::move(*batch) : TurnBatch{};
  }

  // Runs a batch as the worker does after the store has refused these events.
  TurnBatch run_refused(const std::vector<Event>& events) {
    std::vector<queue::LogRecord> records;
    std::map<std::string, std::string> refused;
    for (const auto& made : events) {
      records.push_back(record(made));
      refused.emplace(made.id, "refused");
    }
    auto batch = build_turn_batch(context(), {.key = key_, .records = records, .refused = refused});
    EXPECT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(commit_now(*batch), Outcome::committed);
    return std::move(*batch);
  }

  void write(const std::string& sql) {
    ASSERT_TRUE(store_->committer().write_and_wait([&](store::Writer& writer) {
      writer.connection().script(sql);
      store_->assets().grow(writer);
      return model::Result<void>();
    }));
  }

  Event keyed_message(const std::string& text) {
    Event made = event(text, EventType::user_message);
    made.claim = Claim{Claim::Kind::keyed_event, made.id};
    return made;
  }

  store::AwaitedInput input_of(const Event& made) {
    const auto position = positions_.find(made.id);
    if (position == positions_.end()) return {key_, made.id};
    return {key_, made.id, position->second};
  }

  store::InputState look(const Event& made) {
    const auto state = store_->first().answers().look(input_of(made), timers_.now());
    EXPECT_TRUE(state) << state.error().message;
    return state ? *state : store::InputState();
  }

  // Cuts the message at its deadline, as the daemon of the waiting client does.
  store::InputState cut(const Event& made) {
    std::promise<model::Result<store::InputState>> promise;
    store_->first().answers().cut(input_of(made),
                                  [&](auto state) { promise.set_value(std::move(state)); });
    const auto state = promise.get_future().get();
    EXPECT_TRUE(state) << state.error().message;
    return state ? *state : store::InputState();
  }

  // The status of the stored answer; 0 if there is none.
  int kept_status(const Event& made) {
    const auto state = look(made);
    if (state.stage == store::InputState::Stage::failed) return 500;
    return state.kept ? 200 : 0;
  }

  std::future<model::Result<api::Answer>> wait_for(const Event& made) {
    auto promise = std::make_shared<std::promise<model::Result<api::Answer>>>();
    pending_replies_.wait(
        made.id, std::chrono::steady_clock::now() + std::chrono::hours(1),
        {.answered = [promise](auto answer) { promise->set_value(std::move(answer)); },
         .overdue = [](auto, auto) {},
         .heard = [](auto) {}});
    return promise->get_future();
  }

  Outcome commit_now(const TurnBatch& batch) {
    std::promise<Outcome> promise;
    store_->committer().submit(batch.commit,
                               [&](Outcome outcome, const auto&) { promise.set_value(outcome); });
    return promise.get_future().get();
  }

  TurnBatch run(const std::vector<Event>& events) { return run(events, {}); }
  TurnBatch run(const std::vector<Event>& events, How how) {
    std::vector<queue::LogRecord> records;
    for (const auto& made : events) records.push_back(record(made));
    TurnBatch batch = build(records, how);
    if (batch.changes) {
      EXPECT_EQ(commit_now(batch), Outcome::committed);
    }
    return batch;
  }

  std::vector<std::string> texts() {
    std::vector<std::string> said;
    const auto outputs = store_->first().outbox().outputs(key_, 0, 1000);
    EXPECT_TRUE(outputs);
    for (const auto& output : *outputs) said.push_back(output.text);
    return said;
  }

  // The outputs for the webhook, in order.
  Texts for_webhook() {
    Texts sent;
    const auto due = store_->first().outbox().due(key_.endpoint_id, clock_.now(), 10, 1000);
    EXPECT_TRUE(due);
    for (const auto& session : due->sessions) {
      for (const auto& output : session.outputs) sent.push_back(output.text);
    }
    return sent;
  }

  std::vector<store::DeadLetter> letters() {
    return store_->first().dead_letters().list({.project_id = key_.project_id}, 0, 100)->rows;
  }

  model::Session stored() { return **store_->first().sessions().load(key_); }

  // The clock of timers, for Turns and the store.
  class Timers final : public model::Clock {
   public:
    explicit Timers(const TurnBatchTest& test) : test_(test) {}
    [[nodiscard]] model::Timestamp now() const override {
      return test_.timer_clock_ == nullptr ? test_.clock_.now() : test_.timer_clock_->now();
    }

   private:
    const TurnBatchTest& test_;
  };

  const tests::StorePlace place_;
  const tests::TempFolder& folder_ = place_.folder();
  tests::ManualClock clock_;
  TimerClock* timer_clock_ = nullptr;  // null: `clock_`
  const Timers timers_{*this};
  std::unique_ptr<store::Store> store_;
  std::string organisation_;
  nlohmann::json report_;
  std::unique_ptr<api::AssetsCache> cache_;
  api::PendingReplies pending_replies_;
  model::SessionKey key_;
  std::int64_t next_offset_ = 0;
  std::map<std::string, model::Position> positions_;  // the positions of events
  // Turns take no time unless a test says so. The batch reads the stopwatch before and after each
  // Turn.
  std::chrono::steady_clock::time_point stopwatch_{};
  std::chrono::milliseconds a_look_{0};
  Recovery* recovery_ = nullptr;
};

}  // namespace conversed::daemon
