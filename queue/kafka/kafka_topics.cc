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
    std::string problem = "The topic " + wanted.name + " has ";
    problem.append(name).append("=").append(actual->second);
    problem.append(" and would lose records; it has to be ").append(value).append(".");
    return model::fail(Errc::conflict, problem);
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

// Whether the same question may be answered soon: the client does not know yet a topic that was
// just made, or a partition's new leader, or a broker is not there.
bool may_pass(rd_kafka_resp_err_t error) {
  constexpr std::array passing{RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
                               RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
                               RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                               RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
                               RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
                               RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
                               RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE,
                               RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                               RD_KAFKA_RESP_ERR__TRANSPORT};
  return std::ranges::find(passing, error) != passing.end();
}

rd_kafka_resp_err_t first_error(const rd_kafka_topic_partition_list_t& list) {
  for (int at = 0; at < list.cnt; ++at) {
    if (list.elems[at].err != RD_KAFKA_RESP_ERR_NO_ERROR) return list.elems[at].err;
  }
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

// Each partition's offset at one side of it: RD_KAFKA_OFFSET_BEGINNING or RD_KAFKA_OFFSET_END. One
// request to each broker. librdkafka repeats it a few times only.
Result<KafkaOffsets> read_offsets(const KafkaAsker& asker, const std::string& topic,
                                  const std::vector<std::int32_t>& partitions, std::int64_t side,
                                  std::string_view doing) {
  KafkaOffsets sides;
  for (const auto partition : partitions) sides[partition] = side;
  const auto deadline = SteadyClock::now() + asker.wait;
  for (;;) {
    const auto asked = kafka_partitions(topic, sides);
    auto error = rd_kafka_offsets_for_times(asker.client, asked.get(), in_ms(asker.wait));
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) error = first_error(*asked);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      KafkaOffsets read;
      for (int at = 0; at < asked->cnt; ++at) {
        const auto& each = asked->elems[at];
        if (each.offset < 0) error = RD_KAFKA_RESP_ERR__BAD_MSG;  // the answer leaves it out
        read[each.partition] = each.offset;
      }
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return read;
    }
    if (!may_pass(error) || SteadyClock::now() > deadline || !asker.pause() ||
        !kafka_topic_state(asker.client, topic, asker.wait)) {
      return model::fail(kafka_error(error, doing));
    }
  }
}

struct FirstAndEnd {
  KafkaOffsets first;
  KafkaOffsets end;
};

Result<FirstAndEnd> read_first_and_end(const KafkaAsker& asker, const std::string& topic,
                                       const std::vector<std::int32_t>& partitions,
                                       std::string_view doing) {
  auto first = read_offsets(asker, topic, partitions, RD_KAFKA_OFFSET_BEGINNING, doing);
  if (!first) return model::fail(first.error());
  auto end = read_offsets(asker, topic, partitions, RD_KAFKA_OFFSET_END, doing);
  if (!end) return model::fail(end.error());
  return FirstAndEnd{std::move(*first), std::move(*end)};
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
  const auto found = read_first_and_end(asker, topic, {0}, doing);
  if (!found) return model::fail(found.error());
  const auto first = found->first.at(0);
  const auto end = found->end.at(0);
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
  constexpr std::string_view doing = "The offsets of the log can't be read";
  const auto answered = kafka_result(first_error(*asked), doing);
  if (!answered) return model::fail(answered.error());
  const auto found = read_first_and_end(asker, topic, partitions, doing);
  if (!found) return model::fail(found.error());
  KafkaRanges read;
  for (int at = 0; at < asked->cnt; ++at) {
    const auto& each = asked->elems[at];
    PartitionRange range{.partition = each.partition,
                         .first = found->first.at(each.partition),
                         .end = found->end.at(each.partition)};
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
