// Reasons in the routes of operators: each names cause, subject and remedy.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "store/model/ids.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::token;
using test::World;

class Why : public testing::Test {
 protected:
  Why() : world_({.limits = {.public_requests_per_second = 0, .inbox = 2}}) {
    world_.reasons->connect(ports());
  }

  // The knowledge of the services, as the test sets it.
  ReasonPorts ports() {
    ReasonPorts ports;
    ports.sending = [this](const auto& keys) {
      ++questions_;
      return std::vector(keys.size(), sending_);
    };
    ports.log_failing_since = [this] { return log_failing_since_; };
    ports.calling_since = [this](const auto&) { return calling_since_; };
    ports.waits_for_share = [this](const auto&) { return waits_for_share_; };
    ports.partition = [this](const auto&) { return partition_; };
    ports.quota_used_up = [this](const auto&) { return quota_used_up_; };
    return ports;
  }
  // The commit of the session's next Turn.
  store::SessionCommit next() {
    store::SessionCommit commit;
    commit.key = world_.session_key();
    commit.expected_version = version_++;
    commit.after.key = commit.key;
    commit.after.position = {1, 0, version_};
    commit.after.inbox_size = 0;
    return commit;
  }
  // The session's execution waits for this call or timer.
  store::SessionCommit waits_for(const std::string& input, model::PendingCall call) {
    auto commit = next();
    call.id = input + "-c1";
    call.session = commit.key;
    commit.after.execution = model::Execution{.input_id = input,
                                              .began_at = world_.clock.now(),
                                              .pending_call_id = call.id,
                                              .flow_id = "flow"};
    commit.calls.started.push_back(std::move(call));
    return commit;
  }
  model::PendingCall http_call() {
    model::PendingCall call;
    call.http = model::HttpCall{
        .method = "GET", .url = "https://crm.example/x", .timeout = 10s, .retries = 2};
    return call;
  }
  store::InboxEvent event(const std::string& id) {
    const model::Event event{
        .id = id, .session = world_.session_key(), .accepted_at = world_.clock.now()};
    return {id, "inject", std::string(32, '7'), model::encode_value(event)};
  }
  // Adds an output of this event to the commit. Returns its id.
  std::string add_output(store::SessionCommit& commit, const std::string& event) {
    commit.after.last_output_seq = ++said_;
    auto id = event + '-' + std::to_string(commit.outputs.size() + 1);
    commit.outputs.push_back({.id = id,
                              .seq = said_,
                              .input_id = event,
                              .text = "hello",
                              .data = nullptr,
                              .created_at = world_.clock.now(),
                              .delivery = model::Delivery::pending});
    return id;
  }
  std::string say() {
    auto commit = next();
    auto id = add_output(commit, model::new_id());
    world_.commit_now(std::move(commit));
    return id;
  }
  // The reasons of the steps that go on of this event's receipt, in the order of the steps.
  std::vector<json> of_open_steps(const std::string& event) {
    const auto response = world_.manage(Method::get, "/management/receipts/" + event, nullptr, {},
                                        "ann@acme.example");
    EXPECT_EQ(response.status, 200) << response.body;
    const auto receipt = json::parse(response.body);
    EXPECT_EQ(receipt.at("state"), "open");
    std::vector<json> waits;
    for (const auto& step : receipt.at("steps")) {
      EXPECT_EQ(step.at("micros").is_null(), step.contains("waits")) << step;
      if (step.contains("waits")) waits.push_back(step["waits"]);
    }
    return waits;
  }
  void webhook_fails(std::optional<model::Timestamp> paused_since = {}) {
    world_.store->first().endpoint_health().failed({.endpoint_id = world_.session_key().endpoint_id,
                                                    .failing_since = world_.clock.now(),
                                                    .last_status = 500,
                                                    .last_error = "the webhook answered 500",
                                                    .last_at = world_.clock.now(),
                                                    .paused_since = paused_since,
                                                    .next_probe = world_.clock.now() + 60s});
    settle();
  }
  void settle() {
    ASSERT_TRUE(world_.store->committer().write_and_wait([](store::Writer&) {}));
  }
  json ask(const std::string& path, HeaderList query = {}) {
    const auto response = world_.manage(Method::get, "/management/why" + path, nullptr,
                                        std::move(query), "ann@acme.example");
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }
  json of_session() {
    return ask("", {{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}}).at("waits");
  }
  json of(const std::string& id) { return ask("/" + id).at("waits"); }
  // Expects these reasons, in this order.
  static void expect_reasons(const json& waits, const std::vector<std::string>& reasons) {
    std::vector<std::string> found;
    for (const auto& wait : waits) found.push_back(wait.at("reason"));
    EXPECT_EQ(found, reasons) << waits.dump(2);
  }
  static std::string subject(const json& waits) { return waits.at(0).at("subject"); }
  std::int64_t seconds(model::Timestamp time) { return model::to_unix_ms(time) / 1000; }

  World world_;
  SendingView sending_;
  int questions_ = 0;  // about what is being sent
  std::optional<model::Timestamp> log_failing_since_;
  std::optional<model::Timestamp> calling_since_;
  std::optional<PartitionView> partition_;
  bool waits_for_share_ = false;
  bool quota_used_up_ = false;
  std::int64_t version_ = 0;
  std::int64_t said_ = 0;
};

TEST_F(Why, SessionThatIsIdleWaitsForNothing) {
  world_.commit_now(next());
  expect_reasons(of_session(), {});
}

TEST_F(Why, SessionThatDoesNotExistIsNotFound) {
  const HeaderList session{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}};
  const auto status = [&] {
    return world_.manage(Method::get, "/management/why", nullptr, session, "ann@acme.example")
        .status;
  };
  EXPECT_EQ(status(), 404);
  partition_ = PartitionView{3, ""};
  EXPECT_EQ(status(), 200) << "its first event may be in the log";
  partition_ = std::nullopt;
  world_.commit_now(next());
  EXPECT_EQ(status(), 200);
}

TEST_F(Why, SessionWhoseOutputsWaitNamesTheirReason) {
  auto commit = next();
  commit.after.flow_state = {{"waiting", {{"flow", "Orders"}, {"at", "ask"}}}};
  add_output(commit, model::new_id());
  add_output(commit, model::new_id());
  world_.commit_now(std::move(commit));
  webhook_fails();
  expect_reasons(of_session(), {"deliveryFailing", "question"});
  quota_used_up_ = true;
  expect_reasons(of_session(), {"deliveryFailing", "quota", "question"});
  quota_used_up_ = false;
  world_.commit_now(waits_for(model::new_id(), http_call()));
  expect_reasons(of_session(), {"call", "deliveryFailing"});
}

TEST_F(Why, QuestionWithoutATimeOutIsAReasonWithoutAnEnd) {
  auto commit = next();
  commit.after.flow_state = {{"waiting", {{"flow", "Orders"}, {"at", "ask"}}}};
  world_.commit_now(std::move(commit));
  const auto waits = of_session();
  expect_reasons(waits, {"question"});
  EXPECT_EQ(subject(waits), "The Flow Orders, at the Node ask, waits for the user's answer.");
  EXPECT_TRUE(waits.at(0).at("expectedAt").is_null());
  const auto listed = [&](const char* reason) {
    const auto response = world_.manage(Method::get, "/management/sessions", nullptr,
                                        {{"reason", reason}}, "ann@acme.example");
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).at("items");
  };
  ASSERT_EQ(listed("question").size(), 1U);
  EXPECT_EQ(listed("question")[0].at("waits"), waits);
  EXPECT_EQ(listed("call").size(), 0U);
  world_.commit_now(waits_for(model::new_id(), http_call()));
  EXPECT_EQ(listed("question").size(), 0U);
}

TEST_F(Why, ListsRefuseReasonsThatTheirRowsCanNotHave) {
  const auto status = [&](const std::string& list, const std::string& reason) {
    return world_
        .manage(Method::get, "/management/" + list, nullptr, {{"reason", reason}},
                "ann@acme.example")
        .status;
  };
  EXPECT_EQ(status("sessions", "deliveryFailing"), 400);
  EXPECT_EQ(status("deliveries", "call"), 400);
  EXPECT_EQ(status("timers", "behindJobs"), 400);
  EXPECT_EQ(status("tasks", "call"), 400);
}

TEST_F(Why, SlowUpstreamIsNamedWithItsAttemptAndItsEnd) {
  const auto input = model::new_id();
  world_.commit_now(waits_for(input, http_call()));
  calling_since_ = world_.clock.now() - 3s;
  const auto waits = of(input);
  expect_reasons(waits, {"call"});
  EXPECT_NE(subject(waits).find("crm.example: attempt 1 of 3"), std::string::npos) << waits;
  EXPECT_EQ(waits.at(0).at("since"), seconds(*calling_since_));
  EXPECT_EQ(waits.at(0).at("expectedAt"), seconds(world_.clock.now() + 7s));
  EXPECT_EQ(waits.at(0).at("code"), 11);
  expect_reasons(of(input + "-c1"), {"call"});
  expect_reasons(of_session(), {"call"});
}

TEST_F(Why, RefusedCallTellsItsNextTry) {
  const auto input = model::new_id();
  world_.commit_now(waits_for(input, http_call()));
  world_.store->first().calls().put_off(input + "-c1", world_.clock.now() + 5s, 1, {});
  settle();
  const auto waits = of(input);
  expect_reasons(waits, {"call"});
  EXPECT_NE(subject(waits).find("attempt 2 of 3, after a pause"), std::string::npos) << waits;
  EXPECT_EQ(waits.at(0).at("expectedAt"), seconds(world_.clock.now() + 5s));
}

TEST_F(Why, EventBehindOthersNamesTheFirstAndItsReason) {
  const auto input = model::new_id();
  const auto waiting = model::new_id();
  model::PendingCall sleep;
  sleep.due_at = world_.clock.now() + 1h;
  auto commit = waits_for(input, sleep);
  commit.inbox.added = {event(model::new_id()), event(waiting)};
  commit.after.inbox_size = 2;
  world_.commit_now(std::move(commit));
  const auto waits = of(waiting);
  expect_reasons(waits, {"behindEvents", "inboxFull", "asleep"});
  EXPECT_NE(subject(waits).find("2 earlier events"), std::string::npos) << waits;
  EXPECT_NE(subject(waits).find(input), std::string::npos) << waits;
  EXPECT_EQ(waits.at(2).at("expectedAt"), seconds(world_.clock.now() + 1h));
  expect_reasons(of_session(), {"inboxFull", "asleep"});
}

TEST_F(Why, QuestionAndEventAreToldApartByTheirTimeOut) {
  const auto waits_at_rest = [&](const std::string& timer_id) {
    model::PendingCall timer;
    timer.id = timer_id;
    timer.due_at = world_.clock.now() + 1h;
    timer.is_time_out = true;
    auto commit = next();
    timer.session = commit.key;
    commit.after.flow_state = {
        {"waiting", {{"flow", "Orders"}, {"at", "pay"}, {"timer", timer_id}}}};
    commit.calls.started.push_back(std::move(timer));
    world_.commit_now(std::move(commit));
  };
  waits_at_rest(model::new_id() + "-w");
  expect_reasons(of_session(), {"question"});
  const auto timer = model::new_id() + "-e";
  waits_at_rest(timer);
  const auto waits = of_session();
  expect_reasons(waits, {"event"});
  EXPECT_EQ(subject(waits), "The Flow Orders, at the Node pay, waits for an event.");
  EXPECT_EQ(waits.at(0).at("expectedAt"), seconds(world_.clock.now() + 1h));
  EXPECT_EQ(waits.at(0).at("code"), 29);
  expect_reasons(of(timer), {"event"});
  waits_at_rest(model::new_id() + "-b");
  expect_reasons(of_session(), {"event"});
  EXPECT_EQ(subject(of_session()), "The Flow Orders, at the Node pay, collects events.");
}

TEST_F(Why, TimerFarAwayTellsItsTime) {
  auto commit = next();
  model::FollowUp far;
  far.id = model::new_id() + "-f1";
  far.session = commit.key;
  far.due_at = world_.clock.now() + 1000h;
  commit.follow_ups.added.push_back(far);
  world_.commit_now(std::move(commit));
  const auto waits = of(far.id);
  expect_reasons(waits, {"notDue"});
  EXPECT_EQ(waits.at(0).at("expectedAt"), seconds(far.due_at));
}

TEST_F(Why, FailingWebhookIsNamedWithItsErrorAndTheNextTry) {
  const auto first = say();
  const auto second = say();
  const auto output = world_.store->first().outbox().outputs(world_.session_key(), 0, 1)->front();
  world_.store->first().outbox().reschedule(world_.session_key(), output, world_.clock.now() + 30s,
                                            2);
  webhook_fails();
  const auto waits = of(first);
  expect_reasons(waits, {"deliveryFailing"});
  EXPECT_NE(subject(waits).find("answered 500"), std::string::npos) << waits;
  EXPECT_EQ(waits.at(0).at("expectedAt"), seconds(world_.clock.now() + 30s));
  expect_reasons(of(second), {"behindOutput", "deliveryFailing"});
  expect_reasons(of(first.substr(0, model::id_length)), {"deliveryFailing"});
}

TEST_F(Why, PausedWebhookTellsItsNextProbe) {
  const auto output = say();
  webhook_fails(world_.clock.now());
  const auto waits = of(output);
  expect_reasons(waits, {"endpointPaused"});
  EXPECT_EQ(waits.at(0).at("expectedAt"), seconds(world_.clock.now() + 60s));
  EXPECT_NE(waits.at(0).at("remedy").get<std::string>().find("endpoints resume"),
            std::string::npos);
}

TEST_F(Why, DeliveryWaitsAsLongAsItsEndpoint) {
  const auto output = say();
  const auto expected_at = [&] {
    auto at = of(output).at(0).at("expectedAt");
    const auto list =
        world_.manage(Method::get, "/management/deliveries", nullptr, {}, "ann@acme.example");
    EXPECT_EQ(json::parse(list.body).at("items").at(0).at("waits").at(0).at("expectedAt"), at);
    return at;
  };
  webhook_fails();
  EXPECT_TRUE(expected_at().is_null()) << "it has not been tried";
  sending_.not_before = world_.clock.now() + 20s;
  EXPECT_EQ(expected_at(), seconds(world_.clock.now() + 20s));
  const auto row = world_.store->first().outbox().outputs(world_.session_key(), 0, 1)->front();
  const auto due = world_.clock.now() + 90s;
  world_.store->first().outbox().reschedule(world_.session_key(), row, due, 2);
  settle();
  EXPECT_EQ(expected_at(), seconds(due)) << "its own time is later";
  webhook_fails(world_.clock.now());
  EXPECT_EQ(expected_at(), seconds(due)) << "the next probe comes earlier";
}

TEST_F(Why, OpenStepsOfAReceiptNameTheirOwnReasons) {
  const auto event = model::new_id();
  auto commit = waits_for(event, http_call());
  const auto first = add_output(commit, event);
  add_output(commit, event);
  commit.after.inbox_size = 2;
  commit.inbox.added = {this->event(model::new_id()), this->event(model::new_id())};
  commit.after.last_receipt = event;
  commit.receipts.push_back({.input_id = event,
                             .first = store::NewReceiptRow::First{},
                             .body = tests::receipt_step({{"what", "turn"}, {"outputs", {1, 2}}})});
  world_.commit_now(std::move(commit));
  calling_since_ = world_.clock.now() - 3s;
  const auto output = world_.store->first().outbox().outputs(world_.session_key(), 0, 1)->front();
  world_.store->first().outbox().reschedule(world_.session_key(), output, world_.clock.now() + 30s,
                                            2);
  webhook_fails();
  const auto waits = of_open_steps(event);
  ASSERT_EQ(waits.size(), 3U);
  expect_reasons(waits[0], {"call"});
  EXPECT_EQ(waits[0][0]["since"], seconds(*calling_since_));
  EXPECT_EQ(waits[0][0]["expectedAt"], seconds(world_.clock.now() + 7s));
  EXPECT_NE(waits[0][0]["remedy"].get<std::string>().find("Check the upstream"), std::string::npos);
  expect_reasons(waits[1], {"deliveryFailing"});
  EXPECT_EQ(waits[1][0]["expectedAt"], seconds(world_.clock.now() + 30s));
  expect_reasons(waits[2], {"behindOutput", "deliveryFailing"});
  EXPECT_NE(subject(waits[2]).find(first), std::string::npos) << waits[2];
}

TEST_F(Why, TarpitIsNamedWhileItsPostIsUnderWay) {
  const auto output = say();
  expect_reasons(of(output), {});
  sending_.since = world_.clock.now() - 4s;
  const auto waits = of(output);
  expect_reasons(waits, {"sending"});
  EXPECT_EQ(waits.at(0).at("since"), seconds(*sending_.since));
}

TEST_F(Why, PartitionWithoutOwnerStandsBeforeTheCall) {
  const auto input = model::new_id();
  world_.commit_now(waits_for(input, http_call()));
  partition_ = PartitionView{3, ""};
  const auto waits = of_session();
  expect_reasons(waits, {"partitionWithoutOwner", "call"});
  EXPECT_NE(subject(waits).find("partition 3"), std::string::npos) << waits;
  partition_->owner = "one";
  expect_reasons(of_session(), {"call"});
}

TEST_F(Why, PartitionRecoversUntilItIsCaughtUp) {
  world_.commit_now(next());
  const auto key = world_.session_key().encode();
  world_.log->append({.key = key, .id = "id", .type = "inject", .trace_id = "", .value = ""},
                     [](const auto&) {});
  const auto last = world_.read_records(1).front();
  partition_ = PartitionView{last.position.partition, "one"};
  for (const char* run : {"crashed", "present"}) {
    const std::vector<store::Attempts::Taking> taking{
        {.partition = last.position.partition, .taken_below = last.position.offset + 1}};
    ASSERT_TRUE(world_.store->first().attempts().take_up(run, taking));
  }
  expect_reasons(of_session(), {"partitionRecovering"});
  world_.finish(last);
  expect_reasons(of_session(), {});
}

TEST_F(Why, DeliveredEventWaitsForNothingAndTellsWhenItWasDelivered) {
  const auto event = model::new_id();
  auto commit = next();
  const auto output = add_output(commit, event);
  commit.after.last_receipt = event;
  commit.receipts.push_back({.input_id = event,
                             .first = store::NewReceiptRow::First{},
                             .body = tests::receipt_step({{"what", "turn"}, {"outputs", {1, 1}}})});
  const auto said = commit.outputs.front();
  world_.commit_now(std::move(commit));
  world_.clock.advance(7s);
  const auto at = world_.clock.now();
  world_.store->first().outbox().delivered(
      world_.session_key(), said, 0, {},
      store::ReceiptMark{
          event, tests::receipt_step({{"what", "delivery"}, {"seq", 1}, {"status", 204}}), at});
  settle();
  world_.clock.advance(1h);
  for (const auto& [id, kind] : {std::pair(event, "event"), std::pair(output, "delivery")}) {
    EXPECT_EQ(ask("/" + id), (json{{"kind", kind},
                                   {"waits", json::array()},
                                   {"deliveredAt", seconds(at)},
                                   {"ending", nullptr}}));
  }
}

TEST_F(Why, LogThatIsDownIsNamedForSessionsReceiptsAndUnknownEvents) {
  const auto input = model::new_id();
  auto commit = waits_for(input, http_call());
  commit.after.last_receipt = input;
  commit.receipts.push_back({.input_id = input,
                             .first = store::NewReceiptRow::First{},
                             .body = tests::receipt_step({{"what", "turn"}})});
  world_.commit_now(std::move(commit));
  expect_reasons(of_session(), {"call"});
  world_.log->stop();
  log_failing_since_ = world_.clock.now() - 5s;
  const auto waits = of_session();
  expect_reasons(waits, {"logDown", "call"});
  EXPECT_NE(subject(waits).find("The log refuses events"), std::string::npos) << waits;
  EXPECT_EQ(waits.at(0).at("since"), seconds(*log_failing_since_));
  EXPECT_EQ(waits.at(0).at("code"), 24);
  EXPECT_NE(waits.at(0).at("remedy").get<std::string>().find("Look at the disk"),
            std::string::npos);
  expect_reasons(of_open_steps(input).at(0), {"logDown", "call"});
  const auto unknown = world_.manage(Method::get, "/management/why/" + model::new_id());
  ASSERT_EQ(unknown.status, 200) << unknown.body;
  expect_reasons(json::parse(unknown.body).at("waits"), {"logDown"});
}

TEST_F(Why, UsedUpShareAndQuotaAreNamed) {
  quota_used_up_ = true;
  expect_reasons(of_session(), {"quota"});
  waits_for_share_ = true;
  expect_reasons(of_session(), {"shareUsedUp"});
}

TEST_F(Why, PoisonedEventNamesItsDeadLetter) {
  auto commit = next();
  const auto letter = model::new_id();
  const auto id = model::new_id();
  commit.dead_letters = {{letter, event(id), "the daemon went down 3 times"}};
  world_.commit_now(std::move(commit));
  const auto waits = of(id);
  expect_reasons(waits, {"deadLetter"});
  EXPECT_NE(subject(waits).find("went down 3 times"), std::string::npos) << waits;
  ASSERT_TRUE(
      world_.store->first().dead_letters().discard(world_.session_key().project_id, letter));
  expect_reasons(of(id), {});
}

TEST_F(Why, ForeignAndUnknownIdsAreNotFound) {
  const auto output = say();
  const auto status = [&](const std::string& id, std::string_view email) {
    return world_.manage(Method::get, "/management/why/" + id, nullptr, {}, email).status;
  };
  EXPECT_EQ(status(output, "out@other.example"), 404);
  EXPECT_EQ(status(output, "tom@acme.example"), 403);
  EXPECT_EQ(status(model::new_id(), "ann@acme.example"), 404);
}

TEST_F(Why, SessionShowsItsReasons) {
  world_.commit_now(waits_for(model::new_id(), http_call()));
  const auto body =
      json::parse(world_
                      .manage(Method::get, "/management/sessions/show", nullptr,
                              {{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}})
                      .body);
  expect_reasons(body.at("waits"), {"call"});
}

TEST_F(Why, ListsShowTheReasonsOfTheirRowsAndAreFilteredByThem) {
  const auto listed = [&](const std::string& list, const std::string& reason) {
    const auto response = world_.manage(Method::get, "/management/" + list, nullptr,
                                        {{"reason", reason}}, "ann@acme.example");
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).at("items");
  };
  world_.commit_now(waits_for("i1", http_call()));
  const auto calling = listed("sessions", "call");
  ASSERT_EQ(calling.size(), 1U);
  EXPECT_EQ(calling[0].at("waits")[0].at("reason"), "call");
  EXPECT_NE(subject(calling[0].at("waits")).find("crm.example"), std::string::npos);
  EXPECT_EQ(listed("sessions", "asleep").size(), 0U);
  EXPECT_EQ(listed("timers", "asleep").size(), 0U);
  model::PendingCall sleep;
  sleep.due_at = world_.clock.now() + 1h;
  auto commit = waits_for("i2", sleep);
  commit.calls.cancelled.emplace_back("i1-c1");
  world_.commit_now(std::move(commit));
  ASSERT_EQ(listed("sessions", "asleep").size(), 1U);
  EXPECT_EQ(listed("sessions", "asleep")[0].at("waits")[0].at("expectedAt"),
            seconds(world_.clock.now() + 1h));
  ASSERT_EQ(listed("timers", "asleep").size(), 1U);
  EXPECT_EQ(listed("timers", "asleep")[0].at("waits")[0].at("reason"), "asleep");
  const auto first = say();
  const auto second = say();
  webhook_fails();
  questions_ = 0;
  ASSERT_EQ(listed("deliveries", "deliveryFailing").size(), 1U);
  EXPECT_EQ(questions_, 1) << "a page asks the Deliverer once";
  EXPECT_EQ(listed("deliveries", "deliveryFailing")[0].at("_id"), first);
  ASSERT_EQ(listed("deliveries", "behindOutput").size(), 1U);
  EXPECT_EQ(listed("deliveries", "behindOutput")[0].at("_id"), second);
  EXPECT_EQ(listed("tasks", "behindJobs").size(), 0U);
  EXPECT_EQ(world_
                .manage(Method::get, "/management/sessions", nullptr, {{"reason", "odd"}},
                        "ann@acme.example")
                .status,
            400);
}

}  // namespace
}  // namespace conversed::api
