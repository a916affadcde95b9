// By yaml-cpp's event interface: no tree of its own is built, so depth, size and aliases are
// bounded while it reads. The only file that knows yaml-cpp.
#include "store/yaml/reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "store/text/ascii.h"
#include "store/text/terminal.h"
#include "store/text/utf8.h"
#include "store/yaml/budget.h"
#include "store/yaml/open_marks.h"

namespace conversed::yaml {
namespace {

using nlohmann::json;
using text::is_digit;

constexpr std::string_view core = "tag:yaml.org,2002:";
constexpr std::size_t max_faults = 1000;

Place place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {static_cast<std::size_t>(mark.line) + 1, static_cast<std::size_t>(mark.column) + 1};
}

Place place_behind(std::string_view text) {
  Place place{1, 1};
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte == '\n') {
      ++place.line;
      place.column = 1;
    } else if ((byte & 0xC0) != 0x80) {
      ++place.column;
    }
  }
  return place;
}

bool all_of(std::string_view text, bool (*test)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), test);
}
bool is_octal(char c) {
  return c >= '0' && c <= '7';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?: the form that strtod reads,
// without words such as `inf` and hexadecimal digits. Nothing for any other text.
std::optional<double> decimal(const std::string& text, Place place) {
  if (text.find_first_not_of("0123456789+-.eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);  // too small becomes 0, as in JSON
  if (*end != '\0') return std::nullopt;
  if (!std::isfinite(value)) throw Fault{place, "the number is out of range"};
  return value;
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

// The value of a plain scalar by the core schema (YAML 1.2.2, 10.3.2), a text if nothing else. A
// number that JSON can't hold is refused: as a text it would mean something else than was written.
json resolve(const std::string& text, Place place) {
  if (text.empty()) return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (auto number = whole_number(text)) return *number;
  const std::string_view rest =
      std::string_view(text).substr(std::min<std::size_t>(2, text.size()));
  const bool octal = text.starts_with("0o") && all_of(rest, is_octal);
  const bool hex = text.starts_with("0x") && all_of(rest, is_hex);
  if (octal || hex) {
    const auto number = integer<std::uint64_t>(rest, octal ? 8 : 16);
    if (!number) throw Fault{place, "the number is out of range"};
    return *number;
  }
  if (const auto number = decimal(text, place)) return *number;
  std::string lower = text;
  if (lower.front() == '+' || lower.front() == '-') lower.erase(0, 1);
  static const std::set<std::string_view> no_numbers{".inf", ".Inf", ".INF",
                                                     ".nan", ".NaN", ".NAN"};
  if (no_numbers.contains(lower)) {
    throw Fault{place, "JSON has no such number; put it in quotes if a text is meant"};
  }
  return text;
}

// Builds the value from yaml-cpp's events. Ends the reading by throwing a Fault. One thread at a
// time.
class Handler final : public YAML::EventHandler {
 public:
  Handler(std::size_t text_bytes, Schema schema, const Limits& limits)
      : schema_(schema), limits_(limits), budget_(text_bytes, limits.max_memory) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) throw Fault{place_of(mark), "a second document begins here; expected one only"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    pay(budget_.take_value(), place_of(mark));
    put(Located(json(nullptr), place_of(mark)), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (schema_ == Schema::texts) {
      note({place_of(mark), "aliases (*name) are not supported here; write the value out"});
      return OnNull(mark, YAML::NullAnchor);
    }
    const auto known = anchors_.find(anchor);
    // An anchor is known once its value is complete: `&a [*a]` would never end.
    if (known == anchors_.end()) throw Fault{place_of(mark), "an alias within its own value"};
    pay(budget_.take(known->second.memory), place_of(mark));
    if (open_.size() + known->second.depth > limits_.max_depth) too_deep(place_of(mark));
    put(known->second.value, YAML::NullAnchor, known->second.depth);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const Place place = place_of(mark);
    pay(budget_.take_value(value.size()), place);
    // The file is UTF-8. yaml-cpp turns each of two escapes into one byte, which is no UTF-8.
    if (!text::is_utf8(value)) {
      throw Fault{place, R"(the escapes \N and \_ are not read; write \u0085 and \u00a0)"};
    }
    put(Located(scalar(tag, value, place), place), anchor);
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

  void note(Fault fault) {
    if (faults_.size() + 1 >= max_faults) throw Fault{fault.place, "more faults follow"};
    faults_.push_back(std::move(fault));
  }

  // The part that was read, and its faults.
  [[nodiscard]] Document take() {
    while (!open_.empty()) {
      Located inner = std::move(open_.back().value);
      open_.pop_back();
      add(std::move(inner));
    }
    return {std::move(root_), std::move(faults_)};
  }

 private:
  struct Open {
    Located value;
    YAML::anchor_t anchor;
    std::size_t left_before;  // of the budget, when it was opened
    std::size_t depth_inside = 0;
    std::optional<std::pair<std::string, Place>> name{};  // read, its value is next
    std::map<std::string, std::size_t, std::less<>> lines_of_names{};
  };
  struct Anchored {
    Located value;
    std::size_t memory;
    std::size_t depth;
  };

  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().name;
  }

  // `tag` is "?" for an untagged plain value, "!" for an untagged quoted one.
  json scalar(const std::string& tag, const std::string& value, Place place) {
    if (schema_ == Schema::texts) {
      refuse_tag(tag, place);
      return value;
    }
    if (expects_key() || tag == "!" || tag == std::string(core) + "str") return value;
    json resolved = resolve(value, place);
    const bool agrees = tag == "?" ||
                        (tag == std::string(core) + "int" && resolved.is_number_integer()) ||
                        (tag == std::string(core) + "float" && resolved.is_number()) ||
                        (tag == std::string(core) + "bool" && resolved.is_boolean()) ||
                        (tag == std::string(core) + "null" && resolved.is_null());
    if (!agrees) throw Fault{place, unknown_tag(tag)};
    return resolved;
  }

  // `if: !context.a`, which YAML reads as a tag.
  static std::string unknown_tag(const std::string& tag) {
    return std::string("the tag does not fit the value, or is unknown") +
           (tag.starts_with('!') ? "; a text that begins with ! stands in quotes" : "");
  }

  void refuse_tag(const std::string& tag, Place place) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    note({place, "tags (" + text::in_quotes(tag) + ") are not supported here"});
  }

  [[noreturn]] void too_deep(Place place) const {
    throw Fault{place, "nested deeper than " + std::to_string(limits_.max_depth) + " levels"};
  }

  static void pay(bool paid, Place place) {
    if (!paid) throw Fault{place, ReadBudget::refusal};
  }

  void open(Located container, const std::string& tag, std::string_view kind,
            YAML::anchor_t anchor) {
    const Place place = container.place();
    if (expects_key()) {
      throw Fault{place, std::string("a key must be a text") +
                             (kind == "map" ? "; a text that begins with { stands in quotes" : "")};
    }
    refuse_anchor(anchor, place);
    if (schema_ == Schema::texts) {
      refuse_tag(tag, place);
    } else if (tag != "?" && tag != "!" && tag != std::string(core) + std::string(kind)) {
      throw Fault{place, unknown_tag(tag)};
    }
    if (open_.size() >= limits_.max_depth) too_deep(place);
    const std::size_t before = budget_.left();
    pay(budget_.take_value(), place);
    open_.push_back({std::move(container), anchor, before});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    const std::size_t depth = done.depth_inside + 1;
    keep(done.anchor, done.value, done.left_before - budget_.left(), depth);
    put(std::move(done.value), YAML::NullAnchor, depth);
  }

  void refuse_anchor(YAML::anchor_t anchor, Place place) {
    if (schema_ == Schema::core || anchor == YAML::NullAnchor) return;
    note({place, "anchors (&name) are not supported here; write the value out"});
  }

  // For its aliases. The copy counts as well.
  void keep(YAML::anchor_t anchor, const Located& value, std::size_t memory, std::size_t depth) {
    if (schema_ == Schema::texts || anchor == YAML::NullAnchor) return;
    pay(budget_.take(memory), value.place());
    anchors_[anchor] = {value, memory, depth};
  }

  // `depth`: of the value itself, 0 for a scalar.
  void put(Located value, YAML::anchor_t anchor, std::size_t depth = 0) {
    refuse_anchor(anchor, value.place());
    keep(anchor, value, 2 * sizeof(Located) + (value.is_text() ? value.text().size() : 0), 0);
    if (!open_.empty()) {
      open_.back().depth_inside = std::max(open_.back().depth_inside, depth);
    }
    if (expects_key()) return take_name(open_.back(), value);
    add(std::move(value));
  }

  // To the innermost container that is open.
  void add(Located value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Open& parent = open_.back(); parent.value.is_array()) {
      parent.value.items().push_back(std::move(value));
    } else if (parent.name) {
      auto& [name, place] = *parent.name;
      parent.value.members().push_back({std::move(name), place, std::move(value)});
      parent.name.reset();
    }
  }

  void take_name(Open& parent, const Located& value) {
    if (!value.is_text()) throw Fault{value.place(), "a key must be a text"};
    const auto [first, is_new] =
        parent.lines_of_names.try_emplace(value.text(), value.place().line);
    if (!is_new) {
      note({value.place(), "the key " + text::in_quotes(value.text()) +
                               " is given twice, first in line " + std::to_string(first->second)});
    }
    parent.name.emplace(value.text(), value.place());
  }

  const Schema schema_;
  const Limits& limits_;
  std::vector<Open> open_;  // outermost first
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  ReadBudget budget_;
  std::optional<Located> root_;
  std::vector<Fault> faults_;
};

// yaml-cpp queues the tokens of a whole flow collection, some 128 bytes each, before it tells of
// the first: they get half of the memory that there is.
std::optional<Fault> too_many_tokens(std::string_view text, const Limits& limits) {
  constexpr std::size_t token_memory = 128;
  std::size_t left = limits.max_memory / 2 / token_memory;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (std::string_view("[]{},").find(text[at]) == std::string_view::npos) continue;
    if (left-- == 0) return Fault{place_behind(text.substr(0, at)), ReadBudget::refusal};
  }
  return std::nullopt;
}

std::string line_of(std::string_view text, std::size_t at) {
  return std::to_string(place_behind(text.substr(0, at)).line);
}

// The bracket, quote or comment because of which the text can't go on at the byte. Empty: none.
std::string open_remedy(const std::string& error, std::string_view text, std::size_t at) {
  namespace messages = YAML::ErrorMsg;
  const auto open = open_marks(text, at);
  if (open.quote) return "; the quote of line " + line_of(text, *open.quote) + " is not closed";
  if (error == messages::END_OF_MAP || error == messages::END_OF_SEQ) {
    if (!open.last_quote || open.last_quote_end != at) return {};
    const auto line = line_of(text, *open.last_quote);
    return line == line_of(text, at) ? "" : "; is the quote of line " + line + " not closed?";
  }
  if (open.brackets.empty()) return {};
  if (open.comment) {
    return "; '#' begins a comment in line " + line_of(text, *open.comment) +
           ", so no bracket behind it counts; a text with '#' stands in quotes";
  }
  const std::size_t bracket = open.brackets.back();
  return std::string("; the '") + text[bracket] + "' of line " + line_of(text, bracket) +
         " is not closed; write '" + (text[bracket] == '{' ? '}' : ']') + "'";
}

// The mistake that an error at a text's first character comes from. Empty: unknown.
std::string_view quotes_remedy(const std::string& error, char first) {
  namespace messages = YAML::ErrorMsg;
  if (error == messages::UNKNOWN_ANCHOR || error == messages::CHAR_IN_ALIAS ||
      error == messages::ALIAS_NOT_FOUND) {
    return "; a text that begins with * stands in quotes";
  }
  if (error == messages::CHAR_IN_ANCHOR || error == messages::ANCHOR_NOT_FOUND) {
    return "; a text that begins with & stands in quotes";
  }
  if (error == messages::CHAR_IN_BLOCK) return "; a text that begins with > or | stands in quotes";
  if (error.starts_with(messages::INVALID_ESCAPE)) {
    return "; put a text with \\ into single quotes: '...'";
  }
  if (error != messages::UNKNOWN_TOKEN) return {};
  if (std::string_view("@`%").find(first) != std::string_view::npos) {
    return "; a text that begins with @, % or ` stands in quotes";
  }
  // `{text: Which one?}`, where YAML ends the text behind the mark.
  return "; within {} and [] a text with a '?' stands in quotes";
}

// The mistake that an error at this byte of the text probably comes from. Empty: unknown.
std::string remedy_of(const std::string& error, std::string_view text, std::size_t at) {
  namespace messages = YAML::ErrorMsg;
  const char first = at < text.size() ? text[at] : '\0';
  if (const auto remedy = quotes_remedy(error, first); !remedy.empty()) return std::string(remedy);
  const std::size_t begin = text.rfind('\n', at == 0 ? 0 : at - 1) + 1;  // of the line
  const std::string_view before = text.substr(begin, std::max(at, begin) - begin);
  const std::string_view margin = before.substr(0, before.find_first_not_of(" \t"));
  const bool has_tab =
      margin.find('\t') != std::string_view::npos || error == messages::TAB_IN_INDENTATION;
  std::string indent = has_tab ? "; indent by blanks, not by tabs"
                               : "; is this line indented as the one above it, and is there "
                                 "a blank behind each ':' and '-'?";
  if (has_tab && margin.size() == before.size()) return indent;
  // A key that is indented too far continues the text of the line above.
  const bool is_first = before.find_first_of(":'\"[{") == std::string_view::npos;
  if (first == ':' &&
      (error == messages::MAP_VALUE || (error == messages::END_OF_MAP_FLOW && !is_first))) {
    return is_first ? indent : "; a text with ': ' in it stands in quotes";
  }
  if (auto remedy = open_remedy(error, text, at); !remedy.empty()) return remedy;
  if (error != messages::END_OF_MAP && error != messages::END_OF_SEQ) return {};
  if (margin.size() == before.size()) return indent;
  // `say: "so "called""`, `say: 'can't'`, `say: {name} is here`.
  return "; put the whole text into quotes; within '...' write '' for a quote";
}

Fault fault_of(const YAML::Exception& error, std::string_view text) {
  const bool has_mark =
      !error.mark.is_null() && error.mark.pos >= 0 && std::cmp_less(error.mark.pos, text.size());
  const auto at = has_mark ? static_cast<std::size_t>(error.mark.pos) : text.size();
  const std::string message = "is not valid YAML: " + error.msg + remedy_of(error.msg, text, at);
  if (text.ends_with('\n')) text.remove_suffix(1);
  const Place end = place_behind(text);
  if (const Place place = place_of(error.mark); place.line <= end.line) return {place, message};
  return {end, message + " (at the file's end)"};
}

}  // namespace

std::optional<Fault> bad_character(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text::sequence_length(text, at);
    if (length == 0) {
      return Fault{place_behind(text.substr(0, at)), "the file is no valid UTF-8 from here on"};
    }
    const auto first = static_cast<std::uint8_t>(text[at]);
    if ((first < 0x20 && first != '\t' && first != '\n' && first != '\r') || first == 0x7F) {
      return Fault{place_behind(text.substr(0, at)),
                   "a control character; write it as an escape in a quoted text"};
    }
    at += length;
  }
  return std::nullopt;
}

Document read(std::string_view text, Schema schema, const Limits& limits) {
  // yaml-cpp would replace bad bytes, and takes U+0004 for the end.
  auto refusal = bad_character(text);
  if (!refusal) refusal = too_many_tokens(text, limits);
  if (refusal) return {std::nullopt, {*std::move(refusal)}};
  // At the very end of its input yaml-cpp takes an unclosed quote for closed and a lone word for a
  // key (its issue 819). With a comment there, it is not the end.
  std::istringstream stream(std::string(text) + "\n#");
  Handler handler(text.size(), schema, limits);
  std::optional<Fault> last;
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (Fault& fault) {
    last = std::move(fault);
  } catch (const YAML::Exception& error) {
    last = fault_of(error, text);
  }
  Document document = handler.take();
  if (last) document.faults.push_back(*std::move(last));
  return document;
}

}  // namespace conversed::yaml
