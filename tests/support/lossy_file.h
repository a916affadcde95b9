#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace conversed::tests {

// How many losses of power a test plays in all. CONVERSED_TEST_CRASH_POINTS sets it;
// `./dev test --nightly` sets 20,000.
inline std::size_t crash_points(std::size_t usual) {
  const char* wanted = std::getenv("CONVERSED_TEST_CRASH_POINTS");
  return wanted == nullptr ? usual : std::stoul(wanted);
}

// The seed of the first of them. CONVERSED_TEST_SEED repeats a run.
inline std::uint64_t first_seed() {
  const char* wanted = std::getenv("CONVERSED_TEST_SEED");
  return wanted == nullptr ? std::random_device()() : std::stoull(wanted);
}

// A file in memory whose disk may lose power: then each sector that was written since the last sync
// is on the disk in its old state or in a later one, and the file has its old length or the later
// one. Not thread-safe.
class LossyFile {
 public:
  static constexpr std::size_t sector_bytes = 512;

  LossyFile() = default;
  explicit LossyFile(std::string durable) : bytes_(durable), durable_(std::move(durable)) {}

  // As a reader sees them; may be damaged by a test.
  [[nodiscard]] std::string& bytes() { return bytes_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  // As of the last sync.
  [[nodiscard]] const std::string& durable() const { return durable_; }

  void write(std::uint64_t at, std::string_view written) {
    put(bytes_, at, written);
    unsynced_.push_back({at, std::string(written)});
  }
  // Grows by zeros, or loses its end and what was written there.
  void resize(std::uint64_t size) {
    bytes_.resize(size, '\0');
    for (auto& [at, written] : unsynced_) {
      written.resize(std::min<std::uint64_t>(written.size(), size - std::min(at, size)));
    }
  }

  void sync() {
    durable_.resize(bytes_.size(), '\0');
    for (const auto& [at, written] : unsynced_) put(durable_, at, written);
    unsynced_.clear();
  }
  // A sync that fails: Linux counts the pages as written from now on, although they are not.
  void forget_unsynced() { unsynced_.clear(); }

  void lose_power(std::mt19937_64& random) {
    if (random() % 2 == 0) durable_.resize(bytes_.size(), '\0');
    for (const auto& [at, written] : unsynced_) lose_sectors(at, written, random);
    bytes_ = durable_;
    unsynced_.clear();
  }

 private:
  struct Write {
    std::uint64_t at = 0;
    std::string bytes;
  };

  static void put(std::string& file, std::uint64_t at, std::string_view written) {
    if (at + written.size() > file.size()) file.resize(at + written.size(), '\0');
    file.replace(at, written.size(), written);
  }

  // The sectors reach the disk one by one, in any order, or not at all.
  void lose_sectors(std::uint64_t at, std::string_view written, std::mt19937_64& random) {
    const auto end = at + written.size();
    for (auto from = at; from < end;) {
      const auto to = std::min(from / sector_bytes * sector_bytes + sector_bytes, end);
      if (random() % 2 == 0 && to <= durable_.size()) {
        put(durable_, from, written.substr(from - at, to - from));
      }
      from = to;
    }
  }

  std::string bytes_;
  std::string durable_;
  std::vector<Write> unsynced_;
};

}  // namespace conversed::tests
