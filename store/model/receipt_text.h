#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "store/model/text_writer.h"

namespace conversed::model {

// A step of a receipt (store/conversation/receipts.h) is a JSON object, stored as a text of two
// thirds of its size. Each Turn writes one, so writing it costs little. Reading costs more, and is
// rare:
//
//   step   = *member
//   member = name value              ; a name is one character
//   value  = ["-"] 1*DIGIT           ; in a list with "," behind it
//          / "t" / "f"               ; true, false
//          / %x22 text US            ; a text of printable ASCII
//          / "<" count text US       ; the same, behind the first count - SP characters of the text
//                                    ; before it in the list
//          / ":" JSON US             ; any other value, as JSON (RFC 8259)
//          / "{" *member "}" / "[" *value "]"
//
// JSON and texts have no control characters, so US (0x1F) ends them. No name is a digit.

// The names of members. A stored step has the place of a name in this list: names are only added,
// at the end. Kept by: ReceiptTextTest.NamesKeepTheirPlaces.
// clang-format off
inline constexpr std::array<std::string_view, 67> receipt_names{
    "what", "at", "us", "type", "daemon", "by", "text", "claim", "position", "recorded", "rest",
    "data", "bytes", "accepted", "behind", "blockedBy", "recovery", "event", "flow", "version",
    "nodes", "nodesRun", "branches", "collected", "events", "eventsRun", "changes",
    "changesLeftOut", "path", "value", "removed", "bytesBefore", "before", "outputs",
    "waitsFor", "id", "until", "to", "retries", "followUps", "deadLetter", "reason", "ended",
    "request", "timer", "eventId", "result", "answer", "status", "body", "error", "message",
    "tokens", "turnOf", "begins", "state", "profile", "profileBytes", "profileVersion",
    "changesProfile", "seq", "try", "next", "w", "tries", "since", "done"};
// clang-format on

// The character of the name at this place. None is a digit or `}`.
[[nodiscard]] constexpr char receipt_name_at(std::size_t place) {
  const auto character = static_cast<char>('!' + place);
  return character < '0' ? character : static_cast<char>(character + 10);
}
static_assert(receipt_name_at(receipt_names.size() - 1) < '}');

// The name of a member: a literal, which the compiler looks up.
class ReceiptName {
 public:
  consteval ReceiptName(const char* name) : character_(character_of(name)) {}
  [[nodiscard]] constexpr char character() const { return character_; }

 private:
  static consteval char character_of(std::string_view name) {
    for (std::size_t place = 0; place < receipt_names.size(); ++place) {
      if (receipt_names[place] == name) return receipt_name_at(place);
    }
    throw "receipt_names lacks this name";
  }
  char character_;
};

// Writes a step member by member. An inner object or list ends with its scope, before anything else
// is added.
class ReceiptText {
 public:
  ReceiptText() : own_(std::in_place, usual_bytes), text_(*own_) {}
  ReceiptText(const ReceiptText&) = delete;
  ReceiptText& operator=(const ReceiptText&) = delete;
  ~ReceiptText() {
    if (!own_) text_.add(end_);
  }

  void add(ReceiptName name, std::string_view value) {
    text_.add(name.character());
    append(value);
  }
  void add(ReceiptName name, const char* value) { add(name, std::string_view(value)); }
  void add(ReceiptName name, std::int64_t value) {
    text_.add(name.character());
    text_.add_number(value);
  }
  void add(ReceiptName name, int value) { add(name, std::int64_t{value}); }
  void add(ReceiptName name, bool value) {
    text_.add(name.character());
    text_.add(value ? 't' : 'f');
  }
  void add_json(ReceiptName name, std::string_view json) {
    text_.add(name.character());
    append_json(json);
  }
  void add_texts(ReceiptName name, std::span<const std::string> texts);
  // The lines as texts, without their line feeds.
  void add_lines(ReceiptName name, std::string_view lines);
  // Members that another ReceiptText wrote.
  void add_members(std::string_view members) { text_.add(members); }
  // An element of a list.
  void add(std::int64_t value) {
    text_.add_number(value);
    text_.add(',');
  }

  [[nodiscard]] ReceiptText object(ReceiptName name) { return inner(name, '{', '}'); }
  [[nodiscard]] ReceiptText list(ReceiptName name) { return inner(name, '[', ']'); }
  // An object as an element of a list.
  [[nodiscard]] ReceiptText object() { return {text_, '{', '}'}; }
  // An object whose members `fill` adds. Writes nothing if it adds none.
  template <typename Fill>
  void add_object(ReceiptName name, const Fill& fill) {
    const auto before = text_.size();
    text_.add(name.character());
    text_.add('{');
    const auto begin = text_.size();
    fill(*this);
    text_.size() == begin ? text_.cut(before) : text_.add('}');
  }

  [[nodiscard]] std::string finished() && { return own_->finished(); }

 private:
  ReceiptText(TextWriter& text, char begin, char end) : text_(text), end_(end) { text_.add(begin); }

  static constexpr std::size_t usual_bytes = 512;

  ReceiptText inner(ReceiptName name, char begin, char end) {
    text_.add(name.character());
    return {text_, begin, end};
  }
  void append(std::string_view value);
  // The text as an element of a list, of which `before` is the last one.
  void append_behind(std::string_view before, std::string_view text);
  void append_json(std::string_view json);

  std::optional<TextWriter> own_;  // of a step
  TextWriter& text_;               // `own_`, or that of the outer object
  char end_ = '}';
};

// The step. Discarded (nlohmann::json::value_t::discarded) if the text is none.
[[nodiscard]] nlohmann::json read_receipt_text(std::string_view text);

}  // namespace conversed::model
