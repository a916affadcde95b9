#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "queue/log.h"
#include "queue/sqlite/sqlite_log_file.h"
#include "queue/sqlite/sqlite_log_state.h"
#include "queue/sqlite/sqlite_log_writer.h"

namespace conversed::queue {

// The one consumer of a SqliteLog: has all partitions from its first `poll` on, until it is
// destroyed. Thread contract: Consumer's. All references must outlive it; `state` is attached.
class SqliteConsumer final : public Consumer {
 public:
  SqliteConsumer(Listener& listener, std::unique_ptr<SqliteLogReader> reader, SqliteLogState& state,
                 SqliteLogWriter& writer);
  ~SqliteConsumer() override;
  SqliteConsumer(const SqliteConsumer&) = delete;
  SqliteConsumer& operator=(const SqliteConsumer&) = delete;

  [[nodiscard]] Result<std::vector<LogRecord>> poll(std::size_t max,
                                                    std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<void> commit(std::span<const Position> finished) override;
  void wake() override;

 private:
  Listener& listener_;
  const std::unique_ptr<SqliteLogReader> reader_;
  SqliteLogState& state_;
  SqliteLogWriter& writer_;
  bool assigned_ = false;
};

}  // namespace conversed::queue
