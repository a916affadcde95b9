#include "store/model/keyed_hash.h"

#include <array>
#include <bit>
#include <random>

namespace conversed::model {
namespace {

// The state of SipHash, as its authors' paper names it.
struct State {
  std::array<std::uint64_t, 4> v;

  void round() {
    v[0] += v[1];
    v[1] = std::rotl(v[1], 13) ^ v[0];
    v[0] = std::rotl(v[0], 32);
    v[2] += v[3];
    v[3] = std::rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = std::rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = std::rotl(v[1], 17) ^ v[2];
    v[2] = std::rotl(v[2], 32);
  }
  void take(std::uint64_t word) {
    v[3] ^= word;
    round();
    round();
    v[0] ^= word;
  }
};

// Up to eight bytes, the first the lowest.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[at])} << (8 * at);
  }
  return word;
}

HashKey draw_key() {
  std::random_device random;
  const auto draw = [&] { return (std::uint64_t{random()} << 32) | random(); };
  return {draw(), draw()};
}

}  // namespace

std::uint64_t sip_hash(std::string_view bytes, HashKey key) {
  State state{{key.first ^ 0x736f6d6570736575, key.second ^ 0x646f72616e646f6d,
               key.first ^ 0x6c7967656e657261, key.second ^ 0x7465646279746573}};
  const std::uint64_t length = std::uint64_t{bytes.size()} << 56;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) state.take(word_of(bytes.substr(0, 8)));
  state.take(length | word_of(bytes));
  state.v[2] ^= 0xff;
  for (int round = 0; round < 4; ++round) state.round();
  return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}

std::size_t KeyedHash::operator()(std::string_view text) const {
  static const HashKey key = draw_key();
  return static_cast<std::size_t>(sip_hash(text, key));
}

}  // namespace conversed::model
