#include "daemon/delivery/delivery_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

constexpr model::Timestamp t0 = model::from_unix_ms(1'000'000);
constexpr DeliveryQueue::Steady s0{};

// Endpoints that always have more outputs than there is room for.
class DeliveryQueueTest : public testing::Test {
 protected:
  using Session = DeliveryQueue::Session;
  using Lane = DeliveryQueue::Lane;

  Lane& lane(const std::string& endpoint, const std::string& project = "project") {
    return queue_.lane(endpoint, project);
  }
  Session& take(Lane& lane, std::size_t outputs = 1) {
    store::DueDelivery due;
    due.key = {lane.project_id, lane.endpoint_id, "user" + std::to_string(++users_), "s"};
    due.outputs.resize(outputs);
    return queue_.take(lane, std::move(due), 1);
  }
  Session& begin(Lane& lane, DeliveryQueue::Steady at = s0) {
    Session& session = take(lane);
    queue_.begin(session, at);
    return session;
  }
  void end(Session& session) {
    session.outputs.clear();
    queue_.land(session);
    queue_.release_if_done(session, t0);
  }
  // An answer after `takes`.
  void answer(Lane& lane, std::chrono::milliseconds takes) {
    Session& session = begin(lane);
    queue_.delivered(session, s0 + takes);
    end(session);
  }
  // Begins as many deliveries as the lane may have. Returns their count.
  std::size_t fill(Lane& lane, DeliveryQueue::Steady at = s0) {
    std::size_t begun = 0;
    for (; queue_.room(lane, at) > 0; ++begun) begin(lane, at);
    return begun;
  }
  Lane& good(const std::string& endpoint, const std::string& project = "project") {
    Lane& made = lane(endpoint, project);
    answer(made, 5ms);
    return made;
  }
  Lane& slow(const std::string& endpoint, const std::string& project = "project") {
    Lane& made = lane(endpoint, project);
    answer(made, 8s);
    return made;
  }

  static std::vector<model::Output> numbered(std::initializer_list<std::int64_t> numbers) {
    std::vector<model::Output> outputs(numbers.size());
    std::ranges::transform(numbers, outputs.begin(), [](std::int64_t number) {
      model::Output output;
      output.seq = number;
      return output;
    });
    return outputs;
  }

  DeliveryQueue queue_{{.connections = 32}};
  int users_ = 0;
};

TEST_F(DeliveryQueueTest, AllProjectsTogetherHaveTheConnections) {
  const auto begun = fill(good("a", "one")) + fill(good("b", "two")) + fill(good("c", "three"));
  EXPECT_EQ(begun, 32U);
  EXPECT_EQ(queue_.in_flight(), 32U);
}

TEST_F(DeliveryQueueTest, NewestOutputsAreTakenOnlyWhileNoneIsLeftInTheStore) {
  Lane& web = good("a");
  const auto takes = [&](DeliveryQueue::Steady unseen_until) {
    return queue_.takes_newest(web, unseen_until, s0);
  };
  EXPECT_FALSE(takes(s0 + 1s)) << "the lane was never read";
  queue_.wake(web, t0);
  ASSERT_EQ(queue_.next(t0, s0), &web);
  queue_.read_all(web, t0 + 1min);
  EXPECT_FALSE(takes(s0 + 1s)) << "another session waits for its retry";
  queue_.read_all(web, {});
  web.read_at = s0;
  EXPECT_FALSE(takes(s0)) << "the read may have seen the output";
  EXPECT_TRUE(takes(s0 + 1s));
  queue_.wait(take(web), t0);
  ASSERT_EQ(queue_.next(t0, s0), &web);
  EXPECT_NE(queue_.next_waiting(web), nullptr);
  EXPECT_EQ(queue_.next_waiting(web), nullptr);
  EXPECT_TRUE(takes(s0 + 1s));
  queue_.wake(web, t0);
  EXPECT_FALSE(takes(s0 + 1s)) << "the store may have more outputs";
  queue_.read_all(web, {});
  web.unreadable = true;
  EXPECT_FALSE(takes(s0 + 1s)) << "a damaged session waits for an operator";
}

TEST_F(DeliveryQueueTest, FewSessionsWaitAndAPauseLeavesThemToTheStore) {
  Lane& web = good("a");
  queue_.read_all(web, {});
  web.read_at = s0 - 1s;
  const auto limit = DeliveryQueueLimits().waiting;
  EXPECT_EQ(queue_.room_to_read(web, s0), 24 + limit);
  for (std::size_t n = 0; n < limit; ++n) {
    EXPECT_TRUE(queue_.takes_newest(web, s0, s0));
    queue_.wait(take(web), t0);
  }
  EXPECT_FALSE(queue_.takes_newest(web, s0, s0));
  EXPECT_EQ(queue_.room_to_read(web, s0), 24U);
  queue_.put_off(web, t0 + 1s);
  EXPECT_EQ(web.in_hand, 0U);
  EXPECT_EQ(queue_.room_to_read(web, s0), 24 + limit);
  EXPECT_FALSE(queue_.takes_newest(web, s0, s0)) << "the store has these outputs";
}

TEST_F(DeliveryQueueTest, WaitingOutputsTakeABoundedMemory) {
  Lane& web = good("a");
  queue_.read_all(web, {});
  web.read_at = s0 - 1s;
  const auto limit = DeliveryQueueLimits().waiting_bytes;
  EXPECT_EQ(queue_.bytes_to_read(), limit);
  Session& large = take(web);
  large.outputs.front().text.assign(limit / 2, 'x');
  queue_.wait(large, t0);
  EXPECT_TRUE(queue_.takes_newest(web, s0, s0));
  auto newest = numbered({1});
  newest.front().data = {std::string(limit / 2, 'x')};
  queue_.add(large, std::move(newest), t0, s0);
  EXPECT_EQ(large.outputs.size(), 2U);
  EXPECT_EQ(queue_.bytes_to_read(), 0U);
  EXPECT_FALSE(queue_.takes_newest(web, s0, s0));
  EXPECT_EQ(queue_.next_waiting(web), &large);
  EXPECT_EQ(queue_.bytes_to_read(), limit);
  queue_.wait(large, t0);
  EXPECT_EQ(queue_.bytes_to_read(), 0U);
  queue_.put_off(web, t0 + 1s);
  EXPECT_EQ(queue_.bytes_to_read(), limit);
}

TEST_F(DeliveryQueueTest, SessionThatAlwaysHasMoreIsLeftToTheStoreAfterSomeOutputs) {
  Lane& web = good("a");
  Session& session = begin(web);
  std::int64_t seq = 0;
  for (std::size_t n = 1; n < DeliveryQueueLimits().outputs_a_session; ++n) {
    queue_.add(session, numbered({++seq}), t0, s0);
    session.outputs.pop_front();
    EXPECT_FALSE(session.more);
  }
  queue_.add(session, numbered({++seq}), t0, s0);
  EXPECT_TRUE(session.more);
  EXPECT_EQ(session.outputs.size(), 1U);
}

TEST_F(DeliveryQueueTest, OutputsAreAddedBehindThoseInHandOnly) {
  Session& session = begin(good("a"));
  queue_.add(session, numbered({6, 7}), t0, s0);
  EXPECT_EQ(session.outputs.size(), 3U);
  EXPECT_FALSE(session.more);
  queue_.add(session, numbered({7}), t0, s0);
  EXPECT_EQ(session.outputs.size(), 3U) << "a read has seen the output";
  EXPECT_TRUE(session.more);
  queue_.add(session, numbered({8}), t0, s0);
  EXPECT_EQ(session.outputs.size(), 3U) << "an earlier output is in the store";
}

TEST_F(DeliveryQueueTest, SessionThatAwaitsItsMarksWaitsForAConnectionWithItsNewestOutputs) {
  Lane& web = good("a");
  Session& session = begin(web);
  queue_.add(session, numbered({2}), t0, s0);
  session.outputs.clear();
  session.marks = 2;
  queue_.land(session);
  queue_.release_if_done(session, t0);
  queue_.add(session, numbered({2}), t0, s0);
  EXPECT_TRUE(session.outputs.empty()) << "it was in hand before";
  EXPECT_TRUE(session.more);
  session.more = false;
  queue_.add(session, numbered({3, 4}), t0, s0);
  EXPECT_EQ(session.outputs.size(), 2U);
  EXPECT_EQ(queue_.next_waiting(web), &session);
  EXPECT_EQ(queue_.next(t0, s0), &web);
}

TEST_F(DeliveryQueueTest, SessionThatAwaitsItsMarksLeavesOthersTheirTurn) {
  Lane& web = good("a");
  queue_.wake(web, t0);  // the store has other sessions
  Session& session = begin(web);
  std::int64_t seq = 0;
  for (std::size_t n = 1; n < DeliveryQueueLimits().outputs_a_session; ++n) {
    session.outputs.clear();
    session.marks = 1;
    queue_.land(session);
    queue_.add(session, numbered({++seq}), t0, s0);
    EXPECT_EQ(queue_.next_waiting(web), &session);
  }
  session.outputs.clear();
  queue_.add(session, numbered({++seq}), t0, s0);
  EXPECT_TRUE(session.more);
  EXPECT_EQ(queue_.next_waiting(web), nullptr);
}

TEST_F(DeliveryQueueTest, SessionThatAwaitsItsMarksDoesNotWaitForAnEndpointThatFails) {
  Lane& web = good("a");
  Session& session = begin(web);
  session.outputs.clear();
  session.marks = 1;
  queue_.land(session);
  for (int i = 0; i < DeliveryQueueLimits().failures; ++i) queue_.failed(begin(web), s0);
  queue_.add(session, numbered({2}), t0, s0);
  EXPECT_TRUE(session.outputs.empty());
  EXPECT_TRUE(session.more);
}

TEST_F(DeliveryQueueTest, NothingIsReadAheadOfAnEndpointThatIsSlow) {
  EXPECT_EQ(queue_.room_to_read(lane("new"), s0), 1U);
  EXPECT_EQ(queue_.room_to_read(slow("slow"), s0), 8U);
}

TEST_F(DeliveryQueueTest, AnEndpointAndAProjectHaveThreeQuarters) {
  EXPECT_EQ(fill(good("a")), 24U);
  EXPECT_EQ(fill(good("b")), 0U) << "the project has reached its share";
  EXPECT_EQ(fill(good("c", "other")), 8U);
}

TEST_F(DeliveryQueueTest, EndpointsThatHaveNotAnsweredAreTriedByOneAndAFewAtATime) {
  std::size_t begun = 0;
  for (int i = 0; i < 40; ++i) begun += fill(lane("new" + std::to_string(i)));
  EXPECT_EQ(begun, 4U);
  for (int i = 0; i < 40; ++i) begun += fill(lane("other" + std::to_string(i), "other"));
  for (int i = 0; i < 40; ++i) begun += fill(lane("third" + std::to_string(i), "third"));
  EXPECT_EQ(begun, 8U);
}

TEST_F(DeliveryQueueTest, HungEndpointsLeaveConnectionsToThoseThatAnswer) {
  Lane& works = good("works");
  for (const std::string project : {"project", "other", "third"}) {
    for (int i = 0; i < 40; ++i) {
      // Each batch turns out to hang before the next batch begins.
      fill(lane(project + std::to_string(i), project), s0 + 600ms * i);
    }
  }
  const auto at = s0 + 1min;
  EXPECT_EQ(queue_.in_flight(), 24U);
  EXPECT_EQ(fill(works, at), 4U) << "its project has twenty connections already";
  EXPECT_EQ(queue_.room(lane("fresh", "fourth"), at), 0U);
  EXPECT_EQ(fill(good("known", "fourth"), at), 4U);
}

TEST_F(DeliveryQueueTest, SlowEndpointsAreBoundedTogether) {
  Lane& works = good("works");
  EXPECT_EQ(fill(slow("a")), 8U);
  EXPECT_EQ(fill(slow("b")), 4U);
  EXPECT_EQ(fill(slow("c")), 0U);
  EXPECT_EQ(fill(slow("d", "other")), 4U);
  EXPECT_EQ(fill(works), 12U);
}

TEST_F(DeliveryQueueTest, SlowEndpointThatBecomesFastIsGood) {
  Lane& late = slow("a");
  for (int i = 0; i < 20; ++i) answer(late, 1ms);
  EXPECT_EQ(fill(late), 24U);
}

TEST_F(DeliveryQueueTest, EndpointThatStopsAnsweringGivesWay) {
  Lane& freezes = good("a");
  Session& first = begin(freezes);
  fill(freezes);
  EXPECT_TRUE(queue_.goes_on(first, s0 + 1ms));
  EXPECT_FALSE(queue_.goes_on(first, s0 + 1s));
}

TEST_F(DeliveryQueueTest, SessionGivesWayWhileOthersWaitForAConnection) {
  Lane& a = good("a");
  Session& first = begin(a);
  fill(a);
  fill(good("b", "other"));
  EXPECT_TRUE(queue_.goes_on(first, s0)) << "no other session waits";
  queue_.wake(lane("c", "third"), t0);
  EXPECT_EQ(queue_.next(t0, s0), nullptr) << "all connections are taken";
  EXPECT_FALSE(queue_.goes_on(first, s0));
}

TEST_F(DeliveryQueueTest, EndpointFailsOnceSeveralSessionsHaveFailedInARow) {
  Lane& web = good("web");
  Session& poisoned = begin(web);
  for (int i = 0; i < 10; ++i) queue_.failed(poisoned, s0);
  EXPECT_FALSE(queue_.fails(web));
  for (int i = 0; i < 2; ++i) queue_.failed(begin(web), s0);
  EXPECT_TRUE(queue_.fails(web));
  EXPECT_EQ(queue_.room(web, s0), 0U);
  answer(web, 1ms);
  EXPECT_FALSE(queue_.fails(web));
  EXPECT_GT(queue_.room(web, s0), 0U);
}

TEST_F(DeliveryQueueTest, EndpointsTakeTurns) {
  queue_.wake(lane("a"), t0);
  queue_.wake(lane("b"), t0);
  queue_.wake(lane("c"), t0 + 1s);
  EXPECT_EQ(queue_.next(t0, s0), &lane("a"));
  EXPECT_EQ(queue_.next(t0, s0), &lane("b"));
  EXPECT_EQ(queue_.next(t0, s0), &lane("a"));
  EXPECT_EQ(queue_.next_due(), t0 + 1s);
  EXPECT_EQ(queue_.next(t0 + 1s, s0), &lane("b"));
  EXPECT_EQ(queue_.next(t0 + 1s, s0), &lane("a"));
  EXPECT_EQ(queue_.next(t0 + 1s, s0), &lane("c"));
}

TEST_F(DeliveryQueueTest, EndpointThatIsPutOffWaits) {
  queue_.wake(lane("a"), t0);
  EXPECT_EQ(queue_.next(t0, s0), &lane("a"));
  queue_.put_off(lane("a"), t0 + 5s);
  EXPECT_EQ(queue_.next(t0, s0), nullptr);
  queue_.wake(lane("a"), t0);
  EXPECT_EQ(queue_.next(t0 + 4s, s0), nullptr);
  EXPECT_EQ(queue_.next(t0 + 5s, s0), &lane("a"));
}

TEST_F(DeliveryQueueTest, WokenWhileItIsReadItIsReadFromTheBeginningAgain) {
  Lane& web = lane("web");
  queue_.wake(web, t0);
  ASSERT_EQ(queue_.next(t0, s0), &web);
  web.read_up_to = store::DueDelivery{};
  queue_.wake(web, t0);
  queue_.read_all(web, std::nullopt);
  EXPECT_FALSE(web.read_up_to);
  ASSERT_EQ(queue_.next(t0, s0), &web);
  queue_.read_all(web, t0 + 1min);
  EXPECT_EQ(queue_.next(t0, s0), nullptr);
  EXPECT_EQ(queue_.next_due(), t0 + 1min);
}

TEST_F(DeliveryQueueTest, SessionIsInHandUntilItsMarksAreStored) {
  Lane& web = lane("web");
  Session& session = take(web);
  const auto key = session.key;
  session.marks = 2;
  session.more = true;
  session.outputs.clear();
  queue_.release_if_done(session, t0);
  EXPECT_EQ(queue_.find(key), &session);
  EXPECT_EQ(queue_.next(t0, s0), nullptr);
  session.marks = 0;
  queue_.release_if_done(session, t0);
  EXPECT_EQ(queue_.find(key), nullptr);
  EXPECT_EQ(queue_.next(t0, s0), &web) << "the Endpoint has more outputs";
}

}  // namespace
}  // namespace conversed::daemon
