// New values and what they cost.
#include <algorithm>
#include <cstring>
#include <new>

#include "flows/expression/machine.h"
#include "flows/expression/properties.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {

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
  if (right.front() == '\xED') {  // it may begin with half of a pair
    std::string joined(left);
    append_text(joined, right);
    return keep(joined);
  }
  char* place = static_cast<char*>(heap_.allocate(left.size() + right.size(), 1));
  std::memcpy(place, left.data(), left.size());
  std::memcpy(place + left.size(), right.data(), right.size());
  return Value::string({place, left.size() + right.size()});
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
  std::vector<Value> items;
  if (source.is_array()) {
    machine_.spread(source, items);
  } else if (source.is_string()) {
    const std::size_t length = unit_length(source.as_string());
    for (std::size_t at = 0; at < length && !machine_.failed(); ++at) {
      items.push_back(machine_.get(source, Value::number(at)));
    }
  }
  for (std::size_t at = 0; at < items.size() && !machine_.failed(); ++at) {
    add(machine_.to_text(Value::number(at)), items[at]);
  }
}

Value ObjectBuilder::finish() {
  if (machine_.failed()) return {};
  // Array indexes come first and ascend, all others stay as they were added.
  std::ranges::stable_sort(properties_, {}, [](const Property& property) {
    return array_index(property.key).value_or(SIZE_MAX);
  });
  return machine_.keep_object(properties_);
}

}  // namespace conversed::flows::expression
