#include "daemon/turns/poison_search.h"

namespace conversed::daemon {

void PoisonSearch::refused(std::span<const queue::LogRecord> records, const std::string& started) {
  constexpr const char* reason = "the store refuses its effects";
  const bool is_new = !started.empty() && found_.emplace(started, reason).second;
  if (!is_new && finished_ < records.size()) found_.emplace(records[finished_].record.id, reason);
}

bool PoisonSearch::advance(std::span<const queue::LogRecord> records) {
  if (finished_ + 1 >= records.size()) return false;
  ++finished_;
  return true;
}

}  // namespace conversed::daemon
