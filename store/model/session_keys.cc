#include "store/model/session_keys.h"

#include <initializer_list>

#include "store/model/event.h"

namespace conversed::model {
namespace {

// The keys that begin with these parts.
KeyRange keys_behind(std::initializer_list<std::string_view> parts) {
  KeyRange range;
  for (const auto part : parts) range.from.append(part).append(1, SessionKey::separator);
  range.to = range.from;
  ++range.to.back();
  return range;
}

// MurmurHash2 (Austin Appleby, public domain) with the seed that Kafka's clients use. Bytes are
// read as little-endian on every machine.
std::uint32_t murmur2(std::string_view bytes) {
  constexpr std::uint32_t seed = 0x9747b28c;
  constexpr std::uint32_t multiplier = 0x5bd1e995;
  const auto byte = [&](std::size_t at) {
    return std::uint32_t{static_cast<unsigned char>(bytes[at])};
  };
  std::uint32_t hash = seed ^ static_cast<std::uint32_t>(bytes.size());
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t word = byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
    word *= multiplier;
    word ^= word >> 24;
    word *= multiplier;
    hash *= multiplier;
    hash ^= word;
  }
  if (at < bytes.size()) {
    for (std::size_t left = bytes.size() - at; left > 0; --left) {
      hash ^= byte(at + left - 1) << (8 * (left - 1));
    }
    hash *= multiplier;
  }
  hash ^= hash >> 13;
  hash *= multiplier;
  hash ^= hash >> 15;
  return hash;
}

}  // namespace

KeyRange keys_of_project(std::string_view project_id) {
  return keys_behind({project_id});
}

KeyRange keys_of_user(std::string_view project_id, std::string_view user_id) {
  return keys_behind({project_id, user_id});
}

KeyRange keys_of_user(std::string_view project_id, std::string_view user_id,
                      std::string_view endpoint_id) {
  return keys_behind({project_id, user_id, endpoint_id});
}

std::string_view routing_part(std::string_view key) {
  const auto first = key.find(SessionKey::separator);
  if (first == std::string_view::npos) return key;
  return key.substr(0, key.find(SessionKey::separator, first + 1));
}

std::int32_t partition_of(std::string_view key, std::int32_t partitions) {
  return static_cast<std::int32_t>(murmur2(routing_part(key)) & 0x7fffffffU) % partitions;
}

}  // namespace conversed::model
