#include "queue/kafka/kafka_move.h"

#include <string>
#include <utility>

#include "queue/kafka/kafka_record.h"
#include "store/runtime/fault_points.h"

namespace conversed::queue {
namespace {

using SteadyClock = std::chrono::steady_clock;
using KafkaFault = KafkaOwned<rd_kafka_error_t, rd_kafka_error_destroy>;
using GroupMetadata =
    KafkaOwned<rd_kafka_consumer_group_metadata_t, rd_kafka_consumer_group_metadata_destroy>;

constexpr std::string_view doing = "Unfinished records can't be moved";

Result<void> done_or_failed(rd_kafka_error_t* outcome) {
  const KafkaFault error(outcome);
  if (!error) return {};
  return model::fail(kafka_error(rd_kafka_error_code(error.get()), doing));
}

class Mover final : public KafkaHandler {
 public:
  Mover(const KafkaMove& move, const KafkaAsker& asker)
      : KafkaHandler(move.settings.report),
        move_(move),
        asker_(asker),
        wait_ms_(static_cast<int>(move.settings.request_timeout.count())) {}

  Result<KafkaMoved> run();

 private:
  Result<void> open();
  Result<void> copy_all();
  Result<void> commit();
  Result<void> take(const rd_kafka_message_t& message);
  Result<void> append(const rd_kafka_message_t& message, std::int32_t partition);

  const KafkaMove& move_;
  const KafkaAsker& asker_;
  const int wait_ms_;
  KafkaClient producer_;
  KafkaClient reader_;
  std::vector<PartitionRange> ranges_;
  KafkaOffsets left_;  // the partitions to read, and their ends
};

// `rd_kafka_init_transactions` aborts an interrupted earlier move.
Result<void> Mover::open() {
  auto producer = make_kafka_client(move_.settings, KafkaRole::mover, *this);
  if (!producer) return model::fail(producer.error());
  producer_ = std::move(*producer);
  auto reader = make_kafka_client(move_.settings, KafkaRole::consumer, *this);
  if (!reader) return model::fail(reader.error());
  reader_ = std::move(*reader);
  return done_or_failed(rd_kafka_init_transactions(producer_.get(), 6 * wait_ms_));
}

Result<KafkaMoved> Mover::run() {
  if (auto opened = open(); !opened) return model::fail(opened.error());
  auto read = read_kafka_ranges(asker_, move_.names.records, all_partitions(move_.partitions),
                                move_.epochs);
  if (!read) return model::fail(read.error());
  ranges_ = std::move(read->ranges);
  KafkaMoved moved{.epoch = move_.epoch, .first = {}};
  if (read->newest_committed >
      move_.epochs.newest()) {  // an earlier call moved it, but its epoch is not stored
    moved.epoch = read->newest_committed;
    for (const auto& range : ranges_) moved.first.push_back(range.committed);
    return moved;
  }
  for (const auto& range : ranges_) moved.first.push_back(range.end);
  if (auto begun = done_or_failed(rd_kafka_begin_transaction(producer_.get())); !begun) {
    return model::fail(begun.error());
  }
  auto done = copy_all();
  if (done) done = commit();
  if (done) return moved;
  // If this fails, the next call or the brokers' time-out aborts the transaction.
  (void)done_or_failed(rd_kafka_abort_transaction(producer_.get(), 6 * wait_ms_));
  return model::fail(done.error());
}

Result<void> Mover::copy_all() {
  KafkaOffsets from;
  for (const auto& range : ranges_) {
    if (range.lag() == 0) continue;
    left_[range.partition] = range.end;
    from[range.partition] = range.committed;
  }
  auto begun = kafka_result(
      rd_kafka_assign(reader_.get(), kafka_partitions(move_.names.records, from).get()), doing);
  if (!begun) return begun;
  auto heard_at = SteadyClock::now();
  while (!left_.empty()) {
    const KafkaMessage message(rd_kafka_consumer_poll(reader_.get(), 100));
    rd_kafka_poll(producer_.get(), 0);
    if (!message) {
      if (SteadyClock::now() - heard_at < 6 * move_.settings.request_timeout) continue;
      return model::fail(Errc::unavailable, std::string(doing) + ": no records come.");
    }
    heard_at = SteadyClock::now();
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      left_.erase(message->partition);
    } else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return model::fail(kafka_error(message->err, doing));
    } else if (auto taken = take(*message); !taken) {
      return taken;
    }
  }
  return {};
}

Result<void> Mover::take(const rd_kafka_message_t& message) {
  const auto end = left_.find(message.partition);
  if (end == left_.end()) return {};
  if (message.offset >= end->second) {
    left_.erase(end);
    return {};
  }
  // An unreadable or misplaced record stays in its partition. The consumer makes it a dead letter.
  auto partition = message.partition;
  const auto& epoch = move_.epochs.at(message.partition, message.offset);
  if (auto record = read_kafka_record(message)) {
    const auto before = partition_of(record->key, static_cast<std::int32_t>(epoch.first.size()));
    if (before == partition) {
      partition = partition_of(record->key, move_.partitions);
      if (move_.settings.is_finished) {
        const auto finished = move_.settings.is_finished(
            {std::move(*record), {epoch.epoch, message.partition, message.offset}});
        if (!finished) return model::fail(finished.error());
        if (*finished) return {};
      }
    }
  }
  return append(message, partition);
}

Result<void> Mover::append(const rd_kafka_message_t& message, std::int32_t partition) {
  const auto deadline = SteadyClock::now() + 6 * move_.settings.request_timeout;
  for (;;) {
    rd_kafka_headers_t* found = nullptr;
    KafkaHeaders headers;
    if (rd_kafka_message_headers(&message, &found) == RD_KAFKA_RESP_ERR_NO_ERROR) {
      headers.reset(rd_kafka_headers_copy(found));
    } else {
      headers.reset(rd_kafka_headers_new(0));
    }
    const auto error = rd_kafka_producev(
        producer_.get(), RD_KAFKA_V_TOPIC(move_.names.records.c_str()),
        RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(message.key, message.key_len),
        RD_KAFKA_V_VALUE(message.payload, message.len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_HEADERS(headers.get()), RD_KAFKA_V_END);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      (void)headers.release();  // the client's now
      model::fault_point("kafka.move.append");
      return {};
    }
    if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL || SteadyClock::now() > deadline) {
      return model::fail(kafka_error(error, doing));
    }
    rd_kafka_poll(producer_.get(), 100);
  }
}

Result<void> Mover::commit() {
  KafkaOffsets ends;
  for (const auto& range : ranges_) ends[range.partition] = range.end;
  const auto list = kafka_partitions(move_.names.records, ends);
  for (int at = 0; at < list->cnt; ++at) note_epoch(list->elems[at], move_.epoch);
  const GroupMetadata group(rd_kafka_consumer_group_metadata_new(move_.names.group.c_str()));
  auto told = done_or_failed(
      rd_kafka_send_offsets_to_transaction(producer_.get(), list.get(), group.get(), 6 * wait_ms_));
  if (!told) return told;
  model::fault_point("kafka.move.before_commit");
  auto committed = done_or_failed(rd_kafka_commit_transaction(producer_.get(), -1));
  model::fault_point("kafka.move.after_commit");
  return committed;
}

}  // namespace

Result<KafkaMoved> move_kafka_records(const KafkaMove& move, const KafkaAsker& asker) {
  return Mover(move, asker).run();
}

}  // namespace conversed::queue
