#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace conversed::flows::expression {

// The budget of one Turn. Expressions, templates, Nodes, regular expressions and searches for
// keyphrases all pay from it. A step is 100 ns or less of CPU in a release build. A byte is one
// byte of a new value. Only payments decide, so a Turn fails at the same place in each rerun. The
// exception is `is_overdue`, a clock for steps that take far longer than they should.
//
// After a failed payment the budget is spent for good, and all later payments fail. One thread.
// Kept by: TurnBudget.EverythingThatATurnDoesSpendsFromOneBudget,
// TurnBudget.TheSameTurnFailsAtTheSameStep.
class TurnBudget {
 public:
  TurnBudget(std::size_t steps, std::size_t bytes, std::function<bool()> is_overdue = {})
      : steps_(steps), bytes_(bytes), look_at_(steps), is_overdue_(std::move(is_overdue)) {}

  enum class Lack : std::uint8_t { nothing, steps, bytes, time };
  [[nodiscard]] Lack lack() const { return lack_; }
  [[nodiscard]] bool is_spent() const { return lack_ != Lack::nothing; }

  // Pay before you work. False if the budget is spent.
  bool step(std::size_t count) {
    if (is_spent()) return false;
    if (count > steps_) return end(Lack::steps);
    steps_ -= count;
    if (look_at_ < steps_ + steps_a_look) return true;
    look_at_ = steps_;
    return look_at_clock();
  }
  // Pays for reading or copying that many bytes.
  bool read(std::size_t bytes) { return step(1 + bytes / bytes_a_step); }

  // Pays for a new value of that many bytes, with the steps of writing it.
  bool charge(std::size_t bytes) {
    if (is_spent()) return false;
    if (bytes > bytes_) return end(Lack::bytes);
    bytes_ -= bytes;
    unpaid_ += bytes;
    const std::size_t steps = unpaid_ / bytes_a_step;
    unpaid_ %= bytes_a_step;
    return step(steps);
  }
  // Looks at the clock now. Called between Nodes.
  bool look_at_clock() {
    if (is_spent()) return false;
    return is_overdue_ && is_overdue_() ? end(Lack::time) : true;
  }

 private:
  static constexpr std::size_t bytes_a_step = 32;
  static constexpr std::size_t steps_a_look = 10'000;  // about 1 ms

  bool end(Lack lack) {
    lack_ = lack;
    return false;
  }

  std::size_t steps_;
  std::size_t bytes_;
  std::size_t unpaid_ = 0;  // bytes that are not a whole step yet
  std::size_t look_at_;     // remaining steps at the last look at the clock
  std::function<bool()> is_overdue_;
  Lack lack_ = Lack::nothing;
};

}  // namespace conversed::flows::expression
