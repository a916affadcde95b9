// Evaluates nodes. Conversions are in convert.cc, new values in heap.cc, methods in *_methods.cc.
#include "flows/expression/machine.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "flows/expression/number.h"
#include "flows/expression/parser.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {

using model::Errc;

Machine::Machine(const Program& program, const Scope& scope, Budget& budget)
    : program_(program), scope_(scope), budget_(budget), locals_(program.slots) {}

Value Machine::fail(std::string_view problem) {
  if (state_ != State::failed) {
    state_ = State::failed;
    error_ = {Errc::invalid_argument, at_column(at_, problem)};
  }
  return {};
}

Value Machine::fail_limit(std::string_view problem) {
  if (state_ != State::failed) {
    state_ = State::failed;
    error_ = {Errc::too_large, at_column(at_, problem)};
  }
  return {};
}

bool Machine::out_of_steps() {
  fail_limit("too many steps");
  return false;
}

Value Machine::fail_read(std::string_view key, const Value& value) {
  return fail("can't read '" + std::string(key.substr(0, 64)) + "' of " +
              (value.is_undefined() ? "undefined" : "null"));
}

// Leaves the rest of an optional chain undone; the chain's node lets evaluation go on.
Value Machine::cut() {
  if (state_ == State::running) state_ = State::cut;
  return {};
}

Value Machine::evaluate(NodeId id) {
  if (!step()) return {};
  const Node& node = program_.node(id);
  switch (node.kind) {
    case NodeKind::literal:
      return node.value;
    case NodeKind::input:
      return root(scope_.input, node);
    case NodeKind::context:
      return root(scope_.context, node);
    case NodeKind::profile:
      return root(scope_.profile, node);
    case NodeKind::name:
      return name(node);
    case NodeKind::local:
      return locals_[node.slot];
    case NodeKind::array:
      return array(node);
    case NodeKind::object:
      return object(node);
    case NodeKind::template_text:
      return template_text(node);
    case NodeKind::unary:
      return unary(node);
    case NodeKind::binary:
      return binary(node);
    case NodeKind::logical_and:
    case NodeKind::logical_or:
    case NodeKind::logical_nullish:
      return logical(node);
    case NodeKind::conditional: {
      const Value condition = evaluate(node.a);
      if (state_ != State::running) return {};
      return evaluate(condition.truthy() ? node.b : node.c);
    }
    case NodeKind::member:
      return member(node);
    case NodeKind::index:
      return index(node);
    case NodeKind::call_method:
      return call_method(node);
    case NodeKind::call_function:
      return call_function(node);
    case NodeKind::chain: {
      const Value value = evaluate(node.a);
      if (state_ != State::cut) return value;
      state_ = State::running;
      return {};
    }
    case NodeKind::raise:
      at_ = node.at;
      return fail(node.text);
    case NodeKind::property:
    case NodeKind::spread:
    case NodeKind::callback:
    case NodeKind::parameter:
    case NodeKind::binding:
      break;  // never stand alone: their parents read them
  }
  return {};
}

Value Machine::root(const nlohmann::json* value, const Node& node) {
  at_ = node.at;
  return value == nullptr ? Value() : Value::from(*value);
}

Value Machine::name(const Node& node) {
  if (scope_.tokens != nullptr) {
    if (const auto found = scope_.tokens->find(node.text); found != scope_.tokens->end()) {
      return Value::string(found->second);
    }
  }
  at_ = node.at;
  return fail("'" + std::string(node.text) + "' is not defined");
}

Value Machine::array(const Node& node) {
  ListBuilder items(*this);
  for (const NodeId id : program_.list(node)) {
    const Node& item = program_.node(id);
    if (item.kind == NodeKind::spread) {
      const Value source = evaluate(item.a);
      at_ = item.at;
      spread(source, items.items());
    } else {
      items.push(evaluate(id));
    }
    if (state_ != State::running) return {};
  }
  return items.finish();
}

Value Machine::object(const Node& node) {
  ObjectBuilder properties(*this);
  for (const NodeId id : program_.list(node)) {
    const Node& property = program_.node(id);
    if (property.kind == NodeKind::spread) {
      properties.add_all(evaluate(property.a));
    } else {
      const std::string_view key = property.a == 0 ? property.text : to_text(evaluate(property.a));
      properties.add(key, evaluate(property.b));
    }
    if (state_ != State::running) return {};
  }
  return properties.finish();
}

Value Machine::template_text(const Node& node) {
  TextBuilder out(*this);
  for (const NodeId id : program_.list(node)) {
    const Value piece = evaluate(id);
    if (state_ != State::running || !out.append(to_text(piece))) return {};
  }
  return out.finish();
}

Value Machine::unary(const Node& node) {
  if (node.op == Op::type_of) {
    const Node& operand = program_.node(node.a);
    const bool unknown = operand.kind == NodeKind::name &&
                         (scope_.tokens == nullptr || !scope_.tokens->contains(operand.text));
    if (unknown) return Value::string("undefined");
  }
  const Value value = evaluate(node.a);
  if (state_ != State::running) return {};
  at_ = node.at;
  switch (node.op) {
    case Op::not_:
      return Value::boolean(!value.truthy());
    case Op::negate:
      return Value::number(-to_number(value));
    case Op::plus:
      return Value::number(to_number(value));
    case Op::bit_not:
      return Value::number(static_cast<double>(~to_int32(to_number(value))));
    default:
      return Value::string(value.type_name());
  }
}

Value Machine::logical(const Node& node) {
  const Value left = evaluate(node.a);
  if (state_ != State::running) return {};
  bool settled = !left.is_nullish();
  if (node.kind == NodeKind::logical_and) settled = !left.truthy();
  if (node.kind == NodeKind::logical_or) settled = left.truthy();
  return settled ? left : evaluate(node.b);
}

Value Machine::binary(const Node& node) {
  Value left = evaluate(node.a);
  if (state_ != State::running) return {};
  Value right = evaluate(node.b);
  if (state_ != State::running) return {};
  at_ = node.at;
  switch (node.op) {
    case Op::equal:
      return Value::boolean(loosely_equal(left, right));
    case Op::not_equal:
      return Value::boolean(!loosely_equal(left, right));
    case Op::strict_equal:
    case Op::strict_not_equal:
      return Value::boolean(strictly_equal(left, right) == (node.op == Op::strict_equal));
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
      return compare(node.op, left, right);
    case Op::in:
      return has(left, right);
    case Op::add:
      left = to_primitive(left);
      right = to_primitive(right);
      if (left.is_string() || right.is_string()) {
        const std::string_view head = to_text(left);
        return concat(head, to_text(right));
      }
      break;
    default:
      break;
  }
  const double x = to_number(left);
  return arithmetic(node.op, x, to_number(right));
}

Value Machine::arithmetic(Op op, double left, double right) {
  const std::uint32_t shift = to_uint32(right) & 31u;
  switch (op) {
    case Op::add:
      return Value::number(left + right);
    case Op::subtract:
      return Value::number(left - right);
    case Op::multiply:
      return Value::number(left * right);
    case Op::divide:
      return Value::number(left / right);
    case Op::remainder:
      // It divides bit by bit: 2000 of them between the largest number and the smallest.
      if (std::abs(left) > max_exact * std::abs(right) && !step(16)) return {};
      return Value::number(std::fmod(left, right));
    case Op::power:
      return Value::number(power(left, right));
    case Op::bit_and:
      return Value::number(static_cast<double>(to_int32(left) & to_int32(right)));
    case Op::bit_or:
      return Value::number(static_cast<double>(to_int32(left) | to_int32(right)));
    case Op::bit_xor:
      return Value::number(static_cast<double>(to_int32(left) ^ to_int32(right)));
    case Op::shift_left:
      return Value::number(
          static_cast<double>(static_cast<std::int32_t>(to_uint32(left) << shift)));
    case Op::shift_right:
      return Value::number(static_cast<double>(to_int32(left) >> shift));
    case Op::shift_right_unsigned:
      return Value::number(static_cast<double>(to_uint32(left) >> shift));
    default:
      return fail("an operator that is none");
  }
}

Value Machine::compare(Op op, Value left, Value right) {
  left = to_primitive(left);
  right = to_primitive(right);
  if (left.is_string() && right.is_string()) {
    read(right.as_string().size());
    const int order = compare_units(left.as_string(), right.as_string());
    if (op == Op::less) return Value::boolean(order < 0);
    if (op == Op::less_equal) return Value::boolean(order <= 0);
    return Value::boolean(op == Op::greater ? order > 0 : order >= 0);
  }
  const double x = to_number(left);
  const double y = to_number(right);
  if (op == Op::less) return Value::boolean(x < y);
  if (op == Op::less_equal) return Value::boolean(x <= y);
  return Value::boolean(op == Op::greater ? x > y : x >= y);
}

Value Machine::has(const Value& key, const Value& whole) {
  if (!whole.is_composite()) return fail("the right side of 'in' must be an object or an array");
  const std::string_view name = to_text(key);
  if (failed()) return {};
  if (!whole.is_array()) return Value::boolean(look_up(whole, name) && whole.find(name).present);
  const ArrayIndex at = array_index(name);
  return Value::boolean(name == "length" || (at.valid && at.index < whole.array_size()));
}

Value Machine::member(const Node& node) {
  const Value whole = evaluate(node.a);
  if (state_ != State::running) return {};
  if (whole.is_nullish()) {
    if (node.optional) return cut();
    at_ = node.at;
    return fail_read(node.text, whole);
  }
  return get(whole, node.text);
}

Value Machine::index(const Node& node) {
  const Value whole = evaluate(node.a);
  if (state_ != State::running) return {};
  if (whole.is_nullish() && node.optional) return cut();
  const Value key = evaluate(node.b);
  if (state_ != State::running) return {};
  at_ = node.at;
  if (whole.is_nullish()) return fail_read(to_text(key), whole);
  return get(whole, key);
}

bool Machine::arguments(const Node& node, Args& args) {
  std::vector<Value> spread_items;
  for (const NodeId id : program_.list(node)) {
    const Node& argument = program_.node(id);
    if (argument.kind == NodeKind::callback) {
      args.callback = id;
      args.push({});
    } else if (argument.kind == NodeKind::spread) {
      spread_items.clear();
      const Value source = evaluate(argument.a);
      at_ = argument.at;
      spread(source, spread_items);
      for (const Value& item : spread_items) args.push(item);
    } else {
      args.push(evaluate(id));
    }
    if (state_ != State::running) return false;
  }
  return true;
}

Value Machine::call_method(const Node& node) {
  const Value self = evaluate(node.a);
  if (state_ != State::running) return {};
  at_ = node.at;
  if (self.is_nullish()) return node.optional ? cut() : fail_read(node.text, self);
  const Native native = node.method == nullptr ? nullptr : node.method->of(self);
  if (native == nullptr) {
    if (node.optional_call && get(self, node.text).is_nullish()) return cut();
    return fail("'" + std::string(node.text.substr(0, 64)) + "' is not a function of this " +
                std::string(self.is_array() ? "array" : self.type_name()));
  }
  Args args;
  if (!arguments(node, args)) return {};
  at_ = node.at;
  return native(*this, self, args);
}

Value Machine::call_function(const Node& node) {
  Args args;
  if (!arguments(node, args)) return {};
  at_ = node.at;
  return node.function->run(*this, {}, args);
}

Value Machine::call(NodeId callback, const Value& item, std::size_t index, const Value& whole) {
  Args args;
  args.push(item);
  args.push(Value::number(index));
  args.push(whole);
  return call(callback, args);
}

Value Machine::call(NodeId callback, const Args& args) {
  if (!step()) return {};
  const Node& node = program_.node(callback);
  if (node.function != nullptr) return node.function->run(*this, {}, args);
  std::size_t position = 0;
  for (const NodeId id : program_.list(node)) bind(program_.node(id), args[position++]);
  return state_ == State::running ? evaluate(node.a) : Value();
}

void Machine::bind(const Node& parameter, const Value& value) {
  if (parameter.count == 0) {
    locals_[parameter.slot] = value;
    return;
  }
  at_ = parameter.at;
  std::vector<Value> items;
  if (!parameter.keyed) {
    spread(value, items);
  } else if (value.is_nullish()) {
    fail("can't take undefined or null apart");
  }
  if (state_ != State::running) return;
  std::size_t position = 0;
  for (const NodeId id : program_.list(parameter)) {
    const Node& binding = program_.node(id);
    if (parameter.keyed) {
      locals_[binding.slot] = get(value, binding.text);
    } else {
      locals_[binding.slot] = position < items.size() ? items[position] : Value();
    }
    ++position;
  }
}

}  // namespace conversed::flows::expression
