#include "store/conversation/user_data.h"

#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <set>

#include "store/shards/backlog.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using nlohmann::json;

class UserDataTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    const auto made = store_->accounts().create_organisation("Acme", {.email = "a@example.com"});
    ASSERT_TRUE(made) << made.error().message;
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    bundle.flows.push_back({"Main", {{"name", "Main"}, {"nodes", json::array()}}});
    for (const char* name : {"web", "app"}) {
      model::BundleEndpoint endpoint;
      endpoint.name = name;
      endpoint.flow = "Main";
      bundle.endpoints.push_back(endpoint);
    }
    const auto report = store_->assets().import_bundle(made->id, bundle);
    ASSERT_TRUE(report) << report.error().message;
    project_ = report->at("project").at("_id");
    for (const auto& each : report->at("endpoints")) endpoints_.push_back(each.at("_id"));
  }

  model::SessionKey key(const std::string& user, std::size_t endpoint = 0,
                        const std::string& session = "s") const {
    return {project_, endpoints_[endpoint], user, session};
  }

  // A commit with one of everything that the store holds of a session. `mark` is in all of it.
  SessionCommit everything(const model::SessionKey& key, const std::string& mark, int outputs = 1) {
    SessionCommit commit;
    commit.key = key;
    commit.after.key = key;
    commit.after.position = {.epoch = 1, .partition = 0, .offset = 7};
    commit.after.context = {{"note", "context " + mark}};
    commit.after.flow_state = {{"note", "state " + mark}};
    commit.after.last_output_seq = outputs;
    commit.after.execution.emplace();
    commit.after.execution->input_id = "input of " + key.session_id;
    commit.after.execution->pending_call_id = key.session_id + mark + "timer";
    commit.profile.read_version =
        store_->first().sessions().load_with_profile(key)->profile.version;
    commit.profile.data = nlohmann::json{{"note", "profile " + mark}};
    for (int seq = 1; seq <= outputs; ++seq) {
      commit.outputs.push_back({.id = model::new_id(),
                                .seq = seq,
                                .input_id = "input",
                                .text = "text " + std::to_string(seq) + " " + mark,
                                .data = {{"note", "data " + mark}},
                                .trace_id = model::new_trace_id(),
                                .delivery = model::Delivery::pending});
    }
    model::PendingCall timer;
    timer.id = key.session_id + mark + "timer";
    timer.session = key;
    timer.due_at = clock_.now();
    commit.calls.started.push_back(timer);
    model::FollowUp follow_up;
    follow_up.id = key.session_id + mark + "followup";
    follow_up.session = key;
    follow_up.text = "follow up " + mark;
    follow_up.due_at = clock_.now();
    commit.follow_ups.added.push_back(follow_up);
    model::PendingCall call;
    call.id = key.session_id + mark + "call";
    call.session = key;
    call.http.emplace();
    call.http->url = "http://127.0.0.1/" + mark;
    commit.calls.started.push_back(call);
    const std::string event = R"({"v":1,"at":1,"text":"event )" + mark + "\"}";
    commit.inbox.added.push_back({model::new_id(), "inject", "", event});
    commit.dead_letters.push_back(
        {model::new_id(), {model::new_id(), "inject", "", event}, "reason " + mark});
    for (const char* body : {"first ", "second "}) {
      NewReceiptRow row{.input_id = model::new_id(), .first = NewReceiptRow::First{}, .body = {}};
      row.first->previous = std::exchange(commit.after.last_receipt, row.input_id);
      row.body = tests::receipt_step({{"what", "turn"}, {"text", body + mark}});
      commit.receipts.push_back(row);
    }
    commit.receipts.push_back(
        {commit.after.last_receipt, std::nullopt, "{\"later\":\"" + mark + "\"}"});
    commit.answers.kept.push_back({"answered in " + key.session_id,
                                   R"({"text":"answer )" + mark + "\"}",
                                   clock_.now() + std::chrono::hours(24)});
    return commit;
  }

  // Stores an inject that waits for its time.
  void schedule(const model::SessionKey& key, const std::string& mark) {
    model::Schedule schedule;
    schedule.id = model::new_id();
    schedule.session = key;
    schedule.text = "scheduled " + mark;
    schedule.due_at = clock_.now() + std::chrono::hours(1);
    schedule.created_at = clock_.now();
    schedule.created_by = model::new_id();
    const auto made = store_->first().schedules().create(
        schedule,
        KeyedAnswer{{"scope", "KEYOFSCHEDULE" + mark + key.session_id, "HASHOFSCHEDULE" + mark},
                    {201, "", "answer " + mark},
                    key.encode()});
    ASSERT_TRUE(made) << made.error().message;
  }

  // Stores the key of an event in the log.
  void append_under_key(const model::SessionKey& key, const std::string& mark) {
    std::promise<void> done;
    store_->append_keys().reserve(
        {"scope", "KEYOFAPPEND" + mark, "HASHOFAPPEND" + mark, model::new_id(), "", key.encode()},
        [&](const auto& reserved) {
          EXPECT_TRUE(reserved);
          done.set_value();
        });
    done.get_future().wait();
  }

  std::vector<json> all_of(const std::string& user, std::size_t limit = 100) {
    std::vector<json> items;
    UserData::Place after;
    for (;;) {
      auto page = store_->first().user_data().read_page({project_, user}, after, limit);
      EXPECT_TRUE(page) << page.error().message;
      EXPECT_LE(page->items.size(), limit);
      items.insert(items.end(), page->items.begin(), page->items.end());
      if (!page->next) return items;
      const auto next = UserData::Place::from_text(page->next->to_text());
      EXPECT_TRUE(next) << page->next->to_text();
      if (!next) return items;
      after = *next;
    }
  }

  model::Result<UserData::Erased> erase(const std::string& user) {
    return store_->first().user_data().erase(
        {project_, user},
        {.finished = [this](const model::Position&) { return finished_; },
         .ended =
             [this](const model::SessionKey& key, const std::vector<std::string>& inputs) {
               ended_[key.session_id] = inputs;
               if (on_ended_) on_ended_();
             },
         .forget_keys = forget_keys_});
  }

  // True if the store's file or a file beside it has the text.
  bool in_files(const std::string& text) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>()};
      if (bytes.find(text) != std::string::npos) return true;
    }
    return false;
  }

  std::string project_;
  std::vector<std::string> endpoints_;
  bool finished_ = true;
  std::function<model::Result<void>(const model::KeyRange&)> forget_keys_;
  std::map<std::string, std::vector<std::string>> ended_;
  std::function<void()> on_ended_;
};

TEST_F(UserDataTest, ExportHasEverythingOnceWhateverThePages) {
  ASSERT_EQ(commit_now(everything(key("ann", 0, "s1"), "MARK", 3)), Outcome::committed);
  ASSERT_EQ(commit_now(everything(key("ann", 1, "s2"), "MARK", 2)), Outcome::committed);
  ASSERT_EQ(commit_now(everything(key("anna"), "OTHER")), Outcome::committed);
  for (const char* session : {"s1", "s3", "s4"}) schedule(key("ann", 1, session), "MARK");
  schedule(key("anna"), "OTHER");
  const auto whole = all_of("ann");
  std::map<std::string, int> kinds;
  for (const auto& item : whole) {
    ++kinds[item.at("kind")];
    // A timer has only its time.
    if (item.at("kind") != "timer") {
      EXPECT_NE(item.dump().find("MARK"), std::string::npos) << item;
    }
    EXPECT_EQ(item.dump().find("OTHER"), std::string::npos) << item;
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"profile", 1},
                                               {"session", 2},
                                               {"output", 5},
                                               {"receipt", 4},
                                               {"waitingEvent", 2},
                                               {"timer", 2},
                                               {"call", 2},
                                               {"deadLetter", 2},
                                               {"answer", 2},
                                               {"followUp", 2},
                                               {"schedule", 3}}));
  for (const std::size_t limit : {1U, 2U, 3U, 7U}) EXPECT_EQ(all_of("ann", limit), whole) << limit;
  EXPECT_TRUE(all_of("nobody").empty());
}

TEST_F(UserDataTest, LargeDataComesInSeveralPages) {
  auto commit = everything(key("ann"), "MARK", 3);
  for (auto& output : commit.outputs) output.text = std::string(700'000, 'x');
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  const auto first = store_->first().user_data().read_page({project_, "ann"}, {}, 100);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->next);
  EXPECT_LE(first->items.size(), 4U);
  EXPECT_EQ(all_of("ann").size(), 13U);
}

TEST_F(UserDataTest, ErasedUserLeavesNoTraceInTheFiles) {
  if (place_.in_postgres()) GTEST_SKIP() << "a server's files are not ours to look at";
  for (const char* session : {"s1", "s2"}) {
    ASSERT_EQ(commit_now(everything(key("ann-who-leaves", 0, session), "MARKOFANN", 1'200)),
              Outcome::committed);
  }
  ASSERT_EQ(commit_now(everything(key("bob-who-stays", 1), "MARKOFBOB")), Outcome::committed);
  schedule(key("ann-who-leaves"), "MARKOFANN");
  schedule(key("bob-who-stays"), "MARKOFBOB");
  append_under_key(key("ann-who-leaves", 1), "MARKOFANN");
  append_under_key(key("bob-who-stays"), "MARKOFBOB");
  std::vector<std::string> freed;
  forget_keys_ = [&](const model::KeyRange& of) -> model::Result<void> {
    freed.push_back(of.from);
    return {};
  };
  ASSERT_TRUE(in_files("MARKOFANN"));
  ASSERT_TRUE(in_files("ann-who-leaves"));
  const auto erased = erase("ann-who-leaves");
  ASSERT_TRUE(erased) << erased.error().message;
  EXPECT_EQ(erased->sessions, 2);
  EXPECT_EQ(erased->outputs, 2'400);
  EXPECT_EQ(erased->pending, 9);
  EXPECT_EQ(erased->dead_letters, 2);
  EXPECT_EQ(erased->answers, 2);
  EXPECT_EQ(erased->profiles, 1);
  EXPECT_EQ(erased->receipts, 4);
  EXPECT_TRUE(all_of("ann-who-leaves").empty());
  EXPECT_FALSE(in_files("MARKOFANN"));
  EXPECT_FALSE(in_files("ann-who-leaves"));
  EXPECT_EQ(ended_.at("s1"), std::vector<std::string>{"input of s1"})
      << "the waiting client is answered";
  EXPECT_EQ(all_of("bob-who-stays").size(), 12U);
  for (const char* what : {"KEYOFAPPEND", "HASHOFAPPEND", "KEYOFSCHEDULE", "HASHOFSCHEDULE"}) {
    EXPECT_TRUE(in_files(what + std::string("MARKOFBOB"))) << what;
  }
  EXPECT_EQ(freed.size(), 1U) << "the log frees its keys";
  EXPECT_EQ(read_backlog(store_->shards()).value().deliveries, 1);
}

TEST_F(UserDataTest, WhatCouldBeginANewSessionIsErasedBeforeTheSessions) {
  ASSERT_EQ(commit_now(everything(key("ann"), "MARK")), Outcome::committed);
  schedule(key("ann"), "MARK");
  std::set<std::string> kinds;
  on_ended_ = [&] {
    for (const auto& item : all_of("ann")) kinds.insert(item.at("kind"));
  };
  ASSERT_TRUE(erase("ann"));
  EXPECT_TRUE(kinds.contains("profile"));
  EXPECT_FALSE(kinds.contains("schedule"));
  EXPECT_FALSE(kinds.contains("deadLetter"));
}

TEST_F(UserDataTest, ErasingTwiceIsErasingOnce) {
  ASSERT_EQ(commit_now(everything(key("ann"), "MARK")), Outcome::committed);
  ASSERT_TRUE(erase("ann"));
  const auto again = erase("ann");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->sessions + again->outputs + again->pending + again->dead_letters, 0);
}

TEST_F(UserDataTest, MessagesThatAreErasedDoNotWaitForEver) {
  const auto session = key("ann-who-leaves");
  auto commit = everything(session, "MARKOFANN");
  commit.after.execution->answer_until = clock_.now();
  commit.after.execution->source = model::EventType::user_message;
  commit.inbox.added.clear();
  const std::string waits = model::new_id();
  const std::string accepted = model::new_id();
  for (const auto& id : {waits, accepted}) {
    model::Event event;
    event.id = id;
    event.type = model::EventType::user_message;
    event.session = commit.key;
    event.text = "MARKOFANN";
    if (id == waits) event.answer_until = clock_.now();
    commit.inbox.added.push_back({event.id, "userMessage", "", model::encode_value(event)});
  }
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  const auto erased = erase("ann-who-leaves");
  ASSERT_TRUE(erased) << erased.error().message;
  EXPECT_EQ(ended_.at("s"), (std::vector<std::string>{"input of s", waits, accepted}));
  const auto look = [&](const std::string& id) {
    return store_->first().answers().look({session, id}, clock_.now()).value();
  };
  using Stage = InputState::Stage;
  EXPECT_EQ(look("input of s").stage, Stage::failed);
  EXPECT_EQ(look(waits).stage, Stage::failed) << "the key is free for another attempt";
  EXPECT_EQ(look(accepted).stage, Stage::unseen) << "the client has its answer";
  EXPECT_FALSE(look("answered in s").kept) << "the key is removed: a repeat is a new message";
  EXPECT_TRUE(all_of("ann-who-leaves").empty());
  EXPECT_FALSE(in_files("ann-who-leaves"));
}

TEST_F(UserDataTest, UserWithAnEventInHandIsLeftAlone) {
  ASSERT_EQ(commit_now(everything(key("ann"), "MARK")), Outcome::committed);
  const auto before = all_of("ann");
  finished_ = false;
  EXPECT_EQ(erase("ann").error().code, model::Errc::conflict);
  EXPECT_EQ(all_of("ann"), before);
}

TEST_F(UserDataTest, SessionBeginsAnewAfterwards) {
  ASSERT_EQ(commit_now(everything(key("ann"), "MARK")), Outcome::committed);
  auto late = everything(key("ann"), "LATE");
  late.expected_version = 1;
  ASSERT_TRUE(erase("ann"));
  late.profile.read_version = 1;
  EXPECT_EQ(commit_now(std::move(late)), Outcome::conflict) << "the Turn began before the erasure";
  EXPECT_EQ(commit_now(everything(key("ann"), "AFTER")), Outcome::committed);
}

TEST_F(UserDataTest, InvalidPlaceIsRefused) {
  for (const char* text : {"", "1", "1.", "1.2", "x.2.", "1.x.", "-1.0.", "1.-1.", "9.0."}) {
    EXPECT_FALSE(UserData::Place::from_text(text)) << text;
  }
  const auto place = UserData::Place::from_text("3.17.a.b");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->to_text(), "3.17.a.b");
}

}  // namespace
}  // namespace conversed::store
