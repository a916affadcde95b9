#include "queue/kafka/kafka_log.h"
#include "tests/conformance/kafka_test_settings.h"
#include "tests/conformance/log_conformance.h"

// Runs against a real broker: see kafka_test_settings.h.
namespace conversed::test {
namespace {

class KafkaFixture final : public LogFixture {
 public:
  explicit KafkaFixture(queue::KafkaLogSettings settings) : settings_(std::move(settings)) {}
  std::unique_ptr<queue::Log> open() override { return connected_log(settings_); }

 private:
  const queue::KafkaLogSettings settings_;
};

enum class Upkeep : std::uint8_t { now_and_then, all_the_time };

LogDriver driver(std::string name, Upkeep upkeep) {
  return {std::move(name), [upkeep](std::int32_t partitions) {
            auto settings = fresh_kafka_topics();
            settings.partitions = partitions;
            if (upkeep == Upkeep::all_the_time) {
              settings.prune_after_records = 1;
              settings.probe_interval = std::chrono::milliseconds(1);
            }
            return std::make_unique<KafkaFixture>(std::move(settings));
          }};
}

// Upkeep runs all the time: it deletes finished records at once and checks the broker without a
// pause. The suite must not notice.
INSTANTIATE_TEST_SUITE_P(Kafka, LogConformance,
                         testing::Values(driver("kafka", Upkeep::now_and_then),
                                         driver("kafka_restless", Upkeep::all_the_time)),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace conversed::test
