#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/event.h"
#include "store/model/result.h"
#include "store/model/session_keys.h"
#include "store/runtime/heartbeat.h"

namespace conversed::queue {

using model::Errc;
using model::Error;
using model::KeyRange;
using model::partition_of;
using model::Position;
using model::Result;
using model::routing_part;

// A record to append. All fields are bytes: any value, including NUL and invalid UTF-8, is read
// back unchanged. The key decides the partition (`partition_of`); records of one key keep their
// order.
struct Record {
  std::string key;
  std::string id;
  std::string type;
  std::string trace_id;
  std::string value;

  [[nodiscard]] std::size_t bytes() const {
    return key.size() + id.size() + type.size() + trace_id.size() + value.size();
  }
};

// A record with its position in the log.
struct LogRecord {
  Record record;
  Position position;
};

struct Appended {
  Position position;
};
using AppendCallback = std::function<void(Result<Appended>)>;

// Whether `a` is after `b`. Positions of different epochs or partitions have no order: the error
// `conflict` has to stop consumption, so that no record is dropped.
[[nodiscard]] Result<bool> is_after(const Position& a, const Position& b);

// The offsets of a partition; `first` <= `committed` <= `end`.
struct PartitionRange {
  std::int32_t partition = 0;
  std::int64_t epoch = 0;      // of newly appended records
  std::int64_t first = 0;      // the oldest kept record; equal to `end` if none is kept
  std::int64_t end = 0;        // the next record appended gets this offset
  std::int64_t committed = 0;  // where a new consumer starts; all records below are finished

  // In records.
  [[nodiscard]] std::int64_t lag() const { return end - committed; }
};
[[nodiscard]] std::int64_t lag_of(std::span<const PartitionRange> ranges);
// Whether no consumer gets the record again, by the committed offset of its partition. Records of
// earlier epochs and of removed partitions are finished.
[[nodiscard]] bool is_finished(std::span<const PartitionRange> ranges, const Position& at);

// The `conflict` of Consumer::commit.
[[nodiscard]] Error not_handed_out(const Position& at);

// Learns which partitions the consumer reads. Called on the thread that calls `poll` (or destroys
// the Consumer), from inside that call. The Listener must outlive the Consumer.
class Listener {
 public:
  virtual ~Listener() = default;
  // The consumer reads these partitions from now on, each from `committed`. Called before their
  // first record. After an error none of their records is read, `poll` returns the error, and a
  // later `poll` calls this again.
  [[nodiscard]] virtual Result<void> on_assigned(std::span<const PartitionRange> partitions) = 0;
  // The consumer is about to lose these partitions. `commit` for them still works inside this call
  // and fails after it. Their next consumer gets the records that were polled and not committed.
  // Not called when the owner destroys the Consumer, nor for partitions that `on_assigned` has
  // refused.
  virtual void on_revoked(std::span<const std::int32_t> partitions) = 0;
  // Partitions that return from being set aside (`set_aside`) can't begin yet, because of this
  // error: `on_assigned` has refused them, or a broker is away. The consumer reads the others
  // meanwhile, and tries again a little later.
  virtual void on_put_off(const Error& /*error*/) {}
  // Called once a second while a call of the Consumer waits for a disk or a broker, on the thread
  // of that call.
  virtual void on_waiting() {}
};

// Waits for the future's value. Calls the Listener meanwhile, so that a slow disk or broker does
// not look like a stalled loop.
template <typename T>
[[nodiscard]] T wait_for(std::future<T> outcome, Listener& listener) {
  while (outcome.wait_for(model::beat_interval) != std::future_status::ready) {
    listener.on_waiting();
  }
  return outcome.get();
}

// The records that a consumer has handed out and that are not finished. Thread-safe. The functions
// do not block, and do not call the log.
class Backlog {
 public:
  virtual ~Backlog() = default;
  [[nodiscard]] virtual std::size_t in_flight() const = 0;
  // Of the share that has the key: one organisation's records do not slow down another's.
  [[nodiscard]] virtual std::size_t in_flight_of_share(const std::string& key) const = 0;
};

// Reads the log: at least once, each partition in order. One thread at a time, except for `wake`,
// which is thread-safe. Its destruction leaves the log at the last committed positions. It must be
// destroyed before its Log.
class Consumer {
 public:
  virtual ~Consumer() = default;

  // The next records, at most `max`. Waits up to `wait` for the first one. Empty: none came, or
  // `wake` was called. A `max` of 0 returns no records, but keeps the consumer alive in its group
  // and calls the Listener: a caller without room for records does so at least once a second.
  // Errors: `unavailable` and `timed_out` (no record is lost or skipped; call again later).
  [[nodiscard]] virtual Result<std::vector<LogRecord>> poll(std::size_t max,
                                                            std::chrono::milliseconds wait) = 0;

  // Commits, for each position, that all records of its partition up to and with it are finished: a
  // later consumer starts at offset + 1. At most one position a partition. A position at or below
  // the committed one changes nothing. Errors: `conflict` for a partition that is not assigned, or
  // an offset that was not handed out or has another epoch (nothing is committed); `unavailable`,
  // `timed_out` (commit the same or a later position again).
  [[nodiscard]] virtual Result<void> commit(std::span<const Position> finished) = 0;

  // Sets the partitions that this consumer does not read from now on, although its group may assign
  // them to it. It is the complete set: it replaces the earlier one and holds across rebalances.
  // - Partitions of the set that are being read are given up as in a rebalance: `on_revoked` is
  //   called for them, with `commit` working inside it, and their records that were fetched and not
  //   handed out are dropped.
  // - Partitions that leave the set, and are assigned by the group, begin again at their committed
  //   position inside the next `poll`, with `on_assigned`. If they can't, `on_put_off` is called,
  //   and the other partitions are read meanwhile.
  // - All other partitions are read on, without a gap, a repeat or another order.
  // Same thread as `poll`, but not inside a call of the Listener. Errors: `not_supported` by
  // drivers whose log has one consumer. After an error call it again.
  [[nodiscard]] virtual Result<void> set_aside(std::span<const std::int32_t> /*partitions*/) {
    return model::fail(Errc::not_supported, "this log's partitions are all read by one daemon");
  }

  // Lets the log slow down appends while many records are not finished. Only a log whose appends
  // and records are of one daemon does so. `backlog` must outlive the consumer.
  virtual void slow_down_for(const Backlog& /*backlog*/) {}

  // Makes the waiting `poll`, or else the next one, return at once.
  virtual void wake() = 0;
};

// A durable, partitioned log of keyed records. Thread-safe. Open drivers run; `stop` ends them.
class Log {
 public:
  virtual ~Log() = default;

  // Appends, and calls `done` exactly once: on a thread of the log once the record is durable, or,
  // for an immediate refusal, inside this call. Appends of one key by one caller are called back in
  // their order.
  // `done` must not block or throw. A consumer may see the record before `done` runs. Errors:
  //   too_large    above the driver's record limit; nothing was done
  //   too_many     the bounded buffer is full; nothing was done
  //   unavailable  disk full, broker down, or the log is stopped; nothing was done
  //   timed_out the outcome is unknown: the record may appear in the log
  //   bad_upstream the broker refused the record; nothing was done
  virtual void append(Record record, AppendCallback done) = 0;

  // A consumer that starts at the committed positions. `listener` must outlive it. Errors:
  // `conflict` if the log already has a consumer and the driver allows only one; `unavailable`.
  [[nodiscard]] virtual Result<std::unique_ptr<Consumer>> subscribe(Listener& listener) = 0;

  // The records at these positions, in the same order. A consumer has handed them out, and they are
  // not finished. Thread-safe. Errors: `not_supported` by drivers without this function;
  // `unavailable`; `internal` if a record is missing.
  [[nodiscard]] virtual Result<std::vector<LogRecord>> read(std::span<const Position> /*at*/) {
    return model::fail(Errc::not_supported, "this log is read in its order only");
  }

  // All partitions, by number. May take a network round trip.
  [[nodiscard]] virtual Result<std::vector<PartitionRange>> ranges() = 0;

  // Opens a new epoch, above `above` and all earlier ones, and returns it. Records that are
  // appended from now on have the new epoch; present records keep theirs. For a log that was
  // restored to an earlier state than the store: otherwise its new records would use offsets that
  // sessions have seen.
  [[nodiscard]] virtual Result<std::int64_t> new_epoch(std::int64_t above) = 0;

  // Whether appends are expected to succeed, without an attempt. The error is the last append's. A
  // driver notices by itself when it works again. Cheap.
  [[nodiscard]] virtual Result<void> health() = 0;

  // The number of records with keys in this range at or above the committed position of their
  // partition. Reads all such records once. `not_supported` by drivers that can't search.
  [[nodiscard]] virtual Result<std::int64_t> unfinished(const KeyRange& keys) {
    (void)keys;
    return model::fail(Errc::not_supported, "this log's records can't be searched");
  }

  // Frees the Idempotency-Keys of records with a key in the range, durably. Does nothing if
  // the driver keeps no Idempotency-Keys. Their bytes are in the file until `purge`. Error:
  // `unavailable`.
  [[nodiscard]] virtual Result<void> forget_keys(const KeyRange& /*of*/) { return {}; }

  // Removes all bytes of finished records, and waits for it. Appends go on meanwhile. Errors:
  // `not_supported` by drivers whose servers decide when to delete records; `conflict` while
  // finished records are held for a backup; `unavailable`.
  [[nodiscard]] virtual Result<void> purge() {
    return model::fail(Errc::not_supported, "this log deletes its records in its own time");
  }

  // Refuses new appends, completes appends in hand, calls back for each, and ends the log's
  // threads. Must not be called from a callback. A second call does nothing.
  virtual void stop() = 0;
};

}  // namespace conversed::queue
