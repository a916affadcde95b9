#include "queue/log.h"

#include <algorithm>

namespace conversed::queue {
namespace {

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

std::string place_of(const Position& at) {
  return "epoch " + std::to_string(at.epoch) + ", partition " + std::to_string(at.partition);
}

}  // namespace

std::string_view routing_part(std::string_view key) {
  const auto first = key.find(model::SessionKey::separator);
  if (first == std::string_view::npos) return key;
  return key.substr(0, key.find(model::SessionKey::separator, first + 1));
}

std::int32_t partition_of(std::string_view key, std::int32_t partitions) {
  return static_cast<std::int32_t>(murmur2(routing_part(key)) & 0x7fffffffU) % partitions;
}

std::int64_t lag_of(std::span<const PartitionRange> ranges) {
  std::int64_t lag = 0;
  for (const PartitionRange& range : ranges) lag += range.lag();
  return lag;
}

bool is_finished(std::span<const PartitionRange> ranges, const Position& at) {
  const auto range = std::ranges::find(ranges, at.partition, &PartitionRange::partition);
  return range == ranges.end() || at.epoch < range->epoch || at.offset < range->committed;
}

Error not_handed_out(const Position& at) {
  return {Errc::conflict, "No record was handed out at " + place_of(at) + ", offset " +
                              std::to_string(at.offset) + "."};
}

Result<bool> is_after(const Position& a, const Position& b) {
  if (a.epoch != b.epoch || a.partition != b.partition) {
    return model::fail(Errc::conflict, "Positions have no order across epochs and partitions: " +
                                           place_of(a) + " and " + place_of(b) + ".");
  }
  return a.offset > b.offset;
}

}  // namespace conversed::queue
