#include "api/http/body_budget.h"

#include <algorithm>

namespace conversed::api {

bool BodyBudget::take(std::size_t bytes, Sender sender) {
  const std::size_t limit = sender == Sender::known ? bytes_ : bytes_ / 2;
  std::size_t taken = taken_.load(std::memory_order_relaxed);
  do {
    if (taken > limit || bytes > limit - taken) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

bool BodyShare::make_room(std::string& body, std::size_t needed, std::size_t largest) {
  if (needed <= bytes_) return true;
  std::size_t wanted = std::max(needed, std::min(2 * needed, largest));
  if (!budget_->take(wanted - bytes_, sender_)) {
    wanted = needed;
    if (!budget_->take(wanted - bytes_, sender_)) return false;
  }
  bytes_ = wanted;
  if (body.capacity() < wanted) {
    // A new string reserves exactly the requested size. A string that grows at least doubles.
    std::string larger;
    larger.reserve(wanted);
    larger.append(body);
    body.swap(larger);
  }
  if (body.capacity() <= bytes_) return true;
  if (!budget_->take(body.capacity() - bytes_, sender_)) return false;
  bytes_ = body.capacity();
  return true;
}

}  // namespace conversed::api
