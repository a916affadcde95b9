// Methods of arrays. No method changes its array: sort and reverse return a copy.
#include <algorithm>
#include <array>
#include <cmath>

#include "flows/expression/library.h"
#include "flows/expression/machine.h"
#include "flows/expression/number.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {
namespace {

bool has_callback(Machine& machine, const Args& args) {
  if (args.callback == 0) machine.fail("this method takes a function, such as (item) => item.name");
  return args.callback != 0;
}

// Calls the function for each item until `visit(item, index, result)` returns false.
template <typename Visit>
void each(Machine& machine, const Value& self, const Args& args, Visit visit) {
  if (!has_callback(machine, args)) return;
  for (std::size_t at = 0; at < self.array_size(); ++at) {
    const Value item = self.item(at);
    const Value result = machine.call(args.callback, item, at, self);
    if (machine.failed() || !visit(item, at, result)) return;
  }
}

Value at(Machine& machine, const Value& self, const Args& args) {
  double position = machine.to_integer(args[0]);
  if (position < 0) position += static_cast<double>(self.array_size());
  if (position < 0 || position >= static_cast<double>(self.array_size())) return {};
  return self.item(static_cast<std::size_t>(position));
}

Value concat(Machine& machine, const Value& self, const Args& args) {
  ListBuilder out(machine);
  machine.spread(self, out.items());
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_array()) {
      machine.spread(args[i], out.items());
    } else {
      out.push(args[i]);
    }
  }
  return out.finish();
}

// `some` stops at true, `every` at false.
template <bool ends>
Value any(Machine& machine, const Value& self, const Args& args) {
  bool ended = false;
  each(machine, self, args, [&](const Value&, std::size_t, const Value& result) {
    ended = result.truthy() == ends;
    return !ended;
  });
  return Value::boolean(ended == ends);
}

Value filter(Machine& machine, const Value& self, const Args& args) {
  ListBuilder kept(machine);
  each(machine, self, args, [&](const Value& item, std::size_t, const Value& result) {
    return !result.truthy() || kept.push(item);
  });
  return kept.finish();
}

Value map(Machine& machine, const Value& self, const Args& args) {
  ListBuilder mapped(machine);
  each(machine, self, args,
       [&](const Value&, std::size_t, const Value& result) { return mapped.push(result); });
  return mapped.finish();
}

Value flat_map(Machine& machine, const Value& self, const Args& args) {
  ListBuilder mapped(machine);
  each(machine, self, args, [&](const Value&, std::size_t, const Value& result) {
    if (!result.is_array()) return mapped.push(result);
    machine.spread(result, mapped.items());
    return !machine.failed();
  });
  return mapped.finish();
}

// The first or last index whose item the function accepts. The array's size if there is none.
template <bool from_end>
std::size_t match(Machine& machine, const Value& self, const Args& args) {
  const std::size_t size = self.array_size();
  if (!has_callback(machine, args)) return size;
  for (std::size_t visited = 0; visited < size; ++visited) {
    const std::size_t index = from_end ? size - 1 - visited : visited;
    const Value result = machine.call(args.callback, self.item(index), index, self);
    if (machine.failed()) break;
    if (result.truthy()) return index;
  }
  return size;
}

template <bool from_end>
Value find(Machine& machine, const Value& self, const Args& args) {
  return self.item(match<from_end>(machine, self, args));
}

template <bool from_end>
Value find_index(Machine& machine, const Value& self, const Args& args) {
  const std::size_t found = match<from_end>(machine, self, args);
  return found == self.array_size() ? Value::number(-1.0) : Value::number(found);
}

bool flatten(Machine& machine, const Value& whole, double levels, std::size_t depth,
             ListBuilder& out) {
  if (depth > machine.max_depth()) {
    machine.fail_limit("nested too deeply");
    return false;
  }
  for (std::size_t index = 0; index < whole.array_size(); ++index) {
    const Value item = whole.item(index);
    if (!machine.step()) return false;
    const bool opens = item.is_array() && levels >= 1;
    if (!(opens ? flatten(machine, item, levels - 1, depth + 1, out) : out.push(item)))
      return false;
  }
  return true;
}

Value flat(Machine& machine, const Value& self, const Args& args) {
  const double levels = machine.to_integer(args[0], 1);
  ListBuilder out(machine);
  flatten(machine, self, levels, 0, out);
  return out.finish();
}

Value includes(Machine& machine, const Value& self, const Args& args) {
  const auto is_nan = [](const Value& value) {
    return value.is_number() && std::isnan(value.as_number());
  };
  for (std::size_t index = machine.position_from_end(args[1], self.array_size());
       index < self.array_size() && machine.step(); ++index) {
    const Value item = self.item(index);
    if (machine.strictly_equal(item, args[0]) || (is_nan(item) && is_nan(args[0]))) {
      return Value::boolean(true);
    }
  }
  return Value::boolean(false);
}

Value index_of(Machine& machine, const Value& self, const Args& args) {
  for (std::size_t index = machine.position_from_end(args[1], self.array_size());
       index < self.array_size() && machine.step(); ++index) {
    if (machine.strictly_equal(self.item(index), args[0])) return Value::number(index);
  }
  return Value::number(-1.0);
}

Value last_index_of(Machine& machine, const Value& self, const Args& args) {
  const auto size = static_cast<double>(self.array_size());
  double from = args.size() > 1 ? machine.to_integer(args[1]) : size - 1;
  from = from < 0 ? size + from : std::min(from, size - 1);
  if (from < 0) return Value::number(-1.0);
  for (std::size_t index = static_cast<std::size_t>(from) + 1; index > 0 && machine.step();
       --index) {
    if (machine.strictly_equal(self.item(index - 1), args[0])) return Value::number(index - 1);
  }
  return Value::number(-1.0);
}

Value join(Machine& machine, const Value& self, const Args& args) {
  const std::string_view separator = args[0].is_undefined() ? "," : machine.to_text(args[0]);
  TextBuilder out(machine);
  for (std::size_t index = 0; index < self.array_size(); ++index) {
    const Value item = self.item(index);
    if (!machine.step() || (index > 0 && !out.append(separator))) return {};
    if (!item.is_nullish() && !out.append(machine.to_text(item, 1))) return {};
  }
  return out.finish();
}

template <bool from_end>
Value reduce(Machine& machine, const Value& self, const Args& args) {
  if (!has_callback(machine, args)) return {};
  const std::size_t size = self.array_size();
  const auto place = [size](std::size_t visited) {
    return from_end ? size - 1 - visited : visited;
  };
  std::size_t visited = 0;
  Value total = args[1];
  if (args.size() < 2) {
    if (size == 0) return machine.fail("reduce() of an empty array needs an initial value");
    total = self.item(place(visited++));
  }
  for (; visited < size; ++visited) {
    Args call;
    call.push(total);
    call.push(self.item(place(visited)));
    call.push(Value::number(place(visited)));
    call.push(self);
    total = machine.call(args.callback, call);
    if (machine.failed()) return {};
  }
  return total;
}

Value reverse(Machine& machine, const Value& self, const Args&) {
  ListBuilder out(machine);
  machine.spread(self, out.items());
  std::reverse(out.items().begin(), out.items().end());
  return out.finish();
}

Value slice(Machine& machine, const Value& self, const Args& args) {
  const std::size_t size = self.array_size();
  const std::size_t from = machine.position_from_end(args[0], size);
  const std::size_t to = machine.position_from_end(args[1], size, size);
  ListBuilder out(machine);
  for (std::size_t index = from; index < to && machine.step(); ++index) out.push(self.item(index));
  return out.finish();
}

// A stable merge sort. An expression's comparator may answer anything, and unlike std::sort this
// stays within its bounds then.
template <typename After>
void merge_sort(std::vector<Value>& items, const Machine& machine, After after) {
  std::vector<Value> merged(items.size());
  for (std::size_t width = 1; width < items.size(); width *= 2) {
    for (std::size_t from = 0; from < items.size(); from += 2 * width) {
      const std::size_t middle = std::min(from + width, items.size());
      const std::size_t to = std::min(from + 2 * width, items.size());
      std::size_t left = from;
      std::size_t right = middle;
      for (std::size_t out = from; out < to; ++out) {
        if (machine.failed()) return;
        const bool take_right = left == middle || (right < to && after(items[left], items[right]));
        merged[out] = take_right ? items[right++] : items[left++];
      }
    }
    items.swap(merged);
  }
}

Value sort(Machine& machine, const Value& self, const Args& args) {
  if (args.callback == 0 && !args[0].is_undefined()) {
    return machine.fail("sort() takes a function, such as (a, b) => a - b");
  }
  ListBuilder out(machine);
  machine.spread(self, out.items());
  std::vector<Value>& items = out.items();
  // undefined goes to the end without a call of the comparator.
  const auto end = std::stable_partition(items.begin(), items.end(),
                                         [](const Value& item) { return !item.is_undefined(); });
  const auto undefined = static_cast<std::size_t>(items.end() - end);
  items.erase(end, items.end());
  if (args.callback != 0) {
    merge_sort(items, machine, [&](const Value& left, const Value& right) {
      Args call;
      call.push(left);
      call.push(right);
      return machine.to_number(machine.call(args.callback, call)) > 0;
    });
  } else {
    merge_sort(items, machine, [&](const Value& left, const Value& right) {
      const std::string_view text = machine.to_text(left);
      return machine.read(text.size()) && compare_units(text, machine.to_text(right)) > 0;
    });
  }
  items.insert(items.end(), undefined, Value());
  return out.finish();
}

constexpr std::array methods{
    Method{"at", at},
    Method{"concat", concat},
    Method{"every", any<false>, Takes::callback},
    Method{"filter", filter, Takes::callback},
    Method{"find", find<false>, Takes::callback},
    Method{"findIndex", find_index<false>, Takes::callback},
    Method{"findLast", find<true>, Takes::callback},
    Method{"findLastIndex", find_index<true>, Takes::callback},
    Method{"flat", flat},
    Method{"flatMap", flat_map, Takes::callback},
    Method{"includes", includes},
    Method{"indexOf", index_of},
    Method{"join", join},
    Method{"lastIndexOf", last_index_of},
    Method{"map", map, Takes::callback},
    Method{"reduce", reduce<false>, Takes::callback},
    Method{"reduceRight", reduce<true>, Takes::callback},
    Method{"reverse", reverse},
    Method{"slice", slice},
    Method{"some", any<true>, Takes::callback},
    Method{"sort", sort, Takes::callback},
    Method{"toReversed", reverse},
    Method{"toSorted", sort, Takes::callback},
};

}  // namespace

std::span<const Method> array_methods() {
  return methods;
}

}  // namespace conversed::flows::expression
