// Partitions of a real Kafka that are set aside (Consumer::set_aside).
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "queue/kafka/kafka_log.h"
#include "tests/conformance/kafka_other_client.h"
#include "tests/conformance/kafka_test_settings.h"
#include "tests/conformance/log_conformance.h"

namespace conversed::test {
namespace {

using namespace std::chrono_literals;
using queue::PartitionRange;
using queue::Position;
using SteadyClock = std::chrono::steady_clock;
using Numbers = std::vector<std::int32_t>;

constexpr std::int32_t partitions = 4;

// A consumer of one log and its listener. Checks that the records of each partition come from the
// committed position on, without a gap, a repeat or another order.
class SetAsideReader final : public queue::Listener {
 public:
  explicit SetAsideReader(queue::Log& log) : log_(log) {
    auto subscribed = log.subscribe(*this);
    EXPECT_TRUE(subscribed.has_value());
    if (subscribed) consumer = std::move(*subscribed);
  }

  queue::Result<void> on_assigned(std::span<const PartitionRange> ranges) override {
    for (const auto& range : ranges) {
      if (refused.contains(range.partition)) {
        return model::fail(queue::Errc::unavailable, "told to");
      }
    }
    for (const auto& range : ranges) {
      EXPECT_TRUE(next.emplace(range.partition, range.committed).second) << "assigned twice";
      ++assignments[range.partition];
    }
    return {};
  }
  void on_revoked(std::span<const std::int32_t> lost) override {
    std::vector<Position> finished;
    for (const auto partition : lost) {
      if (const auto done = unsaved.find(partition); done != unsaved.end()) {
        finished.push_back(done->second);
        unsaved.erase(done);
      }
      next.erase(partition);
    }
    const auto committed = consumer->commit(finished);
    EXPECT_TRUE(committed.has_value()) << committed.error().message;
  }
  void on_put_off(const queue::Error& error) override {
    EXPECT_EQ(error.message, "told to");
    ++put_off;
  }

  // Appends this many records to each partition, and waits for them.
  void append(int to_each) {
    Outcomes outcomes;
    for (int n = 0; n < to_each; ++n) {
      for (std::int32_t partition = 0; partition < partitions; ++partition) {
        log_.append({key_in(partition), std::to_string(appended_++), "inject", "", "v"},
                    outcomes.callback(""));
      }
    }
    for (const auto& [id, outcome] :
         outcomes.wait(static_cast<std::size_t>(to_each) * partitions)) {
      ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    }
  }
  void poll(std::size_t max, std::chrono::milliseconds wait) {
    const auto some = consumer->poll(max, wait);
    ASSERT_TRUE(some.has_value()) << some.error().message;
    for (const auto& each : *some) {
      const auto& at = each.position;
      ASSERT_TRUE(next.contains(at.partition)) << "partition " << at.partition << " is not read";
      ASSERT_EQ(at.offset, next[at.partition]) << "of partition " << at.partition;
      next[at.partition] = at.offset + 1;
      last[at.partition] = at;
      ++count[at.partition];
    }
  }
  bool poll_until(const std::function<bool()>& done) {
    const auto deadline = SteadyClock::now() + 2min;
    while (!done() && SteadyClock::now() < deadline && !testing::Test::HasFatalFailure()) {
      poll(1'000, 20ms);
    }
    const bool is_done = done();
    if (!is_done) ADD_FAILURE() << "not read in time: " << state();
    return is_done;
  }
  // Of each partition that is read: its next offset, and how often it was assigned.
  [[nodiscard]] std::string state() const {
    std::string text;
    for (const auto& [partition, offset] : next) {
      text += "partition " + std::to_string(partition) + " at " + std::to_string(offset) + ", " +
              std::to_string(assignments.at(partition)) + " assignments; ";
    }
    return text;
  }
  // Whether all records of these partitions before `end` were read.
  [[nodiscard]] bool has_read(const Numbers& of, std::int64_t end) const {
    return std::ranges::all_of(of, [&](std::int32_t partition) {
      const auto found = next.find(partition);
      return found != next.end() && found->second >= end;
    });
  }
  void set_aside(const Numbers& numbers) {
    const auto done = consumer->set_aside(numbers);
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }
  [[nodiscard]] queue::Result<void> commit(std::int32_t partition, std::int64_t offset) {
    const std::vector<Position> finished{{last[partition].epoch, partition, offset}};
    return consumer->commit(finished);
  }

  std::unique_ptr<queue::Consumer> consumer;
  std::map<std::int32_t, std::int64_t> next;  // of the partitions that are read
  std::map<std::int32_t, Position> last;      // that was read
  std::map<std::int32_t, Position> unsaved;   // are committed by `on_revoked`
  std::map<std::int32_t, int> count;          // of records
  std::map<std::int32_t, int> assignments;
  std::set<std::int32_t> refused;  // partitions
  int put_off = 0;

 private:
  static std::string key_in(std::int32_t partition) {
    for (int n = 0;; ++n) {
      auto key = "key" + std::to_string(n);
      if (queue::partition_of(key, partitions) == partition) return key;
    }
  }
  queue::Log& log_;
  int appended_ = 0;
};

class KafkaSetAside : public testing::Test {
 protected:
  void SetUp() override {
    settings_ = fresh_kafka_topics();
    settings_.partitions = partitions;
    log_ = connected_log(settings_);
    ASSERT_TRUE(log_);
  }
  queue::KafkaLogSettings settings_;
  std::unique_ptr<queue::Log> log_;
};

TEST_F(KafkaSetAside, YieldsNoRecordUntilItReturnsWithItsUnfinishedOnes) {
  SetAsideReader reader(*log_);
  reader.append(10);
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 1, 2, 3}, 10); }));
  ASSERT_TRUE(reader.commit(1, 3).has_value());
  reader.unsaved[1] = reader.last[1];
  reader.unsaved[1].offset = 6;
  reader.set_aside({1, 77});
  EXPECT_FALSE(reader.next.contains(1)) << "it is revoked inside the call";
  EXPECT_EQ(reader.commit(1, 7).error().code, queue::Errc::conflict);
  for (int round = 2; round <= 4; ++round) {
    reader.append(10);
    ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 2, 3}, 10 * round); }));
  }
  EXPECT_EQ(reader.count[1], 10);
  reader.set_aside({});
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({1}, 40); }));
  EXPECT_EQ(reader.count[1], 10 + 33) << "seven records were finished";
  for (const auto other : {0, 2, 3}) {
    EXPECT_EQ(reader.count[other], 40);
    EXPECT_EQ(reader.assignments[other], 1);
  }
}

TEST_F(KafkaSetAside, BeforeTheFirstPollNeverBegins) {
  SetAsideReader reader(*log_);
  reader.set_aside({0, 1, 2, 3});
  reader.append(5);
  reader.poll(10, 1s);
  reader.set_aside({0, 2, 3});
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({1}, 5); }));
  EXPECT_EQ(reader.count.size(), 1U);
  EXPECT_EQ(reader.assignments.size(), 1U);
  reader.set_aside({0, 1, 2, 3});
  EXPECT_TRUE(reader.next.empty());
  reader.poll(10, 10ms);
  reader.set_aside({});
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 1, 2, 3}, 5); }));
}

TEST_F(KafkaSetAside, EndsARefusalOfAnAssignment) {
  SetAsideReader reader(*log_);
  reader.append(5);
  reader.refused = {1};
  while (reader.consumer->poll(10, 200ms)) ASSERT_TRUE(reader.next.empty());
  reader.set_aside({1});
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 2, 3}, 5); }));
  EXPECT_EQ(reader.count[1], 0);
  EXPECT_EQ(reader.put_off, 0);
}

TEST_F(KafkaSetAside, OtherPartitionsLoseRepeatAndReorderNothing) {
  constexpr int records = 400;  // of each partition
  SetAsideReader reader(*log_);
  std::jthread appending([&] {
    for (int n = 0; n < records; n += 4) reader.append(4);
  });
  const std::vector<Numbers> sets{{3}, {}, {1, 3}, {1}, {2}, {1, 2, 3}, {}, {2, 3}, {1}, {}};
  std::size_t round = 0;
  for (const auto& set : sets) {
    // Sets it right after a read, and with records in the library's buffer.
    int before = reader.count[0];
    const int most = 1 + static_cast<int>(round % 3) * 20;
    reader.poll(static_cast<std::size_t>(most), 200ms);
    ASSERT_TRUE(reader.poll_until(
        [&] { return reader.count[0] > before || reader.has_read({0}, records); }));
    if (round % 4 == 2) {
      // Long enough to hold a record back and to pause. A shorter time weakens this test but does
      // not fail it.
      const auto pressed = SteadyClock::now() + 1s;
      while (SteadyClock::now() < pressed) reader.poll(0, 0ms);
    }
    // A half of the records of a partition is finished when it is set aside.
    for (const auto& [partition, end] : reader.next) {
      if (end < 2) continue;
      reader.unsaved[partition] = reader.last[partition];
      reader.unsaved[partition].offset = end / 2;
    }
    reader.set_aside(set);
    if (round % 4 == 3) reader.poll(0, 0ms);
    for (const auto number : set) ASSERT_FALSE(reader.next.contains(number));
    ++round;
    ASSERT_FALSE(HasFatalFailure());
  }
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 1, 2, 3}, records); }));
  EXPECT_EQ(reader.count[0], records);
  EXPECT_EQ(reader.assignments[0], 1) << "it was never set aside";
  for (const auto other : {1, 2, 3}) {
    EXPECT_GT(reader.assignments[other], 1);
    EXPECT_GE(reader.count[other], records);
  }
}

// Each choice makes the library stop and start its partitions, while fetches wait for records.
TEST_F(KafkaSetAside, AReturnedPartitionIsAlwaysRead) {
  constexpr int rounds = 24;
  SetAsideReader reader(*log_);
  for (int round = 1; round <= rounds; ++round) {
    reader.append(1);
    const bool is_aside = round % 2 == 1;
    reader.set_aside(is_aside ? Numbers{3} : Numbers{});
    const Numbers read = is_aside ? Numbers{0, 1, 2} : Numbers{0, 1, 2, 3};
    ASSERT_TRUE(reader.poll_until([&] { return reader.has_read(read, round); })) << round;
    reader.unsaved = reader.last;
  }
  EXPECT_EQ(reader.count[3], rounds);
}

TEST_F(KafkaSetAside, HoldsAcrossRebalances) {
  SetAsideReader reader(*log_);
  reader.append(10);
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 1, 2, 3}, 10); }));
  for (const auto& [partition, at] : reader.last) reader.unsaved[partition] = at;
  reader.set_aside({0, 3});
  const auto other = other_member(settings_.topic_prefix);
  ASSERT_TRUE(reader.poll_until([&] {
    const queue::KafkaMessage ignored(rd_kafka_consumer_poll(other.get(), 20));
    return assigned_to(other.get()) > 0;
  }));
  // The other member has a half of the partitions. Half of the rest is set aside.
  ASSERT_TRUE(reader.poll_until([&] { return reader.next.size() == 1; }));
  EXPECT_TRUE(reader.next.contains(1) || reader.next.contains(2));
  rd_kafka_consumer_close(other.get());
  reader.append(10);
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({1, 2}, 20); }));
  EXPECT_EQ(reader.next.size(), 2U);
  EXPECT_EQ(reader.count[0], 10);
  EXPECT_EQ(reader.count[3], 10);
  reader.set_aside({});
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 1, 2, 3}, 20); }));
  EXPECT_EQ(reader.count[0], 20);
  EXPECT_EQ(reader.count[3], 20);
}

TEST_F(KafkaSetAside, AReturnThatIsRefusedDoesNotStopTheOthers) {
  SetAsideReader reader(*log_);
  reader.append(10);
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 1, 2, 3}, 10); }));
  reader.set_aside({1, 2});
  reader.refused = {1, 2};
  reader.set_aside({});
  for (int round = 2; round <= 4; ++round) {
    const int before = reader.put_off;
    reader.append(10);
    ASSERT_TRUE(reader.poll_until([&] {
      return reader.has_read({0, 3}, 10 * round) && reader.put_off > before;
    }));
  }
  EXPECT_EQ(reader.count[1], 10);
  // A refused partition can be set aside again, and the other one returns.
  reader.set_aside({1});
  reader.refused = {};
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 2, 3}, 40); }));
  EXPECT_EQ(reader.count[1], 10);
  reader.set_aside({});
  ASSERT_TRUE(reader.poll_until([&] { return reader.has_read({0, 1, 2, 3}, 40); }));
  EXPECT_EQ(reader.count[0], 40);
  EXPECT_EQ(reader.count[3], 40);
}

}  // namespace
}  // namespace conversed::test
