#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "queue/log.h"

namespace conversed::queue {

// Which records of the events topic belong to which epoch. Immutable once shared.
class KafkaEpochs {
 public:
  struct Start {
    std::int64_t epoch = 1;
    std::vector<std::int64_t> first;  // by partition: the offset at which the epoch begins
  };

  // For a new topic: all its records are of epoch 1.
  [[nodiscard]] static KafkaEpochs initial(std::size_t partitions);
  // From the value of the record of epochs. `internal` if it can't be read.
  [[nodiscard]] static Result<KafkaEpochs> parse(std::string_view value);
  [[nodiscard]] std::string to_value() const;
  // Adds an epoch that begins at `ends`.
  [[nodiscard]] KafkaEpochs with(std::int64_t epoch, std::vector<std::int64_t> ends) const;

  [[nodiscard]] std::int64_t newest() const { return starts_.back().epoch; }
  // How many partitions the topic had in the newest epoch.
  [[nodiscard]] std::size_t partitions() const { return starts_.back().first.size(); }

  // The epoch of the record at this offset. It has the number of partitions by which keys were
  // placed.
  [[nodiscard]] const Start& at(std::int32_t partition, std::int64_t offset) const;
  // Where to go on after a position that was committed in `epoch`. A later epoch may have begun
  // below it, after a loss of records.
  [[nodiscard]] std::int64_t resume_at(std::int32_t partition, std::int64_t committed,
                                       std::int64_t epoch) const;

 private:
  explicit KafkaEpochs(std::vector<Start> starts) : starts_(std::move(starts)) {}
  [[nodiscard]] static std::int64_t first_of(const Start& start, std::int32_t partition);

  std::vector<Start> starts_;  // ascending; never empty
};

}  // namespace conversed::queue
