// Deliveries and the health of webhooks in the routes of operators.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "store/model/ids.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::token;
using test::World;

class DeliveryRoutes : public testing::Test {
 protected:
  DeliveryRoutes() {
    world_.services->sessions.retry = [this](const model::SessionKey& key) {
      retried_.push_back(key);
    };
    world_.services->sessions.resume_endpoint = [this](const std::string& id) {
      resumed_.push_back(id);
    };
  }
  // The user's session says this many outputs, `user-1` and so on.
  void say(const std::string& user, int outputs) { say(key_of(user), outputs); }
  void say(const model::SessionKey& key, int outputs) {
    const std::string& user = key.user_id;
    for (int i = 0; i < outputs; ++i) {
      store::SessionCommit commit;
      commit.key = key;
      commit.expected_version = i;
      commit.after.key = commit.key;
      commit.after.position = {1, 0, ++offset_};
      commit.after.last_output_seq = i + 1;
      commit.outputs.push_back({.id = user + "-" + std::to_string(i + 1),
                                .seq = i + 1,
                                .input_id = user,
                                .text = "hello " + user,
                                .data = nullptr,
                                .trace_id = std::string(32, '7'),
                                .created_at = world_.clock.now(),
                                .delivery = model::Delivery::pending});
      world_.commit_now(std::move(commit));
    }
  }
  void put_off(const std::string& user) {
    const auto first = world_.store->first().outbox().outputs(key_of(user), 0, 1)->front();
    world_.store->first().outbox().reschedule(key_of(user), first, world_.clock.now() + 30s, 2);
    settle();
  }
  void settle() {
    ASSERT_TRUE(world_.store->committer().write_and_wait([](store::Writer&) {}));
  }
  void fail_webhook(std::optional<model::Timestamp> paused_since = {}) {
    const auto now = world_.clock.now();
    world_.store->first().endpoint_health().failed({.endpoint_id = endpoint(),
                                                    .failing_since = now,
                                                    .last_status = 500,
                                                    .last_error = "the webhook answered 500",
                                                    .last_at = now,
                                                    .paused_since = paused_since,
                                                    .next_probe = now + 60s});
    settle();
  }
  model::SessionKey key_of(const std::string& user) const {
    auto key = world_.session_key();
    key.user_id = user;
    return key;
  }
  std::string endpoint() const { return world_.session_key().endpoint_id; }
  Response manage(Method method, const std::string& path, HeaderList query = {}) {
    return world_.manage(method, "/management/" + path, nullptr, std::move(query),
                         "ann@acme.example");
  }
  std::vector<std::string> ids(HeaderList query) {
    query.emplace_back("projectId", world_.session_key().project_id);
    std::vector<std::string> found;
    const auto response = manage(Method::get, "deliveries", std::move(query));
    EXPECT_EQ(response.status, 200) << response.body;
    const auto body = json::parse(response.body);
    for (const auto& item : body.at("items")) found.push_back(item.at("_id"));
    return found;
  }
  using Ids = std::vector<std::string>;

  World world_;
  std::vector<model::SessionKey> retried_;
  std::vector<std::string> resumed_;
  std::int64_t offset_ = 0;
};

TEST_F(DeliveryRoutes, AreListedByFiltersAndPages) {
  say("ann", 2);
  say("bob", 1);
  put_off("ann");
  EXPECT_EQ(ids({}), (Ids{"bob-1", "ann-1", "ann-2"}));
  EXPECT_EQ(ids({{"state", "waiting"}}), Ids{"ann-1"});
  EXPECT_EQ(ids({{"URLToken", token('a')}, {"state", "behind"}}), Ids{"ann-2"});
  EXPECT_EQ(ids({{"URLToken", token('a')}, {"userId", "bob"}, {"sessionId", "s"}}), Ids{"bob-1"});
  EXPECT_EQ(ids({{"olderThan", "1m"}}), Ids{});
  world_.clock.advance(2min);
  EXPECT_EQ(ids({{"olderThan", "1m"}}).size(), 3U);
  const auto page = json::parse(manage(Method::get, "deliveries", {{"limit", "2"}}).body);
  EXPECT_EQ(page.at("items").size(), 2U);
  EXPECT_EQ(ids({{"after", page.at("next").get<std::string>()}}), Ids{"ann-2"});
  const auto item = page.at("items").at(0);
  EXPECT_EQ(item.at("URLToken"), token('a'));
  EXPECT_EQ(item.at("state"), "due");
  EXPECT_EQ(item.at("dueAt"), nullptr);
}

TEST_F(DeliveryRoutes, PlaceInAnotherEndpointsSessionShowsNothingOfIt) {
  auto foreign = key_of("eve");
  foreign.project_id = std::string(24, 'f');
  foreign.endpoint_id = std::string(24, 'e');
  say("ann", 1);
  say(foreign, 2);
  for (const std::string session : {"1", "2", "3"}) {
    for (const std::string seq : {"0", "1"}) {
      const auto place = endpoint() + ":9999999999999:" + session + ':' + seq;
      for (const auto& id : ids({{"URLToken", token('a')}, {"after", place}})) {
        EXPECT_TRUE(id.starts_with("ann")) << id;
      }
    }
  }
}

TEST_F(DeliveryRoutes, WrongFiltersAreNamed) {
  const auto refused = [&](HeaderList query) {
    const auto response = manage(Method::get, "deliveries", std::move(query));
    EXPECT_EQ(response.status, 400);
    return json::parse(response.body).at("detail").get<std::string>();
  };
  EXPECT_NE(refused({{"state", "late"}}).find("state"), std::string::npos);
  EXPECT_NE(refused({{"olderThan", "1 week"}}).find("olderThan"), std::string::npos);
  EXPECT_NE(refused({{"after", "x:1"}}).find("after"), std::string::npos);
  EXPECT_NE(refused({{"after", "x:1:-1:0"}}).find("after"), std::string::npos);
  EXPECT_EQ(manage(Method::get, "deliveries", {{"URLToken", token('c')}}).status, 404);
}

TEST_F(DeliveryRoutes, OneIsShownWithItsOutput) {
  say("ann", 2);
  const auto shown = json::parse(manage(Method::get, "deliveries/ann-2").body);
  EXPECT_EQ(shown.at("text"), "hello ann");
  EXPECT_EQ(shown.at("state"), "behind");
  EXPECT_EQ(shown.at("firstId"), "ann-1");
  EXPECT_EQ(manage(Method::get, "deliveries/ann-3").status, 404);
}

TEST_F(DeliveryRoutes, RetryTellsWhichOutputGoesFirstAndTriesIt) {
  say("ann", 2);
  put_off("ann");
  const auto retried = manage(Method::post, "deliveries/ann-2/retry");
  EXPECT_EQ(retried.status, 202);
  EXPECT_EQ(json::parse(retried.body), (json{{"_id", "ann-2"}, {"firstId", "ann-1"}}));
  EXPECT_EQ(retried_, std::vector{key_of("ann")});
  EXPECT_EQ(ids({{"state", "due"}}), Ids{"ann-1"});
}

TEST_F(DeliveryRoutes, DroppedOneIsGoneAndItsSessionTold) {
  say("ann", 2);
  EXPECT_EQ(manage(Method::post, "deliveries/ann-1/drop").status, 204);
  EXPECT_EQ(manage(Method::post, "deliveries/ann-1/drop").status, 404);
  EXPECT_EQ(world_.delivered, std::vector{key_of("ann")});
  EXPECT_EQ(ids({}), Ids{"ann-2"});
}

TEST_F(DeliveryRoutes, SessionShowsTheDeliveryOfEachOutput) {
  say("ann", 2);
  put_off("ann");
  const auto key = key_of("ann");
  ASSERT_TRUE(
      world_.store->first().deliveries().drop({.output_id = "ann-1", .key = key, .seq = 1}));
  const auto body = json::parse(
      manage(Method::get, "sessions/show",
             {{"URLToken", token('a')}, {"userId", key.user_id}, {"sessionId", key.session_id}})
          .body);
  const auto& outputs = body.at("outputs");
  EXPECT_EQ(outputs.at(0).at("delivery"), nullptr);
  EXPECT_EQ(outputs.at(1).at("delivery").at("state"), "due");
  EXPECT_EQ(outputs.at(1).at("_id"), "ann-2");
}

TEST_F(DeliveryRoutes, EndpointThatWorksHasNoFailures) {
  const auto health = json::parse(manage(Method::get, "endpoints/" + endpoint() + "/health").body);
  EXPECT_EQ(health.at("state"), "works");
  EXPECT_EQ(health.at("failingSince"), nullptr);
  EXPECT_EQ(manage(Method::post, "endpoints/" + endpoint() + "/resume").status, 409);
  EXPECT_EQ(manage(Method::get, "endpoints/" + model::new_id() + "/health").status, 404);
}

TEST_F(DeliveryRoutes, EndpointHasTheRateOfItsLastMinutes) {
  const auto rates = [this] {
    const auto health = manage(Method::get, "endpoints/" + endpoint() + "/health");
    const auto list = json::parse(manage(Method::get, "endpoints").body);
    auto rate = json::parse(health.body).at("rate");
    for (const auto& item : list.at("items")) {
      if (item.at("_id") == endpoint()) EXPECT_EQ(item.at("rate"), rate);
    }
    return rate;
  };
  EXPECT_EQ(rates(), nullptr) << "without the role worker";
  DeliveryRate counted{.time = 300s};
  const auto count = [&counted](const std::string&) { return counted; };
  world_.services->sessions.delivery_rate = count;
  world_.services->projects.delivery_rate = count;
  EXPECT_EQ(rates(), json::parse(R"({"seconds":300,"posts":0,"failed":0,"perMinute":0.0,
                                     "failedPercent":null})"));
  counted = {.time = 120s, .posts = 3, .failed = 1};
  EXPECT_EQ(rates(), json::parse(R"({"seconds":120,"posts":3,"failed":1,"perMinute":1.5,
                                     "failedPercent":33})"));
}

TEST_F(DeliveryRoutes, PausedEndpointIsShownAndResumed) {
  fail_webhook();
  const std::string path = "endpoints/" + endpoint();
  auto health = json::parse(manage(Method::get, path + "/health").body);
  EXPECT_EQ(health.at("state"), "fails");
  EXPECT_EQ(health.at("lastStatus"), 500);
  fail_webhook(world_.clock.now());
  health = json::parse(manage(Method::get, path + "/health").body);
  EXPECT_EQ(health.at("state"), "paused");
  EXPECT_EQ(health.at("failures"), 2);
  EXPECT_EQ(health.at("nextProbeAt"), model::to_unix_ms(world_.clock.now() + 60s) / 1000);
  const auto resumed = manage(Method::post, path + "/resume");
  EXPECT_EQ(resumed.status, 200);
  EXPECT_EQ(json::parse(resumed.body).at("state"), "works");
  EXPECT_EQ(resumed_, Ids{endpoint()});
}

}  // namespace
}  // namespace conversed::api
