#include "queue/sqlite/sqlite_log.h"

#include <optional>
#include <utility>

#include "queue/sqlite/sqlite_consumer.h"
#include "queue/sqlite/sqlite_log_writer.h"
#include "store/runtime/guarded.h"

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

}  // namespace

class SqliteLog::Impl {
 public:
  Impl(SqliteLogSettings settings, std::unique_ptr<SqliteLogFile> file, LogContents contents,
       std::unique_ptr<SqliteKeyReader> keys, const model::Clock& clock)
      : path_(settings.path),
        key_lifetime_(settings.key_lifetime),
        clock_(clock),
        state_(std::move(contents), {settings.max_tail_records, settings.max_tail_bytes}),
        writer_(std::move(settings), std::move(file), state_, clock),
        keys_(std::move(keys)) {}

  Result<std::optional<KeyedAppended>> look_up(const AppendKey& key) {
    auto row = keys_.with([&](auto& reader) -> Result<std::optional<KeyRow>> {
      if (!reader) return model::fail(Errc::unavailable, "The log is stopped.");
      return reader->find(key);
    });
    if (!row) return model::fail(row.error());
    if (!*row || !(*row)->stands(model::to_unix_ms(clock_.now()), key_lifetime_)) {
      return std::nullopt;
    }
    auto earlier = std::move(**row).repeated_by(key);
    if (!earlier) return model::fail(earlier.error());
    return *std::move(earlier);
  }

  const std::string path_;
  const std::chrono::milliseconds key_lifetime_;
  const model::Clock& clock_;
  SqliteLogState state_;
  SqliteLogWriter writer_;
  model::Guarded<std::unique_ptr<SqliteKeyReader>> keys_;  // null once stopped
};

Result<std::unique_ptr<SqliteLog>> SqliteLog::open(SqliteLogSettings settings,
                                                   const model::Clock& clock) {
  if (auto checked = check(settings); !checked) return model::fail(checked.error());
  auto file = SqliteLogFile::open(settings.path, settings.partitions, settings.max_file_bytes);
  if (!file) return model::fail(file.error());
  auto contents = (*file)->read_contents();
  if (!contents) return model::fail(contents.error());
  auto keys = SqliteKeyReader::open(settings.path);
  if (!keys) return model::fail(keys.error());
  auto impl = std::make_unique<Impl>(std::move(settings), std::move(*file), std::move(*contents),
                                     std::move(*keys), clock);
  return std::unique_ptr<SqliteLog>(new SqliteLog(std::move(impl)));
}

SqliteLog::SqliteLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteLog::~SqliteLog() {
  stop();
}

void SqliteLog::append(Record record, AppendCallback done) {
  impl_->writer_.append(std::move(record), std::move(done));
}

void SqliteLog::append(Record record, AppendKey key, KeyedCallback done) {
  impl_->writer_.append(std::move(record), std::move(key), std::move(done));
}

void SqliteLog::look_up(const AppendKey& key, LookUpCallback done) {
  done(impl_->look_up(key));
}

Result<std::unique_ptr<Consumer>> SqliteLog::subscribe(Listener& listener) {
  auto reader = SqliteLogReader::open(impl_->path_);
  if (!reader) return model::fail(reader.error());
  if (!impl_->state_.attach()) return model::fail(Errc::conflict, "The log has a consumer.");
  return std::make_unique<SqliteConsumer>(listener, std::move(*reader), impl_->state_,
                                          impl_->writer_);
}

Result<std::vector<PartitionRange>> SqliteLog::ranges() {
  return impl_->state_.ranges();
}

Result<std::int64_t> SqliteLog::new_epoch(std::int64_t above) {
  return impl_->writer_.new_epoch(above);
}

Result<void> SqliteLog::health() {
  return impl_->writer_.health();
}

void SqliteLog::stop() {
  impl_->keys_.with([](auto& reader) { reader.reset(); });
  impl_->writer_.stop();
}

Result<std::int64_t> SqliteLog::unfinished(std::span<const KeyRange> keys) {
  return SqliteLogReader::unfinished(impl_->path_, keys);
}

Result<void> SqliteLog::forget_keys(const std::vector<KeyRange>& of) {
  return impl_->writer_.forget_keys(of);
}

Result<void> SqliteLog::purge() {
  return impl_->writer_.purge();
}

void SqliteLog::set_pruning(Pruning pruning) {
  impl_->writer_.set_pruning(pruning);
}

Result<void> SqliteLog::rewind(std::vector<std::int64_t> to) {
  return impl_->writer_.rewind(std::move(to));
}

}  // namespace conversed::queue
