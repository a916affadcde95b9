#include "queue/sqlite/sqlite_consumer.h"

#include <utility>

namespace conversed::queue {
namespace {

// A bound on one read of the file; values may be large.
constexpr std::size_t max_read_bytes = std::size_t{8} << 20;

}  // namespace

SqliteConsumer::SqliteConsumer(Listener& listener, std::unique_ptr<SqliteLogReader> reader,
                               SqliteLogState& state, SqliteLogWriter& writer)
    : listener_(listener), reader_(std::move(reader)), state_(state), writer_(writer) {}

SqliteConsumer::~SqliteConsumer() {
  state_.detach();
}

Result<std::vector<LogRecord>> SqliteConsumer::poll(std::size_t max,
                                                    std::chrono::milliseconds wait) {
  if (!assigned_) {
    if (auto told = listener_.on_assigned(state_.ranges()); !told) return model::fail(told.error());
    assigned_ = true;
  }
  auto take = state_.take(max, wait);
  if (!take.file) return std::move(take.records);
  auto records =
      reader_->read(take.file->partition, take.file->from, take.file->to, max, max_read_bytes);
  if (!records) return model::fail(records.error());
  state_.took(*records);
  return records;
}

Result<void> SqliteConsumer::commit(std::span<const Position> finished) {
  std::vector<Position> moved(finished.begin(), finished.end());
  if (auto checked = state_.check_finished(moved); !checked) return model::fail(checked.error());
  if (moved.empty()) return {};
  return writer_.commit_positions(std::move(moved), listener_);
}

void SqliteConsumer::wake() {
  state_.wake();
}

}  // namespace conversed::queue
