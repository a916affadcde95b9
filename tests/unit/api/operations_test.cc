// Inject, a user's message and the outputs: accepted requests, each refusal, and the records in the
// log.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/live/answer.h"
#include "store/model/ids.h"
#include "store/model/trace.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::expect_problem;
using test::expect_reduced;
using test::header;
using test::message;
using test::token;
using test::World;

// An answer as the worker composes it.
std::string said(const std::string& text) {
  model::Output output;
  output.text = text;
  return compose_answer({output}, "u", "s");
}

// --- Inject --------------------------------------------------------------------------------------

TEST(Inject, IsAnsweredOnceTheLogHoldsIt) {
  World world;
  auto body = message();
  body["data"] = {{"orderId", 7}};
  const auto response = world.inject(body);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(response.body, "Message was sent to AI for Flow processing");
  const auto events = world.read_events(1);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].id, header(response, "X-Inject-Id"));
  EXPECT_TRUE(model::is_id(events[0].id));
  EXPECT_EQ(events[0].type, model::EventType::inject);
  EXPECT_EQ(events[0].session, world.session_key());
  EXPECT_EQ(events[0].text, "hello");
  EXPECT_EQ(events[0].data, (json{{"orderId", 7}}));
  EXPECT_EQ(events[0].accepted_at, world.clock.now());
  EXPECT_EQ(events[0].trace_id, std::string(32, '7'));
  EXPECT_TRUE(model::is_sampled(events[0].id));
  EXPECT_EQ(response.event_id, events[0].id);
  EXPECT_FALSE(events[0].claim);
  EXPECT_EQ(events[0].origin.organisation_id,
            world.store->assets().endpoint_by_token(token('a')).value()->organisation_id);
  EXPECT_EQ(world.events->appended(), 1U);
}

TEST(Inject, TheTokenMayBeInThePath) {
  World world;
  auto body = message();
  body.erase("URLToken");
  const auto key = world.key_of("ann@acme.example");
  const auto response =
      world.call({Method::post, "/inject/" + token('A'), {{"x-api-key", key}}, body.dump(), {}});
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(world.read_events(1).at(0).session, world.session_key());
  expect_reduced(
      world.call({Method::post, "/inject/nothing", {{"x-api-key", key}}, body.dump(), {}}), 404);
}

TEST(Inject, ABodyThatGoesOnBehindANulByteIsWrong) {
  World world;
  const auto key = world.key_of("ann@acme.example");
  const auto body = message().dump() + std::string(1, '\0') + "more";
  expect_reduced(
      world.call({Method::post, "/v2.0/endpoint/inject", {{"x-api-key", key}}, body, {}}), 400);
  EXPECT_TRUE(world.log_is_empty());
}

TEST(Inject, WrongBodiesAreToldInTheReducedShape) {
  World world;
  for (const char* name : {"URLToken", "userId", "sessionId", "text"}) {
    auto body = message();
    body[name] = 5;
    const auto response = world.inject(body);
    expect_reduced(response, 400);
    EXPECT_NE(response.body.find(name), std::string::npos);
  }
  expect_reduced(world.inject(json::array()), 400);
  EXPECT_TRUE(world.log_is_empty());
}

TEST(Inject, ForeignAndMissingEndpointsCantBeToldApart) {
  World world;
  const auto missing = world.inject(message('9'));
  expect_reduced(missing, 404);
  const auto foreign_organisation = world.inject(message('c'));
  const auto foreign_project = world.inject(message('d'));
  EXPECT_EQ(foreign_organisation.body, missing.body);
  EXPECT_EQ(foreign_project.body, missing.body);
  EXPECT_EQ(foreign_project.status, 404);
  EXPECT_TRUE(world.log_is_empty());
}

struct Allowed {
  const char* email;
  char endpoint;
  int status;
};

TEST(Inject, KeysActAsTheirUsers) {
  World world;
  const Allowed table[] = {
      {"admin@acme.example", 'a', 200}, {"admin@acme.example", 'd', 200},
      {"admin@acme.example", 'c', 404}, {"ann@acme.example", 'a', 200},
      {"ann@acme.example", 'd', 404},   {"tom@acme.example", 'a', 403},
      {"tom@acme.example", 'd', 404},   {"out@other.example", 'c', 200},
      {"out@other.example", 'a', 404},
  };
  for (const auto& row : table) {
    const auto response = world.call({Method::post,
                                      "/v2.0/endpoint/inject",
                                      {{"x-api-key", world.key_of(row.email)}},
                                      message(row.endpoint).dump(),
                                      {}});
    EXPECT_EQ(response.status, row.status) << row.email << " " << row.endpoint;
  }
}

TEST(Inject, TakesTheKeyFromHeaderOrQuery) {
  World world;
  const auto key = world.key_of("ann@acme.example");
  const auto send = [&](HeaderList headers, HeaderList query) {
    return world.call({Method::post, "/v2.0/endpoint/inject", std::move(headers), message().dump(),
                       std::move(query)});
  };
  EXPECT_EQ(send({{"x-api-key", key}}, {}).status, 200);
  const auto by_query = send({}, {{"api_key", key}});
  EXPECT_EQ(by_query.status, 200);
  expect_problem(send({}, {}), 401);
  expect_problem(send({{"x-api-key", ""}}, {}), 401);
  expect_problem(send({{"x-api-key", "nonsense"}}, {}), 401);
  // No answer repeats the key of the query, right or wrong.
  std::string wrong = key;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const auto refused = send({}, {{"api_key", wrong}});
  expect_problem(refused, 401);
  EXPECT_EQ(refused.body.find(wrong), std::string::npos);
  // Basic credentials are valid for management only.
  expect_problem(send({{"authorization", world.sign_in("ann@acme.example")}}, {}), 401);
}

TEST(Inject, ARevokedKeyOpensNothingAtOnce) {
  World world;
  const auto key = world.key_of("admin@acme.example");
  const test::Sent request{
      Method::post, "/v2.0/endpoint/inject", {{"x-api-key", key}}, message().dump(), {}};
  EXPECT_EQ(world.call(request).status, 200);
  const auto keys = json::parse(world.manage(Method::get, "/management/apikeys").body);
  for (const auto& item : keys.at("items")) {
    if (item.at("user") != "admin@acme.example") continue;
    const std::string id = item.at("_id");
    EXPECT_EQ(world.manage(Method::delete_, "/management/apikeys/" + id).status, 204);
    EXPECT_EQ(world.manage(Method::delete_, "/management/apikeys/" + id).status, 404);
  }
  EXPECT_EQ(world.call(request).status, 401);
}

TEST(Inject, OnAnActiveOnlyEndpointTheConversationHasToBeGoingOn) {
  World world;
  expect_problem(world.inject(message('b')), 409);
  world.put_session('b');
  EXPECT_EQ(world.inject(message('b')).status, 200);
  world.clock.advance(std::chrono::minutes(30));
  EXPECT_EQ(world.inject(message('b')).status, 200);
  world.clock.advance(std::chrono::milliseconds(1));
  expect_problem(world.inject(message('b')), 409);
}

TEST(Inject, AFullInboxIsRefusedUntilThereIsRoom) {
  test::WorldSettings settings;
  settings.limits.inbox = 2;
  World world(settings);
  world.busy.set(world.session_key(), 1);
  EXPECT_EQ(world.inject(message()).status, 200);
  world.busy.set(world.session_key(), 2);
  const auto refused = world.inject(message());
  expect_problem(refused, 429);
  EXPECT_TRUE(header(refused, "Retry-After").ends_with("GMT"));
  world.busy.set(world.session_key(), 0);
  EXPECT_EQ(world.inject(message()).status, 200);
}

TEST(Inject, TheQuotaCountsWhatIsInFlightAndWhatIsCommitted) {
  test::WorldSettings settings;
  settings.quota.injects_per_month = 3;
  World world(settings);
  EXPECT_EQ(world.inject(message()).status, 200);
  EXPECT_EQ(world.inject(message()).status, 200);
  expect_reduced(world.inject(json::object()), 400);  // a refused request costs nothing
  // The worker commits one inject: the store counts it now, and it is no longer in flight.
  const auto event = world.read_events(1).at(0);
  const auto organisation =
      world.store->assets().endpoint_by_token(token('a')).value()->organisation_id;
  store::SessionCommit commit;
  commit.key = event.session;
  commit.after.key = event.session;
  commit.after.position = {1, 0, 0};
  commit.quota = {{organisation, "injects", 1}};
  world.commit_now(commit);
  world.quota->committed(organisation, 1);
  EXPECT_EQ(world.inject(message()).status, 200);
  expect_problem(world.inject(message()), 402);
  world.steady += std::chrono::seconds(5);
  expect_problem(world.inject(message()), 402);
  // Other organisations have their own quota.
  const auto out = world.key_of("out@other.example");
  EXPECT_EQ(world
                .call({Method::post,
                       "/v2.0/endpoint/inject",
                       {{"x-api-key", out}},
                       message('c').dump(),
                       {}})
                .status,
            200);
}

TEST(Inject, EachAnswerIsMeasured) {
  World world;
  std::vector<int> told;  // filled on this thread, or before the answer
  world.services->entry.on_inject_answered = [&](int status,
                                                 std::chrono::steady_clock::duration took) {
    told.push_back(status);
    EXPECT_GE(took.count(), 0);
  };
  EXPECT_EQ(world.inject(message()).status, 200);
  EXPECT_EQ(world.inject(message('9')).status, 404);
  EXPECT_EQ(world.call({Method::post, "/v2.0/endpoint/inject", {}, "{}", {}}).status, 401);
  EXPECT_EQ(world.manage(Method::post, "/management/inject", message()).status, 202);
  world.log->stop();
  EXPECT_EQ(world.inject(message()).status, 503);
  EXPECT_EQ(world.manage(Method::get, "/management/status").status, 200);
  EXPECT_EQ(told, (std::vector<int>{200, 404, 401, 202, 503}));
}

TEST(Inject, AStoppedLogIsUnavailableAndNeverAFalseSuccess) {
  World world;
  world.log->stop();
  const auto refused = world.inject(message());
  expect_problem(refused, 503);
  EXPECT_FALSE(header(refused, "Retry-After").empty());
  EXPECT_EQ(world.events->appended(), 0U);
}

// --- A user's message ----------------------------------------------------------------------------

test::Sent say(const std::string& text, const std::string& key = {}) {
  json body{{"userId", "u"}, {"sessionId", "s"}, {"text", text}};
  HeaderList headers;
  if (!key.empty()) headers.emplace_back("idempotency-key", key);
  return {Method::post, "/" + token('a'), headers, body.dump(), {}};
}

void store_answer(World& world, const std::string& input_id, std::optional<std::string> body) {
  store::SessionCommit commit;
  commit.key = world.session_key();
  const auto session = world.store->first().sessions().load(commit.key).value();
  commit.expected_version = session ? session->version : 0;
  commit.after.key = commit.key;
  commit.after.position = {1, 0, commit.expected_version};
  commit.answers.kept = {{input_id, std::move(body), world.clock.now() + std::chrono::hours(24)}};
  world.commit_now(commit);
}

TEST(Message, IsAnsweredByTheWorker) {
  World world;
  auto answer = world.send(say("hi"));
  const auto event = world.read_events(1).at(0);
  EXPECT_EQ(event.type, model::EventType::user_message);
  EXPECT_EQ(event.text, "hi");
  EXPECT_EQ(event.answer_until, world.store->timer_now() + std::chrono::seconds(30));
  world.pending_replies.finish(event.id, Answer{200, said("Hello.")});
  const auto response = answer.get();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, said("Hello."));
  EXPECT_TRUE(response.content_type.starts_with("application/json"));
}

// Commits as the turn worker does: the message's Turn makes an output. The execution continues if
// `busy`.
enum class Busy : std::uint8_t { no, yes };
void store_turn(World& world, const model::Event& event, const queue::Position& at,
                const std::string& text, Busy busy) {
  store::SessionCommit commit;
  commit.key = world.session_key();
  const auto session = world.store->first().sessions().load(commit.key).value();
  commit.expected_version = session ? session->version : 0;
  commit.after.key = commit.key;
  commit.after.position = at;
  commit.after.last_output_seq = (session ? session->last_output_seq : 0) + 1;
  model::Output output;
  output.id = model::new_id();
  output.seq = commit.after.last_output_seq;
  output.input_id = event.id;
  output.text = text;
  commit.outputs = {output};
  if (busy == Busy::yes) {
    model::Execution execution;
    execution.input_id = event.id;
    execution.source = event.type;
    execution.pending_call_id = "call";
    execution.answer_until = event.answer_until;
    commit.after.execution = execution;
  }
  world.commit_now(commit);
}

// Waits for the acknowledgements of all earlier appends. The log calls back in order.
void wait_for_acknowledgements(World& world) {
  EXPECT_EQ(world.inject(message()).status, 200);
}

json outputs_in(const Response& response) {
  return json::parse(response.body).at("outputStack");
}

TEST(Message, IsAnsweredAtItsDeadlineWithWhatWasSaidSoFar) {
  test::WorldSettings settings;
  settings.turn_timeout = std::chrono::seconds(3);
  World world(settings);
  auto answer = world.send(say("hi"));
  const auto logged = world.read_records(1).at(0);
  const auto event = test::event_of(logged);
  store_turn(world, event, logged.position, "Looking.", Busy::yes);
  const auto response = answer.get();
  EXPECT_EQ(response.status, 202);
  ASSERT_EQ(outputs_in(response).size(), 1U);
  EXPECT_EQ(outputs_in(response)[0]["text"], "Looking.");
  EXPECT_TRUE(*world.store->first().answers().is_cut(event.id));
  EXPECT_EQ(world.pending_replies.size(), 0U);
}

TEST(Message, ThatIsAtRestByItsDeadlineIsNotCut) {
  World world;
  auto answer = world.send(say("hi"));
  const auto logged = world.read_records(1).at(0);
  const auto event = test::event_of(logged);
  store_turn(world, event, logged.position, "Hello.", Busy::no);
  wait_for_acknowledgements(world);
  world.pending_replies.cut_off();
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_FALSE(*world.store->first().answers().is_cut(event.id));
}

TEST(Message, ThatAnotherDaemonAnswersIsReadFromTheStore) {
  World world;
  auto answer = world.send(say("hi"));
  const auto logged = world.read_records(1).at(0);
  const auto event = test::event_of(logged);
  store_turn(world, event, logged.position, "Hello.", Busy::no);
  world.pending_replies.hear("another " + event.id);
  const auto response = answer.get();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(response.body)["text"], "Hello.");
}

TEST(Message, WhoseNotificationWasLostIsReadFromTheStore) {
  World world;
  auto answer = world.send(say("hi"));
  const auto logged = world.read_records(1).at(0);
  store_turn(world, test::event_of(logged), logged.position, "Hello.", Busy::no);
  world.pending_replies.hear("");
  EXPECT_EQ(answer.get().status, 200);
}

TEST(Message, ThatAnotherDaemonHasCutIsAnsweredWithTheOutputsBeforeTheCut) {
  World world;
  auto answer = world.send(say("hi"));
  const auto logged = world.read_records(1).at(0);
  const auto event = test::event_of(logged);
  store_turn(world, event, logged.position, "Looking.", Busy::yes);
  std::promise<void> cut;
  world.store->first().answers().cut({world.session_key(), event.id, logged.position},
                                     [&](const auto&) { cut.set_value(); });
  cut.get_future().wait();
  store_turn(world, event, logged.position, "Found.", Busy::no);
  world.pending_replies.hear(event.id);
  const auto response = answer.get();
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(json::parse(response.body)["text"], "Looking.");
}

TEST(Message, AStopCutsWaitingOnes) {
  World world;
  auto answer = world.send(say("hi"));
  const auto event = world.read_events(1).at(0);
  wait_for_acknowledgements(world);
  world.pending_replies.cut_off();
  EXPECT_EQ(answer.get().status, 202);
  EXPECT_TRUE(*world.store->first().answers().is_cut(event.id));
  expect_problem(world.call(say("again")), 503);
}

TEST(Message, ThatPrefersNotToWaitIsAcceptedAtOnce) {
  World world;
  for (const std::string prefer :
       {"respond-async", "Respond-Async; x=1", "wait=10, respond-async"}) {
    auto request = say("hi");
    request.headers.emplace_back("prefer", prefer);
    const auto response = world.call(request);
    EXPECT_EQ(response.status, 202) << prefer;
    EXPECT_EQ(response.body, compose_answer({}, "u", "s"));
    EXPECT_EQ(header(response, "Preference-Applied"), "respond-async");
    EXPECT_FALSE(world.read_events(1).at(0).answer_until);
  }
  EXPECT_EQ(world.pending_replies.size(), 0U);
  auto other = say("hi");
  other.headers.emplace_back("prefer", "wait=10, respond-asynchronously");
  auto answer = world.send(other);
  const auto event = world.read_events(1).at(0);
  EXPECT_TRUE(event.answer_until);
  world.pending_replies.finish(event.id, Answer{200, said("")});
  EXPECT_EQ(answer.get().status, 200);
}

TEST(Message, ThatPrefersNotToWaitIsRefusedByAStoppedLog) {
  World world;
  world.log->stop();
  auto request = say("hi", "k1");
  request.headers.emplace_back("prefer", "respond-async");
  expect_problem(world.call(request), 503);
}

TEST(Message, ARepeatOfAnAcceptedOneNeverRunsAndGetsTheOutputs) {
  World world;
  auto request = say("hi", "k1");
  request.headers.emplace_back("prefer", "respond-async");
  EXPECT_EQ(world.call(request).status, 202);
  const auto logged = world.read_records(1).at(0);
  const auto event = test::event_of(logged);
  store_turn(world, event, logged.position, "Looking.", Busy::yes);
  // The preference of the first request applies.
  const auto running = world.call(say("hi", "k1"));
  EXPECT_EQ(running.status, 202);
  EXPECT_EQ(json::parse(running.body)["text"], "Looking.");
  store_turn(world, event, logged.position, "Found.", Busy::no);
  const auto rested = world.call(request);
  EXPECT_EQ(rested.status, 200);
  EXPECT_EQ(json::parse(rested.body)["text"], "Looking.\nFound.");
  EXPECT_TRUE(world.log_is_empty());
  const auto next_day = world.clock.now() + std::chrono::hours(25);
  EXPECT_EQ(*world.store->first().answers().prune(next_day, {}, 100), 1) << "repeats store no cuts";
}

TEST(Message, ThatIsAcceptedUnderTheKeyOfAClientThatWaitsIsThatClientsAnswer) {
  World world;
  auto first = world.send(say("hi", "k1"));
  const auto event = world.read_events(1).at(0);
  auto request = say("hi", "k1");
  request.headers.emplace_back("prefer", "respond-async");
  auto second = world.send(request);
  const auto again = world.read_events(1).at(0);
  EXPECT_EQ(again.id, event.id);
  EXPECT_EQ(again.answer_until, event.answer_until);
  world.pending_replies.finish(event.id, Answer{200, said("one")});
  EXPECT_EQ(first.get().body, said("one"));
  EXPECT_EQ(second.get().body, said("one"));
}

TEST(Message, ThatIsAcceptedUnderAKeyIsRefusedWhileTooManyWait) {
  World world;
  world.pool.stop();
  auto request = say("hi", "k1");
  request.headers.emplace_back("prefer", "respond-async");
  expect_problem(world.call(request), 503);
  EXPECT_TRUE(world.log_is_empty());
}

// Two daemons that take a key at the same time may both append its input.
TEST(Message, AnAcceptedOneUnderAKeyStaysCutWhicheverRecordRuns) {
  World world;
  auto request = say("hi", "k1");
  request.headers.emplace_back("prefer", "respond-async");
  EXPECT_EQ(world.call(request).status, 202);
  const auto event = world.read_events(1).at(0);
  store::SessionCommit other;  // of the other daemon's record, whose client waits
  other.key = world.session_key();
  other.after.key = other.key;
  other.answers.uncut = {{event.id, world.store->timer_now() + std::chrono::seconds(30)}};
  EXPECT_THROW(world.commit_now(other), std::runtime_error);
  other.answers.uncut.clear();
  EXPECT_NO_THROW(world.commit_now(other));
}

TEST(Message, ARepeatWaitsUntilTheDeadlineOfTheFirst) {
  World world;  // the deadline is 30 s from now by the clock of timers
  auto first = world.send(say("hi", "k1"));
  const auto logged = world.read_records(1).at(0);
  const auto event = test::event_of(logged);
  store_turn(world, event, logged.position, "Looking.", Busy::yes);
  world.clock.advance(std::chrono::seconds(30));
  const auto repeated = world.call(say("hi", "k1"));
  EXPECT_EQ(repeated.status, 202);
  EXPECT_EQ(json::parse(repeated.body)["text"], "Looking.");
  world.pending_replies.hear(event.id);
  EXPECT_EQ(first.get().status, 202);
}

TEST(Message, WrongOnesNeverReachTheLog) {
  World world;
  expect_problem(world.call({Method::post, "/" + token('9'), {}, say("x").body, {}}), 404);
  expect_problem(world.call({Method::post, "/" + token('a'), {}, "{}", {}}), 400);
  EXPECT_TRUE(world.log_is_empty());
  EXPECT_EQ(world.pending_replies.size(), 0U);
}

TEST(Message, OfAUserWhoWasErasedMeanwhileSaysNothing) {
  World world;
  auto answer = world.send(say("hi"));
  const auto event = world.read_events(1).at(0);
  world.pending_replies.finish(event.id, Answer{200, ""});
  EXPECT_EQ(answer.get().body, compose_answer({}, "u", "s"));
}

TEST(Message, AStoppedLogEndsTheWait) {
  World world;
  world.log->stop();
  expect_problem(world.call(say("hi")), 503);
  EXPECT_EQ(world.pending_replies.size(), 0U);
}

TEST(Message, AKeyedOneIsReplayedFromTheStore) {
  World world;
  auto first = world.send(say("hi", "k1"));
  const auto event = world.read_events(1).at(0);
  store_answer(world, event.id, said("one"));
  world.pending_replies.finish(event.id, Answer{200, said("one")});
  EXPECT_EQ(first.get().body, said("one"));

  const auto second = world.call(say("hi", "k1"));
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, said("one"));
  EXPECT_TRUE(world.log_is_empty());
  expect_problem(world.call(say("other", "k1")), 409);
}

TEST(Message, AKeyedOneIsReplayedThoughTheInboxIsFull) {
  test::WorldSettings settings;
  settings.limits.inbox = 2;
  World world(settings);
  auto first = world.send(say("hi", "k1"));
  const auto event = world.read_events(1).at(0);
  world.busy.set(world.session_key(), 2);
  // The input has no answer to repeat yet, and the inbox has no room for a second record.
  expect_problem(world.call(say("hi", "k1")), 429);
  store_answer(world, event.id, said("one"));
  world.pending_replies.finish(event.id, Answer{200, said("one")});
  EXPECT_EQ(first.get().body, said("one"));

  const auto again = world.call(say("hi", "k1"));
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, said("one"));
  expect_problem(world.call(say("other", "k1")), 409);
  expect_problem(world.call(say("hi", "k2")), 429);
  EXPECT_TRUE(world.log_is_empty());
}

TEST(Message, AFailureIsNotReplayedIntoAFullInbox) {
  test::WorldSettings settings;
  settings.limits.inbox = 2;
  World world(settings);
  auto first = world.send(say("hi", "k1"));
  const auto event = world.read_events(1).at(0);
  store_answer(world, event.id, std::nullopt);
  world.pending_replies.finish(event.id,
                               model::fail(model::Error{model::Errc::internal, "failed"}));
  expect_problem(first.get(), 500);
  world.busy.set(world.session_key(), 2);
  expect_problem(world.call(say("hi", "k1")), 429);
  EXPECT_TRUE(world.log_is_empty());
}

TEST(Message, TwoAtOnceUnderOneKeyGetOneAnswer) {
  World world;
  auto first = world.send(say("hi", "k1"));
  const auto event = world.read_events(1).at(0);
  auto second = world.send(say("hi", "k1"));
  // The second request is appended under the id of the first. One claim lets only one record have
  // effects.
  const auto again = world.read_events(1).at(0);
  EXPECT_EQ(again.id, event.id);
  EXPECT_EQ(again.claim, event.claim);
  world.pending_replies.finish(event.id, Answer{200, said("")});
  EXPECT_EQ(first.get().body, said(""));
  EXPECT_EQ(second.get().body, said(""));
  EXPECT_TRUE(world.log_is_empty());
}

TEST(Message, AfterAFailureTheKeyStandsForANewOne) {
  World world;
  auto first = world.send(say("hi", "k1"));
  const auto event = world.read_events(1).at(0);
  store_answer(world, event.id, std::nullopt);
  world.pending_replies.finish(event.id,
                               model::fail(model::Error{model::Errc::internal, "failed"}));
  expect_problem(first.get(), 500);

  auto second = world.send(say("hi", "k1"));
  const auto retried = world.read_events(1).at(0);
  EXPECT_NE(retried.id, event.id);
  EXPECT_EQ(retried.claim, (model::Claim{model::Claim::Kind::keyed_event, retried.id}));
  store_answer(world, retried.id, said("two"));
  world.pending_replies.finish(retried.id, Answer{200, said("two")});
  EXPECT_EQ(second.get().body, said("two"));
  EXPECT_EQ(world.call(say("hi", "k1")).body, said("two"));
  EXPECT_TRUE(world.log_is_empty());
}

}  // namespace
}  // namespace conversed::api
