// The Kafka driver beside other programs at the same broker.
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <chrono>
#include <map>
#include <set>
#include <string>

#include "queue/kafka/kafka_client.h"
#include "queue/kafka/kafka_log.h"
#include "tests/conformance/kafka_other_client.h"
#include "tests/conformance/kafka_test_settings.h"
#include "tests/conformance/log_conformance.h"

namespace conversed::test {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr int wait_ms = 30'000;

void append_and_wait(queue::Log& log, int count) {
  Outcomes outcomes;
  for (int n = 0; n < count; ++n) {
    const std::string id = std::to_string(n);
    log.append({"key" + std::to_string(n % 17), id, "inject", "", "v"}, outcomes.callback(id));
  }
  for (const auto& [id, outcome] : outcomes.wait(static_cast<std::size_t>(count))) {
    ASSERT_TRUE(outcome.has_value()) << id << ": " << outcome.error().message;
  }
}

TEST(KafkaBroker, RecordsDroppedUnderPressureAreReadAgainLater) {
  const auto settings = fresh_kafka_topics();
  const auto log = connected_log(settings);
  ASSERT_TRUE(log);
  append_and_wait(*log, 200);
  RecordingListener listener;
  auto consumer = log->subscribe(listener);
  ASSERT_TRUE(consumer.has_value());
  // Long enough to get an assignment and to reach the limit of the buffer. A shorter time weakens
  // this test but does not fail it.
  const auto pressed = SteadyClock::now() + 3s;
  const auto deadline = SteadyClock::now() + 60s;
  while ((SteadyClock::now() < pressed || listener.assigned.empty()) &&
         SteadyClock::now() < deadline) {
    ASSERT_TRUE((*consumer)->poll(0, 0ms).has_value());
  }
  const auto other = other_member(settings.topic_prefix);
  while (assigned_to(other.get()) == 0 && SteadyClock::now() < deadline) {
    ASSERT_TRUE((*consumer)->poll(0, 0ms).has_value());
    const queue::KafkaMessage ignored(rd_kafka_consumer_poll(other.get(), 50));
  }
  ASSERT_GT(assigned_to(other.get()), 0);
  rd_kafka_consumer_close(other.get());
  std::set<std::string> ids;
  while (ids.size() < 200 && SteadyClock::now() < deadline) {
    const auto some = (*consumer)->poll(1'000, 1s);
    ASSERT_TRUE(some.has_value()) << some.error().message;
    for (const auto& each : *some) ids.insert(each.record.id);
  }
  EXPECT_EQ(ids.size(), 200U);
}

// The markers that end transactions take offsets, but no consumer gets them.
TEST(KafkaBroker, TransactionsOfOtherProgramsLeaveNoLag) {
  auto settings = fresh_kafka_topics();
  settings.partitions = 1;
  const std::string topic = settings.topic_prefix + ".events";
  const auto log = connected_log(settings);
  ASSERT_TRUE(log);
  const auto other = other_client(RD_KAFKA_PRODUCER, {{"transactional.id", settings.topic_prefix}});
  const queue::KafkaOwned<rd_kafka_error_t, rd_kafka_error_destroy> begun(
      rd_kafka_init_transactions(other.get(), wait_ms));
  ASSERT_FALSE(begun) << rd_kafka_error_string(begun.get());
  for (const char* id : {"given up", "a", "b"}) {
    ASSERT_EQ(rd_kafka_begin_transaction(other.get()), nullptr);
    ASSERT_EQ(
        rd_kafka_producev(other.get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(0),
                          RD_KAFKA_V_KEY("k", 1), RD_KAFKA_V_HEADER("id", id, -1),
                          RD_KAFKA_V_HEADER("type", "inject", -1), RD_KAFKA_V_END),
        RD_KAFKA_RESP_ERR_NO_ERROR);
    ASSERT_EQ(rd_kafka_flush(other.get(), wait_ms), RD_KAFKA_RESP_ERR_NO_ERROR);
    auto* ended = std::string(id) == "given up" ? rd_kafka_abort_transaction(other.get(), wait_ms)
                                                : rd_kafka_commit_transaction(other.get(), wait_ms);
    ASSERT_EQ(ended, nullptr);
  }
  RecordingListener listener;
  auto consumer = log->subscribe(listener);
  std::vector<queue::LogRecord> all;
  const auto deadline = SteadyClock::now() + 60s;
  while (all.size() < 2 && SteadyClock::now() < deadline) {
    auto some = (*consumer)->poll(10, 1s);
    ASSERT_TRUE(some.has_value()) << some.error().message;
    all.insert(all.end(), some->begin(), some->end());
  }
  ASSERT_EQ(all.size(), 2U);
  EXPECT_LT(log->ranges().value()[0].committed, all.back().position.offset)
      << "the last record is not finished";
  const std::vector<queue::Position> finished{all.back().position};
  ASSERT_TRUE((*consumer)->commit(finished).has_value());
  auto range = log->ranges().value()[0];
  while (range.committed < range.end && SteadyClock::now() < deadline) {
    ASSERT_TRUE((*consumer)->poll(10, 100ms).has_value());
    range = log->ranges().value()[0];
  }
  EXPECT_EQ(range.committed, range.end);
  EXPECT_GT(range.end, 3) << "the markers took offsets";
}

// Makes one admin request by `ask` and waits for its answer, which is the queue's event.
template <typename Ask>
void wait_for_admin(Ask&& ask) {
  const auto client = other_client(RD_KAFKA_PRODUCER, {});
  const queue::KafkaQueue queue(rd_kafka_queue_new(client.get()));
  ask(client.get(), queue.get());
  const queue::KafkaEvent event(rd_kafka_queue_poll(queue.get(), wait_ms));
  ASSERT_TRUE(event);
  ASSERT_EQ(rd_kafka_event_error(event.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
}

// Reads all records and finishes them.
std::vector<queue::LogRecord> consume(queue::Log& log, std::size_t count) {
  RecordingListener listener;
  auto consumer = log.subscribe(listener);
  EXPECT_TRUE(consumer.has_value());
  std::vector<queue::LogRecord> all;
  const auto deadline = SteadyClock::now() + 60s;
  while (all.size() < count && SteadyClock::now() < deadline) {
    auto some = (*consumer)->poll(count - all.size(), 1s);
    EXPECT_TRUE(some.has_value()) << some.error().message;
    if (some) all.insert(all.end(), some->begin(), some->end());
  }
  EXPECT_EQ(all.size(), count);
  for (const auto& each : all) {
    const std::vector<queue::Position> finished{each.position};
    EXPECT_TRUE((*consumer)->commit(finished).has_value());
  }
  return all;
}

TEST(KafkaBroker, LostUnfinishedRecordsStopTheLogUntilANewEpoch) {
  auto settings = fresh_kafka_topics();
  settings.partitions = 1;
  auto log = connected_log(settings);
  ASSERT_TRUE(log);
  append_and_wait(*log, 20);
  consume(*log, 5);
  wait_for_admin([&](rd_kafka_t* client, rd_kafka_queue_t* queue) {
    const queue::KafkaPartitions below(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(below.get(), (settings.topic_prefix + ".events").c_str(), 0)
        ->offset = 15;
    const queue::KafkaDeleteRecords request(rd_kafka_DeleteRecords_new(below.get()));
    rd_kafka_DeleteRecords_t* requests[] = {request.get()};
    rd_kafka_DeleteRecords(client, requests, 1, nullptr, queue);
  });
  const auto ranges = log->ranges();
  ASSERT_FALSE(ranges.has_value());
  EXPECT_EQ(ranges.error().code, queue::Errc::conflict);
  EXPECT_NE(ranges.error().message.find("10 records in between are gone"), std::string::npos);
  EXPECT_NE(ranges.error().message.find("conversed new-epoch"), std::string::npos);
  {
    RecordingListener listener;
    auto consumer = log->subscribe(listener);
    auto polled = (*consumer)->poll(10, 100ms);
    while (polled || polled.error().code != queue::Errc::conflict) {
      ASSERT_TRUE(!polled || polled->empty());
      polled = (*consumer)->poll(10, 100ms);
    }
  }
  const auto epoch = log->new_epoch(0);
  ASSERT_TRUE(epoch.has_value()) << epoch.error().message;
  EXPECT_EQ(log->ranges().value()[0].lag(), 5);
  log = connected_log(settings);
  EXPECT_EQ(consume(*log, 5).front().position.offset, 15);
  ASSERT_TRUE(log->ranges().has_value());
}

TEST(KafkaBroker, UnfinishedRecordsMoveWithTheirKeyWhenPartitionsAreAdded) {
  auto settings = fresh_kafka_topics();
  settings.partitions = 2;
  auto log = connected_log(settings);
  ASSERT_TRUE(log);
  append_and_wait(*log, 200);
  std::set<std::string> finished;
  for (const auto& each : consume(*log, 60)) finished.insert(each.record.id);
  log.reset();
  wait_for_admin([&](rd_kafka_t* client, rd_kafka_queue_t* queue) {
    const queue::KafkaOwned<rd_kafka_NewPartitions_t, rd_kafka_NewPartitions_destroy> wanted(
        rd_kafka_NewPartitions_new((settings.topic_prefix + ".events").c_str(), 5, nullptr, 0));
    rd_kafka_NewPartitions_t* all[] = {wanted.get()};
    rd_kafka_CreatePartitions(client, all, 1, nullptr, queue);
  });
  const std::string done_in_the_store = "117";
  settings.is_finished = [&](const queue::LogRecord& record) -> queue::Result<bool> {
    EXPECT_EQ(record.position.epoch, 1);
    return record.record.id == done_in_the_store;
  };
  auto opened = queue::open_kafka_log(settings);
  ASSERT_TRUE(opened.has_value());
  const auto epoch = (*opened)->new_epoch(0);
  ASSERT_TRUE(epoch.has_value()) << epoch.error().message;
  EXPECT_EQ(*epoch, 2);
  opened->reset();
  log = connected_log(settings);
  ASSERT_TRUE(log);
  std::map<std::string, int> last;  // by key: ids ascend
  std::set<std::string> moved;
  std::set<std::int32_t> partitions;
  for (const auto& each : consume(*log, 200 - 60 - 1)) {
    const int number = std::stoi(each.record.id);
    EXPECT_GT(number, last.emplace(each.record.key, -1).first->second)
        << "a key's records are out of order";
    last[each.record.key] = number;
    moved.insert(each.record.id);
    partitions.insert(each.position.partition);
    EXPECT_EQ(each.position.partition, queue::partition_of(each.record.key, 5));
    EXPECT_EQ(each.position.epoch, 2);
  }
  EXPECT_EQ(moved.size(), 139U) << "each record has to come once";
  EXPECT_GT(partitions.size(), 2U);
  for (const auto& id : finished) EXPECT_FALSE(moved.contains(id)) << id;
}

}  // namespace
}  // namespace conversed::test
