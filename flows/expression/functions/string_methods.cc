// Methods of strings, in alphabetical order. Positions are UTF-16 code units.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "flows/expression/library.h"
#include "flows/expression/machine.h"
#include "flows/expression/number.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {
namespace {

// The string of a call after paying for one pass over it. Empty if the budget is spent.
std::string_view paid(Machine& machine, const Value& self) {
  return machine.read(self.as_string().size()) ? self.as_string() : std::string_view();
}

// Like text.find(wanted, from), but always linear. std::string_view::find takes the product of both
// lengths if the text has many near matches.
std::size_t find_bytes(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size() || text.size() - from < wanted.size()) return std::string_view::npos;
  if (wanted.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// The position as an index of the text's units. Nothing outside of the text.
std::optional<std::size_t> unit_place(std::string_view text, double position) {
  if (position < 0 || position >= static_cast<double>(unit_length(text))) return std::nullopt;
  return static_cast<std::size_t>(position);
}

Value at(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  double position = machine.to_integer(args[0]);
  if (position < 0) position += static_cast<double>(unit_length(text));
  const auto place = unit_place(text, position);
  return place ? machine.slice(text, *place, *place + 1) : Value();
}

Value char_at(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const auto place = unit_place(text, machine.to_integer(args[0]));
  return place ? machine.slice(text, *place, *place + 1) : Value::string({});
}

Value char_code_at(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const auto place = unit_place(text, machine.to_integer(args[0]));
  return Value::number(place ? static_cast<double>(unit_at(text, *place)) : std::nan(""));
}

Value code_point_at(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const auto place = unit_place(text, machine.to_integer(args[0]));
  if (!place) return {};
  const char16_t unit = unit_at(text, *place);
  if (unit < 0xD800 || unit > 0xDBFF) return Value::number(static_cast<double>(unit));
  return Value::number(static_cast<double>(decode(text, byte_of_unit(text, *place)).code));
}

Value concat(Machine& machine, const Value& self, const Args& args) {
  TextBuilder out(machine);
  out.append(self.as_string());
  for (std::size_t i = 0; i < args.size(); ++i) out.append(machine.to_text(args[i]));
  return out.finish();
}

Value ends_with(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::string_view wanted = machine.to_text(args[0]);
  const std::size_t length = unit_length(text);
  const std::size_t end = machine.position(args[1], length, length);
  std::string storage;  // the part may end with half of a pair
  return Value::boolean(slice_units(text, 0, end, storage).ends_with(wanted));
}

Value includes(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::string_view wanted = machine.to_text(args[0]);
  const std::size_t from = machine.position(args[1], unit_length(text));
  return Value::boolean(find_bytes(text, wanted, byte_of_unit(text, from)) !=
                        std::string_view::npos);
}

Value index_of(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::string_view wanted = machine.to_text(args[0]);
  const std::size_t from = machine.position(args[1], unit_length(text));
  if (wanted.empty()) return Value::number(from);
  const std::size_t found = find_bytes(text, wanted, byte_of_unit(text, from));
  if (found == std::string_view::npos) return Value::number(-1.0);
  return Value::number(unit_length(text.substr(0, found)));
}

Value last_index_of(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::string_view wanted = machine.to_text(args[0]);
  const Value limit = Value::number(machine.to_number(args[1]));
  const std::size_t length = unit_length(text);
  const std::size_t from = std::isnan(limit.as_number()) ? length : machine.position(limit, length);
  const std::size_t last = byte_of_unit(text, from);
  if (wanted.empty()) return Value::number(from);
  std::size_t found = std::string_view::npos;
  for (std::size_t next = find_bytes(text, wanted, 0); next <= last && machine.read(wanted.size());
       next = find_bytes(text, wanted, next + 1)) {
    found = next;
  }
  if (found == std::string_view::npos) return Value::number(-1.0);
  return Value::number(unit_length(text.substr(0, found)));
}

template <bool at_start>
Value pad(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const double wanted = machine.to_integer(args[0]);
  const std::string_view filler = args[1].is_undefined() ? " " : machine.to_text(args[1]);
  const auto length = static_cast<double>(unit_length(text));
  const std::size_t filler_length = unit_length(filler);
  if (machine.failed() || wanted <= length || filler_length == 0) return self;
  // Each missing unit takes at least one byte, so the size is checked before the filling.
  double missing = wanted - length;
  if (missing > 1e15 || !machine.charge(static_cast<std::size_t>(missing))) {
    return machine.fail_limit("too much memory");
  }
  TextBuilder padding(machine);
  for (; missing >= static_cast<double>(filler_length);
       missing -= static_cast<double>(filler_length)) {
    if (!machine.step() || !padding.append(filler)) return {};
  }
  std::string storage;
  padding.append(slice_units(filler, 0, static_cast<std::size_t>(missing), storage));
  const std::string_view made = padding.finish().as_string();
  return at_start ? machine.concat(made, text) : machine.concat(text, made);
}

Value repeat(Machine& machine, const Value& self, const Args& args) {
  const double count = machine.to_integer(args[0]);
  if (count < 0 || std::isinf(count)) return machine.fail("repeat() takes a count from 0 on");
  const std::string_view text = self.as_string();
  if (text.empty()) return self;
  if (count > 1e15) return machine.fail_limit("too much memory");
  TextBuilder out(machine);
  for (auto left = static_cast<std::size_t>(count); left > 0; --left) {
    if (!machine.step() || !out.append(text)) return {};
  }
  return out.finish();
}

// Appends the replacement of a match at `found`, with $$, $&, $` and $' replaced.
bool append_replacement(TextBuilder& out, std::string_view replacement, std::string_view text,
                        std::size_t found, std::size_t length) {
  std::size_t from = 0;
  while (true) {
    const std::size_t mark = replacement.find('$', from);
    if (mark == std::string_view::npos || mark + 1 == replacement.size()) {
      return out.append(replacement.substr(from));
    }
    if (!out.append(replacement.substr(from, mark - from))) return false;
    const char kind = replacement[mark + 1];
    std::string_view meant = "$";
    if (kind == '&') meant = text.substr(found, length);
    if (kind == '`') meant = text.substr(0, found);
    if (kind == '\'') meant = text.substr(found + length);
    const bool special = kind == '$' || kind == '&' || kind == '`' || kind == '\'';
    from = mark + (special ? 2 : 1);
    if (!out.append(meant)) return false;
  }
}

template <bool all>
Value replace(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::string_view pattern = machine.to_text(args[0]);
  const std::string_view replacement = machine.to_text(args[1]);
  TextBuilder out(machine);
  std::size_t from = 0;
  std::size_t found = find_bytes(text, pattern, 0);
  while (found != std::string_view::npos && machine.step()) {
    out.append(text.substr(from, found - from));
    if (!append_replacement(out, replacement, text, found, pattern.size())) return {};
    from = found + pattern.size();
    if (!all || found >= text.size()) break;
    // An empty pattern matches before each character.
    const std::size_t next = pattern.empty() ? found + decode(text, found).bytes : from;
    found = find_bytes(text, pattern, next);
  }
  out.append(text.substr(std::min(from, text.size())));
  return out.finish();
}

Value slice_method(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::size_t length = unit_length(text);
  const std::size_t from = machine.position_from_end(args[0], length);
  const std::size_t to = machine.position_from_end(args[1], length, length);
  return machine.slice(text, from, to);
}

Value split(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::size_t limit =
      args[1].is_undefined() ? 0xFFFFFFFFu : to_uint32(machine.to_number(args[1]));
  ListBuilder pieces(machine);
  if (limit == 0 || machine.failed()) return pieces.finish();
  if (args[0].is_undefined()) {
    pieces.push(self);
    return pieces.finish();
  }
  const std::string_view separator = machine.to_text(args[0]);
  if (separator.empty()) {
    for (std::size_t byte = 0; byte < text.size() && machine.step();) {
      const CodePoint point = decode(text, byte);
      const std::string_view character = text.substr(byte, point.bytes);
      const std::size_t units = point.code >= 0x10000 ? 2 : 1;  // both halves of a pair separately
      for (std::size_t unit = 0; unit < units && pieces.items().size() < limit; ++unit) {
        pieces.push(machine.slice(character, unit, unit + 1));
      }
      byte += point.bytes;
    }
    return pieces.finish();
  }
  std::size_t from = 0;
  while (machine.step() && pieces.items().size() < limit) {
    const std::size_t found = find_bytes(text, separator, from);
    pieces.push(
        Value::string(text.substr(from, found == std::string_view::npos ? found : found - from)));
    if (found == std::string_view::npos) break;
    from = found + separator.size();
  }
  return pieces.finish();
}

Value starts_with(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::string_view wanted = machine.to_text(args[0]);
  const std::size_t from = machine.position(args[1], unit_length(text));
  std::string storage;  // the rest may begin with half of a pair
  return Value::boolean(slice_units(text, from, unit_length(text), storage).starts_with(wanted));
}

Value substr(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::size_t length = unit_length(text);
  const std::size_t from = machine.position_from_end(args[0], length);
  const std::size_t rest = length - from;
  return machine.slice(text, from, from + machine.position(args[1], rest, rest));
}

Value substring(Machine& machine, const Value& self, const Args& args) {
  const std::string_view text = paid(machine, self);
  const std::size_t length = unit_length(text);
  const std::size_t one = machine.position(args[0], length);
  const std::size_t other = machine.position(args[1], length, length);
  return machine.slice(text, std::min(one, other), std::max(one, other));
}

template <std::string (*map)(std::string_view)>
Value mapped(Machine& machine, const Value& self, const Args&) {
  const std::string_view text = self.as_string();
  return machine.read(2 * text.size()) ? machine.text(map(text)) : Value();
}

template <std::string_view (*cut)(std::string_view)>
Value trimmed(Machine& machine, const Value& self, const Args&) {
  return Value::string(cut(paid(machine, self)));
}

constexpr std::array methods{
    Method{"at", at},
    Method{"charAt", char_at},
    Method{"charCodeAt", char_code_at},
    Method{"codePointAt", code_point_at},
    Method{"concat", concat},
    Method{"endsWith", ends_with},
    Method{"includes", includes},
    Method{"indexOf", index_of},
    Method{"lastIndexOf", last_index_of},
    Method{"padEnd", pad<false>},
    Method{"padStart", pad<true>},
    Method{"repeat", repeat},
    Method{"replace", replace<false>},
    Method{"replaceAll", replace<true>},
    Method{"slice", slice_method},
    Method{"split", split},
    Method{"startsWith", starts_with},
    Method{"substr", substr},
    Method{"substring", substring},
    Method{"toLowerCase", mapped<to_lower>},
    Method{"toUpperCase", mapped<to_upper>},
    Method{"trim", trimmed<trim>},
    Method{"trimEnd", trimmed<trim_end>},
    Method{"trimStart", trimmed<trim_start>},
};

}  // namespace

std::span<const Method> string_methods() {
  return methods;
}

}  // namespace conversed::flows::expression
