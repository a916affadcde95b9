#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace conversed::model {

// Writes a text piece by piece. It makes room in large steps: std::string::append is a call into
// the library for each piece, which took half of the time of a receipt. A piece must not view the
// writer's own text. One thread.
class TextWriter {
 public:
  // `room`: in bytes, made at the first piece.
  explicit TextWriter(std::size_t room) : first_room_(room) {}
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

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
  // Forgets the text, and a room above `most_room`.
  void clear(std::size_t most_room) {
    size_ = 0;
    if (text_.size() > most_room) std::string().swap(text_);
  }
  // The text. The writer is empty afterwards.
  [[nodiscard]] std::string finished() {
    text_.resize(std::exchange(size_, 0));
    return std::exchange(text_, {});
  }

 private:
  static constexpr std::size_t most_digits = 20;  // of 64 bits, with the sign

  char* room(std::size_t bytes) {
    if (text_.size() - size_ < bytes) [[unlikely]]
      grow(bytes);
    return text_.data() + size_;
  }
  // By itself, so that the compiler inlines the rest.
  [[gnu::noinline]] void grow(std::size_t bytes) {
    text_.resize(std::max({2 * text_.size(), size_ + bytes, first_room_}));
  }

  std::string text_;  // its first `size_` bytes count
  std::size_t size_ = 0;
  std::size_t first_room_;
};

// Eight bytes of 0x01, and eight bytes of 0x80.
inline constexpr std::uint64_t each_byte = 0x0101010101010101;
inline constexpr std::uint64_t high_bits = each_byte * 0x80;

// Sets high bits if a byte is less than `least`, which is at most 0x80: such a byte borrows.
[[nodiscard]] constexpr std::uint64_t bytes_below(std::uint64_t eight, std::uint8_t least) {
  return (eight - each_byte * least) & ~eight & high_bits;
}

// Calls `look` with each eight bytes of the text. Blanks follow the last ones. Returns whether it
// set a high bit.
template <typename Look>
[[nodiscard]] bool any_byte(std::string_view text, const Look& look) {
  std::uint64_t found = 0;
  std::uint64_t eight = 0;
  for (; text.size() >= sizeof eight; text.remove_prefix(sizeof eight)) {
    std::memcpy(&eight, text.data(), sizeof eight);
    found |= look(eight);
  }
  eight = each_byte * ' ';
  text.copy(reinterpret_cast<char*>(&eight), text.size());
  return ((found | look(eight)) & high_bits) != 0;
}

}  // namespace conversed::model
