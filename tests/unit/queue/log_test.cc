#include "queue/log.h"

#include <gtest/gtest.h>

#include "store/runtime/fault_points.h"

namespace conversed::queue {
namespace {

class Ender final : public Listener {
 public:
  Result<void> on_assigned(std::span<const PartitionRange>) override { return {}; }
  void on_revoked(std::span<const std::int32_t>) override {}
  void on_waiting() override { outcome_.set_value(7); }

  std::promise<int> outcome_;
};

TEST(WaitFor, TellsTheListenerUntilTheOutcomeIsThere) {
  Ender listener;  // without the listener's call, this would wait for ever
  EXPECT_EQ(wait_for(listener.outcome_.get_future(), listener), 7);
}

// The hashes are those of Kafka's own tests of its murmur2.
TEST(PartitionOf, AgreesWithKafkasClients) {
  const auto expected = [](std::int32_t murmur2) { return (murmur2 & 0x7fffffff) % 1000; };
  EXPECT_EQ(partition_of("21", 1000), expected(-973932308));
  EXPECT_EQ(partition_of("foobar", 1000), expected(-790332482));
  EXPECT_EQ(partition_of("a-little-bit-long-string", 1000), expected(-985981536));
  EXPECT_EQ(partition_of("a-little-bit-longer-string", 1000), expected(-1486304829));
  EXPECT_EQ(partition_of("abc", 1000), expected(479470107));
}

TEST(PartitionOf, SessionsOfAUserShareAPartition) {
  const std::string user =
      "p\x1f"
      "ann";
  const auto key = model::SessionKey{"p", "endpoint", "ann", "1"}.encode();
  EXPECT_EQ(routing_part(key), user);
  for (const auto& whole : {user, std::string("p\x1f"), std::string("key"), std::string()}) {
    EXPECT_EQ(routing_part(whole), whole);
  }
  EXPECT_EQ(partition_of(key, 1000), partition_of(user, 1000));
}

TEST(PartitionOf, IsZeroWhereThereIsOnePartition) {
  EXPECT_EQ(partition_of("", 1), 0);
  EXPECT_EQ(partition_of("any", 1), 0);
}

TEST(IsAfter, ComparesOffsetsOfOnePartition) {
  EXPECT_TRUE(is_after({1, 2, 5}, {1, 2, 4}).value());
  EXPECT_FALSE(is_after({1, 2, 5}, {1, 2, 5}).value());
  EXPECT_FALSE(is_after({1, 2, 4}, {1, 2, 5}).value());
}

TEST(IsAfter, RefusesOtherEpochsAndPartitions) {
  EXPECT_EQ(is_after({2, 2, 5}, {1, 2, 4}).error().code, Errc::conflict);
  EXPECT_EQ(is_after({1, 3, 5}, {1, 2, 4}).error().code, Errc::conflict);
}

TEST(FaultPoint, DoesNothingWithoutItsVariable) {
  model::fault_point("log.before_commit");
}

}  // namespace
}  // namespace conversed::queue
