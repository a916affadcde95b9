// Routes that only the console uses: the last hour's metrics, a session's changes,
// a Flow as a graph, dead letters in groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "api/console/console.h"
#include "api/live/history.h"
#include "api/live/pending_replies.h"
#include "store/model/ids.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using test::body_of;
using test::Sent;
using test::token;
using test::World;

const SeriesName turns{"conversed_turns_total", Figure::rate};
const SeriesName lag{"conversed_log_lag", Figure::value};

TEST(HistoryTest, KeepsTheNewestSamples) {
  History history;
  const model::Timestamp start{};
  for (std::size_t i = 0; i < History::max_samples + 5; ++i) {
    history.add(start + seconds(10 * (i + 1)), {{turns, static_cast<double>(i)}});
  }
  const auto view = history.view(start);
  ASSERT_EQ(view.times.size(), History::max_samples);
  ASSERT_EQ(view.series.size(), 1U);
  ASSERT_EQ(view.series[0].values.size(), History::max_samples);
  EXPECT_EQ(view.times.front(), start + seconds(60));
  EXPECT_EQ(view.series[0].values.front(), 5);
  EXPECT_EQ(view.series[0].values.back(), static_cast<double>(History::max_samples + 4));
}

TEST(HistoryTest, IsUnknownWhereASeriesHadNoValue) {
  History history;
  const model::Timestamp start{};
  history.add(start + seconds(10), {{turns, 1}});
  history.add(start + seconds(20), {{lag, 7}});
  const auto view = history.view(start);
  ASSERT_EQ(view.series.size(), 2U);
  EXPECT_EQ(view.series[0].name, lag);
  EXPECT_TRUE(std::isnan(view.series[0].values[0]));
  EXPECT_EQ(view.series[0].values[1], 7);
  EXPECT_TRUE(std::isnan(view.series[1].values[1]));
}

TEST(HistoryTest, LeavesFurtherSeriesOut) {
  History history;
  std::vector<std::pair<SeriesName, double>> sample;
  for (std::size_t i = 0; i <= History::max_series; ++i) {
    sample.push_back({{"m" + std::to_string(i), Figure::value}, 1});
  }
  history.add(model::Timestamp(seconds(1)), sample);
  EXPECT_EQ(history.view({}).series.size(), History::max_series);
}

TEST(HistoryRoute, ShowsTheSamplesBehindATime) {
  World world;
  const auto now = world.clock.now();
  world.history.add(now, {{turns, 1.5}});
  world.history.add(now + seconds(10), {{turns, History::unknown}});
  const auto all = body_of(world.manage(Method::get, "/management/history"));
  EXPECT_EQ(all.at("interval"), 10);
  EXPECT_EQ(all.at("times").size(), 2U);
  EXPECT_EQ(all.at("series"), json::parse(R"([{"metric": "conversed_turns_total", "figure": "rate",
                                               "values": [1.5, null]}])"));
  const auto after = std::to_string(all.at("times")[0].get<std::int64_t>());
  const auto later =
      body_of(world.manage(Method::get, "/management/history", nullptr, {{"after", after}}));
  EXPECT_EQ(later.at("times"), json::array({all.at("times")[1]}));
}

// A request for the event behind `known`. Empty: for any.
Sent hear(World& world, const std::string& known, std::string_view email = "admin@acme.example",
          char endpoint = 'a') {
  Sent sent{Method::get,
            "/management/sessions/events",
            {{"authorization", world.sign_in(email)}},
            "",
            {{"URLToken", token(endpoint)}, {"userId", "u"}, {"sessionId", "s"}}};
  if (!known.empty()) sent.headers.emplace_back("last-event-id", known);
  return sent;
}

Sent hear(World& world, std::int64_t version) {
  return hear(world, std::to_string(version));
}

store::SessionCommit next_commit(const model::Session& session) {
  store::SessionCommit commit;
  commit.key = session.key;
  commit.expected_version = session.version;
  commit.after = session;
  return commit;
}

TEST(SessionList, IsOfAUserAnEndpointOrAState) {
  World world;
  const auto session = world.put_session();
  const auto listed = [&](HeaderList query) {
    query.emplace_back("projectId", session.key.project_id);
    const auto answer = world.manage(Method::get, "/management/sessions", nullptr, query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return body_of(answer).at("items").size();
  };
  EXPECT_EQ(listed({{"userId", "u"}}), 1U);
  EXPECT_EQ(listed({{"userId", "v"}}), 0U);
  EXPECT_EQ(listed({{"URLToken", token('a')}}), 1U);
  EXPECT_EQ(listed({{"URLToken", token('b')}}), 0U);
  EXPECT_EQ(listed({{"URLToken", token('b')}, {"userId", "u"}}), 0U);
  EXPECT_EQ(listed({{"state", "idle"}, {"userId", "u"}}), 1U);
  EXPECT_EQ(listed({{"state", "busy"}}), 0U);
  EXPECT_EQ(listed({{"text", "nobody says this"}}), 0U);
  const auto refused = [&](HeaderList query) {
    query.emplace_back("projectId", session.key.project_id);
    return world.manage(Method::get, "/management/sessions", nullptr, std::move(query)).status;
  };
  EXPECT_EQ(refused({{"state", "asleep"}}), 400);
  EXPECT_EQ(refused({{"URLToken", token('d')}}), 404) << "an Endpoint of another project";
  EXPECT_EQ(refused({{"URLToken", token('9')}}), 404);
}

TEST(SessionEvents, TellAVersionThatTheClientDoesNotKnowAtOnce) {
  World world;
  const auto session = world.put_session();
  const auto answer = world.call(hear(world, 0));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "text/event-stream");
  const auto version = std::to_string(session.version);
  EXPECT_EQ(answer.body,
            "retry: 250\nid: " + version + "\ndata: {\"version\":" + version + "}\n\n");
  EXPECT_EQ(world.watch.size(), 0U);
}

TEST(SessionEvents, WaitForTheNextCommit) {
  World world;
  const auto session = world.put_session();
  auto answer = world.send(hear(world, session.version));
  world.commit_now(next_commit(session));
  world.watch.notify(outputs_name(session.key));
  const auto version = std::to_string(session.version + 1);
  EXPECT_NE(answer.get().body.find("id: " + version + "\n"), std::string::npos);
}

TEST(SessionEvents, GoOnBehindTheEventThatTheBrowserNames) {
  World world;
  const auto session = world.put_session();
  auto answer = world.send(hear(world, session.version));
  world.watch.stop();
  EXPECT_EQ(answer.get().body, "retry: 250\n: nothing new\n\n");
}

TEST(SessionEvents, ComeAfterAReset) {
  World world;
  const auto session = world.put_session();
  auto answer = world.send(hear(world, session.version));
  const json name{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}};
  ASSERT_EQ(world.manage(Method::post, "/management/sessions/reset", name).status, 204);
  EXPECT_NE(answer.get().body.find("id: " + std::to_string(session.version + 1) + "\n"),
            std::string::npos);
}

std::string id_in(const Response& answer) {
  const auto begin = answer.body.find("id: ") + 4;
  return answer.body.substr(begin, answer.body.find('\n', begin) - begin);
}

TEST(SessionEvents, ComeAfterEachTryOfADelivery) {
  World world;
  world.options.steady_now = [] { return std::chrono::steady_clock::now(); };
  const auto session = world.put_session();
  auto commit = next_commit(session);
  const model::Output output{.id = "o1",
                             .seq = 1,
                             .input_id = "i1",
                             .text = "hi",
                             .data = nullptr,
                             .trace_id = std::string(32, '7'),
                             .created_at = world.clock.now(),
                             .delivery = model::Delivery::pending};
  commit.outputs = {output};
  commit.after.last_output_seq = 1;
  world.commit_now(commit);
  const auto written = id_in(world.call(hear(world, "")));
  const auto now = world.store->timer_now();
  auto answer = world.send(hear(world, written));
  world.store->first().outbox().reschedule(session.key, output, now + seconds(1), 1, [] {}, {});
  const auto failed = id_in(answer.get());
  EXPECT_NE(failed, written);
  answer = world.send(hear(world, failed));
  world.store->first().outbox().delivered(session.key, output, 0, [] {}, {});
  EXPECT_EQ(id_in(answer.get()), std::to_string(session.version + 1));
}

// Sends the request, and waits until it waits for a change, or is answered.
std::future<Response> open_stream(World& world, const Sent& sent) {
  const auto before = world.watch.size();
  auto answer = world.send(sent);
  while (world.watch.size() == before &&
         answer.wait_for(seconds(0)) == std::future_status::timeout) {
    std::this_thread::yield();
  }
  return answer;
}

TEST(SessionEvents, AnOrganisationThatOpensManyStreamsLeavesPlacesForOthers) {
  World world;
  const auto known = std::to_string(world.put_session('a').version);
  ASSERT_EQ(std::to_string(world.put_session('c').version), known);
  std::vector<std::future<Response>> streams;
  do {
    streams.push_back(open_stream(world, hear(world, known)));
  } while (world.watch.size() == streams.size() && streams.size() < 300);
  EXPECT_EQ(streams.back().get().status, 429);
  const auto taken = world.watch.size();
  auto answer = open_stream(world, hear(world, known, "out@other.example", 'c'));
  EXPECT_EQ(world.watch.size(), taken + 1);
  world.watch.stop();
  EXPECT_EQ(answer.get().status, 200);
}

TEST(SessionEvents, OfNoSessionAreNotFound) {
  World world;
  EXPECT_EQ(world.call(hear(world, 0)).status, 404);
}

TEST(FlowGraph, HasTheSessionsThatWaitAtEachNode) {
  World world;
  const std::string text =
      "conversed: 1\nproject: {name: Tools, locales: [en]}\nflows:\n  - name: Main\n    nodes:\n"
      "      - if: {condition: \"input.text == 'a'\", then: [{say: one}]}\n"
      "      - id: ask\n        question: {text: \"Where?\", storeIn: context.where}\n"
      "endpoints: [{name: web, flow: Main}]\n";
  const auto report = body_of(
      world.manage(Method::post, "/management/import", {{"file", "p.yaml"}, {"text", text}}));
  const std::string flow = report["flows"][0]["_id"];
  const auto endpoint =
      world.store->assets().endpoint_by_token(report["endpoints"][0]["urlToken"]).value();
  store::SessionCommit commit;
  commit.key = {endpoint->project_id, endpoint->id, "u", "s"};
  commit.after.key = commit.key;
  commit.after.position = {1, 0, 0};
  commit.after.flow_state = {
      {"v", 1}, {"executions", 1}, {"waiting", {{"flow", "Main"}, {"at", "ask"}}}};
  world.commit_now(commit);

  // Another session asked, and failed.
  commit.key.user_id = commit.after.key.user_id = "v";
  commit.after.flow_state = nullptr;
  commit.after.last_receipt = model::new_id();
  const json turn{{"what", "turn"},
                  {"flow", "Main"},
                  {"version", 1},
                  {"nodes", {"nodes[0]", "ask"}},
                  {"deadLetter", model::new_id()}};
  commit.receipts = {{.input_id = commit.after.last_receipt,
                      .first = store::NewReceiptRow::First{},
                      .body = tests::receipt_step(turn)}};
  world.commit_now(commit);

  const auto graph = body_of(world.manage(Method::get, "/management/flows/" + flow + "/graph"));
  EXPECT_EQ(graph.at("version"), 1);
  EXPECT_EQ(graph.at("isComplete"), true);
  ASSERT_EQ(graph.at("nodes").size(), 3U);
  std::map<std::string, json> nodes;
  for (const auto& node : graph.at("nodes")) nodes[node.at("node")] = node;
  EXPECT_EQ(nodes.at("nodes[0]").at("type"), "if");
  EXPECT_EQ(nodes.at("nodes[0]").at("sessions"), 0);
  EXPECT_EQ(nodes.at("ask").at("sessions"), 1);
  EXPECT_EQ(nodes.at("nodes[0]").at("runs"), 1);
  EXPECT_EQ(nodes.at("nodes[0]").at("failures"), 0);
  EXPECT_EQ(nodes.at("ask").at("failures"), 1);
  const auto& arrows = graph.at("arrows");
  EXPECT_EQ(arrows[0], (json{{"from", "start"},
                             {"to", nodes.at("nodes[0]").at("name")},
                             {"way", ""},
                             {"waits", false}}));
  const json branch{{"from", nodes.at("nodes[0]").at("name")},
                    {"to", nodes.at("nodes[0].then[0]").at("name")},
                    {"way", "then"},
                    {"waits", false}};
  EXPECT_NE(std::ranges::find(arrows, branch), arrows.end()) << arrows;
  EXPECT_EQ(
      world.manage(Method::get, "/management/flows/" + flow + "/graph", nullptr, {{"version", "2"}})
          .status,
      404);
}

TEST(FlowGraph, CountsTheNewestSessionsUntilItsTimeIsUp) {
  World world;
  store::SessionCommit commit;
  commit.key = world.session_key();
  commit.after.position = {1, 0, 0};
  for (int i = 0; i < 300; ++i) {
    commit.key.user_id = "user " + std::to_string(i);
    commit.after.key = commit.key;
    world.commit_now(commit);
  }
  world.options.steady_now = [&world] { return world.steady += std::chrono::milliseconds(20); };
  const auto flows = body_of(world.manage(Method::get, "/management/flows", nullptr,
                                          {{"projectId", world.session_key().project_id}}));
  const std::string flow = flows.at("items").at(0).at("_id");
  const auto graph = body_of(world.manage(Method::get, "/management/flows/" + flow + "/graph"));
  EXPECT_EQ(graph.at("isComplete"), false);
}

TEST(DeadLetters, AreGroupedByReasonTheLargestGroupFirst) {
  World world;
  const auto bury = [&](const std::string& reason) {
    model::Event event;
    event.id = model::new_id();
    event.type = model::EventType::inject;
    event.session = world.session_key();
    const auto session = world.store->first().sessions().load(event.session).value();
    store::SessionCommit commit;
    commit.key = event.session;
    commit.expected_version = session ? session->version : 0;
    commit.after.key = commit.key;
    commit.after.position = {1, 0, commit.expected_version};
    commit.dead_letters = {{model::new_id(),
                            {event.id, "inject", std::string(32, '7'), model::encode_value(event)},
                            reason}};
    world.commit_now(std::move(commit));
    world.clock.advance(seconds(10));
  };
  const auto start = world.clock.now();
  for (const char* reason : {"rare", "often", "often"}) bury(reason);
  const HeaderList project{{"projectId", world.session_key().project_id}};
  const auto groups =
      body_of(world.manage(Method::get, "/management/deadletters/groups", nullptr, project));
  ASSERT_EQ(groups.at("items").size(), 2U);
  const auto first = model::to_unix_ms(start) / 1000;
  EXPECT_EQ(groups.at("items")[0], (json{{"reason", "often"},
                                         {"kind", "event"},
                                         {"flow", nullptr},
                                         {"flowVersion", nullptr},
                                         {"node", nullptr},
                                         {"count", 2},
                                         {"first", first + 10},
                                         {"last", first + 20}}));
  EXPECT_EQ(groups.at("items")[1].at("reason"), "rare");

  auto rare = project;
  rare.emplace_back("reason", "rare");
  const auto letters =
      body_of(world.manage(Method::get, "/management/deadletters", nullptr, rare)).at("items");
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].at("reason"), "rare");
}

TEST(Console, HasItsPageAndNoFileOfAnotherName) {
  ASSERT_NE(console_file("console.html"), nullptr);
  ASSERT_NE(console_file("pages/overview.js"), nullptr);
  EXPECT_EQ(console_file("pages/overview"), nullptr);
  EXPECT_EQ(console_file(""), nullptr);
}

}  // namespace
}  // namespace conversed::api
