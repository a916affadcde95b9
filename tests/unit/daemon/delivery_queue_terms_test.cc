// Sessions that come from other daemons, and go to them.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "daemon/delivery_queue.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

constexpr model::Timestamp t0 = model::from_unix_ms(1'000'000);

model::SessionKey key(const std::string& user) {
  return {"project", "web", user, "s"};
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

// A queue whose sessions belong to whom the test says.
class DeliveryQueueTerms : public testing::Test {
 protected:
  void SetUp() override {
    terms_["ann"] = 1;
    sweep({});
  }
  void move(const std::string& user, std::uint64_t term) {
    terms_[user] = term;
    queue_.terms_changed();
  }
  void sweep(std::vector<store::DueDelivery> found) {
    queue_.begin_sweep();
    for (auto& due : found) ASSERT_TRUE(queue_.load(std::move(due), 16, t0));
    queue_.end_sweep(true, true);
  }
  // What is sent next: all of it is delivered at once.
  std::vector<std::int64_t> sent() {
    std::vector<std::int64_t> seqs;
    while (auto* session = queue_.next()) {
      seqs.push_back(session->outputs.front().seq);
      queue_.done(*session);
    }
    return seqs;
  }

  using Seqs = std::vector<std::int64_t>;
  std::map<std::string, std::uint64_t> terms_;
  DeliveryQueue queue_{
      {}, [this](const model::SessionKey& session) { return terms_[session.user_id]; }};
};

TEST_F(DeliveryQueueTerms, WhatIsAnothersIsNeitherTakenNorRead) {
  queue_.offer(key("bob"), outputs(1, 1));
  queue_.offer_from_store(key("bob"));
  sweep({{key("bob"), t0, 0, outputs(1, 1)}, {key("bob"), t0, 0, {}}});
  EXPECT_EQ(queue_.sessions(), 0U);
}

TEST_F(DeliveryQueueTerms, WhatHasGoneIsForgottenInEachState) {
  for (const auto* user : {"waiting", "ready", "wanting"}) terms_[user] = 1;
  queue_.offer(key("waiting"), outputs(1, 2));
  queue_.retry(*queue_.next(), t0 + 1s);
  queue_.offer(key("ready"), outputs(1, 2));
  queue_.offer_from_store(key("wanting"));
  ASSERT_EQ(queue_.sessions(), 3U);
  for (const auto* user : {"waiting", "ready", "wanting"}) terms_[user] = 0;
  queue_.terms_changed();
  EXPECT_EQ(queue_.sessions(), 0U);
  EXPECT_EQ(queue_.outputs(), 0U);
  EXPECT_FALSE(queue_.next_due());
  EXPECT_EQ(queue_.next(), nullptr);
  queue_.begin_sweep();
  queue_.end_sweep(true, true);
  EXPECT_TRUE(queue_.quiet());
}

TEST_F(DeliveryQueueTerms, WhatIsInFlightEndsAndNothingFollowsIt) {
  queue_.offer(key("ann"), outputs(1, 3));
  auto* session = queue_.next();
  move("ann", 0);
  EXPECT_EQ(queue_.outputs(), 1U);
  queue_.done(*session);
  EXPECT_EQ(queue_.sessions(), 0U);
  EXPECT_EQ(queue_.in_flight(), 0U);
  EXPECT_EQ(sent(), Seqs());
}

TEST_F(DeliveryQueueTerms, ARetryOfWhatHasGoneIsAnothers) {
  queue_.offer(key("ann"), outputs(1, 3));
  auto* session = queue_.next();
  move("ann", 0);
  queue_.retry(*session, t0 + 1s);
  EXPECT_EQ(queue_.sessions(), 0U);
  EXPECT_EQ(queue_.outputs(), 0U);
}

// What happened to it meanwhile only the store knows.
TEST_F(DeliveryQueueTerms, WhatComesBackIsReadFromTheStore) {
  queue_.offer(key("ann"), outputs(1, 2));
  auto* session = queue_.next();
  move("ann", 0);
  move("ann", 2);
  queue_.offer(key("ann"), outputs(5, 5), 4);
  queue_.done(*session);
  EXPECT_EQ(queue_.next(), nullptr);
  EXPECT_TRUE(queue_.wants_sweep());
  sweep({{key("ann"), t0, 0, outputs(4, 5)}});
  EXPECT_EQ(sent(), (Seqs{4, 5}));
}

TEST_F(DeliveryQueueTerms, AfterAChangeTheStoreIsReadWhateverASweepHasPassed) {
  queue_.begin_sweep();
  move("bob", 2);  // the sweep has passed his outputs as another's
  queue_.end_sweep(true, true);
  EXPECT_TRUE(queue_.backlog());
  EXPECT_TRUE(queue_.wants_sweep());
  sweep({{key("bob"), t0, 0, outputs(1, 1)}});
  EXPECT_FALSE(queue_.backlog());
  EXPECT_EQ(sent(), (Seqs{1}));
}

// A daemon that was stopped for a while has committed 1 after the store was read here.
TEST_F(DeliveryQueueTerms, WhatAnotherLeftInTheStoreGoesFirst) {
  queue_.offer(key("ann"), outputs(2, 2), 1);
  EXPECT_EQ(queue_.next(), nullptr);
  sweep({{key("ann"), t0, 0, outputs(1, 2)}});
  EXPECT_EQ(sent(), (Seqs{1, 2}));
  // Known here, with a gap.
  queue_.offer(key("ann"), outputs(3, 3), 0);
  auto* session = queue_.next();
  queue_.offer(key("ann"), outputs(5, 5), 4);
  queue_.done(*session);
  EXPECT_EQ(queue_.next(), nullptr);
  sweep({{key("ann"), t0, 0, outputs(4, 5)}});
  EXPECT_EQ(sent(), (Seqs{4, 5}));
}

// The store has their marks a moment later.
TEST_F(DeliveryQueueTerms, WhatWasDeliveredHereIsNotTakenForAnothers) {
  queue_.offer(key("ann"), outputs(1, 2));
  EXPECT_EQ(sent(), (Seqs{1, 2}));
  EXPECT_EQ(queue_.sessions(), 0U);
  queue_.offer(key("ann"), outputs(3, 3), 2);
  EXPECT_EQ(sent(), (Seqs{3}));
}

}  // namespace
}  // namespace conversed::daemon
