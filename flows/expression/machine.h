#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flows/expression/ast.h"
#include "flows/expression/library.h"
#include "flows/expression/scope.h"
#include "flows/expression/turn_budget.h"
#include "store/model/keyed_hash.h"
#include "store/model/result.h"

namespace conversed::flows::expression {

// The rest of the limits of one expression or text. All pieces of a text share it. The Turn's
// budget pays for all of it, too.
class Budget {
 public:
  Budget(const Limits& limits, const Scope& scope)
      : turn_(scope.budget), steps_(limits.max_steps), bytes_(limits.max_bytes) {
    constexpr std::size_t steps_to_begin = 6;  // the cost of an evaluation without its nodes
    if (turn_ != nullptr) turn_->step(steps_to_begin);
  }

  // False if a limit is exceeded. Then the other pieces have nothing left either.
  bool step(std::size_t count) {
    const bool paid = count <= steps_ && (turn_ == nullptr || turn_->step(count));
    steps_ = paid ? steps_ - count : 0;
    return paid;
  }
  bool charge(std::size_t bytes) {
    const bool paid = bytes <= bytes_ && (turn_ == nullptr || turn_->charge(bytes));
    bytes_ = paid ? bytes_ - bytes : 0;
    return paid;
  }

 private:
  TurnBudget* const turn_;  // null: only the limits apply
  std::size_t steps_;
  std::size_t bytes_;
};

// One evaluation. After the first error every function returns undefined at once, and the result
// may not be used. A forgotten check therefore costs time, but is not wrong. One thread.
class Machine {
 public:
  Machine(const Program& program, const Scope& scope, Budget& budget);

  // The value of the whole expression, unless failed(). It lives as long as the machine, the
  // program and the scope.
  Value run() { return evaluate(program_.root); }

  [[nodiscard]] bool failed() const { return state_ == State::failed; }
  [[nodiscard]] model::Error take_error() { return std::move(error_); }
  [[nodiscard]] const Scope& scope() const { return scope_; }
  [[nodiscard]] std::size_t max_depth() const { return program_.limits.max_depth; }

  // Report an error. They return undefined, for `return machine.fail(...)`.
  Value fail(std::string_view problem, model::Errc code = model::Errc::invalid_argument);
  Value fail_limit(std::string_view problem) { return fail(problem, model::Errc::too_large); }

  // Pay before the work. False, and failed, if the budget is spent.
  bool step(std::size_t count = 1) {
    if (!failed() && !budget_.step(count)) fail_limit("too many steps");
    return !failed();
  }
  bool read(std::size_t bytes) { return step(1 + bytes / 32); }  // for reading a text
  bool charge(std::size_t bytes) {
    if (!failed() && !budget_.charge(bytes)) fail_limit("too much memory");
    return !failed();
  }

  // New values. `text` pays for itself. For the others the caller has paid for bytes and items.
  Value text(std::string_view text);
  Value keep(std::string_view text);
  Value keep_list(const std::vector<Value>& items);
  Value keep_object(const std::vector<Property>& properties);
  Value concat(std::string_view left, std::string_view right);
  Value slice(std::string_view text, std::size_t from, std::size_t to);  // units [from, to)

  // Conversions of ECMA-262. Texts live as long as values.
  std::string_view to_text(const Value& value, std::size_t depth = 0);
  double to_number(const Value& value);
  Value to_primitive(const Value& value);
  // ToIntegerOrInfinity. undefined becomes `otherwise`.
  double to_integer(const Value& value, double otherwise = 0);
  // A position within [0, length]. A negative one becomes 0, or counts from the end.
  std::size_t position(const Value& value, std::size_t length, std::size_t otherwise = 0);
  std::size_t position_from_end(const Value& value, std::size_t length, std::size_t otherwise = 0);
  bool strictly_equal(const Value& left, const Value& right);
  bool loosely_equal(Value left, Value right);

  // value[key]. The value must not be null or undefined.
  Value get(const Value& value, const Value& key);
  Value get(const Value& value, std::string_view key);
  bool has_own(const Value& value, std::string_view key);

  void spread(const Value& value, std::vector<Value>& out);

  // Calls a function that a method of arrays got as its argument.
  Value call(NodeId callback, const Value& item, std::size_t index, const Value& whole);
  Value call(NodeId callback, const Args& args);

 private:
  enum class State : std::uint8_t { running, cut, failed };

  Value evaluate(NodeId id);
  Value root(const Node& node);
  // The member of `input` that the node reads, if it is there already. It has been paid for.
  std::optional<Value> input_member(const Node& node);
  Value name(const Node& node);
  Value array(const Node& node);
  Value object(const Node& node);
  Value template_text(const Node& node);
  Value unary(const Node& node);
  Value binary(const Node& node);
  Value member(const Node& node);
  Value index(const Node& node);
  Value call_method(const Node& node);
  Value call_function(const Node& node);
  bool arguments(const Node& node, Args& args);
  // Pays for the search of an own property.
  bool look_up(const Value& object, std::string_view key);
  // `characters`: the text that an array pattern splits. The pattern's first binding fills it.
  void bind(const Node& binding, const Args& args, std::vector<Value>& characters);
  Value cut();
  Value fail_read(std::string_view key, const Value& value);
  template <typename Whole, typename Part>
  const Whole* keep_all(const std::vector<Part>& parts);

  const Program& program_;
  const Scope& scope_;
  Budget& budget_;
  State state_ = State::running;
  std::uint32_t at_ = 0;  // byte of the current node, for messages
  // Freed all at once. For a simple expression the first bytes are enough.
  alignas(std::max_align_t) std::array<std::byte, 512> first_bytes_;
  std::pmr::monotonic_buffer_resource heap_{first_bytes_.data(), first_bytes_.size()};
  std::vector<Value> locals_;
  model::Error error_;
};

// Collects the properties of a new object. A repeated key keeps its place and gets the new value.
// Keys must live as long as values.
class ObjectBuilder {
 public:
  explicit ObjectBuilder(Machine& machine) : machine_(machine) {}
  void add(std::string_view key, const Value& value);
  void add_all(const Value& source);  // adds the properties like { ...source }
  Value finish();

 private:
  Machine& machine_;
  std::vector<Property> properties_;
  std::unordered_map<std::string_view, std::size_t, model::KeyedHash> places_;  // for large objects
};

// Builds a text and pays for its growth.
class TextBuilder {
 public:
  explicit TextBuilder(Machine& machine) : machine_(machine) {}
  bool append(std::string_view piece);  // false if the budget is spent
  Value finish() { return machine_.keep(out_); }

 private:
  Machine& machine_;
  std::string out_;
};

// Builds an array and pays for its growth.
class ListBuilder {
 public:
  explicit ListBuilder(Machine& machine) : machine_(machine) {}
  bool push(const Value& value) {  // false if the budget is spent
    if (!machine_.charge(sizeof(Value))) return false;
    items_.push_back(value);
    return true;
  }
  Value finish() { return machine_.keep_list(items_); }
  [[nodiscard]] std::vector<Value>& items() { return items_; }

 private:
  Machine& machine_;
  std::vector<Value> items_;
};

}  // namespace conversed::flows::expression
