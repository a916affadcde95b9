#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace conversed::flows::expression {

// What one Turn may do in all: its expressions, templates, Nodes, regular expressions and searches
// for keyphrases spend from this one object. A step is 100 ns or less in a release build, a byte is
// one that was made. What it comes to depends on what is spent alone, so a Turn that fails for it
// fails at the same place each time. The one exception is `is_overdue`, a clock for the case that a
// step takes far longer than it should.
//
// Once something could not be paid, it is spent for good, and everything after it fails at once.
// One thread.
class TurnBudget {
 public:
  TurnBudget(std::size_t steps, std::size_t bytes, std::function<bool()> is_overdue = {})
      : steps_(steps), bytes_(bytes), look_at_(steps), is_overdue_(std::move(is_overdue)) {}

  enum class Lack : std::uint8_t { nothing, steps, bytes, time };
  [[nodiscard]] Lack lack() const { return lack_; }
  [[nodiscard]] bool is_spent() const { return lack_ != Lack::nothing; }

  // Pay before doing: false when it is spent.
  bool step(std::size_t count) {
    if (is_spent()) return false;
    if (count > steps_) return end(Lack::steps);
    steps_ -= count;
    if (look_at_ < steps_ + steps_a_look) return true;
    look_at_ = steps_;
    return look_at_clock();
  }
  // For looking at, or copying, that many bytes.
  bool read(std::size_t bytes) { return step(1 + bytes / bytes_a_step); }

  // Lends `wanted` steps or what is left, but no fewer than `least`; none when it is spent.
  [[nodiscard]] std::size_t lend_steps(std::size_t least, std::size_t wanted) {
    const std::size_t lent = std::clamp(steps_, least, std::max(least, wanted));
    return step(lent) ? lent : 0;
  }
  // What was lent and not used.
  void give_back_steps(std::size_t unused) {
    steps_ += unused;
    look_at_ = std::max(look_at_, steps_);
  }

  [[nodiscard]] std::size_t bytes() const { return is_spent() ? 0 : bytes_; }
  bool charge(std::size_t bytes) {
    if (is_spent()) return false;
    if (bytes > bytes_) return end(Lack::bytes);
    bytes_ -= bytes;
    return true;
  }
  // Looks at the clock now: between Nodes.
  bool look_at_clock() {
    if (is_spent()) return false;
    return is_overdue_ && is_overdue_() ? end(Lack::time) : true;
  }

  static constexpr std::size_t bytes_a_step = 32;

 private:
  static constexpr std::size_t steps_a_look = 10'000;  // about 1 ms

  bool end(Lack lack) {
    lack_ = lack;
    return false;
  }

  std::size_t steps_;
  std::size_t bytes_;
  std::size_t look_at_;  // steps that were left at the last look at the clock
  std::function<bool()> is_overdue_;
  Lack lack_ = Lack::nothing;
};

}  // namespace conversed::flows::expression
