// Evaluates nodes and makes values. convert.cc has conversions, functions/ operators and functions.
#include "flows/expression/machine.h"

#include <algorithm>
#include <cstring>

#include "flows/expression/json_text.h"
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

// Skips the rest of an optional chain. Evaluation continues after the chain's node.
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
      break;  // never evaluated alone: their parents read them
  }
  return {};
}

Value Machine::root(const Node& node) {
  at_ = node.at;
  if (node.root == &Scope::input && scope_.complete_input) scope_.complete_input({});
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

std::optional<Value> Machine::input_member(const Node& node) {
  const Node& whole = program_.node(node.a);
  if (whole.kind != NodeKind::root || whole.root != &Scope::input || !scope_.complete_input) {
    return std::nullopt;
  }
  const Value input = Value::from(*scope_.input);
  auto found = input.find(node.text);
  if (!found) {
    scope_.complete_input(node.text);
    found = input.find(node.text);
  }
  return found && step() ? found : std::nullopt;
}

Value Machine::member(const Node& node) {
  if (const auto found = input_member(node)) return *found;
  if (state_ != State::running) return {};
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
  const Method* method = find_method(self, node.text);
  if (method == nullptr) {
    if (node.optional_call && get(self, node.text).is_nullish()) return cut();
    return fail("'" + std::string(node.text.substr(0, 64)) + "' is not a function of this " +
                std::string(self.is_array() ? "array" : self.type_name()));
  }
  Args args;
  if (!arguments(node, args)) return {};
  at_ = node.at;
  return method->run(*this, self, args);
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
  std::vector<Value> characters;
  for (const NodeId id : program_.list(node)) bind(program_.node(id), args, characters);
  return state_ == State::running ? evaluate(node.a) : Value();
}

void Machine::bind(const Node& binding, const Args& args, std::vector<Value>& characters) {
  if (!step()) return;
  Value value = args[binding.index];
  if (binding.item && value.is_array()) {
    value = value.item(*binding.item);
  } else if (binding.item) {
    at_ = binding.at;
    if (*binding.item == 0) spread(value, characters = {});
    value = *binding.item < characters.size() ? characters[*binding.item] : Value();
  } else if (!binding.text.empty()) {
    at_ = binding.at;
    value =
        value.is_nullish() ? fail("can't take undefined or null apart") : get(value, binding.text);
  }
  locals_[binding.slot] = value;
}

Value Machine::text(std::string_view text) {
  return charge(text.size()) ? keep(text) : Value();
}

Value Machine::keep(std::string_view text) {
  if (failed() || text.empty()) return Value::string({});
  char* place = static_cast<char*>(heap_.allocate(text.size(), 1));
  std::memcpy(place, text.data(), text.size());
  return Value::string({place, text.size()});
}

template <typename Whole, typename Part>
const Whole* Machine::keep_all(const std::vector<Part>& parts) {
  void* place = heap_.allocate(parts.size() * sizeof(Part) + sizeof(Whole));
  auto* begin = static_cast<Part*>(place);
  auto* end = std::uninitialized_copy(parts.begin(), parts.end(), begin);
  return new (end) Whole{{begin, end}};
}

Value Machine::keep_list(const std::vector<Value>& items) {
  return charge(sizeof(Array)) ? Value::array(keep_all<Array>(items)) : Value();
}

Value Machine::keep_object(const std::vector<Property>& properties) {
  return charge(sizeof(Object)) ? Value::object(keep_all<Object>(properties)) : Value();
}

Value Machine::concat(std::string_view left, std::string_view right) {
  if (failed()) return {};
  if (left.empty()) return Value::string(right);
  if (right.empty()) return Value::string(left);
  if (!charge(left.size() + right.size())) return {};
  std::string joined(left);
  append_text(joined, right);
  return keep(joined);
}

Value Machine::slice(std::string_view text, std::size_t from, std::size_t to) {
  std::string storage;
  const std::string_view piece = slice_units(text, from, to, storage);
  return storage.empty() ? Value::string(piece) : this->text(piece);
}

bool TextBuilder::append(std::string_view piece) {
  if (!machine_.charge(piece.size())) return false;
  append_text(out_, piece);
  return true;
}

void ObjectBuilder::add(std::string_view key, const Value& value) {
  constexpr std::size_t small = 8;
  if (!machine_.read(key.size())) return;
  if (properties_.size() > small && places_.empty()) {
    for (std::size_t at = 0; at < properties_.size(); ++at) places_[properties_[at].key] = at;
  }
  std::size_t place = properties_.size();
  if (!places_.empty()) {
    place = places_.emplace(key, place).first->second;
  } else {
    place = static_cast<std::size_t>(std::ranges::find(properties_, key, &Property::key) -
                                     properties_.begin());
  }
  if (place < properties_.size()) {
    properties_[place].value = value;
  } else if (machine_.charge(sizeof(Property))) {
    properties_.push_back({key, value});
  }
}

void ObjectBuilder::add_all(const Value& source) {
  if (source.is_object()) {
    each_property(source, [&](std::string_view key, const Value& value) {
      add(key, value);
      return !machine_.failed();
    });
    return;
  }
  std::size_t length = source.is_array() ? source.array_size() : 0;
  if (source.is_string()) length = unit_length(source.as_string());
  for (std::size_t at = 0; at < length && !machine_.failed(); ++at) {
    const Value index = Value::number(at);
    add(machine_.to_text(index), machine_.get(source, index));
  }
}

Value ObjectBuilder::finish() {
  if (machine_.failed()) return {};
  // Array indexes come first in ascending order. All others keep the order of insertion.
  std::ranges::stable_sort(properties_, {}, [](const Property& property) {
    return array_index(property.key).value_or(SIZE_MAX);
  });
  return machine_.keep_object(properties_);
}

}  // namespace conversed::flows::expression
