#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "store/model/json.h"

namespace conversed::model {

// Writes the JSON of a receipt's row member by member, without a tree in between: each Turn pays
// for it. An inner object or list ends with its scope, before anything else is added.
class ReceiptText {
 public:
  ReceiptText() : text_(own_) {
    own_.reserve(usual_bytes);
    text_ += '{';
  }
  ReceiptText(const ReceiptText&) = delete;
  ReceiptText& operator=(const ReceiptText&) = delete;
  ~ReceiptText() {
    if (&text_ != &own_) text_ += end_;
  }

  void add(std::string_view name, std::string_view value) {
    begin(name);
    append(value);
  }
  void add(std::string_view name, const char* value) { add(name, std::string_view(value)); }
  void add(std::string_view name, std::int64_t value) { add_json(name, std::to_string(value)); }
  void add(std::string_view name, int value) { add(name, std::int64_t{value}); }
  void add(std::string_view name, bool value) { add_json(name, value ? "true" : "false"); }
  void add_json(std::string_view name, std::string_view json) {
    begin(name);
    text_ += json;
  }
  // Elements of a list.
  void add(std::string_view value) { add("", value); }
  void add(std::int64_t value) { add("", value); }

  [[nodiscard]] ReceiptText object(std::string_view name = {}) {
    begin(name);
    return {text_, '{', '}'};
  }
  [[nodiscard]] ReceiptText list(std::string_view name) {
    begin(name);
    return {text_, '[', ']'};
  }

  [[nodiscard]] std::string finished() && { return std::move(own_ += end_); }

 private:
  ReceiptText(std::string& text, char begin, char end) : text_(text), end_(end) { text_ += begin; }

  static constexpr std::size_t usual_bytes = 256;

  // `name` has no character that JSON escapes.
  void begin(std::string_view name) {
    if (text_.back() != '{' && text_.back() != '[') text_ += ',';
    if (name.empty()) return;
    text_ += '"';
    text_ += name;
    text_ += "\":";
  }
  void append(std::string_view value) {
    const bool plain = std::ranges::all_of(
        value, [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
    if (!plain) return append_json(text_, std::string(value));
    text_ += '"';
    text_ += value;
    text_ += '"';
  }

  std::string own_;
  std::string& text_;  // `own_`, or that of the outer object
  char end_ = '}';
};

}  // namespace conversed::model
