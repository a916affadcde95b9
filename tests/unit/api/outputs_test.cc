// Polls for the outputs of a session, and the answer composed of an execution's outputs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "api/live/answer.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::body_of;
using test::token;
using test::World;

void expect_bad(const Response& response, const std::string& name) {
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_NE(response.body.find(name), std::string::npos) << response.body;
}

void say_output(World& world, std::int64_t seq, const std::string& text) {
  store::SessionCommit commit;
  commit.key = world.session_key();
  const auto session = world.store->first().sessions().load(commit.key).value();
  commit.expected_version = session ? session->version : 0;
  commit.after.key = commit.key;
  commit.after.position = {1, 0, commit.expected_version};
  commit.after.last_output_seq = seq;
  model::Output output;
  output.id = "out-" + std::to_string(seq);
  output.seq = seq;
  output.input_id = "in";
  output.text = text;
  output.trace_id = std::string(32, '7');
  output.created_at = world.clock.now();
  commit.outputs = {output};
  world.commit_now(commit);
}

test::Sent poll(HeaderList query) {
  query.emplace_back("userId", "u");
  query.emplace_back("sessionId", "s");
  return {Method::get, "/" + token('a') + "/outputs", {}, "", std::move(query)};
}

TEST(Outputs, AnUnknownSessionHasNone) {
  World world;
  const auto response = world.call(poll({}));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(body_of(response), (json{{"items", json::array()}, {"last", 0}}));
}

TEST(Outputs, APollBeyondTheLastNumberHearsAtOnceThatTheSessionRestarted) {
  World world;
  const auto restarted = [](int last) {
    return json{{"items", json::array()}, {"last", last}, {"restarted", true}};
  };
  EXPECT_EQ(body_of(world.call(poll({{"after", "4"}}))), restarted(0));
  say_output(world, 1, "one");
  say_output(world, 2, "two");
  EXPECT_EQ(body_of(world.call(poll({{"after", "4"}}))), restarted(2));
  EXPECT_EQ(body_of(world.call(poll({{"after", "3"}, {"wait", "30"}}))), restarted(2));
  EXPECT_EQ(body_of(world.call(poll({{"after", "2"}}))),
            (json{{"items", json::array()}, {"last", 2}}));
}

TEST(Outputs, ComeInOrderPastANumber) {
  World world;
  say_output(world, 1, "one");
  say_output(world, 2, "two");
  auto body = body_of(world.call(poll({})));
  ASSERT_EQ(body.at("items").size(), 2U);
  EXPECT_EQ(body.at("items")[0].at("text"), "one");
  EXPECT_EQ(body.at("items")[1].at("seq"), 2);
  EXPECT_EQ(body.at("items")[1].at("source"), "bot");
  EXPECT_EQ(body.at("items")[1].at("createdAt"), 1'780'000'000);
  EXPECT_EQ(body.at("last"), 2);
  // The outputs are there already: no wait.
  body = body_of(world.call(poll({{"after", "1"}, {"wait", "30"}})));
  ASSERT_EQ(body.at("items").size(), 1U);
  EXPECT_EQ(world.watch.size(), 0U);
}

TEST(Outputs, AWaitingPollIsAnsweredByTheNextOutput) {
  World world;
  auto answer = world.send(poll({{"wait", "30"}}));
  say_output(world, 1, "one");
  world.watch.notify(outputs_name(world.session_key()));
  EXPECT_EQ(body_of(answer.get()).at("items")[0].at("text"), "one");
}

TEST(Outputs, APollWaitsOnAfterANotificationOfAnOldOutput) {
  World world;
  say_output(world, 1, "one");
  auto answer = world.send(poll({{"wait", "30"}, {"after", "1"}}));
  world.watch.notify(outputs_name(world.session_key()));  // a late notification of the first output
  say_output(world, 2, "two");
  world.watch.notify(outputs_name(world.session_key()));
  EXPECT_EQ(body_of(answer.get()).at("items").at(0).at("text"), "two");
}

TEST(Outputs, AStopAnswersTheWaitingPolls) {
  World world;
  say_output(world, 1, "one");
  auto answer = world.send(poll({{"wait", "30"}, {"after", "1"}}));
  // The watch does not hear of this output. Only a read of the store would show it.
  say_output(world, 2, "two");
  world.watch.stop();
  const auto body = body_of(answer.get());
  EXPECT_EQ(body.at("items").size(), 0U) << "a stop reads nothing";
  EXPECT_EQ(body.at("last"), 1) << "the next poll goes on where this one began";
}

TEST(Outputs, BadParametersAreNamed) {
  World world;
  for (const auto& [name, value] : HeaderList{{"after", "-1"},
                                              {"after", "x"},
                                              {"after", ""},
                                              {"wait", "31"},
                                              {"wait", "1.5"},
                                              {"after", "99999999999999999999"}}) {
    expect_bad(world.call(poll({{name, value}})), name);
  }
  expect_bad(world.call({Method::get, "/" + token('a') + "/outputs", {}, "", {{"userId", "u"}}}),
             "sessionId");
  EXPECT_EQ(world.call({Method::get, "/" + token('9') + "/outputs", {}, "", {}}).status, 404);
}

TEST(Answer, JoinsTextsAndKeepsEachOutput) {
  model::Output one;
  one.text = "one";
  one.trace_id = "t";
  model::Output two;
  two.data = {{"n", 1}};
  model::Output three;
  three.text = "three";
  const auto body = json::parse(compose_answer({one, two, three}, "u", "s"));
  EXPECT_EQ(body.at("text"), "one\nthree");
  EXPECT_EQ(body.at("data"), (json{{"n", 1}}));
  ASSERT_EQ(body.at("outputStack").size(), 3U);
  EXPECT_EQ(body.at("outputStack")[0],
            (json{{"text", "one"}, {"data", nullptr}, {"traceId", "t"}, {"source", "bot"}}));
  EXPECT_EQ(body.at("userId"), "u");
  EXPECT_EQ(body.at("sessionId"), "s");
  EXPECT_EQ(json::parse(compose_answer({}, "u", "s")).at("text"), "");
}

}  // namespace
}  // namespace conversed::api
