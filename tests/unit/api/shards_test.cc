// Operations on a store of two shards.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/model/ids.h"
#include "store/shards/across_shards.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::must;
using test::token;
using test::World;

class TwoShards : public testing::Test {
 protected:
  using Names = std::vector<std::string>;

  // The n-th user whose sessions are in this shard.
  std::string user_of(std::size_t shard, int n = 0) const {
    for (int number = 0;; ++number) {
      auto user = "user-" + std::to_string(number);
      if (world_.store->layout().shard_of(key_of(user)) == shard && n-- == 0) return user;
    }
  }
  model::SessionKey key_of(const std::string& user) const {
    auto key = world_.session_key();
    key.user_id = user;
    return key;
  }
  store::SessionCommit first_commit(const std::string& user) {
    store::SessionCommit commit;
    commit.key = key_of(user);
    commit.after.key = commit.key;
    commit.after.started_at = commit.after.last_activity_at = world_.clock.now();
    return commit;
  }
  // The user's session says `outputs` outputs, `user-0-1` and so on.
  void say(const std::string& user, std::int64_t outputs) {
    auto commit = first_commit(user);
    commit.after.last_output_seq = outputs;
    for (std::int64_t seq = 1; seq <= outputs; ++seq) {
      commit.outputs.push_back({.id = user + '-' + std::to_string(seq),
                                .seq = seq,
                                .input_id = user,
                                .text = "hello",
                                .data = nullptr,
                                .created_at = world_.clock.now(),
                                .delivery = model::Delivery::pending});
    }
    world_.commit_now(std::move(commit));
  }
  // A dead letter of the user. Returns its id.
  std::string fail(const std::string& user) {
    auto commit = first_commit(user);
    const model::Event event{
        .id = model::new_id(), .session = commit.key, .accepted_at = world_.clock.now()};
    auto id = model::new_id();
    commit.dead_letters = {
        {id, {event.id, "inject", std::string(32, '7'), model::encode_value(event)}, "odd"}};
    world_.commit_now(std::move(commit));
    return id;
  }
  // An event of the user that has a receipt. Returns its id.
  std::string run(const std::string& user, const std::string& trace_id) {
    auto commit = first_commit(user);
    auto event = model::new_id();
    commit.after.last_receipt = event;
    commit.receipts = {
        {.input_id = event,
         .first = store::NewReceiptRow::First{.trace_id = trace_id, .key = "", .previous = ""},
         .body = tests::receipt_step({{"what", "turn"}})}};
    world_.commit_now(std::move(commit));
    return event;
  }
  void settle(std::size_t shard) {
    ASSERT_TRUE(store_of(shard).committer().write_and_wait([](store::Writer&) {}));
  }
  store::Shard& store_of(std::size_t shard) const { return *world_.store->shards().at(shard); }

  Response manage(Method method, const std::string& path, HeaderList query = {},
                  const json& body = nullptr) {
    return world_.manage(method, "/management/" + path, body, std::move(query));
  }
  json shown(const std::string& path, HeaderList query = {}) {
    const auto response = manage(Method::get, path, std::move(query));
    EXPECT_EQ(response.status, 200) << path << ' ' << response.body;
    return json::parse(response.body);
  }
  HeaderList project() const { return {{"projectId", world_.session_key().project_id}}; }
  // This member of all items of the list, which is read in pages.
  Names read_list(const std::string& path, const std::string& member, std::size_t limit,
                  const HeaderList& filter) {
    Names all;
    HeaderList place;
    for (int page = 0; page < 50; ++page) {
      HeaderList query = project();
      query.emplace_back("limit", std::to_string(limit));
      query.insert(query.end(), filter.begin(), filter.end());
      query.insert(query.end(), place.begin(), place.end());
      const auto body = shown(path, query);
      EXPECT_LE(body.at("items").size(), limit);
      for (const auto& item : body.at("items")) all.push_back(item.at(member));
      const auto& next = body.at("next");
      if (next.is_null()) return all;
      place = {{"after", next.is_string() ? next.get<std::string>() : next.dump()}};
    }
    ADD_FAILURE() << path << " does not end";
    return all;
  }
  void expect_pages(const std::string& path, const std::string& member, const Names& expected,
                    const HeaderList& filter = {}) {
    for (const auto limit : {1U, 2U, 3U, 5U, 100U}) {
      EXPECT_EQ(read_list(path, member, limit, filter), expected) << path << " by " << limit;
    }
  }

  World world_{{.shards = 2}};
};

TEST_F(TwoShards, ListOfSessionsHasEachOnceInOrder) {
  for (const int n : {0, 1, 2, 3}) {
    for (const auto shard : {0U, 1U}) world_.commit_now(first_commit(user_of(shard, n)));
  }
  world_.commit_now(first_commit(user_of(0, 4)));
  std::vector<store::SessionSummary> rows;
  for (const auto& shard : world_.store->shards()) {
    const auto page = must(shard->sessions().list(world_.session_key().project_id, {}, 0, 100));
    rows.insert(rows.end(), page.rows.begin(), page.rows.end());
  }
  std::ranges::sort(rows, std::greater<>(), &store::SessionSummary::row);
  Names newest_first;
  for (const auto& row : rows) newest_first.push_back(row.key.user_id);
  ASSERT_EQ(newest_first.size(), 9U);
  expect_pages("sessions", "userId", newest_first);
}

TEST_F(TwoShards, DeliveriesOfBothShardsAreListedByTheirTimes) {
  Names by_time;
  for (const int n : {0, 1, 2}) {
    for (const auto shard : {1U, 0U}) {
      const auto user = user_of(shard, n);
      say(user, 2);
      auto& outbox = store_of(shard).outbox();
      const auto due = world_.clock.now() + std::chrono::seconds(by_time.size() + 1);
      outbox.reschedule(key_of(user), must(outbox.outputs(key_of(user), 0, 1)).front(), due, 1);
      settle(shard);
      for (const auto* number : {"-1", "-2"}) by_time.push_back(user + number);
    }
  }
  for (const auto& filter : {HeaderList(), HeaderList{{"URLToken", token('a')}}}) {
    expect_pages("deliveries", "_id", by_time, filter);
  }
}

TEST_F(TwoShards, DeliveriesThatAreDueAreListedOnce) {
  Names first_shard_first;
  for (const auto shard : {0U, 1U}) {
    for (const int n : {0, 1, 2}) {
      const auto user = user_of(shard, n);
      say(user, 2);
      for (const auto* number : {"-1", "-2"}) first_shard_first.push_back(user + number);
    }
  }
  expect_pages("deliveries", "_id", first_shard_first);
}

TEST_F(TwoShards, TimersOfBothShardsAreListedByTheirTimes) {
  Names by_time;
  for (const int n : {0, 1, 2}) {
    for (const auto shard : {1U, 0U}) {
      auto commit = first_commit(user_of(shard, n));
      by_time.push_back(model::new_id());
      const auto due = world_.clock.now() + std::chrono::minutes(by_time.size());
      commit.follow_ups.added.push_back({.id = by_time.back(),
                                         .session = commit.key,
                                         .trace_id = std::string(32, '7'),
                                         .due_at = due,
                                         .text = "still there?",
                                         .data = nullptr,
                                         .plan = {}});
      world_.commit_now(std::move(commit));
    }
  }
  expect_pages("timers", "_id", by_time);
  EXPECT_EQ(manage(Method::delete_, "timers/" + by_time.front()).status, 204);
  by_time.erase(by_time.begin());
  expect_pages("timers", "_id", by_time);
}

TEST_F(TwoShards, SchedulesAreListedOnceAndFoundById) {
  Names made;
  for (const auto shard : {0U, 1U}) {
    for (const int n : {0, 1, 2}) {
      json body = test::message();
      body["userId"] = user_of(shard, n);
      body["in"] = "1h";
      const auto answer = manage(Method::post, "schedules", {}, body);
      ASSERT_EQ(answer.status, 201) << answer.body;
      made.push_back(json::parse(answer.body).at("_id"));
    }
  }
  expect_pages("schedules", "_id", made);
  EXPECT_EQ(shown("schedules/" + made.back()).at("userId"), user_of(1, 2));
  EXPECT_EQ(manage(Method::delete_, "schedules/" + made.back()).status, 204);
  made.pop_back();
  expect_pages("schedules", "_id", made);
}

TEST_F(TwoShards, DeadLettersAreListedOnceAndFoundById) {
  Names letters;
  for (const auto shard : {0U, 1U}) {
    for (const int n : {0, 1, 2}) letters.push_back(fail(user_of(shard, n)));
  }
  expect_pages("deadletters", "_id", letters);
  EXPECT_EQ(shown("deadletters/" + letters.back()).at("userId"), user_of(1, 2));
  const auto groups = shown("deadletters/groups", project()).at("items");
  ASSERT_EQ(groups.size(), 1U) << groups;
  EXPECT_EQ(groups[0].at("count"), 6);
  EXPECT_EQ(shown("status").at("counts").at("deadLetters"), 6);
  EXPECT_EQ(shown("why/" + letters.back()).at("waits").at(0).at("reason"), "deadLetter");
  EXPECT_EQ(manage(Method::post, "deadletters/" + letters.back() + "/discard").status, 204);
  EXPECT_EQ(shown("status").at("counts").at("deadLetters"), 5);
}

TEST_F(TwoShards, SessionAndReceiptAreFoundInTheSecondShard) {
  const auto user = user_of(1);
  const auto event = run(user, model::new_trace_id());
  const auto session =
      shown("sessions/show", {{"URLToken", token('a')}, {"userId", user}, {"sessionId", "s"}});
  EXPECT_EQ(session.at("lastReceipt"), event);
  EXPECT_EQ(shown("receipts/" + event).at("userId"), user);
}

TEST_F(TwoShards, ClientsReadTheOutputsOfTheirSessionsShard) {
  for (const auto shard : {0U, 1U}) {
    const auto user = user_of(shard);
    say(user, 2);
    const auto answer = world_.call({Method::get,
                                     "/" + token('a') + "/outputs",
                                     {},
                                     "",
                                     {{"userId", user}, {"sessionId", "s"}, {"after", "1"}}});
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(json::parse(answer.body).at("last"), 2);
    EXPECT_EQ(shown("deliveries/" + user + "-2").at("firstId"), user + "-1");
  }
  EXPECT_EQ(shown("status").at("counts").at("pendingDeliveries"), 4);
}

TEST_F(TwoShards, EventsOfATraceAreFoundInBothShards) {
  const auto trace = model::new_trace_id();
  const auto first = run(user_of(1), trace);
  const auto second = run(user_of(0), trace);
  const auto receipt = shown("receipts/" + trace);
  EXPECT_EQ(receipt.at("_id"), first);
  EXPECT_EQ(receipt.at("others"), json({second}));
}

TEST_F(TwoShards, EndpointIsPausedIfItIsInOneShard) {
  const auto now = world_.clock.now();
  const auto id = world_.session_key().endpoint_id;
  const auto fail_in = [&](std::size_t shard, model::Timestamp since, const std::string& error) {
    store::EndpointFailure failure{.endpoint_id = id};
    failure.failing_since = since;
    failure.last_error = error;
    failure.last_at = since + 1min;
    failure.next_probe = now + 1min;
    if (shard == 1) failure.paused_since = since;
    store_of(shard).endpoint_health().failed(failure);
    settle(shard);
  };
  const auto health = [&] { return shown("endpoints/" + id + "/health"); };
  EXPECT_EQ(health().at("state"), "works");
  fail_in(0, now, "refused");
  EXPECT_EQ(health().at("state"), "fails");
  fail_in(1, now - 1h, "timed out");
  EXPECT_EQ(health().at("state"), "paused");
  EXPECT_EQ(health().at("failures"), 2);
  EXPECT_EQ(health().at("lastError"), "refused") << "the newest";
  EXPECT_EQ(health().at("failingSince"), model::to_unix_ms(now - 1h) / 1000);
  EXPECT_EQ(manage(Method::post, "endpoints/" + id + "/resume").status, 200);
  EXPECT_EQ(health().at("state"), "fails") << "it was paused in the other shard only";
  EXPECT_EQ(manage(Method::post, "endpoints/" + id + "/resume").status, 409);
}

TEST_F(TwoShards, ErasureTakesWhatTheFirstShardKeeps) {
  const auto user = user_of(1);
  say(user, 1);
  const HeaderList names{{"URLToken", token('a')}, {"userId", user}, {"sessionId", "s"}};
  (void)shown("sessions/show", names);
  const auto viewed = [&] {
    return shown("audit", {{"operation", "showSession"}}).at("items").at(0).at("userId");
  };
  EXPECT_EQ(viewed(), user);
  auto of_user = project();
  of_user.emplace_back("userId", user);
  EXPECT_EQ(shown("usersdata", of_user).at("items").size(), 2U) << "session and output";
  const auto erased = manage(Method::post, "usersdata/erase", project(), {{"userId", user}});
  ASSERT_EQ(erased.status, 200) << erased.body;
  EXPECT_EQ(json::parse(erased.body).at("sessions"), 1);
  EXPECT_EQ(json::parse(erased.body).at("outputs"), 1);
  EXPECT_TRUE(viewed().is_null());
  EXPECT_EQ(manage(Method::get, "sessions/show", names).status, 404);
}

// One shard has examined its rows up to 4, the other one up to 6.
TEST_F(TwoShards, MergedPageEndsWhereAShardHasStopped) {
  struct Row {
    int n = 0;
  };
  struct Page {
    std::vector<Row> rows;
    std::optional<int> next;
  };
  const auto read = [&](std::size_t limit, std::optional<int> first_next) {
    const auto page = [&](store::Shard& shard) -> model::Result<Page> {
      if (&shard == &store_of(0)) return Page{{{1}, {4}}, first_next};
      return Page{{{2}, {3}, {5}}, 6};
    };
    const auto merged =
        must(store::merge_pages(world_.store->shards(), limit, page, &Row::n, std::less<>()));
    std::vector<int> numbers;
    for (const auto& row : merged.rows) numbers.push_back(row.n);
    return std::pair(numbers, merged.next);
  };
  using Numbers = std::vector<int>;
  EXPECT_EQ(read(9, 4), std::pair(Numbers({1, 2, 3, 4}), std::optional(4)));
  EXPECT_EQ(read(2, 4), std::pair(Numbers({1, 2}), std::optional(2)));
  EXPECT_EQ(read(9, std::nullopt), std::pair(Numbers({1, 2, 3, 4, 5}), std::optional(6)));
}

TEST_F(TwoShards, StatusListsTheShards) {
  const auto shards = shown("status").at("store").at("shards");
  ASSERT_EQ(shards.size(), 2U);
  EXPECT_EQ(shards[1], (json{{"number", 1}, {"healthy", true}, {"failure", nullptr}}));
}

}  // namespace
}  // namespace conversed::api
