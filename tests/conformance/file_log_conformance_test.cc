#include "queue/file/file_log.h"
#include "tests/conformance/keyed_append_conformance.h"
#include "tests/conformance/log_conformance.h"
#include "tests/support/kept_keys.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"

namespace conversed::test {
namespace {

// One log in its own folder.
class FileFolder {
 public:
  explicit FileFolder(const queue::FileLogSettings& settings) : settings_(settings) {}

  std::unique_ptr<queue::FileLog> open(const model::Clock& clock) {
    auto disk = queue::open_disk(folder_ / "log");
    if (!disk) ADD_FAILURE() << disk.error().message;
    auto log = queue::FileLog::open(std::move(*disk), settings_, kept_, clock);
    if (!log) ADD_FAILURE() << log.error().message;
    return log ? std::move(*log) : nullptr;
  }

 private:
  const queue::FileLogSettings settings_;
  tests::TempFolder folder_;
  tests::KeysInMemory kept_;
};

class FileFixture final : public LogFixture {
 public:
  explicit FileFixture(const queue::FileLogSettings& settings) : folder_(settings) {}
  std::unique_ptr<queue::Log> open() override { return folder_.open(clock_); }

 private:
  FileFolder folder_;
  model::SystemClock clock_;
};

class FileKeyedFixture final : public KeyedFixture {
 public:
  explicit FileKeyedFixture(const queue::FileLogSettings& settings) : folder_(settings) {}
  KeyedLog open() override {
    const std::shared_ptr<queue::FileLog> log = folder_.open(clock_);
    return {log, log};
  }
  void advance(std::chrono::milliseconds by) override { clock_.advance(by); }

 private:
  FileFolder folder_;
  tests::ManualClock clock_;
};

LogDriver driver(std::string name, queue::FileLogSettings settings) {
  return {std::move(name), [settings](std::int32_t partitions) mutable {
            settings.partitions = partitions;
            return std::make_unique<FileFixture>(settings);
          }};
}

// With a tail of one record, nearly every record is read from the files. With tiny limits, segments
// go out of use and keys move to the store all the time. The suite must not notice.
queue::FileLogSettings tiny() {
  queue::FileLogSettings settings;
  settings.segment_bytes = 4'096;
  settings.max_batch_records = 3;
  settings.max_tail_records = 1;
  return settings;
}

INSTANTIATE_TEST_SUITE_P(File, LogConformance,
                         testing::Values(driver("embedded", {}), driver("embedded_tiny", tiny())),
                         [](const auto& tested) { return tested.param.name; });

KeyedDriver keyed_driver(std::string name, const queue::FileLogSettings& settings) {
  return {std::move(name), [settings] { return std::make_unique<FileKeyedFixture>(settings); }};
}

INSTANTIATE_TEST_SUITE_P(File, KeyedAppendConformance,
                         testing::Values(keyed_driver("embedded", {}),
                                         keyed_driver("embedded_tiny", tiny())),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace conversed::test
