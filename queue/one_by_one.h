#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "queue/progress.h"

namespace conversed::queue {

// Whether a recovery goes on, and what it still waits for: everything below an offset of each of
// its partitions, and lanes that have been touched. One thread at a time.
class OneByOne {
 public:
  using Limits = std::map<std::int32_t, std::int64_t>;  // partition -> offset
  using ProgressMap = std::map<std::int32_t, Progress>;

  // With any limit it goes on until partitions have been assigned.
  explicit OneByOne(Limits limits) : limits_(std::move(limits)), goes_on_(!limits_.empty()) {}

  [[nodiscard]] bool goes_on() const { return goes_on_; }
  [[nodiscard]] bool is_below(std::int32_t partition, std::int64_t offset) const;

  // Begins, or is about these as well from now on. Until `update` it goes on in any case.
  void begin(const Limits& limits);
  // Partitions were assigned: what is not among them is not waited for.
  void assigned() { assigned_once_ = true; }
  void forget(std::span<const std::int32_t> partitions);
  // Of a lane: `unsettled` says whether it is waited for.
  void set_unsettled(bool& lane, bool unsettled);
  void update(const ProgressMap& progress);
  // A run is about to be handed out. If nothing is waited for, others may be in hand with it from
  // here on: it is over, until it is begun anew.
  void hand_out();

 private:
  Limits limits_;
  std::size_t unsettled_ = 0;  // lanes
  bool goes_on_;
  bool over_ = false;
  bool assigned_once_ = false;
};

}  // namespace conversed::queue
