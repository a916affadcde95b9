// How a run of the Lanes is finished: once, or the program ends.
#include <cstdlib>
#include <utility>

#include "queue/lanes.h"

namespace conversed::queue {

Finish& Finish::operator=(Finish&& other) noexcept {
  if (this == &other) return *this;
  if (lanes_ != nullptr) std::abort();  // would lose the run that this one is for
  lanes_ = std::exchange(other.lanes_, nullptr);
  lane_ = std::exchange(other.lane_, nullptr);
  return *this;
}

Finish::~Finish() {
  if (lanes_ != nullptr) std::abort();  // its key would stand still for ever
}

void Finish::operator()(Next next) {
  Lanes* lanes = std::exchange(lanes_, nullptr);
  if (lanes == nullptr) std::abort();  // finished twice
  lanes->finish(std::exchange(lane_, nullptr), next);
}

}  // namespace conversed::queue
