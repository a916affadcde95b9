// The behavior that all Log drivers share. Linked with one file for each driver that instantiates
// it.
#include "tests/conformance/log_conformance.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

namespace conversed::test {
namespace {

using namespace std::chrono_literals;
using queue::Errc;
using queue::LogRecord;
using queue::Position;
using queue::Record;

Record record(const std::string& key, const std::string& id, std::string value = "v") {
  return {key, id, "inject", "0af7651916cd43dd8448eb211c80319c", std::move(value)};
}

std::vector<LogRecord> poll_all(queue::Consumer& consumer, std::size_t count) {
  std::vector<LogRecord> all;
  const auto deadline = std::chrono::steady_clock::now() + 1min;
  while (all.size() < count && std::chrono::steady_clock::now() < deadline) {
    auto some = consumer.poll(count - all.size(), 1s);
    EXPECT_TRUE(some.has_value());
    if (!some) break;
    std::ranges::move(*some, std::back_inserter(all));
  }
  EXPECT_EQ(all.size(), count);
  return all;
}

std::vector<Position> last_of_each(const std::vector<LogRecord>& records) {
  std::map<std::int32_t, Position> last;
  for (const auto& each : records) last[each.position.partition] = each.position;
  std::vector<Position> positions;
  for (const auto& [partition, position] : last) positions.push_back(position);
  return positions;
}

void append_and_wait(queue::Log& log, int from, int to) {
  Outcomes outcomes;
  for (int n = from; n < to; ++n) {
    const std::string id = std::to_string(n);
    log.append(record("key" + std::to_string(n % 17), id), outcomes.callback(id));
  }
  for (const auto& [id, outcome] : outcomes.wait(static_cast<std::size_t>(to - from))) {
    ASSERT_TRUE(outcome.has_value()) << id << ": " << outcome.error().message;
  }
}

TEST_P(LogConformance, AnAppendCallsBackOnceWithThePositionThatTheConsumerSees) {
  Outcomes outcomes;
  for (int n = 0; n < 200; ++n) {
    const std::string id = std::to_string(n);
    log_->append(record("key" + std::to_string(n % 7), id), outcomes.callback(id));
  }
  const auto answers = outcomes.wait(200);
  std::map<std::string, Position> told;
  for (const auto& [id, outcome] : answers) {
    ASSERT_TRUE(outcome.has_value());
    EXPECT_TRUE(told.emplace(id, outcome->position).second) << "called back twice: " << id;
  }
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  ASSERT_TRUE(consumer.has_value());
  for (const auto& each : poll_all(**consumer, 200)) {
    EXPECT_EQ(told.at(each.record.id), each.position);
    EXPECT_EQ(each.position.partition, queue::partition_of(each.record.key, partitions));
  }
  log_->stop();
  EXPECT_EQ(outcomes.wait(200).size(), 200U);
}

TEST_P(LogConformance, RecordsOfOneKeyKeepTheOrderOfTheirAppends) {
  append_and_wait(*log_, 0, 500);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  std::map<std::string, int> last;
  for (const auto& each : poll_all(**consumer, 500)) {
    const int n = std::stoi(each.record.id);
    const auto [before, first] = last.emplace(each.record.key, n);
    if (!first) {
      EXPECT_LT(before->second, n);
      before->second = n;
    }
  }
}

TEST_P(LogConformance, SessionsOfAUserShareAPartition) {
  Outcomes outcomes;
  std::set<std::string> keys;
  for (int user = 0; user < 20; ++user) {
    for (int session = 0; session < 5; ++session) {
      const auto id = std::to_string(user * 5 + session);
      const auto key = model::SessionKey{"project", "endpoint " + std::to_string(session % 2),
                                         "user " + std::to_string(user), id}
                           .encode();
      keys.insert(key);
      log_->append(record(key, id), outcomes.callback(id));
    }
  }
  outcomes.wait(100);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  std::map<std::string, std::int32_t> of_user;
  for (const auto& each : poll_all(**consumer, 100)) {
    EXPECT_EQ(keys.erase(each.record.key), 1U) << "a key comes back as it was";
    const auto user = std::string(queue::routing_part(each.record.key));
    EXPECT_EQ(of_user.emplace(user, each.position.partition).first->second,
              each.position.partition);
  }
  EXPECT_EQ(of_user.size(), 20U);
}

TEST_P(LogConformance, OffsetsOfAPartitionAscendAndTheEpochIsAboveZero) {
  append_and_wait(*log_, 0, 300);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  std::map<std::int32_t, Position> last;
  for (const auto& each : poll_all(**consumer, 300)) {
    EXPECT_GT(each.position.epoch, 0);
    const auto found = last.find(each.position.partition);
    if (found != last.end()) {
      EXPECT_TRUE(queue::is_after(each.position, found->second).value());
    }
    last[each.position.partition] = each.position;
  }
}

TEST_P(LogConformance, AppendedRecordsAreThereAfterReopening) {
  append_and_wait(*log_, 0, 100);
  reopen();
  append_and_wait(*log_, 100, 200);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  std::set<int> ids;
  for (const auto& each : poll_all(**consumer, 200)) ids.insert(std::stoi(each.record.id));
  EXPECT_EQ(ids.size(), 200U);
}

TEST_P(LogConformance, AnyBytesComeOutAsTheyWentIn) {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte.push_back(static_cast<char>(byte));
  const std::string large(600'000, '\xff');
  Outcomes outcomes;
  log_->append({every_byte, "a", "", "", every_byte}, outcomes.callback("a"));
  log_->append({"k", "b", "inject", "t", large}, outcomes.callback("b"));
  log_->append({"k", "c", "inject", "t", ""}, outcomes.callback("c"));
  outcomes.wait(3);
  reopen();
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  std::map<std::string, Record> got;
  for (auto& each : poll_all(**consumer, 3)) got[each.record.id] = each.record;
  EXPECT_EQ(got["a"].key, every_byte);
  EXPECT_EQ(got["a"].value, every_byte);
  EXPECT_EQ(got["b"].value, large);
  EXPECT_EQ(got["b"].trace_id, "t");
  EXPECT_EQ(got["c"].value, "");
}

// A driver may also answer that it can't read records by position.
TEST_P(LogConformance, UnfinishedRecordsAreReadByTheirPositions) {
  if (!log_->read({})) {
    EXPECT_EQ(log_->read(std::vector<Position>{{1, 0, 0}}).error().code, Errc::not_supported);
    return;
  }
  append_and_wait(*log_, 0, 300);
  reopen();
  append_and_wait(*log_, 300, 400);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  const auto all = poll_all(**consumer, 400);
  std::vector<Position> some;
  for (std::size_t at = 0; at < all.size(); at += 3) some.push_back(all[at].position);
  const auto read = log_->read(some);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), some.size());
  for (std::size_t at = 0; at < some.size(); ++at) {
    EXPECT_EQ((*read)[at].position, some[at]);
    EXPECT_EQ((*read)[at].record.key, all[3 * at].record.key);
    EXPECT_EQ((*read)[at].record.id, all[3 * at].record.id);
    EXPECT_EQ((*read)[at].record.value, all[3 * at].record.value);
  }
  EXPECT_TRUE(poll_all(**consumer, 0).empty()) << "a read by position does not move the consumer";
  EXPECT_EQ(log_->read(std::vector<Position>{{1, 0, 1'000}}).error().code, Errc::internal);
  consumer->reset();
  log_->stop();
  EXPECT_EQ(log_->read(some).error().code, Errc::unavailable);
}

TEST_P(LogConformance, WithoutACommitEverythingIsDeliveredAgain) {
  append_and_wait(*log_, 0, 50);
  RecordingListener listener;
  {
    auto consumer = log_->subscribe(listener);
    poll_all(**consumer, 50);
  }
  reopen();
  auto consumer = log_->subscribe(listener);
  poll_all(**consumer, 50);
}

TEST_P(LogConformance, AConsumerStartsPastTheCommittedOffset) {
  append_and_wait(*log_, 0, 60);
  RecordingListener listener;
  std::map<std::int32_t, std::int64_t> committed;
  {
    auto consumer = log_->subscribe(listener);
    const auto first = poll_all(**consumer, 30);
    ASSERT_TRUE((*consumer)->commit(last_of_each(first)).has_value());
    for (const auto& position : last_of_each(first))
      committed[position.partition] = position.offset;
  }
  reopen();
  auto consumer = log_->subscribe(listener);
  for (const auto& each : poll_all(**consumer, 30)) {
    const auto found = committed.find(each.position.partition);
    if (found != committed.end()) {
      EXPECT_GT(each.position.offset, found->second);
    }
  }
}

TEST_P(LogConformance, ACommitNeverMovesBack) {
  append_and_wait(*log_, 0, 40);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  const auto all = poll_all(**consumer, 40);
  const std::vector<Position> first{all.front().position};
  ASSERT_TRUE((*consumer)->commit(last_of_each(all)).has_value());
  ASSERT_TRUE((*consumer)->commit(first).has_value());
  const auto ranges = log_->ranges().value();
  for (const auto& range : ranges) EXPECT_EQ(range.committed, range.end);
}

TEST_P(LogConformance, ACommitOfAnotherEpochOrOfAnUnreadRecordIsAConflict) {
  append_and_wait(*log_, 0, 10);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  const auto all = poll_all(**consumer, 10);
  auto other_epoch = all.back().position;
  ++other_epoch.epoch;
  auto beyond = all.back().position;
  beyond.offset += 1'000;
  auto nowhere = all.back().position;
  nowhere.partition = partitions;
  for (const auto& wrong : {other_epoch, beyond, nowhere}) {
    const std::vector<Position> finished{wrong};
    const auto committed = (*consumer)->commit(finished);
    ASSERT_FALSE(committed.has_value());
    EXPECT_EQ(committed.error().code, Errc::conflict);
  }
}

TEST_P(LogConformance, TheListenerLearnsAllPartitionsBeforeTheFirstRecord) {
  append_and_wait(*log_, 0, 20);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  const auto some = poll_all(**consumer, 1);
  ASSERT_EQ(some.size(), 1U);
  EXPECT_TRUE(listener.assigned.contains(some.front().position.partition));
  poll_all(**consumer, 19);
  EXPECT_EQ(listener.assigned.size(), static_cast<std::size_t>(partitions));
  for (const auto& [partition, range] : listener.assigned) EXPECT_EQ(range.committed, 0);
}

TEST_P(LogConformance, AnAssignmentThatTheListenerRefusesIsRepeatedBeforeAnyRead) {
  append_and_wait(*log_, 0, 10);
  RecordingListener listener;
  listener.refusals = 2;
  auto consumer = log_->subscribe(listener);
  ASSERT_TRUE(consumer.has_value());
  int refused = 0;
  while (refused < 2) {
    const auto records = (*consumer)->poll(100, 1s);
    if (records) {
      ASSERT_TRUE(records->empty());
      continue;
    }
    EXPECT_EQ(records.error().code, Errc::unavailable);
    ++refused;
  }
  EXPECT_TRUE(listener.assigned.empty());
  EXPECT_EQ(poll_all(**consumer, 10).size(), 10U);
  EXPECT_EQ(listener.refusals, 0);
}

TEST_P(LogConformance, EightThreadsLoseNothingAndKeepTheirOrder) {
  constexpr int threads = 8;
  constexpr int each_appends = 300;
  Outcomes outcomes;
  {
    std::vector<std::jthread> appenders;
    for (int thread = 0; thread < threads; ++thread) {
      appenders.emplace_back([&, thread] {
        for (int n = 0; n < each_appends; ++n) {
          const std::string id = std::to_string(thread * each_appends + n);
          log_->append(record("thread" + std::to_string(thread), id), outcomes.callback(id));
        }
      });
    }
  }
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  std::map<std::string, int> last;
  for (const auto& each : poll_all(**consumer, threads * each_appends)) {
    const int n = std::stoi(each.record.id);
    const auto [before, first] = last.emplace(each.record.key, n);
    EXPECT_TRUE(first || before->second + 1 == n);
    before->second = n;
  }
  for (const auto& [id, outcome] : outcomes.wait(threads * each_appends)) {
    EXPECT_TRUE(outcome.has_value());
  }
}

TEST_P(LogConformance, AWaitingConsumerGetsNewRecords) {
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  std::jthread appender([this] { append_and_wait(*log_, 0, 5); });
  poll_all(**consumer, 5);
}

TEST_P(LogConformance, AWokenPollReturnsWithoutRecords) {
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<bool> returned = false;
  std::jthread waker([&] {
    while (!returned) {
      (*consumer)->wake();
      std::this_thread::yield();
    }
  });
  const auto records = (*consumer)->poll(10, 60s);
  returned = true;
  ASSERT_TRUE(records.has_value());
  EXPECT_TRUE(records->empty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST_P(LogConformance, APollOfNoneHandsOutNone) {
  append_and_wait(*log_, 0, 5);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  EXPECT_TRUE((*consumer)->poll(0, 0ms).value().empty());
  poll_all(**consumer, 5);
}

TEST_P(LogConformance, RangesTellTheOffsetsOfTheRecords) {
  append_and_wait(*log_, 0, 50);
  const auto ranges = log_->ranges();
  ASSERT_TRUE(ranges.has_value());
  ASSERT_EQ(ranges->size(), static_cast<std::size_t>(partitions));
  std::int64_t total = 0;
  for (std::size_t at = 0; at < ranges->size(); ++at) {
    EXPECT_EQ((*ranges)[at].partition, static_cast<std::int32_t>(at));
    EXPECT_EQ((*ranges)[at].committed, 0);
    total += (*ranges)[at].end - (*ranges)[at].first;
  }
  EXPECT_EQ(total, 50);
}

TEST_P(LogConformance, ANewEpochCountsForLaterRecords) {
  append_and_wait(*log_, 0, 20);
  const std::int64_t before = log_->ranges().value().front().epoch;
  const auto opened = log_->new_epoch(before + 5);
  ASSERT_TRUE(opened.has_value());
  EXPECT_GT(*opened, before + 5);
  append_and_wait(*log_, 20, 40);
  reopen();
  EXPECT_EQ(log_->ranges().value().front().epoch, *opened);
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  for (const auto& each : poll_all(**consumer, 40)) {
    EXPECT_EQ(each.position.epoch, std::stoi(each.record.id) < 20 ? before : *opened);
  }
}

TEST_P(LogConformance, AStoppedLogRefusesAndMayBeStoppedAgain) {
  append_and_wait(*log_, 0, 5);
  log_->stop();
  log_->stop();
  Outcomes outcomes;
  log_->append(record("k", "late"), outcomes.callback("late"));
  const auto answers = outcomes.wait(1);
  ASSERT_FALSE(answers.front().second.has_value());
  EXPECT_EQ(answers.front().second.error().code, Errc::unavailable);
  EXPECT_FALSE(log_->health().has_value());
}

TEST_P(LogConformance, StoppingCompletesAcceptedAppends) {
  Outcomes outcomes;
  for (int n = 0; n < 1'000; ++n) {
    log_->append(record("k", std::to_string(n)), outcomes.callback(std::to_string(n)));
  }
  log_->stop();
  EXPECT_EQ(outcomes.wait(1'000).size(), 1'000U);
  reopen();
  RecordingListener listener;
  auto consumer = log_->subscribe(listener);
  poll_all(**consumer, 1'000);
}

}  // namespace
}  // namespace conversed::test
