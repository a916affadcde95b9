#include "daemon/ops/error_log.h"

#include "daemon/ops/logging.h"

namespace conversed::daemon {
namespace {

log::Level level_of(int status) {
  if (status < 500) return log::Level::info;
  return status == 500 ? log::Level::error : log::Level::warn;
}

}  // namespace

void ErrorLog::write(const api::ErrorAnswer& answer, TimePoint now) {
  const log::Level level = level_of(answer.status);
  if (!log::enabled(level)) return;
  const bool ours = answer.status >= 500;
  auto& suppressed = suppressed_[ours ? 1 : 0];
  if (limiter_.take(ours ? "ours" : "clients'", now)) {
    suppressed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  log::write(level, "request failed",
             {{"traceId", answer.trace_id},
              {"method", api::method_name(answer.method)},
              {"route", answer.route},
              {"status", answer.status},
              {"reason", answer.reason},
              {"suppressed", suppressed.exchange(0, std::memory_order_relaxed)}});
}

}  // namespace conversed::daemon
