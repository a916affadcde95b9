#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::flows::expression {

class TurnBudget;

// Repeatable numbers for Math.random(): the same seed gives the same sequence (SplitMix64), so a
// rerun of a Turn has the same outcome. Not for secrets. One thread at a time.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed) {}

  // The next number in [0, 1), with 53 random bits.
  double next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    return static_cast<double>(mixed >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

// Maps labels to texts of a project's tokens. A label may contain any characters.
using Tokens = std::map<std::string, std::string, std::less<>>;

// Sees the evaluations of a Turn, for tools. One thread at a time.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // An expression, or the braces of a template, had this value or error. In a text with more than
  // the braces the value is the text that replaced them.
  virtual void evaluated(std::string_view source, const model::Result<nlohmann::json>& value) = 0;
};

// The names that an expression reads during one Turn. It borrows the values: they must outlive
// every evaluation and must not change during one. A null pointer reads as undefined. Time and
// random numbers come only from here, so an evaluation is a function of its scope. One thread at a
// time, because Math.random() advances `random`.
struct Scope {
  const nlohmann::json* input = nullptr;
  // Makes the member of `input` with this name, or all members if the name is empty. It is called
  // before an evaluation reads a member that is not there, or `input` as a whole. Empty: all
  // members are there.
  std::function<void(std::string_view name)> complete_input{};
  const nlohmann::json* context = nullptr;
  const nlohmann::json* profile = nullptr;
  const nlohmann::json* arguments = nullptr;  // of the entered Flow
  const Tokens* tokens = nullptr;
  model::Timestamp now{};   // Date.now()
  mutable Random random{};  // seeded by the Turn
  // All evaluations of the Turn pay from it, each within its own limits. May be null.
  TurnBudget* budget = nullptr;
  Observer* observer = nullptr;  // may be null
};

}  // namespace conversed::flows::expression
