#include "queue/kafka/kafka_epochs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace conversed::queue {

KafkaEpochs KafkaEpochs::initial(std::size_t partitions) {
  return KafkaEpochs({{1, std::vector<std::int64_t>(partitions, 0)}});
}

Result<KafkaEpochs> KafkaEpochs::parse(std::string_view value) {
  const auto bad = [] {
    return model::fail(Errc::internal, "The record of the log's epochs can't be read.");
  };
  const auto parsed = nlohmann::json::parse(value, nullptr, false);
  if (!parsed.is_object()) return bad();
  std::vector<Start> starts;
  try {
    if (parsed.value("v", 0) != 1) return bad();
    for (const auto& each : parsed.at("epochs")) {
      starts.push_back({each.at("epoch").get<std::int64_t>(),
                        each.at("first").get<std::vector<std::int64_t>>()});
      if (starts.back().first.empty()) return bad();
    }
  } catch (const nlohmann::json::exception&) {
    return bad();
  }
  const bool ascends = std::ranges::adjacent_find(starts, std::ranges::greater_equal(),
                                                  &Start::epoch) == starts.end();
  if (starts.empty() || starts.front().epoch < 1 || !ascends) return bad();
  return KafkaEpochs(std::move(starts));
}

std::string KafkaEpochs::to_value() const {
  auto epochs = nlohmann::json::array();
  for (const auto& start : starts_) {
    epochs.push_back({{"epoch", start.epoch}, {"first", start.first}});
  }
  return nlohmann::json{{"v", 1}, {"epochs", std::move(epochs)}}.dump();
}

KafkaEpochs KafkaEpochs::with(std::int64_t epoch, std::vector<std::int64_t> ends) const {
  auto starts = starts_;
  starts.push_back({epoch, std::move(ends)});
  return KafkaEpochs(std::move(starts));
}

const KafkaEpochs::Start& KafkaEpochs::at(std::int32_t partition, std::int64_t offset) const {
  const auto found = std::find_if(starts_.rbegin(), starts_.rend(), [&](const Start& start) {
    return offset >= first_of(start, partition);
  });
  return found == starts_.rend() ? starts_.front() : *found;
}

std::int64_t KafkaEpochs::resume_at(std::int32_t partition, std::int64_t committed,
                                    std::int64_t epoch) const {
  for (const auto& start : starts_) {
    if (start.epoch > epoch) committed = std::min(committed, first_of(start, partition));
  }
  return committed;
}

// In an epoch before a partition existed, the partition begins with its first record.
std::int64_t KafkaEpochs::first_of(const Start& start, std::int32_t partition) {
  const auto at = static_cast<std::size_t>(partition);
  return at < start.first.size() ? start.first[at] : 0;
}

}  // namespace conversed::queue
