#include <cstdlib>
#include <filesystem>

#include "queue/sqlite_log.h"
#include "tests/conformance/log_conformance.h"

namespace conversed::test {
namespace {

class SqliteFixture final : public LogFixture {
 public:
  explicit SqliteFixture(queue::SqliteLogSettings settings) : settings_(std::move(settings)) {
    std::string name = (std::filesystem::temp_directory_path() / "log-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    settings_.path = folder_ / "log.db";
  }
  ~SqliteFixture() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<queue::Log> open() override {
    auto log = queue::SqliteLog::open(settings_, clock_);
    if (!log) ADD_FAILURE() << log.error().message;
    return log ? std::move(*log) : nullptr;
  }

 private:
  queue::SqliteLogSettings settings_;
  std::filesystem::path folder_;
  model::SystemClock clock_;
};

LogDriver driver(std::string name, queue::SqliteLogSettings settings) {
  return {std::move(name), [settings](std::int32_t partitions) mutable {
            settings.partitions = partitions;
            return std::make_unique<SqliteFixture>(settings);
          }};
}

// With a tail of one record nearly everything is read from the file, and with tiny limits pruning
// and checkpoints come all the time; neither may show.
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

}  // namespace
}  // namespace conversed::test
