#pragma once

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <cstdlib>
#include <map>
#include <string>

#include "queue/kafka/kafka_client.h"

namespace conversed::test {

// A client of another program at the tests' broker (kafka_test_settings.h).
inline queue::KafkaClient other_client(rd_kafka_type_t type,
                                       std::map<std::string, std::string> properties) {
  properties["bootstrap.servers"] = std::getenv("CONVERSED_TEST_KAFKA");
  queue::KafkaConf conf(rd_kafka_conf_new());
  for (const auto& [name, value] : properties) {
    EXPECT_EQ(rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), nullptr, 0),
              RD_KAFKA_CONF_OK);
  }
  return queue::KafkaClient(rd_kafka_new(type, conf.release(), nullptr, 0));
}

// A consumer in the log's group, which subscribes to its records.
inline queue::KafkaClient other_member(const std::string& topic_prefix) {
  auto member = other_client(RD_KAFKA_CONSUMER, {{"group.id", topic_prefix},
                                                 {"partition.assignment.strategy", "range"},
                                                 {"enable.auto.commit", "false"}});
  rd_kafka_poll_set_consumer(member.get());
  const queue::KafkaPartitions topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), (topic_prefix + ".events").c_str(),
                                    RD_KAFKA_PARTITION_UA);
  EXPECT_EQ(rd_kafka_subscribe(member.get(), topics.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  return member;
}

inline int assigned_to(rd_kafka_t* member) {
  rd_kafka_topic_partition_list_t* raw = nullptr;
  EXPECT_EQ(rd_kafka_assignment(member, &raw), RD_KAFKA_RESP_ERR_NO_ERROR);
  return queue::KafkaPartitions(raw)->cnt;
}

}  // namespace conversed::test
