#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flows/expression/ast.h"
#include "flows/expression/library.h"
#include "flows/expression/scope.h"
#include "store/model/error.h"
#include "store/model/keyed_hash.h"

namespace conversed::flows::expression {

// The rest of the limits of one expression or text, whose pieces share it. The Turn's budget pays
// for all that it spends.
class Budget {
 public:
  Budget(const Limits& limits, const Scope& scope);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  bool step(std::size_t count) {
    if (count > steps_ && !borrow(count - steps_)) return false;
    steps_ -= count;
    return true;
  }
  bool charge(std::size_t bytes) {
    if (bytes > bytes_) return run_out_of_bytes();
    bytes_ -= bytes;
    return true;
  }

 private:
  bool borrow(std::size_t missing);
  bool run_out_of_bytes();

  TurnBudget* const turn_;  // null: there is none
  std::size_t steps_;       // at hand
  std::size_t more_steps_;  // of the limit, to be borrowed from the Turn
  std::size_t bytes_;
  const std::size_t lent_bytes_;
  const bool turn_is_short_;  // of bytes: it has fewer than the limit
};

// Memory for the values of one evaluation, freed all at once. The first bytes are in place, so that
// a simple expression allocates nothing.
class Heap {
 public:
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  [[nodiscard]] void* allocate(std::size_t bytes);  // aligned for every Value

 private:
  static constexpr std::size_t block_bytes = 8192;
  alignas(std::max_align_t) std::byte first_[512];
  std::byte* free_ = first_;
  std::size_t left_ = sizeof(first_);
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

// One evaluation. Errors stick: after the first, every function returns undefined at once, and the
// result may not be used. So a forgotten check costs time, not correctness. One thread.
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

  // Errors; the results are undefined, for `return machine.fail(...)`.
  Value fail(std::string_view problem);
  Value fail_limit(std::string_view problem);

  // Pay before doing: false (and failed) when the budget is spent.
  bool step(std::size_t count = 1) {
    if (state_ == State::failed) return false;
    return budget_.step(count) || out_of_steps();
  }
  bool read(std::size_t bytes) { return step(1 + bytes / 32); }  // for looking at a text
  bool charge(std::size_t bytes);

  // New values. `text` and `list` pay for themselves; for `keep` the caller has paid.
  Value text(std::string_view text);
  Value keep(std::string_view text);
  Value list(const std::vector<Value>& items);
  Value keep_list(const std::vector<Value>& items);
  Value keep_object(const std::vector<Property>& properties);
  Value concat(std::string_view left, std::string_view right);

  // Conversions of ECMA-262. Texts live like values do.
  std::string_view to_text(const Value& value, std::size_t depth = 0);
  double to_number(const Value& value);
  Value to_primitive(const Value& value);
  bool strictly_equal(const Value& left, const Value& right);
  bool loosely_equal(Value left, Value right);

  // value[key]; the value is not null or undefined.
  Value get(const Value& value, const Value& key);
  Value get(const Value& value, std::string_view key);
  // Pays for looking for an own property of the object.
  bool look_up(const Value& object, std::string_view key);

  // Adds the items of `...value` in an array.
  void spread(const Value& value, std::vector<Value>& out);

  // Calls the function that came as an argument, as methods of arrays do.
  Value call(NodeId callback, const Value& item, std::size_t index, const Value& whole);
  Value call(NodeId callback, const Args& args);

 private:
  enum class State : std::uint8_t { running, cut, failed };

  Value evaluate(NodeId id);
  Value root(const nlohmann::json* value, const Node& node);
  Value name(const Node& node);
  Value array(const Node& node);
  Value object(const Node& node);
  Value template_text(const Node& node);
  Value unary(const Node& node);
  Value binary(const Node& node);
  Value arithmetic(Op op, double left, double right);
  Value compare(Op op, Value left, Value right);
  Value has(const Value& key, const Value& whole);
  Value logical(const Node& node);
  Value member(const Node& node);
  Value index(const Node& node);
  Value call_method(const Node& node);
  Value call_function(const Node& node);
  bool arguments(const Node& node, Args& args);
  void bind(const Node& parameter, const Value& value);
  Value cut();
  Value fail_read(std::string_view key, const Value& value);
  bool out_of_steps();

  const Program& program_;
  const Scope& scope_;
  Budget& budget_;
  State state_ = State::running;
  std::uint32_t at_ = 0;  // byte of what runs, for messages
  Heap heap_;
  std::vector<Value> locals_;
  model::Error error_;
};

// Collects the properties of a new object. A repeated key keeps its place and takes the new value.
// Keys must live as long as values.
class ObjectBuilder {
 public:
  explicit ObjectBuilder(Machine& machine) : machine_(machine) {}
  void add(std::string_view key, const Value& value);
  void add_all(const Value& source);  // what { ...source } adds
  Value finish();

 private:
  Machine& machine_;
  std::vector<Property> properties_;
  std::unordered_map<std::string_view, std::size_t, model::KeyedHash> places_;  // of large objects
};

// Grows a text, paying as it grows.
class TextBuilder {
 public:
  explicit TextBuilder(Machine& machine) : machine_(machine) {}
  bool append(std::string_view piece);  // false when the budget is spent
  Value finish() { return machine_.keep(out_); }

 private:
  Machine& machine_;
  std::string out_;
};

// Grows an array, paying as it grows.
class ListBuilder {
 public:
  explicit ListBuilder(Machine& machine) : machine_(machine) {}
  bool push(const Value& value) {  // false when the budget is spent
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
