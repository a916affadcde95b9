#pragma once

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "queue/kafka/kafka_epochs.h"
#include "queue/kafka/kafka_log.h"

namespace conversed::queue {

using namespace std::chrono_literals;

inline constexpr std::int32_t partitions = 4;
inline constexpr std::int16_t produce_request = 0;  // its number in Kafka's protocol

inline Record record(const std::string& key, const std::string& id) {
  return {key, id, "inject", "0af7651916cd43dd8448eb211c80319c", "v"};
}

class Ignoring final : public Listener {
 public:
  Result<void> on_assigned(std::span<const PartitionRange> ranges) override {
    assigned = ranges.size();
    return {};
  }
  void on_revoked(std::span<const std::int32_t> /*lost*/) override {}
  std::size_t assigned = 0;
};

// A log on librdkafka's mock cluster, which fails on demand.
class KafkaLogTest : public testing::Test {
 protected:
  void SetUp() override {
    client_ = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), nullptr, 0);
    cluster_ = rd_kafka_mock_cluster_new(client_, 1);
    rd_kafka_mock_topic_create(cluster_, "p.events", partitions, 1);
    rd_kafka_mock_topic_create(cluster_, "p.deadletters", 1, 1);
    rd_kafka_mock_topic_create(cluster_, "p.epochs", 1, 1);
    settings_.bootstrap_servers = {rd_kafka_mock_cluster_bootstraps(cluster_)};
    settings_.topic_prefix = "p";
    settings_.instance_id = "reader";
    settings_.partitions = partitions;
    // The mock does not answer requests for the topics' settings.
    settings_.topic_check = KafkaTopicCheck::without_settings;
    settings_.request_timeout = 3s;
    settings_.delivery_timeout = 30s;
    settings_.report = [this](const std::string& what) {
      const std::lock_guard lock(mutex_);
      reports_ += what + "\n";
      reported_.notify_all();
    };
  }
  void TearDown() override {
    log_.reset();
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(client_);
  }

  void open() {
    auto opened = open_kafka_log(settings_);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    log_ = std::move(*opened);
    const auto ranges = log_->ranges();
    ASSERT_TRUE(ranges.has_value()) << ranges.error().message;
  }
  Result<Appended> append(const Record& appended) {
    std::promise<Result<Appended>> done;
    log_->append(appended, [&](Result<Appended> outcome) { done.set_value(std::move(outcome)); });
    return done.get_future().get();
  }
  std::string reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  // Waits for a report of the producer's failure. Another thread makes it, in no order with the
  // answers to records.
  void await_report(const std::string& part) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        reported_.wait_for(lock, 1min, [&] { return reports_.find(part) != std::string::npos; }))
        << "no report of '" << part << "' in:\n"
        << reports_;
  }
  // Writes the record of epochs as any other program can.
  void write_epochs(const std::string& value) { produce(0, "epochs", {}, "p.epochs", value); }
  void produce(std::int32_t partition, const char* key,
               const std::map<std::string, std::string>& all, const char* topic = "p.events",
               std::string value = "v") {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", settings_.bootstrap_servers.front().c_str(),
                      nullptr, 0);
    rd_kafka_t* other = rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0);
    const std::size_t key_size = key == nullptr ? 0 : std::string(key).size();
    rd_kafka_headers_t* headers = rd_kafka_headers_new(all.size());
    for (const auto& [name, text] : all) {
      rd_kafka_header_add(headers, name.c_str(), -1, text.data(),
                          static_cast<ssize_t>(text.size()));
    }
    ASSERT_EQ(rd_kafka_producev(other, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                                RD_KAFKA_V_KEY(key, key_size),
                                RD_KAFKA_V_VALUE(value.data(), value.size()),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END),
              RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_EQ(rd_kafka_flush(other, 30'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(other);
  }
  // The count of records in the topic's partition.
  std::int64_t end_of(const char* topic, std::int32_t partition) {
    std::int64_t first = 0;
    std::int64_t end = -1;
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", settings_.bootstrap_servers.front().c_str(),
                      nullptr, 0);
    rd_kafka_t* other = rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0);
    EXPECT_EQ(rd_kafka_query_watermark_offsets(other, topic, partition, &first, &end, 30'000),
              RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(other);
    return end;
  }
  void commit_as_the_group(std::int32_t partition, std::int64_t offset) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", settings_.bootstrap_servers.front().c_str(),
                      nullptr, 0);
    rd_kafka_conf_set(conf, "group.id", "p", nullptr, 0);
    rd_kafka_t* other = rd_kafka_new(RD_KAFKA_CONSUMER, conf, nullptr, 0);
    rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "p.events", partition)->offset = offset;
    EXPECT_EQ(rd_kafka_commit(other, list, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(other);
  }
  std::vector<LogRecord> poll(Consumer& consumer, std::size_t count) {
    std::vector<LogRecord> all;
    const auto deadline = std::chrono::steady_clock::now() + 1min;
    while (all.size() < count && std::chrono::steady_clock::now() < deadline) {
      auto some = consumer.poll(count - all.size(), 1s);
      EXPECT_TRUE(some.has_value()) << some.error().message;
      if (!some) break;
      all.insert(all.end(), some->begin(), some->end());
    }
    EXPECT_EQ(all.size(), count);
    return all;
  }

  rd_kafka_t* client_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  KafkaLogSettings settings_;
  std::unique_ptr<Log> log_;
  std::mutex mutex_;
  std::condition_variable reported_;
  std::string reports_;
};

}  // namespace conversed::queue
