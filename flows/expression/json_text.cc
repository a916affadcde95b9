#include "flows/expression/json_text.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "flows/expression/number.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {

using nlohmann::json;

namespace {

constexpr std::size_t json_value_bytes = 16;

// False, and a failure, if a value nests too deep. Results may nest deeper than sources: an event's
// data is some levels below its input.
bool may_nest(Machine& machine, std::size_t depth) {
  if (depth < 2 * machine.max_depth()) return true;
  machine.fail_limit("nested too deeply");
  return false;
}

class Copier {
 public:
  explicit Copier(Machine& machine) : machine_(machine) {}

  // False once the machine has failed.
  bool copy(const Value& value, json& out, std::size_t depth) {
    if (!machine_.step() || !machine_.charge(json_value_bytes)) return false;
    if (!value.is_composite()) {
      if (value.is_string() && !machine_.charge(value.as_string().size())) return false;
      out = scalar(value);
      return true;
    }
    if (!may_nest(machine_, depth)) return false;
    return value.is_array() ? array(value, out, depth) : object(value, out, depth);
  }

 private:
  static json scalar(const Value& value) {
    if (value.is_string()) return scrub(value.as_string());
    if (value.kind() == Value::Kind::boolean) return value.as_boolean();
    if (value.kind() == Value::Kind::integer) return value.as_integer();
    if (value.kind() == Value::Kind::natural) return value.as_natural();
    if (!value.is_number() || !std::isfinite(value.as_number())) return nullptr;
    const double number = value.as_number();
    const bool whole = number == std::trunc(number) && std::abs(number) <= max_exact;
    return whole ? json(static_cast<std::int64_t>(number)) : json(number);
  }

  bool array(const Value& value, json& out, std::size_t depth) {
    out = json::array();
    for (std::size_t at = 0; at < value.array_size(); ++at) {
      out.push_back(nullptr);
      if (!copy(value.item(at), out.back(), depth + 1)) return false;
    }
    return true;
  }

  bool object(const Value& value, json& out, std::size_t depth) {
    out = json::object();
    each_property(value, [&](std::string_view key, const Value& property) {
      if (property.is_undefined()) return machine_.step();
      return machine_.charge(key.size()) && copy(property, out[scrub(key)], depth + 1);
    });
    return !machine_.failed();
  }

  Machine& machine_;
};

void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte < 0x80) {
      if (byte == '"' || byte == '\\') out.push_back('\\');
      out.push_back(text[at++]);
      continue;
    }
    const CodePoint point = decode(text, at);
    constexpr std::string_view names = "btn\0fr";
    if (point.code >= 0x08 && point.code <= 0x0D && point.code != 0x0B) {
      out.push_back('\\');
      out.push_back(names[point.code - 0x08]);
    } else if (point.code < 0x20 || (point.code >= 0xD800 && point.code <= 0xDFFF)) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(point.code));
      out.append(escaped);
    } else {
      out.append(text.substr(at, point.bytes));
    }
    at += point.bytes;
  }
  out.push_back('"');
}

class Writer {
 public:
  Writer(Machine& machine, std::string_view indent)
      : machine_(machine), out_(machine), indent_(indent) {}

  bool write(const Value& value, std::size_t depth) {
    if (!machine_.step()) return false;
    if (value.is_string()) {
      if (!machine_.charge(value.as_string().size())) return false;
      std::string quoted;
      append_quoted(quoted, value.as_string());
      return out_.append(quoted);
    }
    if (!value.is_composite()) {
      const bool none =
          value.is_undefined() || (value.is_number() && !std::isfinite(value.as_number()));
      return out_.append(none ? "null" : machine_.to_text(value));
    }
    if (!may_nest(machine_, depth)) return false;
    return value.is_array() ? array(value, depth) : object(value, depth);
  }

  Value finish() { return out_.finish(); }

 private:
  bool array(const Value& value, std::size_t depth) {
    const std::size_t size = value.array_size();
    if (!out_.append("[")) return false;
    for (std::size_t at = 0; at < size; ++at) {
      if (at > 0 && !out_.append(",")) return false;
      if (!new_line(depth + 1) || !write(value.item(at), depth + 1)) return false;
    }
    return (size == 0 || new_line(depth)) && out_.append("]");
  }

  bool object(const Value& value, std::size_t depth) {
    if (!out_.append("{")) return false;
    bool first = true;
    each_property(value, [&](std::string_view key, const Value& property) {
      if (property.is_undefined()) return machine_.step();
      if (!first && !out_.append(",")) return false;
      first = false;
      return new_line(depth + 1) && write(Value::string(key), depth + 1) &&
             out_.append(indent_.empty() ? ":" : ": ") && write(property, depth + 1);
    });
    return !machine_.failed() && (first || new_line(depth)) && out_.append("}");
  }

  bool new_line(std::size_t depth) {
    if (indent_.empty()) return true;
    if (!out_.append("\n")) return false;
    for (std::size_t level = 0; level < depth; ++level) {
      if (!out_.append(indent_)) return false;
    }
    return true;
  }

  Machine& machine_;
  TextBuilder out_;
  std::string_view indent_;
};

// Builds values from the events of nlohmann's parser. The parser does not recurse.
class Reader final : public nlohmann::json_sax<json> {
 public:
  explicit Reader(Machine& machine) : machine_(machine) {}

  bool null() override { return put(Value::null()); }
  bool boolean(bool value) override { return put(Value::boolean(value)); }
  bool number_integer(std::int64_t value) override { return put(Value::integer(value)); }
  bool number_unsigned(std::uint64_t value) override { return put(Value::natural(value)); }
  bool number_float(double value, const std::string&) override { return put(Value::number(value)); }
  bool string(std::string& value) override { return put(machine_.text(value)); }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(std::string& value) override {
    frames_.back().key = machine_.text(value).as_string();
    return !machine_.failed();
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    machine_.fail("JSON.parse: not JSON at byte " + std::to_string(position));
    return false;
  }

  [[nodiscard]] Value result() const { return result_; }

 private:
  struct Frame {
    explicit Frame(Machine& machine, bool keyed)
        : object(keyed), properties(machine), items(machine) {}
    bool object;
    std::string_view key;
    ObjectBuilder properties;
    ListBuilder items;
  };

  bool open(bool object) {
    if (frames_.size() >= machine_.max_depth()) {
      machine_.fail_limit("JSON.parse: nested too deeply");
      return false;
    }
    frames_.emplace_back(machine_, object);
    return true;
  }

  bool close() {
    const Value made =
        frames_.back().object ? frames_.back().properties.finish() : frames_.back().items.finish();
    frames_.pop_back();
    return put(made);
  }

  bool put(const Value& value) {
    if (!machine_.step()) return false;
    if (frames_.empty()) {
      result_ = value;
    } else if (frames_.back().object) {
      frames_.back().properties.add(frames_.back().key, value);
    } else {
      frames_.back().items.push(value);
    }
    return !machine_.failed();
  }

  Machine& machine_;
  std::vector<Frame> frames_;
  Value result_;
};

}  // namespace

void copy_to_json(Machine& machine, const Value& value, json& out) {
  if (!machine.failed()) Copier(machine).copy(value, out, 0);
}

Value stringify(Machine& machine, const Value& value, std::string_view indent) {
  if (value.is_undefined()) return {};
  Writer writer(machine, indent);
  return writer.write(value, 0) ? writer.finish() : Value();
}

Value parse_json(Machine& machine, std::string_view text) {
  if (!machine.read(2 * text.size())) return {};
  Reader reader(machine);
  // nlohmann's parser would end the text at a NUL.
  const bool parsed = text.find('\0') == std::string_view::npos && json::sax_parse(text, &reader);
  if (!parsed && !machine.failed()) machine.fail("JSON.parse: not JSON");
  return reader.result();
}

}  // namespace conversed::flows::expression
