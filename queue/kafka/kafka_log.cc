#include "queue/kafka/kafka_log.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "queue/kafka/kafka_client.h"
#include "queue/kafka/kafka_consumer.h"
#include "queue/kafka/kafka_epochs.h"
#include "queue/kafka/kafka_move.h"
#include "queue/kafka/kafka_producer.h"
#include "queue/kafka/kafka_topics.h"
#include "store/runtime/thread_name.h"

namespace conversed::queue {
namespace {

Result<void> check(const KafkaLogSettings& settings) {
  const auto bad = [](const char* what) { return model::fail(Errc::invalid_argument, what); };
  if (settings.bootstrap_servers.empty()) return bad("The log needs at least one broker.");
  if (settings.topic_prefix.empty()) return bad("The log needs a prefix for its topics.");
  if (settings.instance_id.empty()) return bad("The log's reader needs a name.");
  if (settings.partitions < 1 || settings.partitions > 1'024) {
    return bad("A log has 1 to 1024 partitions.");
  }
  return {};
}

Error made_again(const std::string& topic) {
  return {Errc::conflict,
          "The topic " + topic +
              " was deleted and made again: its records are gone, and new records would be "
              "taken for repeats. Stop all daemons and run `conversed new-epoch`."};
}

class KafkaLog final : public Log, public KafkaHandler {
 public:
  explicit KafkaLog(KafkaLogSettings settings)
      : KafkaHandler(settings_.report), settings_(std::move(settings)), names_(settings_) {}
  ~KafkaLog() override { stop(); }
  KafkaLog(const KafkaLog&) = delete;
  KafkaLog& operator=(const KafkaLog&) = delete;

  [[nodiscard]] Result<void> open();
  void append(Record record, AppendCallback done) override;
  [[nodiscard]] Result<std::unique_ptr<Consumer>> subscribe(Listener& listener) override;
  [[nodiscard]] Result<std::vector<PartitionRange>> ranges() override;
  [[nodiscard]] Result<std::int64_t> new_epoch(std::int64_t above) override;
  [[nodiscard]] Result<void> health() override;
  void stop() override;

 private:
  using Epochs = std::shared_ptr<const KafkaEpochs>;

  void run();
  [[nodiscard]] Result<void> look();
  [[nodiscard]] KafkaAsker observer();
  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<Epochs> stored_epochs(std::int32_t partitions);
  [[nodiscard]] Result<void> store_epochs(const KafkaEpochs& epochs);
  [[nodiscard]] Result<std::vector<PartitionRange>> read_ranges(std::int32_t partitions,
                                                                const KafkaEpochs& epochs);
  [[nodiscard]] Result<KafkaMoved> begin_of_epoch(std::int64_t epoch, const KafkaEpochs& stored,
                                                  std::int32_t partitions);
  [[nodiscard]] Result<Epochs> checked_epochs();
  [[nodiscard]] Result<Position> position_of(const KafkaPlace& place, std::int64_t least);
  [[nodiscard]] Result<void> check_still_the_same(const KafkaEpochs& epochs);
  void in_trouble(const Error& error);

  const KafkaLogSettings settings_;
  const KafkaNames names_;
  // One question to the brokers at a time. Lock it before `state_mutex_`.
  std::mutex observer_mutex_;
  KafkaClient observer_;
  std::unique_ptr<KafkaProducer> producer_;

  std::mutex state_mutex_;
  std::condition_variable changed_;
  bool looked_ = false;  // at least once
  bool look_now_ = false;
  bool stopped_ = false;
  std::optional<Error> trouble_;
  Epochs epochs_;  // null until the topics have been checked
  // The highest end that this log has seen of each partition. A partition that ends below it was
  // made again.
  KafkaOffsets ends_;
  std::optional<std::chrono::steady_clock::time_point> below_since_;  // the log ends below `ends_`
  std::optional<Error> made_again_;  // permanent: appended records would be lost
  // For appends: the topic's number of partitions, or 0 while it is unknown or the brokers fail.
  std::atomic<std::int32_t> writable_partitions_{0};
  bool reachable_ = false;  // used by the thread alone, like the next member
  bool was_gone_ = false;
  std::atomic<bool> subscribed_{false};
  std::once_flag stop_once_;
  std::jthread thread_;
};

Result<void> KafkaLog::open() {
  auto observer = make_kafka_client(settings_, KafkaRole::observer, *this);
  if (!observer) return model::fail(observer.error());
  observer_ = std::move(*observer);
  auto producer = KafkaProducer::open(settings_, [this](const Error& error) { in_trouble(error); });
  if (!producer) return model::fail(producer.error());
  producer_ = std::move(*producer);
  thread_ = std::jthread([this] { run(); });
  return {};
}

// Asks the brokers once each `probe_interval`, and at once after a failure.
void KafkaLog::run() {
  model::name_this_thread("log observer");
  for (;;) {
    auto looked = look();
    std::unique_lock lock(state_mutex_);
    if (stopped_) return;
    looked_ = true;
    const bool was_well = !trouble_;
    trouble_ = looked ? made_again_ : std::optional(looked.error());
    writable_partitions_ = epochs_ && reachable_ && !made_again_
                               ? static_cast<std::int32_t>(epochs_->partitions())
                               : std::int32_t{0};
    changed_.notify_all();
    if (!looked && was_well) {
      lock.unlock();
      report(looked.error().message);
      lock.lock();
    }
    look_now_ = false;
    changed_.wait_for(lock, settings_.probe_interval, [this] { return stopped_ || look_now_; });
    if (stopped_) return;
  }
}

// For questions with the observer locked. Gives up when the log is stopped.
KafkaAsker KafkaLog::observer() {
  return {.client = observer_.get(), .wait = settings_.request_timeout, .pause = [this] {
            std::unique_lock lock(state_mutex_);
            return !changed_.wait_for(lock, kafka_look_interval, [this] { return stopped_; });
          }};
}

Result<void> KafkaLog::look() {
  const std::lock_guard lock(observer_mutex_);
  const Epochs known = [this] {
    const std::lock_guard state(state_mutex_);
    return epochs_;
  }();
  reachable_ = false;
  if (!known) {
    auto prepared = prepare();
    reachable_ = prepared.has_value();
    return prepared;
  }
  const auto state = kafka_topic_state(observer_.get(), names_.records, settings_.request_timeout);
  if (!state) return model::fail(state.error());
  was_gone_ = was_gone_ || state->partitions == 0;
  if (state->partitions == 0) {
    return model::fail(Errc::unavailable, "The topic " + names_.records + " is gone.");
  }
  if (was_gone_) {
    if (auto same = check_still_the_same(*known); !same) return same;
    was_gone_ = false;
  }
  // Appends to partitions with a leader go on.
  reachable_ = true;
  if (!state->has_leaders) {
    return model::fail(Errc::unavailable, "The topic " + names_.records + " has no leader.");
  }
  return {};
}

// With the observer locked. Brokers that have just started may not know the topic for a moment.
Result<void> KafkaLog::check_still_the_same(const KafkaEpochs& epochs) {
  const auto ranges = read_ranges(static_cast<std::int32_t>(epochs.partitions()), epochs);
  if (!ranges) return model::fail(ranges.error());
  const std::lock_guard state(state_mutex_);
  const bool below = std::ranges::any_of(
      *ranges, [this](const auto& range) { return range.end < ends_[range.partition]; });
  if (!below) {
    below_since_.reset();
    return {};
  }
  const auto now = std::chrono::steady_clock::now();
  if (!below_since_) below_since_ = now;
  // A new leader can't tell the end of the partition at once.
  if (now - *below_since_ < settings_.request_timeout) {
    return model::fail(Errc::unavailable,
                       "The topic ends below a known offset. It is checked again.");
  }
  made_again_ = made_again(names_.records);
  return {};
}

// With the observer locked.
Result<void> KafkaLog::prepare() {
  const auto partitions = prepare_kafka_topics(observer(), names_, settings_);
  if (!partitions) return model::fail(partitions.error());
  auto epochs = stored_epochs(*partitions);
  if (!epochs) return model::fail(epochs.error());
  if ((*epochs)->partitions() != static_cast<std::size_t>(*partitions)) {
    return model::fail(
        Errc::conflict,
        "The topic " + names_.records + " has " + std::to_string(*partitions) +
            " partitions, and had " + std::to_string((*epochs)->partitions()) +
            ": sessions would move to others and lose their order. Stop all other producers and "
            "all "
            "daemons, and run `conversed new-epoch`, which moves unfinished records.");
  }
  const std::lock_guard state(state_mutex_);
  epochs_ = std::move(*epochs);
  return {};
}

// With the observer locked. The first daemon of a new log stores its epochs. All daemons would
// store the same.
Result<KafkaLog::Epochs> KafkaLog::stored_epochs(std::int32_t partitions) {
  auto stored = read_kafka_epochs(observer(), names_);
  if (!stored) return model::fail(stored.error());
  if (*stored) return std::make_shared<const KafkaEpochs>(std::move(**stored));
  auto initial = KafkaEpochs::initial(static_cast<std::size_t>(partitions));
  if (auto done = store_epochs(initial); !done) return model::fail(done.error());
  return std::make_shared<const KafkaEpochs>(std::move(initial));
}

Result<void> KafkaLog::store_epochs(const KafkaEpochs& epochs) {
  auto placed = producer_
                    ->send_own({.topic = names_.epochs.c_str(),
                                .partition = 0,
                                .key = names_.epochs_key,
                                .value = epochs.to_value(),
                                .headers = {}})
                    .get();
  if (!placed) return model::fail(placed.error());
  return {};
}

// Waits only for the first answer of the brokers. Once the topics have been checked, a later
// failure is no error here.
Result<KafkaLog::Epochs> KafkaLog::checked_epochs() {
  std::unique_lock lock(state_mutex_);
  changed_.wait(lock, [this] { return looked_ || stopped_; });
  if (stopped_) return model::fail(Errc::unavailable, "The log is stopped.");
  if (epochs_) return epochs_;
  return model::fail(trouble_.value_or(Error{Errc::unavailable, "The log is not ready."}));
}

void KafkaLog::append(Record record, AppendCallback done) {
  const std::int32_t partitions = writable_partitions_;
  if (partitions == 0) {
    auto why = health();
    return done(model::fail(why ? Error{Errc::unavailable, "The log is not ready."} : why.error()));
  }
  auto headers = kafka_headers_of(record);
  const std::int32_t partition = partition_of(record.key, partitions);
  // The record's offset can't be below the present end.
  const std::int64_t least = [&] {
    const std::lock_guard state(state_mutex_);
    return ends_[partition];
  }();
  producer_->send({.topic = names_.records.c_str(),
                   .partition = partition,
                   .key = std::string(routing_part(record.key)),
                   .value = std::move(record.value),
                   .headers = std::move(headers)},
                  [this, least, done = std::move(done)](Result<KafkaPlace> placed) {
                    if (!placed) return done(model::fail(placed.error()));
                    auto position = position_of(*placed, least);
                    if (!position) return done(model::fail(position.error()));
                    done(Appended{*position});
                  });
}

// An offset below the end that was known when the record was sent belongs to a new topic of the
// same name: a reader would take the record for the earlier one with that offset. The end that is
// known now proves nothing, since it includes records whose delivery reports have not come yet.
Result<Position> KafkaLog::position_of(const KafkaPlace& place, std::int64_t least) {
  const std::lock_guard state(state_mutex_);
  auto& end = ends_[place.partition];
  if (place.offset < least) {
    made_again_ = made_again(names_.records);
    trouble_ = made_again_;
    writable_partitions_ = 0;
    return model::fail(Errc::timed_out, made_again_->message);
  }
  end = std::max(end, place.offset + 1);
  return Position{epochs_->at(place.partition, place.offset).epoch, place.partition, place.offset};
}

Result<std::unique_ptr<Consumer>> KafkaLog::subscribe(Listener& listener) {
  auto epochs = checked_epochs();
  if (!epochs) return model::fail(epochs.error());
  if (subscribed_.exchange(true)) return model::fail(Errc::conflict, "The log has a consumer.");
  auto consumer = KafkaConsumer::open({.settings = settings_,
                                       .names = names_,
                                       .producer = *producer_,
                                       .epochs = std::move(*epochs),
                                       .closed = [this] { subscribed_ = false; }},
                                      listener);
  if (!consumer) return model::fail(consumer.error());
  return std::unique_ptr<Consumer>(std::move(*consumer));
}

Result<std::vector<PartitionRange>> KafkaLog::ranges() {
  auto epochs = checked_epochs();
  if (!epochs) return model::fail(epochs.error());
  if (auto well = health(); !well) return model::fail(well.error());
  const std::lock_guard lock(observer_mutex_);
  auto read = read_ranges(static_cast<std::int32_t>((*epochs)->partitions()), **epochs);
  if (!read) return read;
  const std::lock_guard state(state_mutex_);
  for (const auto& range : *read) {
    auto& end = ends_[range.partition];
    end = std::max(end, range.end);
  }
  return read;
}

// With the observer locked.
Result<std::vector<PartitionRange>> KafkaLog::read_ranges(std::int32_t partitions,
                                                          const KafkaEpochs& epochs) {
  auto read = read_kafka_ranges(observer(), names_.records, all_partitions(partitions), epochs);
  if (!read) return model::fail(read.error());
  if (!read->lost.empty()) return model::fail(kafka_records_lost(read->lost));
  return std::move(read->ranges);
}

// Asks for the present topics. They may have changed since their check.
Result<std::int64_t> KafkaLog::new_epoch(std::int64_t above) {
  const std::lock_guard lock(observer_mutex_);
  const auto partitions = prepare_kafka_topics(observer(), names_, settings_);
  if (!partitions) return model::fail(partitions.error());
  auto stored = stored_epochs(*partitions);
  if (!stored) return model::fail(stored.error());
  const auto begins =
      begin_of_epoch(std::max(above, (*stored)->newest()) + 1, **stored, *partitions);
  if (!begins) return model::fail(begins.error());
  auto opened = std::make_shared<const KafkaEpochs>((*stored)->with(begins->epoch, begins->first));
  if (auto done = store_epochs(*opened); !done) return model::fail(done.error());
  const std::lock_guard state(state_mutex_);
  epochs_ = std::move(opened);
  return begins->epoch;
}

// With the observer locked.
Result<KafkaMoved> KafkaLog::begin_of_epoch(std::int64_t epoch, const KafkaEpochs& stored,
                                            std::int32_t partitions) {
  if (stored.partitions() != static_cast<std::size_t>(partitions)) {
    return move_kafka_records({settings_, names_, stored, partitions, epoch}, observer());
  }
  const auto read =
      read_kafka_ranges(observer(), names_.records, all_partitions(partitions), stored);
  if (!read) return model::fail(read.error());
  KafkaMoved begins{.epoch = epoch, .first = {}};
  for (const auto& range : read->ranges) begins.first.push_back(range.end);
  return begins;
}

Result<void> KafkaLog::health() {
  const std::lock_guard state(state_mutex_);
  if (stopped_) return model::fail(Errc::unavailable, "The log is stopped.");
  if (trouble_) return model::fail(*trouble_);
  if (!epochs_) return model::fail(Errc::unavailable, "The log's topics are not checked yet.");
  return {};
}

// The producer reports a failure. The next look follows at once and shows whether it has ended.
void KafkaLog::in_trouble(const Error& error) {
  const std::lock_guard state(state_mutex_);
  trouble_ = error;
  if (error.code != Errc::timed_out) writable_partitions_ = 0;
  look_now_ = true;
  changed_.notify_all();
}

void KafkaLog::stop() {
  std::call_once(stop_once_, [this] {
    {
      const std::lock_guard state(state_mutex_);
      stopped_ = true;
      writable_partitions_ = 0;
    }
    changed_.notify_all();
    if (producer_) producer_->stop();
    if (thread_.joinable()) thread_.join();
  });
}

}  // namespace

Result<std::unique_ptr<Log>> open_kafka_log(KafkaLogSettings settings) {
  if (auto checked = check(settings); !checked) return model::fail(checked.error());
  if (!settings.report) settings.report = [](const std::string&) {};
  auto log = std::make_unique<KafkaLog>(std::move(settings));
  if (auto opened = log->open(); !opened) return model::fail(opened.error());
  return log;
}

}  // namespace conversed::queue
