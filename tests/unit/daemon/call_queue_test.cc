// The order of the calls, and the shares of organizations and projects.
#include "daemon/calls/call_queue.h"
#include "store/commit/call_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/unit/daemon/caller_world.h"

namespace conversed::daemon {
namespace {

using Ids = std::vector<std::string>;

constexpr auto now = model::from_unix_ms(1'000'000);

// The queue and the rows that the store has for each lane.
struct Queue : CallQueue {
  explicit Queue(const CallQueueLimits& given) : CallQueue(given) {}
  // False if there is no room for the lane. A project without an organization is its own.
  bool add(const std::string& id, const std::string& upstream, const std::string& project = "p",
           const std::string& organization = "") {
    auto& waiting = rows[{project, upstream}];
    if (std::ranges::find(waiting, id) == waiting.end()) waiting.push_back(id);
    Lane* lane = find_lane(project, upstream);
    if (lane == nullptr) {
      lane = add_lane({organization.empty() ? project : organization, project, upstream}, upstream);
    }
    if (lane == nullptr) return false;
    wake(*lane, now);
    return true;
  }
  // Begins calls until the queue gives no more, one call a turn.
  Ids sent() {
    Ids ids;
    while (Lane* lane = next(now)) {
      auto& waiting = rows[{lane->project_id, lane->target}];
      if (waiting.empty()) {
        read_all(*lane, std::nullopt);
        continue;
      }
      store::Calls::Found found;
      found.call.id = waiting.front();
      const bool is_request =
          lane->target != store::knowledge_target && lane->target != store::code_target;
      if (is_request) found.call.http.emplace();
      waiting.erase(waiting.begin());
      ids.push_back(take(*lane, std::move(found)).pending.id);
    }
    return ids;
  }
  void end(const std::string& id) { release(id, std::nullopt); }

  std::map<std::pair<std::string, std::string>, Ids> rows;
};

TEST(CallQueue, ProjectsTakeTurnsAtAnUpstream) {
  Queue queue({.per_upstream = 3, .per_organization = 20});
  for (const char* id : {"a1", "a2", "a3", "a4"}) queue.add(id, "x", "a");
  for (const char* id : {"b1", "b2"}) queue.add(id, "x", "b");
  EXPECT_EQ(queue.sent(), (Ids{"a1", "b1", "a2"}));
  queue.end("a1");
  EXPECT_EQ(queue.sent(), (Ids{"b2"}));
  queue.end("b1");
  EXPECT_EQ(queue.sent(), (Ids{"a3"}));
}

TEST(CallQueue, AProjectIsBoundOverAllUpstreams) {
  Queue queue({.per_upstream = 3, .per_organization = 5});
  for (int i = 0; i < 3; ++i) {
    queue.add("x" + std::to_string(i), "x", "p", "o");
    queue.add("y" + std::to_string(i), "y", "p", "o");
  }
  queue.add("z", "x", "other", "o");
  const auto first = queue.sent();
  EXPECT_EQ(first.size(), 4U) << "three quarters of the organization's calls, and the other's one";
  EXPECT_EQ(std::ranges::count(first, "z"), 1);
  queue.landed(queue.at("x0"));
  EXPECT_EQ(queue.sent().size(), 1U);
}

TEST(CallQueue, AnOrganizationIsBoundOverAllProjects) {
  Queue queue(
      {.in_hand = 40, .lanes = 40, .requests = 8, .per_upstream = 8, .per_organization = 6});
  for (const char* project : {"a", "b", "c", "d"}) {
    for (int i = 0; i < 4; ++i) {
      const auto upstream = std::string(project) + std::to_string(i);
      EXPECT_EQ(queue.add(upstream, upstream, project, "hostile"), queue.rows.size() <= 10)
          << "an organization may have a quarter of the lanes";
    }
  }
  EXPECT_EQ(queue.sent().size(), 6U) << "the upstreams of no call answer";
  EXPECT_TRUE(queue.is_full("hostile", "a new project"));
  EXPECT_TRUE(queue.add("n1", "x", "neighbor", "other") &&
              queue.add("n2", "y", "neighbor", "other"));
  EXPECT_EQ(queue.sent(), (Ids{"n1", "n2"}));
}

TEST(CallQueue, OrganizationsTakeTurnsAtSearches) {
  Queue queue({.searches = 2});
  for (const char* project : {"a", "b", "c"}) {
    queue.add(std::string(project) + "1", store::knowledge_target, project, "hostile");
  }
  queue.add("n1", store::knowledge_target, "neighbor", "other");
  EXPECT_EQ(queue.sent(), (Ids{"a1", "n1"})) << "no search waits for one of each project";
  queue.end("a1");
  EXPECT_EQ(queue.sent(), Ids{"b1"});
}

TEST(CallQueue, SlotsAndIdsInHandAreCountedApart) {
  Queue queue({.in_hand = 12, .requests = 4, .per_upstream = 100, .per_organization = 200});
  for (int i = 0; i < 9; ++i) queue.add("a" + std::to_string(i), "x", "a");
  EXPECT_EQ(queue.sent().size(), 3U) << "an organization may have a quarter of the ids in hand";
  for (int i = 0; i < 9; ++i) queue.add("b" + std::to_string(i), "x", "b");
  EXPECT_EQ(queue.sent().size(), 1U) << "no slot is free";
  for (const char* id : {"a0", "a1", "a2"}) queue.landed(queue.at(id));
  EXPECT_EQ(queue.sent(), (Ids{"b1", "b2"})) << "the first project's marks are not stored yet";
  queue.end("a0");
  EXPECT_EQ(queue.sent(), Ids{"a3"});
}

TEST(CallQueue, SearchesTakeNoSlotOfRequests) {
  Queue queue({.requests = 1, .searches = 2});
  queue.add("c1", "x");
  queue.add("c2", "x");
  for (const char* id : {"s1", "s2"}) queue.add(id, store::knowledge_target);
  EXPECT_EQ(queue.sent(), (Ids{"c1", "s1"}));
}

TEST(CallQueue, AnOrganizationHasHalfOfTheScripts) {
  Queue queue({.requests = 1, .scripts = 4});
  for (int i = 0; i < 9; ++i) queue.add("a" + std::to_string(i), store::code_target, "a", "o");
  EXPECT_EQ(queue.sent(), (Ids{"a0", "a1"}));
  queue.add("other", store::code_target, "another", "o");
  EXPECT_EQ(queue.sent(), Ids{}) << "its other projects have no further ones";
  queue.rows[{"another", store::code_target}].clear();
  queue.add("c", "x", "a", "o");
  queue.add("b0", store::code_target, "b");
  EXPECT_EQ(queue.sent(), (Ids{"c", "b0"})) << "scripts take no slot of requests";
  queue.landed(queue.at("a0"));
  EXPECT_EQ(queue.sent(), Ids{"a2"}) << "a script that has ended gives its process free";
  for (const char* id : {"b1", "b2"}) queue.add(id, store::code_target, "b");
  EXPECT_EQ(queue.sent(), Ids{"b1"}) << "all processes have a script";
  queue.end("a0");
  queue.end("a1");
  EXPECT_EQ(queue.sent(), Ids{"a3"});
  Queue one({.scripts = 1});
  one.add("a", store::code_target, "a");
  one.add("b", store::code_target, "b");
  EXPECT_EQ(one.sent(), Ids{"a"});
  one.end("a");
  EXPECT_EQ(one.sent(), Ids{"b"});
}

TEST(CallQueue, LanesWithoutRoomAreReadAgainOnceThereIsRoom) {
  Queue queue({.lanes = 16});
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(queue.add(id, id, "p", "o"));
  EXPECT_FALSE(queue.add("d", "d", "p", "o")) << "a project may have three quarters of its part";
  EXPECT_TRUE(queue.is_full("o", "p"));
  EXPECT_FALSE(queue.is_full("o", "q"));
  EXPECT_TRUE(queue.add("e", "a", "q", "o"));
  EXPECT_TRUE(queue.is_full("o", "q")) << "an organization may have a quarter of the lanes";
  EXPECT_TRUE(queue.add("f", "a", "other"));
  EXPECT_FALSE(queue.wants_look());
  EXPECT_EQ(queue.sent().size(), 5U);
  queue.end("e");
  EXPECT_FALSE(queue.wants_look()) << "the project has all its lanes";
  for (const char* id : {"a", "b"}) queue.end(id);
  EXPECT_TRUE(queue.wants_look());
  EXPECT_FALSE(queue.wants_look()) << "one look is enough";
  EXPECT_TRUE(queue.add("d", "d", "p", "o"));
}

TEST(CallQueue, EveryCallIsMadeWhateverTheLimits) {
  for (const std::size_t limit : {1U, 2U, 7U}) {
    Queue queue({.in_hand = limit,
                 .lanes = limit,
                 .requests = limit,
                 .per_upstream = limit,
                 .per_organization = limit});
    for (int i = 0; i < 60; ++i) (void)queue.add("c" + std::to_string(i), std::to_string(i % 10));
    std::size_t made = 0;
    for (int round = 0; round < 1000 && made < 60; ++round) {
      if (queue.wants_look()) {
        const auto rows = queue.rows;
        for (const auto& [lane, ids] : rows) {
          if (!ids.empty()) (void)queue.add(ids.front(), lane.second, lane.first);
        }
      }
      for (const auto& id : queue.sent()) {
        queue.end(id);
        ++made;
      }
    }
    EXPECT_EQ(made, 60U) << limit;
    EXPECT_EQ(queue.sent(), Ids{}) << "the last lanes are empty";
    EXPECT_TRUE(queue.quiet());
  }
}

// --- The same limits, applied by the Caller

using std::chrono_literals::operator""ms;
using tests::HttpReceiver;

class CallerSharesTest : public CallerTest {
 protected:
  HttpReceiver silent_{
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; }};
};

TEST_F(CallerSharesTest, AFullUpstreamLeavesRoomForOthersAndIsServedInTheEnd) {
  restart({.limits = {.in_hand = 16, .per_upstream = 1, .per_organization = 8}});
  for (int i = 0; i < 60; ++i) {
    auto pending = call("slow" + std::to_string(i));
    pending.http->url = silent_.url();
    offer(pending);
  }
  EXPECT_EQ(result_of(call("quick")).status, 200);
  silent_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 200}; });
  stop();
  caller_.reset();
  for (int i = 0; i < 20; ++i) commit_call(call("znew" + std::to_string(i)));
  start({.limits = {.in_hand = 16, .per_upstream = 1, .per_organization = 8}});
  ASSERT_TRUE(sink_.wait_for(81)) << "the store has the calls that had no room";
}

TEST_F(CallerSharesTest, ScanPassesOverCallsOfAFullUpstream) {
  stop();
  caller_.reset();
  for (int i = 0; i < 60; ++i) {
    auto pending = call("a-slow" + std::to_string(i));
    pending.http->url = silent_.url();
    commit_call(pending);
  }
  commit_call(call("b-quick"));
  start({.limits = {.in_hand = 16, .per_upstream = 1, .per_organization = 8}});
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).id, "b-quick-r");
}

TEST_F(CallerSharesTest, ThousandsOfCallsOfOneProjectLeaveAnotherItsTurn) {
  restart({.limits = {.in_hand = 16, .per_upstream = 2, .per_organization = 4}});
  auto hostile = call("hostile");
  hostile.http->url = silent_.url();
  commit_call(hostile);
  write(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
      " INSERT INTO pending_calls (id, session, trace_id, request, time_out, project_id, target,"
      " upstream, try_at) SELECT 'h' || i, session, trace_id, request, 0, project_id,"
      " 'host ' || (i % 5), upstream, try_at"
      " FROM pending_calls, n");
  hostile.id = "offered";
  offer(hostile);
  ASSERT_TRUE(silent_.wait_for(2));
  auto other = call("other");
  other.session.project_id = "another";
  EXPECT_EQ(result_of(other).status, 200);
  EXPECT_LE(silent_.count(), 4U);
}

TEST_F(CallerSharesTest, HungUpstreamsOfAllProjectsOfAnOrganizationLeaveAnotherItsTurn) {
  restart({.limits = {.in_hand = 40, .requests = 8, .per_upstream = 8, .per_organization = 6}});
  for (const char* name : {"First", "Second", "Third"}) {
    model::Bundle bundle;
    bundle.project_name = name;
    bundle.locales = {"en"};
    const auto report = store_->assets().import_bundle(organisation_, bundle);
    ASSERT_TRUE(report) << report.error().message;
    for (int i = 0; i < 4; ++i) {
      auto pending = call(name + std::to_string(i));
      pending.session.project_id = (*report)["project"]["_id"];
      pending.http->url = silent_.url();
      offer(pending);
    }
  }
  ASSERT_TRUE(silent_.wait_for(6));
  auto other = call("other");
  other.session.project_id = "of another organization";
  EXPECT_EQ(result_of(other).status, 200);
  EXPECT_EQ(silent_.count(), 6U);
}

TEST_F(CallerSharesTest, ModelsAndRequestsToOneHostAreOneUpstream) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  restart({.limits = {.per_upstream = 1}});
  offer(question("m1"));
  ASSERT_TRUE(receiver_.wait_for(1));
  offer(call("c1"));
  HttpReceiver other;
  auto elsewhere = call("c2");
  elsewhere.http->url = other.url();
  EXPECT_EQ(result_of(elsewhere).status, 200);
  EXPECT_EQ(receiver_.count(), 1U);
}

TEST_F(CallerSharesTest, ASearchThatTakesTooLongOrFailsForEverComesToAnEnd) {
  import_knowledge({"Returns take 14 days."});
  restart({.search_timeout = 0ms});
  EXPECT_EQ(result_of(search("s1", "returns")).error_code, "timeout");
  // The Turn of the first call has taken its result.
  write("DELETE FROM pending_calls; DROP TABLE knowledge_vocabularies");
  restart({.max_search_tries = 3});
  offer(search("s2", "returns"));
  ASSERT_TRUE(eventually([&] {
    clock_.advance(1000ms);
    caller_->wake();
    return sink_.events().size() == 2;
  }));
  EXPECT_EQ(sink_.events().at(1).result->error_code, "search_failed");
  EXPECT_NE(log_.find("given up"), std::string::npos);
}

}  // namespace
}  // namespace conversed::daemon
