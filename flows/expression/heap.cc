// New values and what they cost.
#include <algorithm>
#include <cstring>
#include <new>

#include "flows/expression/machine.h"
#include "flows/expression/properties.h"
#include "flows/expression/text.h"
#include "flows/expression/turn_budget.h"

namespace conversed::flows::expression {

namespace {

constexpr std::size_t steps_a_loan = 4'096;
constexpr std::size_t steps_to_begin = 6;  // what an evaluation takes beside its nodes

}  // namespace

Budget::Budget(const Limits& limits, const Scope& scope)
    : turn_(scope.budget),
      steps_(turn_ == nullptr ? limits.max_steps : 0),
      more_steps_(turn_ == nullptr ? 0 : limits.max_steps),
      bytes_(turn_ == nullptr ? limits.max_bytes : std::min(limits.max_bytes, turn_->bytes())),
      lent_bytes_(bytes_),
      turn_is_short_(bytes_ < limits.max_bytes) {
  if (turn_ != nullptr) turn_->step(steps_to_begin);
}

Budget::~Budget() {
  if (turn_ == nullptr) return;
  turn_->give_back_steps(steps_);
  const std::size_t made = lent_bytes_ - bytes_;
  if (turn_->charge(made)) turn_->read(made);
}

bool Budget::borrow(std::size_t missing) {
  std::size_t lent = 0;
  if (missing <= more_steps_) {
    lent = turn_->lend_steps(missing, std::min(steps_a_loan, more_steps_));
  }
  if (lent == 0) {  // nothing is left for the other pieces either
    steps_ = more_steps_ = 0;
    return false;
  }
  steps_ += lent;
  more_steps_ -= lent;
  return true;
}

bool Budget::run_out_of_bytes() {
  if (turn_is_short_) turn_->charge(lent_bytes_ + 1);
  bytes_ = 0;
  return false;
}

void* Heap::allocate(std::size_t bytes) {
  bytes = (bytes + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
  if (bytes > left_) {
    const std::size_t block = std::max(bytes, block_bytes);
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
    free_ = blocks_.back().get();
    left_ = block;
  }
  void* place = free_;
  free_ += bytes;
  left_ -= bytes;
  return place;
}

bool Machine::charge(std::size_t bytes) {
  if (failed()) return false;
  if (budget_.charge(bytes)) return true;
  fail_limit("too much memory");
  return false;
}

Value Machine::text(std::string_view text) {
  return charge(text.size()) ? keep(text) : Value();
}

Value Machine::keep(std::string_view text) {
  if (failed() || text.empty()) return Value::string({});
  char* place = static_cast<char*>(heap_.allocate(text.size()));
  std::memcpy(place, text.data(), text.size());
  return Value::string({place, text.size()});
}

Value Machine::list(const std::vector<Value>& items) {
  return charge(items.size() * sizeof(Value)) ? keep_list(items) : Value();
}

Value Machine::keep_list(const std::vector<Value>& items) {
  if (!charge(sizeof(Array))) return {};
  auto* place = static_cast<Value*>(heap_.allocate(items.size() * sizeof(Value)));
  std::uninitialized_copy(items.begin(), items.end(), place);
  void* array = heap_.allocate(sizeof(Array));
  return Value::array(new (array) Array{{place, items.size()}});
}

Value Machine::keep_object(const std::vector<Property>& properties) {
  if (!charge(sizeof(Object))) return {};
  auto* place = static_cast<Property*>(heap_.allocate(properties.size() * sizeof(Property)));
  std::uninitialized_copy(properties.begin(), properties.end(), place);
  void* object = heap_.allocate(sizeof(Object));
  return Value::object(new (object) Object{{place, properties.size()}});
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
  char* place = static_cast<char*>(heap_.allocate(left.size() + right.size()));
  std::memcpy(place, left.data(), left.size());
  std::memcpy(place + left.size(), right.data(), right.size());
  return Value::string({place, left.size() + right.size()});
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
  const auto is_index = [](const Property& property) { return array_index(property.key).valid; };
  const auto middle = std::stable_partition(properties_.begin(), properties_.end(), is_index);
  std::sort(properties_.begin(), middle, [](const Property& left, const Property& right) {
    return array_index(left.key).index < array_index(right.key).index;
  });
  return machine_.keep_object(properties_);
}

}  // namespace conversed::flows::expression
