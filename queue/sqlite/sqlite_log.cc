#include "queue/sqlite/sqlite_log.h"

#include <optional>
#include <utility>

#include "queue/sqlite/sqlite_log_writer.h"

namespace conversed::queue {
namespace {

Result<void> check(const SqliteLogSettings& settings) {
  const auto bad = [](const char* what) { return model::fail(Errc::invalid_argument, what); };
  if (settings.path.empty()) return bad("The log needs a path.");
  if (settings.partitions < 1 || settings.partitions > 1'024) {
    return bad("A log has 1 to 1024 partitions.");
  }
  if (settings.max_waiting_records == 0 || settings.max_batch_records == 0 ||
      settings.prune_after_records < 1) {
    return bad("The log's limits are above 0.");
  }
  if (settings.max_record_bytes > settings.max_waiting_bytes) {
    return bad("The log's buffer can't hold its largest record.");
  }
  return {};
}

// A bound on one read of the file; values may be large.
constexpr std::size_t max_read_bytes = std::size_t{8} << 20;

// The one consumer of a log: has all partitions from its first `poll` on, until it is destroyed.
// Thread contract: Consumer's. `state` is attached.
class SqliteConsumer final : public Consumer {
 public:
  SqliteConsumer(Listener& listener, std::unique_ptr<SqliteLogReader> reader, SqliteLogState& state,
                 SqliteLogWriter& log)
      : listener_(listener), reader_(std::move(reader)), state_(state), log_(log) {}
  ~SqliteConsumer() override { state_.detach(); }
  SqliteConsumer(const SqliteConsumer&) = delete;
  SqliteConsumer& operator=(const SqliteConsumer&) = delete;

  Result<std::vector<LogRecord>> poll(std::size_t max, std::chrono::milliseconds wait) override {
    if (!assigned_) {
      auto told = listener_.on_assigned(state_.ranges());
      if (!told) return model::fail(told.error());
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

  Result<void> commit(std::span<const Position> finished) override {
    std::vector<Position> moved(finished.begin(), finished.end());
    auto checked = state_.check_finished(moved);
    if (!checked || moved.empty()) return checked;
    return log_.commit_positions(std::move(moved), listener_);
  }

  void wake() override { state_.wake(); }

 private:
  Listener& listener_;
  const std::unique_ptr<SqliteLogReader> reader_;
  SqliteLogState& state_;
  SqliteLogWriter& log_;
  bool assigned_ = false;
};

}  // namespace

Result<std::unique_ptr<SqliteLog>> SqliteLog::open(SqliteLogSettings settings,
                                                   const model::Clock& clock) {
  if (auto checked = check(settings); !checked) return model::fail(checked.error());
  auto file = SqliteLogFile::open(settings.path, settings.partitions, settings.max_file_bytes);
  if (!file) return model::fail(file.error());
  auto marks = (*file)->read_marks();
  if (!marks) return model::fail(marks.error());
  auto keys = SqliteLogReader::open(settings.path);
  if (!keys) return model::fail(keys.error());
  auto records = SqliteLogReader::open(settings.path);
  if (!records) return model::fail(records.error());
  return std::make_unique<SqliteLogWriter>(std::move(settings), std::move(*file), *std::move(marks),
                                           std::move(*keys), std::move(*records), clock);
}

void SqliteLogWriter::look_up(const AppendKey& key, LookUpCallback done) {
  const auto row = keys_.with([&](auto& reader) -> Result<std::optional<KeyRow>> {
    if (!reader) return model::fail(Errc::unavailable, "The log is stopped.");
    return reader->find_key(key);
  });
  if (!row) return done(model::fail(row.error()));
  if (!*row || !(*row)->stands(model::to_unix_ms(clock_.now()), settings_.key_lifetime)) {
    return done(std::nullopt);
  }
  done((*row)->repeated_by(key));
}

Result<std::unique_ptr<Consumer>> SqliteLogWriter::subscribe(Listener& listener) {
  auto reader = SqliteLogReader::open(settings_.path);
  if (!reader) return model::fail(reader.error());
  if (!state_.attach()) return model::fail(Errc::conflict, "The log has a consumer.");
  return std::make_unique<SqliteConsumer>(listener, std::move(*reader), state_, *this);
}

Result<std::vector<LogRecord>> SqliteLogWriter::read(std::span<const Position> at) {
  return records_.with([&](auto& reader) -> Result<std::vector<LogRecord>> {
    if (!reader) return model::fail(Errc::unavailable, "The log is stopped.");
    return reader->read(at);
  });
}

Result<std::int64_t> SqliteLogWriter::unfinished(std::span<const KeyRange> keys) {
  auto reader = SqliteLogReader::open(settings_.path);
  if (!reader) return model::fail(reader.error());
  return (*reader)->unfinished(keys);
}

}  // namespace conversed::queue
