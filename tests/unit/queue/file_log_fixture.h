#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "queue/file/file_log.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/kept_keys.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"

namespace conversed::queue {

class IgnoringListener final : public Listener {
 public:
  Result<void> on_assigned(std::span<const PartitionRange> /*partitions*/) override { return {}; }
  void on_revoked(std::span<const std::int32_t> /*partitions*/) override {}
};

class FileLogTest : public testing::Test {
 protected:
  void open() {
    log_.reset();
    auto log = try_open();
    ASSERT_TRUE(log.has_value()) << log.error().message;
    log_ = std::move(*log);
  }
  Result<std::unique_ptr<FileLog>> try_open() {
    auto disk = open_disk(path_);
    if (!disk) return model::fail(disk.error());
    return FileLog::open(std::move(*disk), settings_, kept_, clock_);
  }
  // On a disk in memory.
  void open_faulty() {
    log_.reset();
    auto log = FileLog::open(faulty_.view(), settings_, kept_, clock_);
    ASSERT_TRUE(log.has_value()) << log.error().message;
    log_ = std::move(*log);
  }

  Result<Appended> append(std::string id, std::string value = "v") {
    std::promise<Result<Appended>> done;
    log_->append(Record{"key", std::move(id), "inject", "", std::move(value)},
                 [&](Result<Appended> outcome) { done.set_value(std::move(outcome)); });
    return done.get_future().get();
  }

  Result<KeyedAppended> append_keyed(std::string id, AppendKey key) {
    std::promise<Result<KeyedAppended>> done;
    log_->append(Record{"key", std::move(id), "inject", "", "v"}, std::move(key),
                 [&](Result<KeyedAppended> outcome) { done.set_value(std::move(outcome)); });
    return done.get_future().get();
  }

  Result<std::optional<KeyedAppended>> look_up(const AppendKey& key) {
    Result<std::optional<KeyedAppended>> found;
    log_->look_up(key, [&](auto answer) { found = std::move(answer); });
    return found;
  }

  static AppendKey key(std::string name, std::uint8_t body) {
    AppendKey key{"org/inject", std::move(name), {}, {}};
    key.body_hash.fill(body);
    return key;
  }

  // Reads and commits all records.
  void finish_all() {
    auto consumer = log_->subscribe(listener_);
    ASSERT_TRUE(consumer.has_value());
    for (;;) {
      const auto records = (*consumer)->poll(1'000, std::chrono::milliseconds(0));
      ASSERT_TRUE(records.has_value());
      if (records->empty()) return;
      const std::vector<Position> last{records->back().position};
      ASSERT_TRUE((*consumer)->commit(last).has_value());
    }
  }

  PartitionRange range() { return log_->ranges().value().front(); }

  // True if the log's file or a file beside it has the text.
  bool in_files(const std::string& text) {
    bool found = false;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      std::string bytes(entry.file_size(), '\0');
      file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      found = found || bytes.find(text) != std::string::npos;
    }
    return found;
  }

  std::size_t files() {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

  tests::TempFolder folder_;
  std::filesystem::path path_ = folder_ / "log";
  FileLogSettings settings_;
  tests::FaultyDisk faulty_;
  tests::KeysInMemory kept_;
  tests::ManualClock clock_;
  IgnoringListener listener_;
  std::unique_ptr<FileLog> log_;
};

}  // namespace conversed::queue
