#include "queue/kafka/kafka_topics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

namespace conversed::queue {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;
using AdminOptions = KafkaOwned<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>;

constexpr std::string_view note_prefix = "epoch=";

int in_ms(milliseconds wait) {
  return static_cast<int>(wait.count());
}

AdminOptions options(rd_kafka_t* client, rd_kafka_admin_op_t operation, milliseconds wait) {
  AdminOptions made(rd_kafka_AdminOptions_new(client, operation));
  rd_kafka_AdminOptions_set_request_timeout(made.get(), in_ms(wait), nullptr, 0);
  if (operation == RD_KAFKA_ADMIN_OP_CREATETOPICS) {
    rd_kafka_AdminOptions_set_operation_timeout(made.get(), in_ms(wait), nullptr, 0);
  }
  return made;
}

// The answer to an admin request.
Result<KafkaEvent> answer_of(rd_kafka_queue_t* queue, milliseconds wait, std::string_view doing) {
  // The request's own time-out is shorter.
  KafkaEvent event(rd_kafka_queue_poll(queue, 2 * in_ms(wait)));
  if (!event) return model::fail(Errc::unavailable, std::string(doing) + ": no answer in time.");
  const auto done = kafka_result(rd_kafka_event_error(event.get()), doing);
  if (!done) return model::fail(done.error());
  return event;
}

struct Wanted {
  std::string name;
  std::int32_t partitions;
  std::map<std::string, std::string> config;  // required settings
  std::map<std::string, std::string> wishes;  // further settings of a topic that is made here
};

// Accepted records stay until they are finished, without limit of time. Then the driver deletes
// them. Dead letters stay until an operator deletes them.
std::vector<Wanted> wanted_topics(const KafkaNames& names, std::int32_t partitions) {
  const std::map<std::string, std::string> kept{
      {"cleanup.policy", "delete"}, {"retention.ms", "-1"}, {"retention.bytes", "-1"}};
  return {{names.records, partitions, kept, {}},
          {names.dead_letters,
           1,
           kept,
           {{"max.message.bytes", std::to_string(max_kafka_record_bytes)}}},
          {names.epochs, 1, {{"cleanup.policy", "compact"}}, {}}};
}

Result<void> create(rd_kafka_t* client, const Wanted& wanted, milliseconds wait) {
  const std::string doing = "The topic " + wanted.name + " is missing and can't be made";
  std::array<char, 512> reason{};
  KafkaNewTopic topic(rd_kafka_NewTopic_new(wanted.name.c_str(), wanted.partitions, -1,
                                            reason.data(), reason.size()));
  if (!topic) return model::fail(Errc::invalid_argument, doing + ": " + reason.data());
  for (const auto* settings : {&wanted.config, &wanted.wishes}) {
    for (const auto& [name, value] : *settings) {
      rd_kafka_NewTopic_set_config(topic.get(), name.c_str(), value.c_str());
    }
  }
  const KafkaQueue queue(rd_kafka_queue_new(client));
  rd_kafka_NewTopic_t* topics[] = {topic.get()};
  rd_kafka_CreateTopics(client, topics, 1,
                        options(client, RD_KAFKA_ADMIN_OP_CREATETOPICS, wait).get(), queue.get());
  auto event = answer_of(queue.get(), wait, doing);
  if (!event) return model::fail(event.error());
  std::size_t count = 0;
  const auto* const* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event->get()), &count);
  const auto error = rd_kafka_topic_result_error(results[0]);
  if (error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) return {};  // another daemon has made it
  return kafka_result(error, doing);
}

using Settings = std::map<std::string, std::string>;

// The settings of a topic. Empty, with a report, if this client may not read them.
Result<Settings> describe(const KafkaAsker& asker, const std::string& topic,
                          const KafkaReport& report) {
  constexpr std::string_view doing = "The settings of the log's topics can't be read";
  const KafkaConfigResource asked(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  rd_kafka_ConfigResource_t* resources[] = {asked.get()};
  const KafkaQueue queue(rd_kafka_queue_new(asker.client));
  rd_kafka_DescribeConfigs(
      asker.client, resources, 1,
      options(asker.client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, asker.wait).get(), queue.get());
  auto event = answer_of(queue.get(), asker.wait, doing);
  if (!event) return model::fail(event.error());
  std::size_t count = 0;
  const auto* resource = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event->get()), &count)[0];
  const auto error = rd_kafka_ConfigResource_error(resource);
  // Records do not depend on the right to describe topics.
  if (error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
      error == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED) {
    report(topic + ": " + kafka_error(error, doing).message +
           " They have to be as queue/README.md says.");
    return Settings{};
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return model::fail(kafka_error(error, doing));
  Settings values;
  const auto* const* entries = rd_kafka_ConfigResource_configs(resource, &count);
  for (std::size_t at = 0; at < count; ++at) {
    const char* value = rd_kafka_ConfigEntry_value(entries[at]);
    if (value != nullptr) values[rd_kafka_ConfigEntry_name(entries[at])] = value;
  }
  return values;
}

Result<void> check(const Wanted& wanted, const Settings& found, std::int32_t replicas,
                   const KafkaReport& report) {
  for (const auto& [name, value] : wanted.config) {
    const auto actual = found.find(name);
    if (actual == found.end() || actual->second == value) continue;
    return model::fail(Errc::conflict, "The topic " + wanted.name + " has " + name + "=" +
                                           actual->second +
                                           " and would lose records; it has to be " + value + ".");
  }
  const auto in_sync = found.find("min.insync.replicas");
  if ((replicas < 2 || (in_sync != found.end() && in_sync->second == "1"))) {
    report("The topic " + wanted.name +
           " needs only one replica in sync: its records do not survive the loss of a "
           "broker, or of its power.");
  }
  return {};
}

Result<KafkaTopicState> wait_for_leaders(const KafkaAsker& asker, const Wanted& wanted) {
  const auto deadline = SteadyClock::now() + asker.wait;
  for (bool asked = false;;) {
    auto state = kafka_topic_state(asker.client, wanted.name, asker.wait);
    if (!state) return state;
    if (state->partitions == 0 && !std::exchange(asked, true)) {
      auto made = create(asker.client, wanted, asker.wait);
      if (!made) return model::fail(made.error());
    } else if (state->has_leaders) {
      return state;
    }
    if (SteadyClock::now() > deadline || !asker.pause()) {
      return model::fail(Errc::unavailable, "The topic " + wanted.name + " has no leader.");
    }
  }
}

// Reads the partition's first and end offset. The client may not know yet a topic that was just
// made, or its new leader: then it is asked to refresh.
rd_kafka_resp_err_t query_watermarks(const KafkaAsker& asker, const std::string& topic,
                                     std::int32_t partition, std::int64_t& first,
                                     std::int64_t& end) {
  const auto deadline = SteadyClock::now() + asker.wait;
  for (;;) {
    const auto error = rd_kafka_query_watermark_offsets(asker.client, topic.c_str(), partition,
                                                        &first, &end, in_ms(asker.wait));
    const bool stale = error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
                       error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
                       error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
                       error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (!stale || SteadyClock::now() > deadline || !asker.pause()) return error;
    if (!kafka_topic_state(asker.client, topic, asker.wait)) return error;
  }
}

std::optional<std::int64_t> epoch_of_note(const rd_kafka_topic_partition_t& partition) {
  std::string_view note(static_cast<const char*>(partition.metadata), partition.metadata_size);
  if (!note.starts_with(note_prefix)) return std::nullopt;
  note.remove_prefix(note_prefix.size());
  std::int64_t epoch = 0;
  const auto [end, error] = std::from_chars(note.data(), note.data() + note.size(), epoch);
  if (error != std::errc() || end != note.data() + note.size()) return std::nullopt;
  return epoch;
}

// Asks for the committed offset again: since the first question a daemon may have finished and
// deleted further records.
Result<std::int64_t> committed_again(const KafkaAsker& asker, const std::string& topic,
                                     std::int32_t partition) {
  const auto asked = kafka_partitions(topic, {{partition, RD_KAFKA_OFFSET_INVALID}});
  auto error = rd_kafka_committed(asker.client, asked.get(), in_ms(asker.wait));
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) error = asked->elems[0].err;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return asked->elems[0].offset;
  return model::fail(kafka_error(error, "The committed positions can't be read"));
}

}  // namespace

Result<KafkaTopicState> kafka_topic_state(rd_kafka_t* client, const std::string& topic,
                                          milliseconds wait) {
  const std::string doing = "The topic " + topic + " can't be read";
  const KafkaTopic handle(rd_kafka_topic_new(client, topic.c_str(), nullptr));
  const rd_kafka_metadata_t* raw = nullptr;
  const auto error = rd_kafka_metadata(client, 0, handle.get(), &raw, in_ms(wait));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return model::fail(kafka_error(error, doing));
  const KafkaMetadata metadata(raw);
  KafkaTopicState state;
  if (metadata->topic_cnt != 1) return state;
  const auto& found = metadata->topics[0];
  if (found.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) return state;
  if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR &&
      found.err != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
    return model::fail(kafka_error(found.err, doing));
  state.partitions = found.partition_cnt;
  state.has_leaders = found.partition_cnt > 0;
  for (int at = 0; at < found.partition_cnt; ++at) {
    const auto& partition = found.partitions[at];
    state.has_leaders = state.has_leaders && partition.leader >= 0;
    state.replicas =
        at == 0 ? partition.replica_cnt : std::min(state.replicas, partition.replica_cnt);
  }
  return state;
}

Result<std::int32_t> prepare_kafka_topics(const KafkaAsker& asker, const KafkaNames& names,
                                          const KafkaLogSettings& settings) {
  const auto all = wanted_topics(names, settings.partitions);
  std::vector<KafkaTopicState> states;
  for (const auto& wanted : all) {
    auto state = wait_for_leaders(asker, wanted);
    if (!state) return model::fail(state.error());
    states.push_back(*state);
  }
  if (settings.topic_check == KafkaTopicCheck::without_settings) return states.front().partitions;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const auto found = describe(asker, all[at].name, settings.report);
    if (!found) return model::fail(found.error());
    auto fine = check(all[at], *found, states[at].replicas, settings.report);
    if (!fine) return model::fail(fine.error());
  }
  return states.front().partitions;  // of the log
}

Result<std::optional<KafkaEpochs>> read_kafka_epochs(const KafkaAsker& asker,
                                                     const KafkaNames& names) {
  const std::string doing = "The log's epochs can't be read";
  const std::string& topic = names.epochs;
  std::int64_t first = 0;
  std::int64_t end = 0;
  const auto asked = kafka_result(query_watermarks(asker, topic, 0, first, end), doing);
  if (!asked) return model::fail(asked.error());
  if (first >= end) return std::nullopt;
  rd_kafka_assign(asker.client, kafka_partitions(topic, {{0, first}}).get());
  Result<std::optional<KafkaEpochs>> newest = std::nullopt;
  const auto deadline = SteadyClock::now() + asker.wait;
  for (std::int64_t next = first; next < end;) {
    const KafkaMessage message(rd_kafka_consumer_poll(asker.client, in_ms(asker.wait)));
    if (message && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      next = message->offset + 1;
      const std::string_view key(static_cast<const char*>(message->key), message->key_len);
      if (key != names.epochs_key) continue;
      auto read = KafkaEpochs::parse({static_cast<const char*>(message->payload), message->len});
      newest = read ? Result<std::optional<KafkaEpochs>>(std::move(*read))
                    : Result<std::optional<KafkaEpochs>>(model::fail(read.error()));
    } else if (SteadyClock::now() > deadline) {
      newest = model::fail(Errc::unavailable, doing + ": no answer in time.");
      break;
    }
  }
  rd_kafka_assign(asker.client, nullptr);
  return newest;
}

Result<KafkaRanges> read_kafka_ranges(const KafkaAsker& asker, const std::string& topic,
                                      const std::vector<std::int32_t>& partitions,
                                      const KafkaEpochs& epochs) {
  KafkaOffsets offsets;
  for (const auto partition : partitions) offsets[partition] = RD_KAFKA_OFFSET_INVALID;
  const auto asked = kafka_partitions(topic, offsets);
  const auto known = kafka_result(rd_kafka_committed(asker.client, asked.get(), in_ms(asker.wait)),
                                  "The committed positions can't be read");
  if (!known) return model::fail(known.error());
  KafkaRanges read;
  for (int at = 0; at < asked->cnt; ++at) {
    const auto& each = asked->elems[at];
    PartitionRange range{.partition = each.partition};
    auto error = each.err;
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      error = query_watermarks(asker, topic, each.partition, range.first, range.end);
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return model::fail(kafka_error(error, "The offsets of the log can't be read"));
    }
    range.epoch = epochs.at(each.partition, range.end).epoch;
    std::int64_t committed = std::max(each.offset, range.first);
    const auto made_in = epoch_of_note(each);
    if (made_in) {
      committed = std::max(epochs.resume_at(each.partition, committed, *made_in), range.first);
      read.newest_committed = std::max(read.newest_committed, *made_in);
    }
    const bool is_of_now = made_in.value_or(epochs.newest()) >= epochs.newest();
    if (each.offset >= 0 && each.offset < range.first && is_of_now) {
      const auto again = committed_again(asker, topic, each.partition);
      if (!again) return model::fail(again.error());
      if (*again < range.first) {
        read.lost = "Partition " + std::to_string(range.partition) + " of " + topic +
                    " begins at offset " + std::to_string(range.first) +
                    ", and only the records below " + std::to_string(*again) +
                    " are finished: " + std::to_string(range.first - *again) +
                    " records in between are gone";
      }
    }
    if (committed > range.end) {
      read.ends_below = "Partition " + std::to_string(range.partition) + " of " + topic +
                        " ends at offset " + std::to_string(range.end) + ", and " +
                        std::to_string(committed) + " is committed";
    }
    range.committed = std::min(committed, range.end);
    read.ranges.push_back(range);
  }
  std::ranges::sort(read.ranges, {}, &PartitionRange::partition);
  return read;
}

Error kafka_records_lost(const std::string& lost) {
  return {Errc::conflict, lost +
                              ". Restore them, or, to go on without them, stop all daemons and run "
                              "`conversed new-epoch`."};
}

std::vector<std::int32_t> all_partitions(std::int32_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void note_epoch(rd_kafka_topic_partition_t& commit, std::int64_t epoch) {
  const std::string note = std::string(note_prefix) + std::to_string(epoch);
  commit.metadata = ::strdup(note.c_str());  // the list frees it
  commit.metadata_size = note.size();
}

}  // namespace conversed::queue
