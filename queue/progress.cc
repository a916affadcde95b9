#include "queue/progress.h"

#include <algorithm>
#include <cstdlib>

namespace conversed::queue {

void Progress::take(const model::Position& position) {
  if (position.offset < end_) std::abort();  // the log handed a record out twice
  window_.push_back({position, false});
  end_ = position.offset + 1;
}

void Progress::finish(std::int64_t offset) {
  const auto found = std::ranges::lower_bound(
      window_, offset, {}, [](const Taken& taken) { return taken.position.offset; });
  if (found == window_.end() || found->position.offset != offset || found->finished) {
    std::abort();  // finished twice, or never taken
  }
  found->finished = true;
  while (!window_.empty() && window_.front().finished) {
    last_ = window_.front().position;
    reported_ = false;
    window_.pop_front();
  }
}

std::optional<model::Position> Progress::moved() {
  if (reported_) return std::nullopt;
  reported_ = true;
  return last_;
}

}  // namespace conversed::queue
