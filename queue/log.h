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
#include "store/model/key_range.h"
#include "store/model/result.h"
#include "store/runtime/heartbeat.h"

namespace conversed::queue {

using model::Errc;
using model::Error;
using model::KeyRange;
using model::Position;
using model::Result;

// A record to append. All fields are bytes: any value, NUL and invalid UTF-8 included, comes out as
// it went in. The key decides the partition (`partition_of`); records of one key keep their order.
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

// A record where it stands in the log.
struct LogRecord {
  Record record;
  Position position;
};

struct Appended {
  Position position;
};
using AppendCallback = std::function<void(Result<Appended>)>;

// The partition of a key, 0 to partitions - 1: murmur2 as Kafka's own clients compute it, so that
// drivers, and other programs that write to the same topic, agree. `partitions` is above 0.
[[nodiscard]] std::int32_t partition_of(std::string_view key, std::int32_t partitions);

// Whether `a` stands after `b`. Positions of different epochs or partitions have no order: asking
// for it is an error (`conflict`), which has to stop consumption and never drops a record.
[[nodiscard]] Result<bool> is_after(const Position& a, const Position& b);

// The offsets of a partition; `first` <= `committed` <= `end`.
struct PartitionRange {
  std::int32_t partition = 0;
  std::int64_t epoch = 0;      // of the records that are appended now
  std::int64_t first = 0;      // the oldest record kept; equal to `end` when none is
  std::int64_t end = 0;        // the next record appended gets this offset
  std::int64_t committed = 0;  // where a new consumer starts; all below is finished

  // In records.
  [[nodiscard]] std::int64_t lag() const { return end - committed; }
};
[[nodiscard]] std::int64_t lag_of(std::span<const PartitionRange> ranges);
// Whether no consumer gets the record again, going by the committed offset of its partition. Those
// of earlier epochs and of partitions that are gone are finished.
[[nodiscard]] bool is_finished(std::span<const PartitionRange> ranges, const Position& at);

// The `conflict` of Consumer::commit.
[[nodiscard]] Error not_handed_out(const Position& at);

// Learns which partitions the consumer reads. Called on the thread that calls `poll` (or destroys
// the Consumer), from inside that call. The Listener must outlive the Consumer.
class Listener {
 public:
  virtual ~Listener() = default;
  // The consumer reads these from now on, each from `committed`. Called before their first record.
  // An error: nothing of them is read yet, `poll` returns it, and a later one tells this again.
  [[nodiscard]] virtual Result<void> on_assigned(std::span<const PartitionRange> partitions) = 0;
  // The consumer is about to lose these; `commit` for them still counts inside this call and fails
  // after it. Their next consumer gets the records that were polled and not committed. Not called
  // when the Consumer is destroyed by its owner, nor for partitions that `on_assigned` has refused.
  virtual void on_revoked(std::span<const std::int32_t> partitions) = 0;
  // Called once a second while a call of the Consumer waits for a disk or a broker, on the thread
  // of that call.
  virtual void on_waiting() {}
};

// Waits for the future's value. The Listener is told meanwhile, so that a slow disk or broker does
// not look like a loop that stands still.
template <typename T>
[[nodiscard]] T wait_for(std::future<T> outcome, Listener& listener) {
  while (outcome.wait_for(model::beat_interval) != std::future_status::ready) {
    listener.on_waiting();
  }
  return outcome.get();
}

// Reads the log: at least once, each partition in order. One thread at a time, but for `wake`,
// which is thread-safe. Destroying it leaves the log at the last committed positions. It must be
// destroyed before its Log.
class Consumer {
 public:
  virtual ~Consumer() = default;

  // Up to `max` records that follow what was handed out before; waits up to `wait` for the first
  // one. Empty when none came, or when woken. A `max` of 0 hands out nothing, but keeps the
  // consumer alive in its group and calls the Listener. A caller without room for records polls so
  // at least once a second. Errors: `unavailable` and `timed_out` (no record is lost or skipped;
  // call again later).
  [[nodiscard]] virtual Result<std::vector<LogRecord>> poll(std::size_t max,
                                                            std::chrono::milliseconds wait) = 0;

  // Commits, for each position, that all records of its partition up to and with it are finished:
  // a later consumer starts at offset + 1. At most one position a partition. A position at or
  // below what is committed changes nothing. Errors: `conflict` for a partition that is not
  // assigned, or an offset that was not handed out or carries another epoch (nothing is
  // committed); `unavailable`, `timed_out` (commit the same or a later position again: doing so is
  // harmless).
  [[nodiscard]] virtual Result<void> commit(std::span<const Position> finished) = 0;

  // Makes the `poll` that waits, or else the next one, return without waiting.
  virtual void wake() = 0;
};

// A durable, partitioned log of keyed records. Thread-safe. Open drivers run; `stop` ends them.
class Log {
 public:
  virtual ~Log() = default;

  // Appends, and calls `done` exactly once: on a thread of the log once the record is durable, by
  // caller and key in the order of the appends; or, for an immediate refusal, inside this call.
  // `done` must not block or throw. A consumer may see the record before `done` runs. Errors:
  //   too_large    above the driver's record limit; nothing was done
  //   too_many     the bounded buffer is full; nothing was done
  //   unavailable  disk full, broker down, or the log is stopped; nothing was done
  //   timed_out    the outcome is unknown: the record may turn up in the log
  //   bad_upstream the broker, or the file, refused the record; nothing was done
  virtual void append(Record record, AppendCallback done) = 0;

  // A consumer that starts at the committed positions. `listener` must outlive it. Errors:
  // `conflict` when this driver allows one consumer and it has one, `unavailable`.
  [[nodiscard]] virtual Result<std::unique_ptr<Consumer>> subscribe(Listener& listener) = 0;

  // The records at these positions, in the same order. They were handed out by a consumer, and are
  // not finished. May be called by several threads. Errors: `not_supported` by drivers that can't,
  // whatever the positions; `unavailable`; `internal` if a record is missing.
  [[nodiscard]] virtual Result<std::vector<LogRecord>> read(std::span<const Position> /*at*/) {
    return model::fail(Errc::not_supported, "this log is read in its order only");
  }

  // All partitions, by number. May take a network round trip.
  [[nodiscard]] virtual Result<std::vector<PartitionRange>> ranges() = 0;

  // Opens a new epoch, above `above` and all earlier ones, and returns it: what is appended from
  // now on carries it; records already there keep theirs. For a log that was restored to an
  // earlier state than the positions recorded elsewhere, whose offsets it would otherwise use
  // again.
  [[nodiscard]] virtual Result<std::int64_t> new_epoch(std::int64_t above) = 0;

  // Whether appends are expected to succeed, without trying one. The error is the one of the last
  // append. A driver notices by itself when it works again. Cheap.
  [[nodiscard]] virtual Result<void> health() = 0;

  // How many records with keys in one of these ranges are not below the committed position of
  // their partition. Reads all such records once. `not_supported` by drivers that can't look.
  [[nodiscard]] virtual Result<std::int64_t> unfinished(std::span<const KeyRange> keys) {
    (void)keys;
    return model::fail(Errc::not_supported, "this log's records can't be searched");
  }

  // Frees the Idempotency-Keys of records with a key in one of the ranges, durably. Does nothing if
  // the driver keeps none. Their bytes are in the file until `purge`. Error: `unavailable`.
  [[nodiscard]] virtual Result<void> forget_keys(const std::vector<KeyRange>& /*of*/) { return {}; }

  // Removes all bytes of finished records, and waits until that is done. Appends go on meanwhile.
  // Errors: `not_supported` by drivers whose servers delete records in their own time; `conflict`
  // while finished records are held for a backup; `unavailable`.
  [[nodiscard]] virtual Result<void> purge() {
    return model::fail(Errc::not_supported, "this log deletes its records in its own time");
  }

  // Refuses new appends, completes those in hand, calls back for each, and ends the log's threads.
  // Not to be called from a callback. Calling it again does nothing.
  virtual void stop() = 0;
};

}  // namespace conversed::queue
