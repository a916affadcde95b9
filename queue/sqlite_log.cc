#include "queue/sqlite_log.h"

#include <utility>

#include "queue/sqlite_consumer.h"
#include "queue/sqlite_log_writer.h"

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
       const model::Clock& clock)
      : path_(settings.path),
        state_(std::move(contents), {settings.max_tail_records, settings.max_tail_bytes}),
        writer_(std::move(settings), std::move(file), state_, clock) {}

  const std::string path_;
  SqliteLogState state_;
  SqliteLogWriter writer_;
};

Result<std::unique_ptr<SqliteLog>> SqliteLog::open(SqliteLogSettings settings,
                                                   const model::Clock& clock) {
  if (auto checked = check(settings); !checked) return model::fail(checked.error());
  auto file = SqliteLogFile::open(settings.path, settings.partitions, settings.max_file_bytes);
  if (!file) return model::fail(file.error());
  auto contents = (*file)->read_contents();
  if (!contents) return model::fail(contents.error());
  auto impl =
      std::make_unique<Impl>(std::move(settings), std::move(*file), std::move(*contents), clock);
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
  impl_->writer_.stop();
}

void SqliteLog::set_pruning(Pruning pruning) {
  impl_->writer_.set_pruning(pruning);
}

Result<void> SqliteLog::rewind() {
  return impl_->writer_.rewind();
}

}  // namespace conversed::queue
