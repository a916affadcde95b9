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

Value Machine::fail(std::string_view problem, Errc code) {
  if (!failed()) {
    state_ = State::failed;
    error_ = {code, at_column(at_, problem)};
  }
  return {};
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
    case NodeKind::root:
      return root(node);
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
    case NodeKind::binding:
      break;  // never stand alone: their parents read them
  }
  return {};
}

Value Machine::root(const Node& node) {
  at_ = node.at;
  const nlohmann::json* value = scope_.*node.root;
  return value == nullptr ? Value() : Value::from(*value);
}

Value Machine::name(const Node& node) {
  if (scope_.tokens != nullptr) {
    if (const auto found = scope_.tokens->find(node.text); found != scope_.tokens->end()) {
      return Value::string(found->second);
    }
  }
  if (node.optional) return {};
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
  const Value value = evaluate(node.a);
  if (state_ != State::running) return {};
  at_ = node.at;
  return node.op->run(*this, value, {});
}

Value Machine::binary(const Node& node) {
  const Value left = evaluate(node.a);
  if (state_ != State::running) return {};
  if (node.op->settled != nullptr) return node.op->settled(left) ? left : evaluate(node.b);
  const Value right = evaluate(node.b);
  if (state_ != State::running) return {};
  at_ = node.at;
  return node.op->run(*this, left, right);
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
  for (const NodeId id : program_.list(node)) bind(program_.node(id), args);
  return state_ == State::running ? evaluate(node.a) : Value();
}

void Machine::bind(const Node& binding, const Args& args) {
  Value value = args[binding.index];
  if (binding.item && value.is_array()) {
    value = value.item(*binding.item);
  } else if (binding.item) {
    at_ = binding.at;
    std::vector<Value> items;
    spread(value, items);
    value = *binding.item < items.size() ? items[*binding.item] : Value();
  } else if (!binding.text.empty()) {
    at_ = binding.at;
    value =
        value.is_nullish() ? fail("can't take undefined or null apart") : get(value, binding.text);
  }
  locals_[binding.slot] = value;
}

}  // namespace conversed::flows::expression
