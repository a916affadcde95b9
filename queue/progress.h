#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "store/model/event.h"

namespace conversed::queue {

// Knows which records of one partition are finished, in any order, and thus which position may be
// committed. One thread at a time.
class Progress {
 public:
  // `start` is the first offset that will be taken. `generation` tells assignments of the same
  // partition apart.
  Progress(std::int64_t start, std::uint64_t generation) : end_(start), generation_(generation) {}

  // Offsets are taken in ascending order, maybe with gaps.
  void take(const model::Position& position);
  // Called once for each taken offset. Needs logarithmic time in the number of unfinished records.
  void finish(std::int64_t offset);

  // All records below it are finished.
  [[nodiscard]] std::int64_t lowest_unfinished() const {
    return window_.empty() ? end_ : window_.front().position.offset;
  }
  // The last position before the lowest unfinished one, if it has changed since the last call.
  [[nodiscard]] std::optional<model::Position> moved();
  void forget_reported() { reported_ = !last_; }

  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  struct Taken {
    model::Position position;
    bool finished;
  };
  std::deque<Taken> window_;  // from the lowest unfinished record on
  std::optional<model::Position> last_;
  std::int64_t end_;  // behind the last taken offset
  const std::uint64_t generation_;
  bool reported_ = true;
};

}  // namespace conversed::queue
