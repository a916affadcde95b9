#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace conversed::model {

// Writes a text piece by piece. It makes room in large steps: std::string::append is a call into
// the library for each piece, which took half of the time of a receipt.
class TextWriter {
 public:
  explicit TextWriter(std::size_t room) : text_(room, '\0') {}

  void add(char c) {
    *room(1) = c;
    ++size_;
  }
  void add(std::string_view part) { size_ += part.copy(room(part.size()), part.size()); }
  template <std::integral Number>
  void add_number(Number number) {
    char* const begin = room(most_digits);
    size_ +=
        static_cast<std::size_t>(std::to_chars(begin, begin + most_digits, number).ptr - begin);
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }
  // Keeps the first `size` bytes, and the room.
  void cut(std::size_t size) { size_ = size; }
  [[nodiscard]] std::string finished() && {
    text_.resize(size_);
    return std::move(text_);
  }

 private:
  static constexpr std::size_t most_digits = 20;  // of 64 bits, with the sign

  char* room(std::size_t bytes) {
    if (text_.size() - size_ < bytes) text_.resize(std::max(2 * text_.size(), size_ + bytes));
    return text_.data() + size_;
  }

  std::string text_;  // its first `size_` bytes count
  std::size_t size_ = 0;
};

}  // namespace conversed::model
