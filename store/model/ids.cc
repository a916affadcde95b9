#include "store/model/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "store/model/hex.h"

namespace conversed::model {
namespace {

// Random bytes are drawn from the kernel in blocks: one system call serves some hundred ids.
class RandomBytes {
 public:
  std::uint8_t next() {
    if (used_ == block_.size()) refill();
    return std::exchange(block_[used_++], 0);  // no dump of memory shows an id's bytes
  }

 private:
  void refill() {
    std::size_t filled = 0;
    while (filled < block_.size()) {
      const auto got = getrandom(block_.data() + filled, block_.size() - filled, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) std::abort();  // the kernel's generator cannot fail once it is seeded
      filled += static_cast<std::size_t>(got);
    }
    used_ = 0;
  }

  std::array<std::uint8_t, 4096> block_{};
  std::size_t used_ = block_.size();
};

RandomBytes& random_bytes() {
  thread_local RandomBytes bytes;
  return bytes;
}

constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyz";  // in their order

constexpr std::size_t time_digits = 9;  // until the year 5188
constexpr std::size_t number_digits = 12;

bool is_lower_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

std::string id_prefix(Timestamp time) {
  std::string prefix(time_digits, digits[0]);
  auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(to_unix_ms(time), 0));
  for (auto at = prefix.rbegin(); at != prefix.rend(); ++at, left /= digits.size()) {
    *at = digits[left % digits.size()];
  }
  return prefix;
}

std::int64_t id_number(std::string_view id) {
  std::int64_t number = 0;
  for (const char c : id.substr(0, number_digits)) {
    number = number * std::ssize(digits) + (c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return number;
}

std::int64_t id_number(Timestamp time) {
  constexpr std::int64_t ids_a_ms = 36LL * 36 * 36;
  static_assert(number_digits - time_digits == 3);
  return std::max<std::int64_t>(to_unix_ms(time), 0) * ids_a_ms;
}

std::string new_id(Timestamp now) {
  // Bytes from 252 up are dropped: 252 is the highest multiple of 36, so every character is as
  // likely.
  constexpr std::uint8_t limit = 252;
  std::string id = id_prefix(now);
  id.reserve(id_length);
  while (id.size() < id_length) {
    const std::uint8_t byte = random_bytes().next();
    if (byte < limit) id += digits[byte % digits.size()];
  }
  return id;
}

std::string new_id() {
  return new_id(SystemClock().now());
}

bool is_id(std::string_view text) {
  return text.size() == id_length && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

std::string random_hex(std::size_t bytes) {
  std::string text;
  text.reserve(2 * bytes);
  for (std::size_t at = 0; at < bytes; ++at) append_hex(text, random_bytes().next());
  return text;
}

std::string new_trace_id() {
  std::string id;
  const auto now = static_cast<std::uint64_t>(to_unix_ms(SystemClock().now()));
  for (int shift = 40; shift >= 0; shift -= 8) {
    append_hex(id, static_cast<std::uint8_t>(now >> shift));
  }
  return id += random_hex(10);
}

bool is_url_token(std::string_view text) {
  return text.size() == url_token_length && std::all_of(text.begin(), text.end(), is_lower_hex);
}

}  // namespace conversed::model
