#include "queue/sqlite/sqlite_log.h"
#include "tests/conformance/keyed_append_conformance.h"
#include "tests/conformance/log_conformance.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"

namespace conversed::test {
namespace {

// One file in its own folder.
class SqliteFile {
 public:
  explicit SqliteFile(queue::SqliteLogSettings settings) : settings_(std::move(settings)) {
    settings_.path = folder_ / "log.db";
  }

  std::unique_ptr<queue::SqliteLog> open(const model::Clock& clock) {
    auto log = queue::SqliteLog::open(settings_, clock);
    if (!log) ADD_FAILURE() << log.error().message;
    return log ? std::move(*log) : nullptr;
  }

 private:
  queue::SqliteLogSettings settings_;
  tests::TempFolder folder_;
};

class SqliteFixture final : public LogFixture {
 public:
  explicit SqliteFixture(queue::SqliteLogSettings settings) : file_(std::move(settings)) {}
  std::unique_ptr<queue::Log> open() override { return file_.open(clock_); }

 private:
  SqliteFile file_;
  model::SystemClock clock_;
};

class SqliteKeyedFixture final : public KeyedFixture {
 public:
  explicit SqliteKeyedFixture(queue::SqliteLogSettings settings) : file_(std::move(settings)) {}
  KeyedLog open() override {
    const std::shared_ptr<queue::SqliteLog> log = file_.open(clock_);
    return {log, log};
  }
  void advance(std::chrono::milliseconds by) override { clock_.advance(by); }

 private:
  SqliteFile file_;
  tests::ManualClock clock_;
};

LogDriver driver(std::string name, queue::SqliteLogSettings settings) {
  return {std::move(name), [settings](std::int32_t partitions) mutable {
            settings.partitions = partitions;
            return std::make_unique<SqliteFixture>(settings);
          }};
}

// With a tail of one record, nearly every record is read from the file. With tiny limits, pruning
// and checkpoints run all the time. The suite must not notice.
queue::SqliteLogSettings tiny() {
  queue::SqliteLogSettings settings;
  settings.max_batch_records = 3;
  settings.max_tail_records = 1;
  settings.prune_after_records = 1;
  settings.checkpoint_bytes = 16'384;
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Sqlite, LogConformance,
                         testing::Values(driver("sqlite", {}), driver("sqlite_tiny", tiny())),
                         [](const auto& tested) { return tested.param.name; });

KeyedDriver keyed_driver(std::string name, const queue::SqliteLogSettings& settings) {
  return {std::move(name), [settings] { return std::make_unique<SqliteKeyedFixture>(settings); }};
}

INSTANTIATE_TEST_SUITE_P(Sqlite, KeyedAppendConformance,
                         testing::Values(keyed_driver("sqlite", {}),
                                         keyed_driver("sqlite_tiny", tiny())),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace conversed::test
