// YAML text to a Located value, by yaml-cpp's event interface: no tree of its own is built, so
// depth, size and aliases are bounded while it reads. The only file that knows yaml-cpp.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <istream>
#include <optional>
#include <set>
#include <streambuf>
#include <unordered_map>
#include <utility>

#include "flows/source.h"
#include "store/text/utf8.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr std::string_view core = "tag:yaml.org,2002:";

// Ends the reading from within a handler; caught in read_yaml.
struct Refusal {
  Place place;
  std::string message;
};

Place place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {static_cast<std::size_t>(mark.line) + 1, static_cast<std::size_t>(mark.column) + 1};
}

bool all_of(std::string_view text, bool (*test)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), test);
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_octal(char c) {
  return c >= '0' && c <= '7';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  const auto take_digits = [&] {
    const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
    const auto count = static_cast<std::size_t>(end - text.begin());
    text.remove_prefix(count);
    return count;
  };
  const auto take_sign = [&] {
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  };
  take_sign();
  std::size_t digits = take_digits();
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    digits += take_digits();
  }
  if (digits == 0) return false;
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    text.remove_prefix(1);
    take_sign();
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

template <typename Integer>
std::optional<json> integer(std::string_view digits, int base) {
  Integer value{};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return json(value);
}

std::optional<json> whole_number(std::string_view text) {
  std::string_view digits = text;
  if (digits.front() == '+') digits.remove_prefix(1);
  const bool negative = text.front() == '-';
  if (!all_of(negative ? digits.substr(1) : digits, is_digit)) return std::nullopt;
  return negative ? integer<std::int64_t>(digits, 10) : integer<std::uint64_t>(digits, 10);
}

// What a plain scalar is by the core schema (YAML 1.2.2, 10.3.2), a text if nothing else. A number
// that JSON can't hold is refused: as a text it would mean something else than was written.
json resolve(const std::string& text, Place place) {
  if (text.empty()) return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (auto number = whole_number(text)) return *number;
  const std::string_view rest =
      std::string_view(text).substr(std::min<std::size_t>(2, text.size()));
  std::optional<json> based;
  const bool octal = text.starts_with("0o") && all_of(rest, is_octal);
  const bool hex = text.starts_with("0x") && all_of(rest, is_hex);
  if (octal || hex) {
    based = integer<std::uint64_t>(rest, octal ? 8 : 16);
    if (!based) throw Refusal{place, "the number is out of range"};
    return *based;
  }
  if (is_float(text)) {
    const char* first = text.data() + (text.front() == '+' ? 1 : 0);
    double value = 0;
    const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
      // Too small becomes 0, as in JSON; too large is nothing that JSON could hold.
      const double read = std::strtod(text.c_str(), nullptr);
      if (!std::isfinite(read)) throw Refusal{place, "the number is out of range"};
      return read;
    }
    return value;
  }
  std::string lower = text;
  if (lower.front() == '+' || lower.front() == '-') lower.erase(0, 1);
  static const std::set<std::string_view> no_numbers{".inf", ".Inf", ".INF",
                                                     ".nan", ".NaN", ".NAN"};
  if (no_numbers.contains(lower)) {
    throw Refusal{place, "JSON has no such number; put it in quotes if a text is meant"};
  }
  return text;
}

// Reads where the text is: a stringstream would copy it.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* first = const_cast<char*>(text.data());  // a buffer that is only read is not written to
    setg(first, first, first + text.size());
  }
};

class Handler final : public YAML::EventHandler {
 public:
  Handler(std::size_t text_bytes, const LoadLimits& limits)
      : limits_(limits), budget_(text_bytes, limits) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    pay(budget_.take_value(), place_of(mark));
    put(Located(json(nullptr), place_of(mark)), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    // An anchor is known once its value is complete: `&a [*a]` would never end.
    if (known == anchors_.end()) throw Refusal{place_of(mark), "an alias within its own value"};
    pay(budget_.take(known->second.memory), place_of(mark));
    if (open_.size() + known->second.depth > limits_.max_depth) too_deep(place_of(mark));
    put(known->second.value, YAML::NullAnchor, known->second.depth);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const Place place = place_of(mark);
    pay(budget_.take_value(value.size()), place);
    // The file is UTF-8; yaml-cpp makes a single byte of each of two escapes, which is none.
    if (!text::is_utf8(value)) {
      throw Refusal{place, "the escapes \\N and \\_ are not read; write \\u0085 and \\u00a0"};
    }
    if (expects_key() || tag == "!" || tag == std::string(core) + "str") {
      return put(Located(json(value), place), anchor);
    }
    json resolved = tag == "?" ? resolve(value, place) : tagged(tag, value, place);
    put(Located(std::move(resolved), place), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Located::array(place_of(mark)), tag, "seq", anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Located::object(place_of(mark)), tag, "map", anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Located take() { return std::move(root_); }

 private:
  struct Open {
    Located value;
    YAML::anchor_t anchor;
    std::size_t left_before;  // of the budget, when it was opened
    std::size_t depth_inside = 0;
    std::optional<std::pair<std::string, Place>> name;  // read, its value is next
    std::set<std::string, std::less<>> names;
  };
  struct Anchored {
    Located value;
    std::size_t memory;
    std::size_t depth;
  };

  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().name;
  }

  static json tagged(const std::string& tag, const std::string& value, Place place) {
    json resolved = resolve(value, place);
    const bool agrees = (tag == std::string(core) + "int" && resolved.is_number_integer()) ||
                        (tag == std::string(core) + "float" && resolved.is_number()) ||
                        (tag == std::string(core) + "bool" && resolved.is_boolean()) ||
                        (tag == std::string(core) + "null" && resolved.is_null());
    if (!agrees) throw Refusal{place, "the tag does not fit the value, or is unknown"};
    return resolved;
  }

  [[noreturn]] void too_deep(Place place) const {
    throw Refusal{place, "nested deeper than " + std::to_string(limits_.max_depth)};
  }

  static void pay(bool paid, Place place) {
    if (!paid) throw Refusal{place, ReadBudget::refusal};
  }

  void open(Located container, const std::string& tag, std::string_view kind,
            YAML::anchor_t anchor) {
    const Place place = container.place();
    if (expects_key()) throw Refusal{place, "a name must be a text"};
    if (tag != "?" && tag != "!" && tag != std::string(core) + std::string(kind)) {
      throw Refusal{place, "the tag does not fit the value, or is unknown"};
    }
    if (open_.size() >= limits_.max_depth) too_deep(place);
    const std::size_t before = budget_.left();
    pay(budget_.take_value(), place);
    open_.push_back({std::move(container), anchor, before, 0, std::nullopt, {}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    const std::size_t depth = done.depth_inside + 1;
    if (done.anchor != YAML::NullAnchor) {
      const std::size_t memory = done.left_before - budget_.left();
      // The copy that is kept for aliases counts as well.
      pay(budget_.take(memory), done.value.place());
      anchors_[done.anchor] = {done.value, memory, depth};
    }
    put(std::move(done.value), YAML::NullAnchor, depth);
  }

  // `depth`: of the value itself, 0 for a scalar.
  void put(Located value, YAML::anchor_t anchor, std::size_t depth = 0) {
    if (anchor != YAML::NullAnchor) {
      const std::size_t memory = 2 * sizeof(Located) + (value.is_text() ? value.text().size() : 0);
      pay(budget_.take(memory), value.place());
      anchors_[anchor] = {value, memory, 0};
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    parent.depth_inside = std::max(parent.depth_inside, depth);
    if (parent.value.is_array()) {
      parent.value.items().push_back(std::move(value));
    } else if (!parent.name) {
      take_name(parent, value);
    } else {
      auto& [name, place] = *parent.name;
      parent.value.members().push_back({std::move(name), place, std::move(value)});
      parent.name.reset();
    }
  }

  static void take_name(Open& parent, const Located& value) {
    if (!value.is_text()) throw Refusal{value.place(), "a name must be a text"};
    if (!parent.names.insert(value.text()).second) {
      throw Refusal{value.place(), "the name \"" + value.text() + "\" stands twice in one mapping"};
    }
    parent.name.emplace(value.text(), value.place());
  }

  const LoadLimits& limits_;
  std::vector<Open> open_;  // outermost first
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  ReadBudget budget_;
  Located root_;
};

// yaml-cpp queues the tokens of a whole flow collection, some 128 bytes each, before it tells of
// the first: they get half of the memory that there is.
bool may_queue(std::string_view text, const LoadLimits& limits) {
  constexpr std::size_t token_memory = 128;
  const auto tokens = std::count_if(text.begin(), text.end(), [](char c) {
    return std::string_view("[]{},").find(c) != std::string_view::npos;
  });
  return static_cast<std::size_t>(tokens) <= limits.max_memory / 2 / token_memory;
}

tl::unexpected<Problems> refuse(std::string_view file, Place place, std::string message) {
  return tl::unexpected<Problems>({{std::string(file), place, "", std::move(message)}});
}

}  // namespace

Checked<Located> read_yaml(std::string_view text, std::string_view file_name,
                           const LoadLimits& limits) {
  if (!may_queue(text, limits)) return refuse(file_name, {}, ReadBudget::refusal);
  ViewBuffer buffer(text);
  std::istream stream(&buffer);
  Handler handler(text.size(), limits);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(handler)) return refuse(file_name, {}, "the file is empty");
    Located document = handler.take();
    Handler further(text.size(), limits);
    if (parser.HandleNextDocument(further)) {
      return refuse(file_name, {}, "the file holds more than one document");
    }
    return document;
  } catch (const Refusal& refusal) {
    return refuse(file_name, refusal.place, refusal.message);
  } catch (const YAML::Exception& error) {
    // What its scanner says of `{text: Which one?}`, where YAML would end the text behind the mark.
    const bool unquoted = error.msg == YAML::ErrorMsg::UNKNOWN_TOKEN;
    return refuse(file_name, place_of(error.mark),
                  "no valid YAML: " + error.msg +
                      (unquoted ? "; within {} and [] a text with a '?' stands in quotes" : ""));
  }
}

}  // namespace conversed::flows
