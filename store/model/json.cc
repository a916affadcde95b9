#include "store/model/json.h"

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "store/model/hex.h"
#include "store/model/utf8.h"

namespace conversed::model {
namespace {

using nlohmann::json;

// The memory of a value besides its text: the value and its allocation's overhead; for a member
// also its node in the object and its name.
constexpr std::size_t value_memory = 4 * sizeof(json);
constexpr std::size_t member_memory = 4 * sizeof(void*) + sizeof(std::string);

// Reads a value into its place. nlohmann's own parser allocates for each token, and would overflow
// the stack on deep input. A function that returns false has set the problem, or has left `at_` at
// the byte that is wrong.
class Reader {
 public:
  Reader(std::string_view text, std::size_t max_depth, std::size_t max_memory)
      : text_(text), max_depth_(max_depth), memory_left_(max_memory) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
  }

  Result<json> read() {
    json out;
    if (max_depth_ == 0) {
      (void)too_deep();
    } else if (value(out, 0) && at_ == text_.size()) {
      return out;
    }
    if (problem_.empty()) problem_ = "no valid JSON at byte " + std::to_string(at_ + 1);
    return fail(code_, std::move(problem_));
  }

 private:
  // The value, inside `depth` containers, with the space around it.
  bool value(json& out, std::size_t depth) {
    skip_space();
    if (!charge(value_memory) || !value_of_kind(out, depth)) return false;
    skip_space();
    return true;
  }

  bool value_of_kind(json& out, std::size_t depth) {
    switch (next()) {
      case '{':
        return object(out, depth);
      case '[':
        return array(out, depth);
      case '"':
        out = json::string_t();
        return string(out.get_ref<json::string_t&>()) &&
               charge(out.get_ref<json::string_t&>().size());
      case 'n':
        return word("null");
      case 't':
        out = true;
        return word("true");
      case 'f':
        out = false;
        return word("false");
      default:
        return number(out);
    }
  }

  bool object(json& out, std::size_t depth) {
    if (depth == max_depth_) return too_deep();
    out = json::object();
    auto& members = out.get_ref<json::object_t&>();
    ++at_;
    skip_space();
    if (take('}')) return true;
    do {
      skip_space();
      std::string name;
      if (!string(name) || !charge(member_memory + name.size())) return false;
      const std::size_t count = members.size();
      // Stored objects have their names in order.
      const auto place = members.emplace_hint(members.end(), std::move(name), nullptr);
      if (members.size() == count) {
        problem_ = "the name \"" + place->first + "\" stands twice in one object";
        return false;
      }
      skip_space();
      if (!take(':') || !value(place->second, depth + 1)) return false;
    } while (take(','));
    return take('}');
  }

  bool array(json& out, std::size_t depth) {
    if (depth == max_depth_) return too_deep();
    out = json::array();
    auto& items = out.get_ref<json::array_t&>();
    ++at_;
    skip_space();
    if (take(']')) return true;
    do {
      if (!value(items.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool string(std::string& out) {
    if (!take('"')) return false;
    while (!take('"')) {
      const std::size_t from = at_;
      while (next() >= ' ' && next() < 0x7F && next() != '"' && next() != '\\') ++at_;
      out.append(text_, from, at_ - from);
      if (take('\\')) {
        if (!escape(out)) return false;
      } else if (next() != '"') {
        const std::size_t length = sequence_length(text_, at_);
        if (length == 0 || (next() >= 0 && next() < ' ')) return false;
        out.append(text_, at_, length);
        at_ += length;
      }
    }
    return true;
  }

  bool escape(std::string& out) {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (take('u')) return unicode(out);
    const auto which = at_ < text_.size() ? names.find(next()) : std::string_view::npos;
    if (which == std::string_view::npos) return false;
    out += meanings[which];
    ++at_;
    return true;
  }

  bool unicode(std::string& out) {
    const auto is_half = [](char32_t code, char32_t first) {
      return code >= first && code < first + 0x400;
    };
    constexpr char32_t high = 0xD800;
    constexpr char32_t low = 0xDC00;
    char32_t code = 0;
    if (!unit(code) || is_half(code, low)) return false;
    if (is_half(code, high)) {
      char32_t second = 0;
      if (!take('\\') || !take('u') || !unit(second) || !is_half(second, low)) return false;
      code = 0x10000 + ((code - high) << 10) + (second - low);
    }
    append_code(out, code);
    return true;
  }

  bool unit(char32_t& code) {
    for (const std::size_t end = at_ + 4; at_ < end; ++at_) {
      const int digit = hex_value(next());
      if (digit < 0) return false;
      code = code * 16 + static_cast<char32_t>(digit);
    }
    return true;
  }

  bool number(json& out) {
    const std::size_t from = at_;
    const bool negative = take('-');
    if (!take('0') && !digits()) return false;
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (!digits()) return false;
    }
    if (take('e') || take('E')) {
      whole = false;
      if (!take('+')) (void)take('-');
      if (!digits()) return false;
    }
    const std::string_view written = text_.substr(from, at_ - from);
    if (whole && (negative ? is<std::int64_t>(written, out) : is<std::uint64_t>(written, out))) {
      return true;
    }
    if (is<double>(written, out)) return true;
    // Too large a number, or one so small that it is 0.
    out = json::parse(written, nullptr, false);
    if (out.is_discarded()) problem_ = "a number is out of range";
    return !out.is_discarded();
  }

  template <typename T>
  static bool is(std::string_view written, json& out) {
    T number{};
    const auto read = std::from_chars(written.data(), written.data() + written.size(), number);
    if (read.ec != std::errc{}) return false;
    out = number;
    return true;
  }

  bool digits() {
    const std::size_t from = at_;
    while (next() >= '0' && next() <= '9') ++at_;
    return at_ > from;
  }

  bool word(std::string_view expected) {
    for (const char c : expected) {
      if (!take(c)) return false;
    }
    return true;
  }

  void skip_space() {
    while (next() == ' ' || next() == '\n' || next() == '\r' || next() == '\t') ++at_;
  }

  // NUL, which no JSON has outside of an escape, where the text ends.
  [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char expected) {
    const bool found = at_ < text_.size() && text_[at_] == expected;
    at_ += found ? 1 : 0;
    return found;
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

  const std::string_view text_;
  std::size_t at_ = 0;
  const std::size_t max_depth_;
  std::size_t memory_left_;
  Errc code_ = Errc::invalid_argument;
  std::string problem_;
};

// nlohmann's writer, kept by its thread: a new one allocates its indentation, an adapter and a text
// that grows.
struct Writer {
  std::string text;
  nlohmann::detail::serializer<json> serializer{
      std::make_shared<nlohmann::detail::output_string_adapter<char>>(text), ' ',
      json::error_handler_t::replace};
};

}  // namespace

Result<json> parse_json(std::string_view text, std::size_t max_depth, std::size_t max_memory) {
  return Reader(text, max_depth, max_memory).read();
}

void append_json(std::string& out, const json& value) {
  constexpr std::size_t kept_bytes = std::size_t{64} << 10;
  thread_local Writer writer;
  writer.text.clear();
  writer.serializer.dump(value, false, false, 0);
  out += writer.text;
  if (writer.text.capacity() > kept_bytes) std::string().swap(writer.text);
}

std::string json_text(const json& value) {
  std::string text;
  append_json(text, value);
  return text;
}

}  // namespace conversed::model
