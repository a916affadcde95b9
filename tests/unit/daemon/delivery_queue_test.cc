#include "daemon/delivery_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

constexpr model::Timestamp t0 = model::from_unix_ms(1'000'000);

model::SessionKey key(const std::string& user, const std::string& endpoint = "web") {
  return {"project", endpoint, user, "s"};
}

std::vector<model::Output> outputs(std::int64_t from, std::int64_t to) {
  std::vector<model::Output> made;
  for (auto seq = from; seq <= to; ++seq) {
    auto& output = made.emplace_back();
    output.id = std::to_string(seq);
    output.seq = seq;
    output.delivery = model::Delivery::pending;
  }
  return made;
}

void sweep(DeliveryQueue& queue, std::vector<store::DueDelivery> found, bool all) {
  queue.begin_sweep();
  bool room = true;
  for (auto& due : found) room = room && queue.load(std::move(due), 16, t0);
  queue.end_sweep(room, all);
}

std::string next_user(DeliveryQueue& queue) {
  auto* session = queue.next();
  return session == nullptr ? "(none)" : session->key.user_id;
}

TEST(DeliveryQueue, BeforeTheFirstSweepNoOfferIsTrusted) {
  DeliveryQueue queue({});
  queue.offer(key("ann"), outputs(2, 2));
  EXPECT_EQ(queue.next(), nullptr);
  EXPECT_TRUE(queue.wants_sweep());
  sweep(queue, {{key("ann"), t0, 3, outputs(1, 2)}}, true);
  auto* session = queue.next();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->outputs.front().seq, 1);
  EXPECT_EQ(session->attempts, 3);
  EXPECT_FALSE(queue.backlog());
}

TEST(DeliveryQueue, OfferThatASweepHasReadIsNotTakenTwice) {
  DeliveryQueue queue({});
  queue.begin_sweep();
  ASSERT_TRUE(queue.load({key("ann"), t0, 0, outputs(1, 1)}, 16, t0));
  auto* session = queue.next();
  queue.done(*session);                    // sent and marked while the sweep goes on
  queue.offer(key("ann"), outputs(1, 1));  // its offer comes late
  EXPECT_EQ(queue.next(), nullptr);
  queue.end_sweep(true, true);
  EXPECT_EQ(queue.sessions(), 0U);
}

TEST(DeliveryQueue, SweepDoesNotBringBackWhatWasMarkedMeanwhile) {
  DeliveryQueue queue({});
  sweep(queue, {}, true);
  queue.offer(key("ann"), outputs(1, 1));
  auto* session = queue.next();
  queue.begin_sweep();
  queue.done(*session);
  ASSERT_TRUE(queue.load({key("ann"), t0, 0, outputs(1, 1)}, 16, t0)) << "read before the mark";
  EXPECT_EQ(queue.next(), nullptr);
  queue.end_sweep(true, false);
  EXPECT_EQ(queue.sessions(), 0U);
}

TEST(DeliveryQueue, EndpointsTakeTurns) {
  DeliveryQueue queue({.connections = 8});
  sweep(queue, {}, true);
  for (const char* user : {"a1", "a2", "a3"}) queue.offer(key(user, "a"), outputs(1, 1));
  queue.offer(key("b1", "b"), outputs(1, 1));
  EXPECT_EQ(next_user(queue), "a1");
  EXPECT_EQ(next_user(queue), "b1");
  EXPECT_EQ(next_user(queue), "a2");
  EXPECT_EQ(next_user(queue), "a3");
  EXPECT_EQ(next_user(queue), "(none)");
}

TEST(DeliveryQueue, FailingEndpointGetsAnEighth) {
  DeliveryQueue queue({.connections = 16});
  sweep(queue, {}, true);
  for (int i = 0; i < 20; ++i) queue.offer(key("u" + std::to_string(i)), outputs(1, 1));
  auto* first = queue.next();
  first->lane->failing = true;
  EXPECT_NE(queue.next(), nullptr);
  EXPECT_EQ(queue.next(), nullptr);
  first->lane->failing = false;
  for (int i = 0; i < 10; ++i) EXPECT_NE(queue.next(), nullptr);
  EXPECT_EQ(queue.next(), nullptr) << "three quarters";
}

TEST(DeliveryQueue, SessionWaitsAsAWhole) {
  DeliveryQueue queue({});
  sweep(queue, {}, true);
  queue.offer(key("ann"), outputs(1, 1));
  queue.retry(*queue.next(), t0 + 5s);
  queue.offer(key("ann"), outputs(2, 2));
  queue.wake_due(t0 + 4s);
  EXPECT_EQ(queue.next(), nullptr);
  EXPECT_EQ(queue.next_due(), t0 + 5s);
  queue.wake_due(t0 + 5s);
  EXPECT_EQ(queue.next()->outputs.size(), 2U);
}

TEST(DeliveryQueue, ReleasedOutputsComeBeforeNewerOnes) {
  DeliveryQueue queue({});
  sweep(queue, {}, true);
  queue.offer(key("ann"), outputs(5, 6));
  auto* session = queue.next();
  queue.offer_from_store(key("ann"));
  queue.done(*session);
  EXPECT_EQ(queue.next(), nullptr) << "6 waits for what the store has before it";
  auto found = outputs(3, 4);
  found.push_back(outputs(6, 6).front());
  sweep(queue, {{key("ann"), t0, 0, found}}, false);
  session = queue.next();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->outputs.front().seq, 3);
  EXPECT_EQ(session->outputs.size(), 3U);
}

TEST(DeliveryQueue, AskedForDuringASweepIsReadByTheNextOne) {
  DeliveryQueue queue({});
  queue.begin_sweep();
  queue.offer_from_store(key("ann"));
  ASSERT_TRUE(queue.load({key("ann"), t0, 0, outputs(1, 1)}, 16, t0));
  queue.end_sweep(true, true);
  EXPECT_EQ(queue.next(), nullptr);
  EXPECT_TRUE(queue.wants_sweep());
  sweep(queue, {{key("ann"), t0, 0, outputs(1, 2)}}, false);
  EXPECT_EQ(queue.next()->outputs.size(), 2U);
}

TEST(DeliveryQueue, MemoryIsBounded) {
  DeliveryQueue queue({.max_sessions = 10, .max_outputs = 20, .max_outputs_each = 4});
  sweep(queue, {}, true);
  for (int i = 0; i < 50; ++i) queue.offer(key("u" + std::to_string(i)), outputs(1, 6));
  EXPECT_LE(queue.sessions(), 10U);
  EXPECT_LE(queue.outputs(), 20U);
  EXPECT_TRUE(queue.backlog());
}

TEST(DeliveryQueue, SessionThatWaitsLongestMakesRoom) {
  DeliveryQueue queue({.max_sessions = 2});
  sweep(queue, {}, true);
  queue.offer(key("ann"), outputs(1, 1));
  queue.offer(key("bob"), outputs(1, 1));
  queue.retry(*queue.next(), t0 + 5s);
  queue.retry(*queue.next(), t0 + 9s);
  queue.offer(key("eve"), outputs(1, 1));
  EXPECT_EQ(queue.sessions(), 2U);
  EXPECT_TRUE(queue.backlog()) << "bob is in the store only";
  queue.offer(key("bob"), outputs(2, 2));
  queue.wake_due(t0 + 20s);
  while (auto* session = queue.next()) EXPECT_NE(session->key.user_id, "bob");
}

TEST(DeliveryQueue, FullOfSessionsThatWantItStillTakesTheLongestDue) {
  DeliveryQueue queue({.max_sessions = 2});
  queue.offer(key("b"), outputs(1, 1));
  queue.offer(key("c"), outputs(1, 1));
  queue.begin_sweep();
  EXPECT_TRUE(queue.load({key("a"), t0, 0, outputs(1, 1)}, 16, t0));
  EXPECT_TRUE(queue.load({key("b"), t0, 0, outputs(1, 1)}, 16, t0));
  EXPECT_FALSE(queue.load({key("c"), t0, 0, outputs(1, 1)}, 16, t0));
  queue.end_sweep(false, true);
  EXPECT_EQ(next_user(queue), "a");
  EXPECT_EQ(next_user(queue), "b");
  EXPECT_TRUE(queue.backlog());
}

}  // namespace
}  // namespace conversed::daemon
