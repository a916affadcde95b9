#include "daemon/log/keyed_append.h"
#include "store/store.h"
#include "tests/conformance/kafka_test_settings.h"
#include "tests/conformance/keyed_append_conformance.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"

// The keys of a log without keys of its own: rows of the store, beside Kafka.
namespace conversed::test {
namespace {

// The store, the log and the keys between them, destroyed in the order that they need.
struct Opened {
  std::shared_ptr<store::Store> store;
  std::unique_ptr<queue::Log> log;
  std::unique_ptr<daemon::StoredKeyedAppend> keyed;

  ~Opened() {
    if (log) log->stop();
    keyed.reset();
  }
};

class KafkaKeyedFixture final : public KeyedFixture {
 public:
  KafkaKeyedFixture() : settings_(fresh_kafka_topics()) {}

  KeyedLog open() override {
    store::StoreSettings store_settings;
    store_settings.data_dir = folder_.path();
    auto opened = std::make_shared<Opened>();
    auto store = store::Store::open(store_settings, clock_);
    if (!store) {
      ADD_FAILURE() << store.error().message;
      return {};
    }
    store_ = opened->store = std::move(*store);
    opened->store->committer().start();
    return with_log(std::move(opened));
  }
  // Two daemons share the rows. Each has its own uses in hand and its own producer.
  KeyedLog open_at_another_daemon() override {
    auto opened = std::make_shared<Opened>();
    opened->store = store_.lock();
    return with_log(std::move(opened));
  }
  void advance(std::chrono::milliseconds by) override { clock_.advance(by); }

 private:
  KeyedLog with_log(std::shared_ptr<Opened> opened) {
    opened->log = connected_log(settings_);
    if (!opened->log) return {};
    opened->keyed = std::make_unique<daemon::StoredKeyedAppend>(
        *opened->log, opened->store->append_keys(), clock_,
        [](queue::Record& record, const std::string& id) { record.id = id; });
    return {std::shared_ptr<queue::Log>(opened, opened->log.get()),
            std::shared_ptr<queue::KeyedAppend>(opened, opened->keyed.get())};
  }

  const queue::KafkaLogSettings settings_;
  tests::TempFolder folder_;
  tests::ManualClock clock_;
  std::weak_ptr<store::Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Kafka, KeyedAppendConformance,
                         testing::Values(KeyedDriver{
                             "kafka", [] { return std::make_unique<KafkaKeyedFixture>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace conversed::test
