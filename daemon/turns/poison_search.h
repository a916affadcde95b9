#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "queue/log.h"

namespace conversed::daemon {

// Finds the events of a run whose effects the database refuses. The search begins when a batch of
// the run is refused. From then on each batch takes one record and starts one event at most. If
// such a batch is refused, the poison is the event that it started, or else its record. One thread
// at a time.
class PoisonSearch {
 public:
  // The records of the next batch.
  [[nodiscard]] std::span<const queue::LogRecord> next_of(
      std::span<const queue::LogRecord> records) const {
    return records.subspan(finished_, finished_ < records.size() ? 1 : 0);
  }

  // Notes that the batch was refused. `started`: the event that it started; empty: none.
  void refused(std::span<const queue::LogRecord> records, const std::string& started) {
    constexpr const char* reason = "the store refuses its effects";
    const bool is_new = !started.empty() && found_.emplace(started, reason).second;
    if (!is_new && finished_ < records.size()) found_.emplace(records[finished_].record.id, reason);
  }

  // Notes that the batch is committed. False: it was the last batch of the run.
  [[nodiscard]] bool advance(std::span<const queue::LogRecord> records) {
    if (finished_ + 1 >= records.size()) return false;
    ++finished_;
    return true;
  }

  // The poisonous events, with the reason of their dead letters.
  [[nodiscard]] const std::map<std::string, std::string>& found() const { return found_; }

 private:
  std::size_t finished_ = 0;  // records
  std::map<std::string, std::string> found_;
};

}  // namespace conversed::daemon
