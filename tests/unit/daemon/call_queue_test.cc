// Whose turn it is among the calls, and who may hold how many of them.
#include "daemon/call_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "store/sql.h"
#include "tests/unit/daemon/caller_world.h"

namespace conversed::daemon {
namespace {

using Ids = std::vector<std::string>;

model::PendingCall call_of(const std::string& id, const std::string& project, std::size_t bytes) {
  model::PendingCall call;
  call.id = id;
  call.session = {project, "endpoint", "user", id};
  call.http = model::HttpCall{.method = "POST",
                              .url = "",
                              .headers = {},
                              .body = std::string(bytes, 'x'),
                              .connection_id = "",
                              .idempotency_key = ""};
  return call;
}

struct Queue : CallQueue {
  explicit Queue(const CallQueueLimits& given) : CallQueue(given), limits(given) {}
  void add(const std::string& id, const std::string& upstream, const std::string& project = "p",
           std::size_t bytes = 10) {
    take(call_of(id, project, bytes), upstream, limits.per_upstream);
  }
  Ids sent() {
    Ids ids;
    while (Call* call = next()) ids.push_back(call->pending.id);
    return ids;
  }
  // Takes what is noted, as far as there is room.
  Ids noted(const std::string& upstream) {
    Ids ids;
    while (const auto* id = wanted()) {
      ids.push_back(*id);
      unnote(ids.back());
      take_noted(call_of(ids.back(), "p", 10), upstream, limits.per_upstream);
    }
    return ids;
  }
  CallQueueLimits limits;
};

TEST(CallQueue, ProjectsTakeTurnsAtAnUpstream) {
  Queue queue({.per_upstream = 3, .per_project = 10});
  for (const char* id : {"a1", "a2", "a3", "a4"}) queue.add(id, "x", "a");
  for (const char* id : {"b1", "b2"}) queue.add(id, "x", "b");
  EXPECT_EQ(queue.sent(), (Ids{"a1", "b1", "a2"}));
  queue.forget("a1");
  EXPECT_EQ(queue.sent(), (Ids{"b2"}));
  queue.forget("b1");
  EXPECT_EQ(queue.sent(), (Ids{"a3"}));
}

TEST(CallQueue, AProjectIsBoundOverAllUpstreams) {
  Queue queue({.per_upstream = 3, .per_project = 4});
  for (int i = 0; i < 3; ++i) {
    queue.add("x" + std::to_string(i), "x");
    queue.add("y" + std::to_string(i), "y");
  }
  queue.add("z", "x", "other");
  const auto first = queue.sent();
  EXPECT_EQ(first.size(), 5U);
  EXPECT_EQ(std::ranges::count(first, "z"), 1);
  queue.landed(queue.at("x0"));
  EXPECT_EQ(queue.sent().size(), 1U);
}

TEST(CallQueue, BeyondItsShareAnUpstreamHasOnlyIdsAndThenNothing) {
  Queue queue({.per_upstream = 2, .per_project = 100, .ids_per_lane = 3});
  for (int i = 0; i < 9; ++i) queue.add("c" + std::to_string(i), "slow");
  EXPECT_EQ(queue.sent(), (Ids{"c0", "c1"}));
  EXPECT_TRUE(queue.knows("c6")) << "four in memory, three noted";
  EXPECT_FALSE(queue.knows("c7"));
  EXPECT_EQ(queue.wanted(), nullptr);
  queue.add("quick", "other");
  EXPECT_EQ(queue.sent(), Ids{"quick"});
  EXPECT_FALSE(queue.wants_scan());
  for (const char* id : {"c0", "c1", "c2"}) queue.forget(id);
  EXPECT_EQ(queue.noted("slow"), (Ids{"c4", "c5", "c6"}));
  EXPECT_TRUE(queue.wants_scan()) << "c7 and c8 are in the store";
  queue.scan_begins();
  EXPECT_FALSE(queue.wants_scan());
}

TEST(CallQueue, BytesAreBoundToo) {
  Queue queue({.bytes = 8000, .per_upstream = 10, .per_project = 100});
  queue.add("large", "x", "p", 50'000);
  EXPECT_EQ(queue.sent(), Ids{"large"}) << "one is made, however large it is";
  queue.add("c", "x");
  EXPECT_EQ(queue.sent(), Ids{});
  queue.forget("large");
  EXPECT_EQ(queue.noted("x"), Ids{"c"});
  for (int i = 0; i < 5; ++i) queue.add("k" + std::to_string(i), "x", "p", 300);
  EXPECT_EQ(queue.sent(), (Ids{"c", "k0", "k1", "k2"})) << "an eighth of all";
}

TEST(CallQueue, EveryCallIsMadeWhateverTheLimits) {
  for (const std::size_t limit : {1U, 2U, 7U}) {
    Queue queue({.calls = limit,
                 .bytes = 100 * limit,
                 .per_upstream = limit,
                 .per_project = limit,
                 .ids = limit,
                 .ids_per_lane = limit});
    Ids store;
    for (int i = 0; i < 60; ++i) store.push_back("c" + std::to_string(i));
    const auto upstream_of = [](const std::string& id) { return id.substr(id.size() - 1); };
    std::size_t made = 0;
    bool scans = true;
    for (int round = 0; round < 1000 && !store.empty(); ++round) {
      if (scans || queue.wants_scan()) {
        queue.scan_begins();
        for (const auto& id : store) {
          if (!queue.knows(id)) queue.add(id, upstream_of(id));
        }
        scans = false;
      }
      while (const auto* id = queue.wanted()) {
        const std::string noted = *id;
        queue.unnote(noted);
        queue.take_noted(call_of(noted, "p", 10), upstream_of(noted), limit);
      }
      for (const auto& id : queue.sent()) {
        queue.forget(id);
        std::erase(store, id);
        ++made;
      }
    }
    EXPECT_EQ(made, 60U) << limit;
    EXPECT_TRUE(queue.empty());
  }
}

// --- By the Caller

using std::chrono_literals::operator""ms;
using tests::HttpReceiver;

class CallerSharesTest : public CallerTest {
 protected:
  void restart(const CallerSettings& settings) {
    stop();
    caller_.reset();
    start(settings);
  }
  HttpReceiver silent_{
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; }};
};

TEST_F(CallerSharesTest, AFullUpstreamLeavesRoomForOthersAndIsServedInTheEnd) {
  restart({.max_calls = 16, .max_per_upstream = 1, .max_per_project = 8});
  for (int i = 0; i < 60; ++i) {
    auto pending = call("slow" + std::to_string(i));
    pending.http->url = silent_.url();
    commit_call(pending);
    offer(std::move(pending));
  }
  EXPECT_EQ(result_of(call("quick")).status, 200);
  silent_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 200}; });
  stop();
  caller_.reset();
  for (int i = 0; i < 20; ++i) commit_call(call("znew" + std::to_string(i)));
  start({.max_calls = 16, .max_per_upstream = 1, .max_per_project = 8});
  ASSERT_TRUE(sink_.wait_for(81)) << "what had no room comes from the store";
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
  start({.max_calls = 16, .max_per_upstream = 1, .max_per_project = 8});
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).id, "b-quick-r");
}

TEST_F(CallerSharesTest, ModelsAndRequestsToOneHostAreOneUpstream) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  restart({.max_per_upstream = 1});
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
  ASSERT_TRUE(store_->committer().write_and_wait([](store::Writer& writer) -> model::Result<void> {
    // The first one's Turn has taken its result.
    writer.connection().script("DELETE FROM pending_calls; DROP TABLE knowledge_vocabularies");
    return {};
  }));
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
