// Global functions, and functions of Number, Array, Object, JSON, String and Date.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "flows/expression/functions/dates.h"
#include "flows/expression/json_text.h"
#include "flows/expression/library.h"
#include "flows/expression/machine.h"
#include "flows/expression/number.h"
#include "flows/expression/text.h"
#include "store/model/hex.h"

namespace conversed::flows::expression {
namespace {

bool is_nan(double x) {
  return std::isnan(x);
}
bool is_finite(double x) {
  return std::isfinite(x);
}
bool is_whole(double x) {
  return std::isfinite(x) && x == std::trunc(x);
}
bool is_safe(double x) {
  return is_whole(x) && std::abs(x) < max_exact;
}

// isNaN and isFinite convert their argument. Those of Number are false for all other types.
enum class Other : std::uint8_t { converted, never };
template <bool (*test)(double), Other other>
Value number_test(Machine& machine, const Value&, const Args& args) {
  if (other == Other::never && !args[0].is_numeric()) return Value::boolean(false);
  return Value::boolean(test(machine.to_number(args[0])));
}

Value to_string(Machine& machine, const Value&, const Args& args) {
  return Value::string(args.size() == 0 ? std::string_view() : machine.to_text(args[0]));
}
Value to_number(Machine& machine, const Value&, const Args& args) {
  return Value::number(args.size() == 0 ? 0 : machine.to_number(args[0]));
}
Value to_boolean(Machine&, const Value&, const Args& args) {
  return Value::boolean(args[0].truthy());
}

Value parse_float_function(Machine& machine, const Value&, const Args& args) {
  const std::string_view text = machine.to_text(args[0]);
  return machine.read(text.size()) ? Value::number(parse_float(text)) : Value();
}
Value parse_int_function(Machine& machine, const Value&, const Args& args) {
  const std::string_view text = machine.to_text(args[0]);
  if (!machine.read(text.size())) return {};
  return Value::number(parse_int(text, to_int32(machine.to_number(args[1]))));
}
Value is_array(Machine&, const Value&, const Args& args) {
  return Value::boolean(args[0].is_array());
}
Value array_of(Machine& machine, const Value&, const Args& args) {
  ListBuilder items(machine);
  for (std::size_t i = 0; i < args.size() && items.push(args[i]); ++i) continue;
  return items.finish();
}

enum class Part : std::uint8_t { keys, values, entries };

// The keys of arrays and texts are their indexes.
template <Part part>
Value parts(Machine& machine, const Value&, const Args& args) {
  if (args[0].is_nullish()) return machine.fail("undefined and null have no properties");
  ObjectBuilder copy(machine);
  copy.add_all(args[0]);
  const Value whole = copy.finish();
  if (machine.failed()) return {};
  ListBuilder out(machine);
  each_property(whole, [&](std::string_view key, const Value& value) {
    if (part == Part::keys) return out.push(Value::string(key));
    if (part == Part::values) return out.push(value);
    ListBuilder entry(machine);
    return entry.push(Value::string(key)) && entry.push(value) && out.push(entry.finish());
  });
  return out.finish();
}

Value from_entries(Machine& machine, const Value&, const Args& args) {
  if (!args[0].is_array()) return machine.fail("Object.fromEntries() takes a list of pairs");
  ObjectBuilder made(machine);
  for (std::size_t at = 0; at < args[0].array_size() && !machine.failed(); ++at) {
    const Value pair = args[0].item(at);
    if (!pair.is_composite()) return machine.fail("Object.fromEntries() takes a list of pairs");
    made.add(machine.to_text(machine.get(pair, "0")), machine.get(pair, "1"));
  }
  return made.finish();
}

Value json_stringify(Machine& machine, const Value&, const Args& args) {
  if (!args[1].is_nullish()) return machine.fail("JSON.stringify() takes no replacer");
  std::string indent;
  if (args[2].is_string()) {
    std::string storage;
    const std::string_view wanted = args[2].as_string();
    indent = slice_units(wanted, 0, std::min<std::size_t>(10, unit_length(wanted)), storage);
  } else if (args[2].is_number()) {
    indent.assign(static_cast<std::size_t>(std::clamp(to_integer(args[2].as_number()), 0.0, 10.0)),
                  ' ');
  }
  return stringify(machine, args[0], indent);
}
Value json_parse(Machine& machine, const Value&, const Args& args) {
  return parse_json(machine, machine.to_text(args[0]));
}

Value date_now(Machine& machine, const Value&, const Args&) {
  return Value::number(static_cast<double>(model::to_unix_ms(machine.scope().now)));
}
Value date_parse(Machine& machine, const Value&, const Args& args) {
  const std::string_view text = machine.to_text(args[0]);
  if (!machine.read(text.size())) return {};
  const auto moment = read_moment(text);
  if (!moment) return Value::number(std::nan(""));
  // A time without an offset is UTC, because the time zone of the daemon's machine does not matter.
  const auto zero = std::chrono::milliseconds(0);
  const model::Timestamp time =
      moment->day + moment->clock.value_or(zero) - moment->offset.value_or(zero);
  return Value::number(static_cast<double>(model::to_unix_ms(time)));
}

constexpr std::string_view component_marks = "-_.!~*'()";
constexpr std::string_view uri_marks = "-_.!~*'();/?:@&=+$,#";

template <const std::string_view& kept>
Value encode(Machine& machine, const Value&, const Args& args) {
  const std::string_view text = machine.to_text(args[0]);
  if (!machine.read(text.size())) return {};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    if (point.code >= 0xD800 && point.code <= 0xDFFF) return machine.fail("half of a character");
    const bool alphanumeric = point.code < 0x80 && point.code != '$' && continues_name(point.code);
    out += model::percent_encoded(text.substr(at, point.bytes), [&](char c) {
      return alphanumeric || kept.find(c) != std::string_view::npos;
    });
    at += point.bytes;
  }
  return machine.text(out);
}

Value decode_component(Machine& machine, const Value&, const Args& args) {
  const std::string_view text = machine.to_text(args[0]);
  if (!machine.read(text.size())) return {};
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out.push_back(text[at]);
      continue;
    }
    unsigned value = 0;
    const char* from = text.data() + at + 1;
    const char* to = text.data() + std::min(at + 3, text.size());
    const auto parsed = std::from_chars(from, to, value, 16);
    if (parsed.ec != std::errc{} || parsed.ptr != from + 2) return machine.fail("not URI encoded");
    out.push_back(static_cast<char>(value));
    at += 2;
  }
  if (!is_utf8(out)) return machine.fail("not URI encoded");
  return machine.text(out);
}

Value from_char_code(Machine& machine, const Value&, const Args& args) {
  TextBuilder out(machine);
  for (std::size_t i = 0; i < args.size() && machine.step(); ++i) {
    std::string unit;
    append_code(unit, to_uint32(machine.to_number(args[i])) & 0xFFFFu);
    out.append(unit);
  }
  return out.finish();
}

constexpr std::array functions{
    Function{"", "Boolean", to_boolean},
    Function{"", "Number", to_number},
    Function{"", "String", to_string},
    Function{"", "decodeURIComponent", decode_component},
    Function{"", "encodeURI", encode<uri_marks>},
    Function{"", "encodeURIComponent", encode<component_marks>},
    Function{"", "isFinite", number_test<is_finite, Other::converted>},
    Function{"", "isNaN", number_test<is_nan, Other::converted>},
    Function{"", "parseFloat", parse_float_function},
    Function{"", "parseInt", parse_int_function},
    Function{"Array", "isArray", is_array},
    Function{"Array", "of", array_of},
    Function{"Date", "now", date_now},
    Function{"Date", "parse", date_parse},
    Function{"JSON", "parse", json_parse},
    Function{"JSON", "stringify", json_stringify},
    Function{"Number", "isFinite", number_test<is_finite, Other::never>},
    Function{"Number", "isInteger", number_test<is_whole, Other::never>},
    Function{"Number", "isNaN", number_test<is_nan, Other::never>},
    Function{"Number", "isSafeInteger", number_test<is_safe, Other::never>},
    Function{"Number", "parseFloat", parse_float_function},
    Function{"Number", "parseInt", parse_int_function},
    Function{"Object", "entries", parts<Part::entries>},
    Function{"Object", "fromEntries", from_entries},
    Function{"Object", "keys", parts<Part::keys>},
    Function{"Object", "values", parts<Part::values>},
    Function{"String", "fromCharCode", from_char_code},
};

}  // namespace

std::span<const Function> global_functions() {
  return functions;
}

}  // namespace conversed::flows::expression
