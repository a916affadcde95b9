#pragma once

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "queue/file/file_log.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/kept_keys.h"
#include "tests/support/manual_clock.h"

namespace conversed::queue {

// A log on a disk in memory, and what it has promised. One thread at a time.
class FileLogWorld {
 public:
  static constexpr std::int32_t partitions = 3;

  explicit FileLogWorld(std::uint64_t seed) : random(seed) {
    settings.partitions = partitions;
    settings.segment_bytes = random() % 2 == 0 ? 4'096 : 40'000;
    settings.max_batch_records = 3;
    settings.max_tail_records = 4;
  }

  [[nodiscard]] Result<void> open() {
    log.reset();
    auto opened = FileLog::open(disk.view(), settings, kept, clock);
    if (!opened) return model::fail(opened.error());
    log = std::move(*opened);
    return {};
  }

  // One change by a client or by the consumer.
  void step() {
    switch (random() % 13) {
      case 0:
        finish_some();
        break;
      case 1:
        if (log->purge()) check_erased();
        break;
      case 2:
        static_cast<void>(log->new_epoch(0));
        break;
      case 3:
      case 4:
      case 5:
        append_keyed();
        break;
      case 6:
        forget_keys();
        break;
      default:
        append_some();
    }
  }

  // The consumer finishes some records: a batch of a state alone.
  void finish_some() {
    Everything listener;
    auto consumer = log->subscribe(listener);
    const auto some = (*consumer)->poll(1 + random() % 30, std::chrono::milliseconds(0));
    if (!some || some->empty()) return;
    std::map<std::int32_t, Position> up_to;
    for (const auto& each : *some) up_to[each.position.partition] = each.position;
    std::vector<Position> positions;
    for (const auto& [partition, at] : up_to) positions.push_back(at);
    if (!(*consumer)->commit(positions)) return;
    for (const auto& at : positions) finished[at.partition] = at.offset + 1;
  }

  // Whether the log keeps its promises after it was opened again. The last batch may be missing if
  // `last_may_be_lost`.
  void check(bool last_may_be_lost = false) {
    const auto ranges = log->ranges().value();
    for (const auto& range : ranges) {
      if (!last_may_be_lost) {
        ASSERT_GE(range.committed, finished[range.partition]) << "a finished record is unfinished";
      }
      finished[range.partition] = range.committed;
    }
    std::map<Place, std::string> seen;
    std::set<std::string> ids;
    for (const auto& each : read_all()) {
      ASSERT_TRUE(ids.insert(each.record.id).second) << "doubled: " << each.record.id;
      ASSERT_EQ(each.record.value, value_of(each.record.id)) << "changed";
      auto& next = expected_[each.position.partition];
      ASSERT_EQ(each.position.offset, next) << "out of order";
      ++next;
      seen[{each.position.partition, each.position.offset}] = each.record.id;
    }
    for (const auto& [at, id] : acknowledged) {
      if (at.second < finished[at.first]) continue;
      const auto found = seen.find(at);
      if (found == seen.end() && last_may_be_lost && last.contains(id)) continue;
      ASSERT_TRUE(found != seen.end()) << "lost: " << id;
      ASSERT_EQ(found->second, id);
    }
    if (last_may_be_lost) return;
    for (const auto& [name, id] : keys) {
      Result<std::optional<KeyedAppended>> row;
      log->look_up(key_of(name), [&](auto found) { row = std::move(found); });
      ASSERT_TRUE(row && *row) << "the key of " << id << " is lost";
      ASSERT_EQ((*row)->id, id);
    }
  }

  std::mt19937_64 random;
  tests::FaultyDisk disk;
  tests::KeysInMemory kept;
  tests::ManualClock clock;
  FileLogSettings settings;
  std::unique_ptr<FileLog> log;

  using Place = std::pair<std::int32_t, std::int64_t>;
  std::map<Place, std::string> acknowledged;      // ids
  std::map<std::string, std::string> keys;        // acknowledged and not forgotten ones: ids
  std::map<std::int32_t, std::int64_t> finished;  // by partition: acknowledged positions
  std::set<std::string> last;                     // ids of the last append that succeeded

 private:
  class Everything final : public Listener {
   public:
    Result<void> on_assigned(std::span<const PartitionRange>) override { return {}; }
    void on_revoked(std::span<const std::int32_t>) override {}
  };

  static std::string value_of(const std::string& id) {
    return std::string(static_cast<std::size_t>(std::stoi(id)) * 37 % 1'500, 'v') + "record " + id +
           ";";
  }
  static AppendKey key_of(const std::string& name) { return {"scope", name, {}, {}}; }
  Record next_record() {
    const std::string id = std::to_string(++last_id_);
    return {"key" + std::to_string(random() % 9), id, "inject", "", value_of(id)};
  }
  void acknowledge(const std::string& id, const Position& at) {
    const auto [place, fresh] = acknowledged.emplace(Place{at.partition, at.offset}, id);
    ASSERT_TRUE(fresh || place->second == id) << "an offset was used twice";
    last.insert(id);
  }

  // Several at once, so that they share batches.
  void append_some() {
    std::vector<std::pair<std::string, std::future<Result<Appended>>>> waiting;
    for (std::uint64_t left = 1 + random() % 4; left > 0; --left) {
      auto record = next_record();
      auto done = std::make_shared<std::promise<Result<Appended>>>();
      waiting.emplace_back(record.id, done->get_future());
      log->append(std::move(record), [done](auto outcome) { done->set_value(std::move(outcome)); });
    }
    last.clear();
    for (auto& [id, done] : waiting) {
      if (auto outcome = done.get(); outcome) acknowledge(id, outcome->position);
    }
  }

  // A key that was not acknowledged is used again: the event may be in the log already.
  void append_keyed() {
    if (!unknown_key_) unknown_key_ = "key " + std::to_string(++last_key_) + ";";
    std::promise<Result<KeyedAppended>> done;
    auto record = next_record();
    record.key = "key" + std::to_string(last_key_ % 9);
    used_[record.key].insert(*unknown_key_);
    log->append(std::move(record), key_of(*unknown_key_),
                [&](auto outcome) { done.set_value(std::move(outcome)); });
    const auto outcome = done.get_future().get();
    if (!outcome) return;
    last.clear();
    keys[*std::exchange(unknown_key_, std::nullopt)] = outcome->id;
    acknowledge(outcome->id, outcome->position);
  }

  // As an erasure does, first in the log.
  void forget_keys() {
    const std::string of = "key" + std::to_string(random() % 9);
    const KeyRange range{of, of + "\x01"};
    if (unknown_key_ && used_[of].contains(*unknown_key_)) return;  // it will be used again
    for (const auto& name : used_[of]) keys.erase(name);
    if (!log->forget_keys(range)) return;
    kept.forget(range);
    forgotten_.merge(used_[of]);
  }

  // After a purge: no file has a record that is finished, or not in the log, or a forgotten key.
  void check_erased() {
    disk.fail_reads(false);
    std::set<std::string> unfinished;
    for (const auto& each : read_all()) unfinished.insert(each.record.id);
    const std::string contents = disk.contents();
    for (const auto& id : numbers_behind(contents, "record ")) {
      ASSERT_TRUE(unfinished.contains(id)) << "in the files after a purge: " << id;
    }
    for (const auto& number : numbers_behind(contents, "key ")) {
      ASSERT_FALSE(forgotten_.contains("key " + number + ";")) << "in the files: key " << number;
    }
  }

  // The numbers that follow this word and are followed by a semicolon.
  static std::set<std::string> numbers_behind(const std::string& text, const std::string& word) {
    std::set<std::string> numbers;
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
      at += word.size();
      const auto end = text.find_first_not_of("0123456789", at);
      if (end != std::string::npos && text[end] == ';') numbers.insert(text.substr(at, end - at));
    }
    return numbers;
  }

  std::vector<LogRecord> read_all() {
    Everything listener;
    std::vector<LogRecord> all;
    auto consumer = log->subscribe(listener);
    expected_ = finished;
    for (;;) {
      auto some = (*consumer)->poll(1'000, std::chrono::milliseconds(0));
      EXPECT_TRUE(some) << some.error().message;
      if (!some || some->empty()) return all;
      std::ranges::move(*some, std::back_inserter(all));
    }
  }

  int last_id_ = 0;
  int last_key_ = 0;
  std::optional<std::string> unknown_key_;
  std::map<std::string, std::set<std::string>> used_;  // keys, by the key of their record
  std::set<std::string> forgotten_;
  std::map<std::int32_t, std::int64_t> expected_;
};

}  // namespace conversed::queue
