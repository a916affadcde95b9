#include "queue/progress.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace conversed::queue {

void Progress::take(const model::Position& position) {
  if (position.offset < end_) std::abort();  // the log handed a record out twice
  window_.push_back({position, false});
  end_ = position.offset + 1;
}

void Progress::finish(std::int64_t offset) {
  const auto size = static_cast<std::int64_t>(window_.size());
  const std::int64_t guess = window_.empty() ? -1 : offset - window_.front().position.offset;
  auto found = window_.begin();
  if (guess >= 0 && guess < size &&
      window_[static_cast<std::size_t>(guess)].position.offset == offset) {
    found += guess;
  } else {
    found = std::ranges::lower_bound(window_, offset, {},
                                     [](const Taken& taken) { return taken.position.offset; });
  }
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
