#include "store/model/json.h"

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/model/text_writer.h"

namespace conversed::model {
namespace {

using nlohmann::json;

constexpr std::size_t usual_bytes = 1024;                  // of a written text
constexpr std::size_t kept_bytes = std::size_t{64} << 10;  // by a thread, for its next text

// The memory of a value besides its text: the value and its allocation's overhead; for a member
// also its node in the object and its name.
constexpr std::size_t value_memory = 4 * sizeof(json);
constexpr std::size_t member_memory = 4 * sizeof(void*) + sizeof(std::string);

// Builds the value while it counts depth and memory and looks for duplicate names. Depth has to be
// checked here, before the value exists: nlohmann's own destructor and parser would overflow the
// stack on deep input.
class Builder final : public json::json_sax_t {
 public:
  Builder(std::size_t max_depth, std::size_t max_memory)
      : max_depth_(max_depth), memory_left_(max_memory) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return charge(value.size()) && add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    member_ = add_member(open_.back()->get_ref<json::object_t&>(), std::move(name));
    return member_ != nullptr;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const json::exception& error) override {
    // 406: a number beyond a double's range (nlohmann reports it as out_of_range).
    problem_ = error.id == 406 ? "a number is out of range"
                               : "no valid JSON at byte " + std::to_string(position);
    return false;
  }

  // Builds a value that is parsed already, in `place`.
  bool build(const simdjson::dom::element& value, json& place, std::size_t depth = 0) {
    using Type = simdjson::dom::element_type;
    if (depth >= max_depth_ && (depth == 0 || value.is_array() || value.is_object())) {
      return too_deep();
    }
    if (!charge(value_memory)) return false;
    switch (value.type()) {
      case Type::ARRAY:
        return build_array(value.get_array().value_unsafe(), place, depth + 1);
      case Type::OBJECT:
        return build_object(value.get_object().value_unsafe(), place, depth + 1);
      case Type::INT64: {
        const std::int64_t number = value.get_int64().value_unsafe();
        if (number < 0) {
          place = number;
        } else {
          place = static_cast<std::uint64_t>(number);
        }
        return true;
      }
      case Type::UINT64:
        place = value.get_uint64().value_unsafe();
        return true;
      case Type::DOUBLE:
        place = value.get_double().value_unsafe();
        return true;
      case Type::STRING: {
        const std::string_view text = value.get_string().value_unsafe();
        if (!charge(text.size())) return false;
        place = text;
        return true;
      }
      case Type::BOOL:
        place = value.get_bool().value_unsafe();
        return true;
      case Type::NULL_VALUE:
        return true;
    }
    return false;
  }

  [[nodiscard]] Error error() const { return {code_, problem_}; }
  [[nodiscard]] json take() { return std::move(root_); }

 private:
  // Where the next value goes: a member whose name was read, the end of an array, or the root.
  json* place(json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *member_ = std::move(value);
    return member_;
  }

  // Null: the object has the name already, or the memory is spent.
  json* add_member(json::object_t& object, std::string name) {
    if (!charge(member_memory + name.size())) return nullptr;
    const auto members = object.size();
    // The daemon's own writer sorts the names, so that most members go to the end.
    const auto added = object.emplace_hint(object.end(), std::move(name), nullptr);
    if (object.size() > members) return &added->second;
    problem_ = "the name \"" + added->first + "\" stands twice in one object";
    return nullptr;
  }

  bool build_array(const simdjson::dom::array& values, json& place, std::size_t depth) {
    place = json::array();
    auto& array = place.get_ref<json::array_t&>();
    for (const auto value : values) {
      if (!build(value, array.emplace_back(), depth)) return false;
    }
    return true;
  }

  bool build_object(const simdjson::dom::object& members, json& place, std::size_t depth) {
    place = json::object();
    auto& object = place.get_ref<json::object_t&>();
    for (const auto member : members) {
      json* const added = add_member(object, std::string(member.key));
      if (added == nullptr || !build(member.value, *added, depth)) return false;
    }
    return true;
  }

  template <typename T>
  bool add(T&& value) {
    if (open_.empty() && max_depth_ == 0) return too_deep();
    if (!charge(value_memory)) return false;
    place(json(std::forward<T>(value)));
    return true;
  }

  bool open(json container) {
    if (open_.size() >= max_depth_) return too_deep();
    if (!charge(value_memory)) return false;
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  bool too_deep() {
    problem_ = "nested deeper than " + std::to_string(max_depth_);
    return false;
  }

  bool charge(std::size_t bytes) {
    if (bytes <= memory_left_) {
      memory_left_ -= bytes;
      return true;
    }
    code_ = Errc::too_large;
    problem_ = "the JSON has too many values: parsed, it would take too much memory";
    return false;
  }

  const std::size_t max_depth_;
  std::size_t memory_left_;
  json root_;
  std::vector<json*>
      open_;  // the containers that are being filled, outermost first; each is its parent's last
  json* member_ = nullptr;
  Errc code_ = Errc::invalid_argument;
  std::string problem_ = "no valid JSON";
};

// simdjson parses four times as fast as nlohmann's parser. It refuses some texts that are JSON,
// such as integers past 64 bits, and does not tell the place of an error. Returns none if it
// refuses the text. A thread keeps the parser's buffers, at most 256 KB.
std::optional<Result<json>> parse_short(std::string_view text, Builder& builder) {
  constexpr std::size_t most_bytes = std::size_t{16} << 10;
  if (text.empty() || text.size() > most_bytes) return std::nullopt;
  thread_local simdjson::dom::parser parser;
  const auto parsed = parser.parse(text.data(), text.size());
  if (parsed.error() == simdjson::MEMALLOC) {
    parser = simdjson::dom::parser();  // simdjson 3.0.1 may crash in the next parse otherwise
  }
  if (parsed.error() != simdjson::SUCCESS) return std::nullopt;
  json value;
  if (!builder.build(parsed.value_unsafe(), value)) return fail(builder.error());
  return Result<json>(std::move(value));
}

// nlohmann's writer, kept by its thread: a new one allocates its indentation, an adapter and a text
// that grows. It writes floats, binary and discarded values, and texts with escapes or bytes that
// are not UTF-8.
void write_with_care(TextWriter& out, const json& value) {
  struct Writer {
    std::string text;
    nlohmann::detail::serializer<json> serializer{
        std::make_shared<nlohmann::detail::output_string_adapter<char>>(text), ' ',
        json::error_handler_t::replace};
  };
  thread_local Writer writer;
  writer.text.clear();
  writer.serializer.dump(value, false, false, 0);
  out.add(std::string_view(writer.text));
  if (writer.text.capacity() > kept_bytes) std::string().swap(writer.text);
}

// Whether the text is a JSON string as it is, between quotes: UTF-8 without control characters,
// quotes and backslashes.
bool is_plain(std::string_view text) {
  std::uint64_t all = 0;
  const bool needs_escape = any_byte(text, [&](std::uint64_t eight) {
    all |= eight;
    return bytes_below(eight, ' ') | bytes_below(eight ^ (each_byte * '"'), 1) |
           bytes_below(eight ^ (each_byte * '\\'), 1);
  });
  if (needs_escape) return false;
  return (all & high_bits) == 0 || simdjson::validate_utf8(text.data(), text.size());
}

void write_plain(TextWriter& out, std::string_view text) {
  out.add('"');
  out.add(text);
  out.add('"');
}

void write_text(TextWriter& out, std::string_view text) {
  is_plain(text) ? write_plain(out, text) : write_with_care(out, json(text));
}

// Writes the same bytes as nlohmann's writer, which looks at each character of a text, and calls
// its adapter for each piece. Kept by: JsonText.AnyValueIsWrittenAsNlohmannWritesIt.
void write(TextWriter& out, const json& value) {
  char before = '{';
  switch (value.type()) {
    case json::value_t::object:
      for (const auto& [name, member] : value.get_ref<const json::object_t&>()) {
        out.add(std::exchange(before, ','));
        write_text(out, name);
        out.add(':');
        write(out, member);
      }
      return out.add(before == '{' ? "{}" : "}");
    case json::value_t::array:
      before = '[';
      for (const auto& element : value.get_ref<const json::array_t&>()) {
        out.add(std::exchange(before, ','));
        write(out, element);
      }
      return out.add(before == '[' ? "[]" : "]");
    case json::value_t::string: {
      const auto& text = value.get_ref<const std::string&>();
      return is_plain(text) ? write_plain(out, text) : write_with_care(out, value);
    }
    case json::value_t::number_integer:
      return out.add_number(value.get_ref<const json::number_integer_t&>());
    case json::value_t::number_unsigned:
      return out.add_number(value.get_ref<const json::number_unsigned_t&>());
    case json::value_t::boolean:
      return out.add(value.get_ref<const bool&>() ? "true" : "false");
    case json::value_t::null:
      return out.add("null");
    default:
      write_with_care(out, value);
  }
}

// Empty. One for each thread, so that its room is kept.
TextWriter& writer_of_thread() {
  thread_local TextWriter writer(usual_bytes);
  writer.clear(kept_bytes);
  return writer;
}

}  // namespace

Result<json> parse_json(std::string_view text, std::size_t max_depth, std::size_t max_memory) {
  // nlohmann's parser takes NUL for the end of the text.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return fail(Errc::invalid_argument, "no valid JSON at byte " + std::to_string(nul + 1));
  }
  Builder builder(max_depth, max_memory);
  if (auto parsed = parse_short(text, builder)) return *std::move(parsed);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) return fail(builder.error());
  return builder.take();
}

void append_json(std::string& out, const json& value) {
  auto& writer = writer_of_thread();
  write(writer, value);
  out += writer.view();
}

void append_quoted(std::string& out, std::string_view text) {
  auto& writer = writer_of_thread();
  write_text(writer, text);
  out += writer.view();
}

std::string json_text(const json& value) {
  std::string text;
  append_json(text, value);
  return text;
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::size_t json_size(const json& value, std::size_t enough) {
  constexpr std::size_t scalar_size = 8;
  if (value.is_string()) return value.get_ref<const std::string&>().size() + 2;
  if (!value.is_structured()) return scalar_size;
  std::size_t size = 2;
  if (value.is_array()) {
    for (const auto& item : value) {
      size += json_size(item, enough) + 1;
      if (size > enough) break;
    }
    return size;
  }
  for (const auto& [name, member] : value.get_ref<const json::object_t&>()) {
    size += name.size() + 4 + json_size(member, enough);
    if (size > enough) break;
  }
  return size;
}

}  // namespace conversed::model
