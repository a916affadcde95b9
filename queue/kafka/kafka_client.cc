#include "queue/kafka/kafka_client.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace conversed::queue {
namespace {

using Property = std::pair<std::string, std::string>;

bool is_producer(KafkaRole role) {
  return role == KafkaRole::producer || role == KafkaRole::mover;
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

// Set before the operator's properties, which may replace them.
std::vector<Property> defaults(KafkaRole role) {
  std::vector<Property> all{{"client.id", "conversed"},
                            {"socket.nagle.disable", "true"},
                            {"socket.keepalive.enable", "true"},
                            {"reconnect.backoff.ms", "50"},
                            {"reconnect.backoff.max.ms", "1000"}};
  if (is_producer(role)) {
    // Batches form while earlier ones are in flight, so a wait for more records only costs time.
    all.emplace_back("linger.ms", "0");
    // The brokers' limit decides. Dead letters have a higher limit, since they are a little longer
    // than their records.
    all.emplace_back("message.max.bytes", std::to_string(max_kafka_record_bytes));
  } else {
    all.emplace_back("session.timeout.ms", "10000");
    // A fetch ends with the first record, so the wait only bounds how often idle partitions are
    // fetched. But a partition that was just assigned or resumed has to wait until the current
    // fetch from its broker ends.
    all.emplace_back("fetch.wait.max.ms", "1500");
    all.emplace_back("queued.max.messages.kbytes", "16384");
  }
  return all;
}

std::vector<Property> promises(const KafkaLogSettings& settings, KafkaRole role) {
  // No request may create a deleted topic again.
  std::vector<Property> all{{"bootstrap.servers", joined(settings.bootstrap_servers, ",")},
                            {"allow.auto.create.topics", "false"}};
  if (is_producer(role)) {
    // The library's bounds are above the daemon's, which count all records without an outcome.
    const std::size_t kbytes = 2 * settings.max_waiting_bytes / 1024 + 1'024;
    all.insert(all.end(),
               {{"enable.idempotence", "true"},
                {"acks", "all"},
                {"message.timeout.ms", std::to_string(settings.delivery_timeout.count())},
                {"queue.buffering.max.messages", std::to_string(2 * settings.max_waiting_records)},
                {"queue.buffering.max.kbytes", std::to_string(kbytes)}});
    if (role == KafkaRole::mover) {
      all.emplace_back("transactional.id", KafkaNames(settings).records + ".move");
      // The longest time that brokers allow by default.
      all.emplace_back("transaction.timeout.ms", "900000");
      all.emplace_back("message.timeout.ms", "300000");
    }
    return all;
  }
  all.insert(all.end(), {{"group.id", KafkaNames(settings).group},
                         {"enable.auto.commit", "false"},
                         {"enable.auto.offset.store", "false"},
                         {"auto.offset.reset", "earliest"},
                         {"isolation.level", "read_committed"}});
  if (role == KafkaRole::consumer) {
    all.emplace_back("partition.assignment.strategy", "range");
    all.emplace_back("enable.partition.eof", "true");
    all.emplace_back("group.instance.id", settings.instance_id);
  }
  return all;
}

// Sets the property. Returns the problem, if there is one. The library's own message would quote
// the value, which may be a secret.
std::optional<std::string> set(rd_kafka_conf_t* conf, const Property& property) {
  const auto& [name, value] = property;
  const auto done = rd_kafka_conf_set(conf, name.c_str(), value.c_str(), nullptr, 0);
  if (done == RD_KAFKA_CONF_OK) return std::nullopt;
  if (done == RD_KAFKA_CONF_UNKNOWN) {
    return "Kafka's client has no property " + name + "; leave it out";
  }
  return "Kafka's client does not take the value of " + name + "; mend it or leave it out";
}

// Whether the daemon's promises depend on the property, or it is another name of such a property.
bool is_reserved(std::string_view name) {
  constexpr std::array<std::string_view, 5> others{"auto.commit.interval.ms", "delivery.timeout.ms",
                                                   "metadata.broker.list", "partitioner",
                                                   "request.required.acks"};
  constexpr std::array roles{KafkaRole::producer, KafkaRole::mover, KafkaRole::consumer};
  return std::ranges::find(others, name) != others.end() ||
         std::ranges::any_of(roles, [&](KafkaRole role) {
           const auto own = promises({}, role);
           return std::ranges::find(own, name, &Property::first) != own.end();
         });
}

std::vector<std::string> set_operators(rd_kafka_conf_t* conf,
                                       const std::vector<Property>& properties) {
  std::vector<std::string> problems;
  for (const auto& property : properties) {
    if (is_reserved(property.first)) {
      problems.push_back(property.first + " is set by conversed itself; leave it out");
    } else if (auto problem = set(conf, property)) {
      problems.push_back(std::move(*problem));
    }
  }
  return problems;
}

Result<void> set_all(rd_kafka_conf_t* conf, const KafkaLogSettings& settings, KafkaRole role) {
  const auto bad = [](const std::string& what) {
    return model::fail(Errc::invalid_argument, what + ".");
  };
  for (const auto& property : defaults(role)) {
    if (auto problem = set(conf, property)) return bad(*problem);
  }
  if (const auto problems = set_operators(conf, settings.properties); !problems.empty()) {
    return bad("queue.kafka.properties: " + joined(problems, ". "));
  }
  for (const auto& property : promises(settings, role)) {
    if (auto problem = set(conf, property)) return bad(*problem);
  }
  return {};
}

KafkaHandler& handler_of(void* opaque) {
  return *static_cast<KafkaHandler*>(opaque);
}

void set_callbacks(rd_kafka_conf_t* conf, KafkaRole role, KafkaHandler& handler) {
  rd_kafka_conf_set_opaque(conf, &handler);
  rd_kafka_conf_set_error_cb(conf, [](rd_kafka_t*, int error, const char*, void* opaque) {
    handler_of(opaque).on_error(static_cast<rd_kafka_resp_err_t>(error));
  });
  rd_kafka_conf_set_log_cb(
      conf, [](const rd_kafka_t* client, int level, const char* facility, const char* message) {
        constexpr int warning = 4;
        // Without a client the message is about a configuration that is refused with an error
        // anyway. CONFWARN: one list of properties serves producers and consumers.
        if (client == nullptr || level > warning || std::string_view(facility) == "CONFWARN")
          return;
        handler_of(rd_kafka_opaque(client))
            .report("kafka client: " + std::string(facility) + ": " + message);
      });
  if (role == KafkaRole::producer) {
    rd_kafka_conf_set_dr_msg_cb(conf,
                                [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
                                  handler_of(opaque).on_delivery(*message);
                                });
  }
  if (role == KafkaRole::consumer) {
    rd_kafka_conf_set_rebalance_cb(
        conf, [](rd_kafka_t*, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions,
                 void* opaque) { handler_of(opaque).on_rebalance(what, *partitions); });
  }
}

}  // namespace

std::vector<std::string> kafka_property_problems(
    const std::vector<std::pair<std::string, std::string>>& properties) {
  const KafkaConf conf(rd_kafka_conf_new());
  return set_operators(conf.get(), properties);
}

Result<KafkaClient> make_kafka_client(const KafkaLogSettings& settings, KafkaRole role,
                                      KafkaHandler& handler) {
  KafkaConf conf(rd_kafka_conf_new());
  if (auto done = set_all(conf.get(), settings, role); !done) return model::fail(done.error());
  set_callbacks(conf.get(), role, handler);
  std::array<char, 512> reason{};
  KafkaClient client(rd_kafka_new(is_producer(role) ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER,
                                  conf.get(), reason.data(), reason.size()));
  if (!client) {
    // The reason names properties that contradict each other, and no values of secrets.
    return model::fail(
        Errc::invalid_argument,
        "Kafka's client can't be made with queue.kafka.properties: " + std::string(reason.data()));
  }
  (void)conf.release();  // the client owns it now
  if (role == KafkaRole::consumer) rd_kafka_poll_set_consumer(client.get());
  return client;
}

model::Error kafka_error(rd_kafka_resp_err_t error, std::string_view doing) {
  std::string text = std::string(doing) + ": " + rd_kafka_err2str(error) + ".";
  switch (error) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
      return {Errc::too_large, std::move(text)};
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
      return {Errc::too_many, std::move(text)};
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
      return {Errc::bad_upstream, std::move(text)};
    default:
      return {Errc::unavailable, std::move(text)};
  }
}

Result<void> kafka_result(rd_kafka_resp_err_t error, std::string_view doing) {
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return model::fail(kafka_error(error, doing));
}

KafkaPartitions kafka_partitions(const std::string& topic, const KafkaOffsets& offsets) {
  KafkaPartitions list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
  for (const auto& [partition, offset] : offsets) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
  }
  return list;
}

}  // namespace conversed::queue
