// GET /management/flows/{flowId}/recordings.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "store/model/ids.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::body_of;
using test::token;
using test::World;

class Recordings : public testing::Test {
 protected:
  // A Turn of the Flow that takes a message.
  static json turn_of(const std::string& flow, std::int64_t at) {
    return {
        {"what", "turn"},
        {"at", at},
        {"flow", flow},
        {"version", 1},
        {"nodes", {"nodes[0]"}},
        {"accepted", {{"type", "message"}, {"at", at}, {"text", "text " + std::to_string(at)}}}};
  }
  // Stores a session of the user. Each Turn is of an event of its own. The first one begins the
  // conversation, and has said "hello".
  void put(const std::string& user, std::vector<json> turns, char endpoint = 'a') {
    store::SessionCommit commit;
    commit.key = world_.session_key(endpoint);
    commit.key.user_id = user;
    commit.after.key = commit.key;
    commit.after.position = {1, 0, ++offset_};
    commit.after.last_output_seq = 1;
    turns.front()["recorded"]["begins"] = true;
    turns.front()["outputs"] = {1, 1};
    for (const auto& turn : turns) {
      const auto id = model::new_id();
      commit.receipts.push_back(
          {.input_id = id,
           .first = store::NewReceiptRow::First{.trace_id = std::string(32, '7'),
                                                .key = "",
                                                .previous = commit.after.last_receipt},
           .body = tests::receipt_step(turn)});
      commit.after.last_receipt = id;
    }
    model::Output output;
    output.input_id = commit.receipts.front().input_id;
    output.id = output.input_id + "-1";
    output.seq = 1;
    output.text = "hello";
    output.created_at = world_.clock.now();
    commit.outputs.push_back(std::move(output));
    world_.commit_now(std::move(commit));
  }
  Response get(HeaderList query = {}, std::string_view user = "ann@acme.example") {
    return world_.manage(Method::get, route_of(flow_), nullptr, std::move(query), user);
  }
  static std::vector<std::string> users(const json& page) {
    std::vector<std::string> users;
    for (const auto& item : page.at("items")) users.push_back(item.at("userId"));
    return users;
  }
  static std::string route_of(const std::string& flow) {
    return "/management/flows/" + flow + "/recordings";
  }
  using Users = std::vector<std::string>;

  World world_;
  const model::Endpoint endpoint_ =
      *test::must(world_.store->assets().endpoint_by_token(token('a')));
  const std::string flow_ = endpoint_.flow_id;
  const std::string name_ = test::must(world_.store->assets().flow(flow_, 0))->name;
  std::int64_t offset_ = 0;
};

TEST_F(Recordings, HaveEachTurnWithItsInputAndItsOutputs) {
  put("u", {turn_of(name_, 1), turn_of(name_, 2)});
  const auto page = body_of(get());
  EXPECT_EQ(page.at("_id"), flow_);
  EXPECT_EQ(page.at("name"), name_);
  EXPECT_EQ(page.at("projectId"), endpoint_.project_id);
  EXPECT_TRUE(page.at("next").is_null());
  ASSERT_EQ(page.at("items").size(), 1U);
  const auto& item = page["items"][0];
  EXPECT_EQ(item.at("userId"), "u");
  EXPECT_EQ(item.at("endpointId"), endpoint_.id);
  EXPECT_EQ(item.at("URLToken"), token('a'));
  EXPECT_TRUE(item.at("notWhole").is_null());
  ASSERT_EQ(item.at("turns").size(), 2U);
  const auto& first = item["turns"][0];
  EXPECT_EQ(first.at("text"), "text 1");
  EXPECT_EQ(first.at("begins"), true);
  EXPECT_EQ(first.at("node"), "nodes[0]");
  EXPECT_EQ(first.at("outputs"), json::array({json{{"text", "hello"}, {"data", nullptr}}}));
  EXPECT_EQ(item["turns"][1].at("text"), "text 2");
  EXPECT_FALSE(item["turns"][1].contains("outputs"));
}

TEST_F(Recordings, AreOfConversationsInWhichTheFlowRan) {
  put("other", {turn_of("Another Flow", 1)});
  auto entered = turn_of("Another Flow", 2);
  entered["nodes"] = {name_ + ": nodes[0]"};
  put("entered", {entered});
  // A failed Turn does not tell its Flow: it counts for the Flow of the Endpoint.
  auto failed = turn_of("", 3);
  failed.erase("flow");
  failed["deadLetter"] = model::new_id();
  failed["reason"] = "it failed";
  put("failed", {failed});
  const auto page = body_of(get());
  EXPECT_EQ(users(page), (Users{"failed", "entered"})) << "the newest first";
  EXPECT_EQ(page["items"][0]["turns"][0].at("failure"), "it failed");
}

TEST_F(Recordings, OfAConversationWithoutItsBeginTellWhy) {
  put("long", std::vector<json>(201, turn_of(name_, 1)));
  const auto page = body_of(get());
  ASSERT_EQ(users(page), (Users{"long"}));
  EXPECT_EQ(page["items"][0].at("notWhole"), "it has more than 200 events");
  EXPECT_EQ(page["items"][0].at("turns"), json::array());
}

TEST_F(Recordings, OfOneEndpointAreChosenByItsToken) {
  put("of a", {turn_of(name_, 1)});
  put("of b", {turn_of(name_, 2)}, 'b');
  EXPECT_EQ(users(body_of(get())), (Users{"of b", "of a"}));
  EXPECT_EQ(users(body_of(get({{"URLToken", token('b')}}))), (Users{"of b"}));
  for (const char foreign : {'c', 'd'}) {
    EXPECT_EQ(get({{"URLToken", token(foreign)}}, "admin@acme.example").status, 404) << foreign;
  }
}

TEST_F(Recordings, PagesEndAtTheirLimit) {
  for (const char* user : {"1", "2", "3"}) put(user, {turn_of(name_, 1)});
  const auto first = body_of(get({{"limit", "2"}}));
  EXPECT_EQ(users(first), (Users{"3", "2"}));
  const auto rest =
      body_of(get({{"limit", "2"}, {"after", std::to_string(first.at("next").get<int>())}}));
  EXPECT_EQ(users(rest), (Users{"1"}));
  EXPECT_TRUE(rest.at("next").is_null());
  EXPECT_EQ(get({{"limit", "0"}}).status, 400);
}

TEST_F(Recordings, APageReadsTwoThousandEventsAtMost) {
  for (int user = 0; user < 11; ++user) {
    put(std::to_string(user), std::vector<json>(200, turn_of(name_, 1)));
  }
  const auto first = body_of(get());
  EXPECT_EQ(first.at("items").size(), 10U);
  const auto rest = body_of(get({{"after", std::to_string(first.at("next").get<int>())}}));
  EXPECT_EQ(users(rest), (Users{"0"}));
  EXPECT_TRUE(rest.at("next").is_null());
}

TEST_F(Recordings, NeedTheRoleInTheFlowsProject) {
  EXPECT_EQ(get().status, 200);
  EXPECT_EQ(get({}, "tom@acme.example").status, 403);
  const auto foreign = get({}, "out@other.example");
  const auto missing = world_.manage(Method::get, route_of(model::new_id()), nullptr);
  EXPECT_EQ(foreign.status, 404);
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(body_of(foreign).at("detail"), body_of(missing).at("detail"));
  EXPECT_EQ(world_.manage(Method::get, route_of("x"), nullptr).status, 400);
}

}  // namespace
}  // namespace conversed::api
