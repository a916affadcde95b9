#include "queue/kafka/kafka_consumer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// A poll for no records serves the group this often. The group's time-outs are at least ten times
// longer.
constexpr std::chrono::milliseconds serve_interval = 300ms;
// The shortest time between two tries to begin partitions that return from being set aside.
constexpr std::chrono::milliseconds return_interval = 500ms;
// The kept bytes of a key that makes a dead letter too large.
constexpr std::size_t cut_key_bytes = 256;

Error gone_back(const std::string& how) {
  return {Errc::conflict, "The log has gone back: " + how +
                              ". Were records deleted, or the topic " +
                              "made again? See `conversed new-epoch`."};
}

std::string place(const rd_kafka_message_t& message) {
  return "partition " + std::to_string(message.partition) + ", offset " +
         std::to_string(message.offset);
}

}  // namespace

Result<std::unique_ptr<KafkaConsumer>> KafkaConsumer::open(KafkaConsumerContext context,
                                                           Listener& listener) {
  std::unique_ptr<KafkaConsumer> consumer(new KafkaConsumer(std::move(context), listener));
  if (auto joined = consumer->join(); !joined) return model::fail(joined.error());
  return consumer;
}

Result<void> KafkaConsumer::join() {
  auto settings = context_.settings;
  // A known member would get its old partitions, which were assigned for another number of
  // partitions.
  settings.instance_id += '.' + std::to_string(context_.epochs->partitions());
  auto client = make_kafka_client(settings, KafkaRole::consumer, *this);
  if (!client) return model::fail(client.error());
  client_ = std::move(*client);
  prune_answers_.reset(rd_kafka_queue_new(client_.get()));
  {
    const std::lock_guard lock(mutex_);
    queue_.reset(rd_kafka_queue_get_consumer(client_.get()));
  }
  const auto topics =
      kafka_partitions(context_.names.records, {{RD_KAFKA_PARTITION_UA, RD_KAFKA_OFFSET_INVALID}});
  return kafka_result(rd_kafka_subscribe(client_.get(), topics.get()),
                      "The log can't be subscribed to");
}

// The client's destruction waits for all objects that it has handed out, including lists of
// partitions.
void KafkaConsumer::leave() {
  unburied_.reset();
  {
    const std::lock_guard lock(mutex_);
    queue_.reset();
  }
  prune_answers_.reset();
  client_.reset();
}

KafkaConsumer::KafkaConsumer(KafkaConsumerContext context, Listener& listener)
    : KafkaHandler(context.settings.report),
      context_(std::move(context)),
      listener_(listener),
      pruned_at_(SteadyClock::now()) {}

KafkaConsumer::~KafkaConsumer() {
  leave();
  context_.closed();
}

Result<std::vector<LogRecord>> KafkaConsumer::poll(std::size_t max,
                                                   std::chrono::milliseconds wait) {
  std::vector<LogRecord> records;
  if (max == 0) {
    if (auto served = poll_none(); !served) return model::fail(served.error());
    commit_passed();
    return records;
  }
  if (all_paused_) pause_all(false);
  while (!held_back_.empty() && records.size() < max) {
    records.push_back(std::move(held_back_.front()));
    held_back_.pop_front();
  }
  const auto now = SteadyClock::now();
  auto assignment = assignment_;
  while (records.size() < max) {
    auto record = next(records.empty() ? now + wait : now);
    // Records of a past assignment are dropped: the partition's next owner reads them again.
    if (std::exchange(assignment, assignment_) != assignment_) records.clear();
    if (!record) {
      // Hands out the records before the error. The next poll meets the error again.
      if (!records.empty()) break;
      return model::fail(record.error());
    }
    if (!*record) break;
    records.push_back(std::move(**record));
  }
  commit_passed();
  prune();
  return records;
}

Result<void> KafkaConsumer::poll_none() {
  const auto now = SteadyClock::now();
  if (now - served_at_ < serve_interval) return {};
  if (!held_back_.empty() && !all_paused_) pause_all(true);
  auto record = next(now);
  if (!record) return model::fail(record.error());
  if (*record) held_back_.push_back(std::move(**record));
  return {};
}

Result<void> KafkaConsumer::prepare() {
  if (broken_) return model::fail(*broken_);
  if (fenced_ || !client_) {
    if (std::exchange(fenced_, false)) give_up();
    leave();
    if (auto joined = join(); !joined) return joined;
  }
  if (assignment_is_new_) {
    if (auto begun = begin_assignment(); !begun) {
      serve_group();
      return begun;
    }
  } else if (is_returning_) {
    begin_returning();
    if (broken_) return model::fail(*broken_);
  }
  // After the loss of an assignment the group revokes it. Another choice of its partitions would
  // make the library forget the loss.
  if (library_is_behind_ && rd_kafka_assignment_lost(client_.get()) == 0) {
    if (auto restarted = restart_library(); !restarted) return restarted;
  }
  if (!unburied_) return {};
  auto again = take(std::move(unburied_));
  if (!again) return model::fail(again.error());
  return {};
}

Result<std::optional<LogRecord>> KafkaConsumer::next(SteadyTime until) {
  for (;;) {
    if (auto prepared = prepare(); !prepared) return model::fail(prepared.error());
    const auto left =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()), 0ms);
    if (left > 0ms && woken_.exchange(false)) return std::nullopt;
    served_at_ = SteadyClock::now();
    KafkaMessage message(rd_kafka_consumer_poll(client_.get(), static_cast<int>(left.count())));
    if (message && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      pass_to_end(*message);
      continue;
    }
    if (message) {
      auto record = take(std::move(message));
      if (!record || *record) return record;
      // Each unreadable record takes time. Many of them in a row must not hold the caller up.
      if (woken_.exchange(false) || SteadyClock::now() >= until) return std::nullopt;
      continue;
    }
    if (assignment_is_new_) continue;
    if (left == 0ms || SteadyClock::now() >= until) return std::nullopt;
  }
}

// Offsets without a record mark the end of a transaction, or belong to an aborted one.
void KafkaConsumer::pass_to_end(const rd_kafka_message_t& end) {
  const auto ended = partitions_.find(end.partition);
  if (ended != partitions_.end() && end.offset > ended->second.next) {
    pass(ended->second, end.offset);
  }
}

// Serves the group, so that its other members need not wait until this one can begin.
void KafkaConsumer::serve_group() {
  KafkaMessage message(rd_kafka_consumer_poll(client_.get(), 0));
  if (message && message->err != RD_KAFKA_RESP_ERR_NO_ERROR) (void)take(std::move(message));
}

// None: the message is no record to hand out.
Result<std::optional<LogRecord>> KafkaConsumer::take(KafkaMessage message) {
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    std::array<char, 512> reason{};
    const auto fatal = rd_kafka_fatal_error(client_.get(), reason.data(), reason.size());
    // A broker that crashes while the group changes may not recognize this member. The report also
    // helps if a second daemon has its name.
    fenced_ = fatal == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
    if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR && !fenced_) {
      broken_ = {Errc::conflict, "The log can't be read any more: " + std::string(reason.data())};
      return model::fail(*broken_);
    }
    if (fenced_) {
      return model::fail(Errc::unavailable,
                         "Kafka takes another member for this one, which joins again. Is there a "
                         "daemon with the same queue.kafka.instance_id?");
    }
    return model::fail(kafka_error(message->err, "The log can't be read"));
  }
  const auto partition = partitions_.find(message->partition);
  if (partition == partitions_.end()) return std::nullopt;
  if (message->offset < partition->second.next) {
    broken_ = gone_back(place(*message) + " came after offset " +
                        std::to_string(partition->second.next - 1));
    return model::fail(*broken_);
  }
  auto record = read(*message);
  if (record) {
    partition->second.next = message->offset + 1;
    partition->second.last_handed_out = message->offset;
    return std::move(*record);
  }
  if (auto buried = bury(*message, record.error().message); !buried) {
    unburied_ = std::move(message);
    return model::fail(buried.error());
  }
  pass(partition->second, message->offset + 1);
  return std::nullopt;
}

Result<LogRecord> KafkaConsumer::read(const rd_kafka_message_t& message) const {
  auto record = read_kafka_record(message);
  if (!record) return model::fail(record.error());
  const auto& epoch = context_.epochs->at(message.partition, message.offset);
  const auto right = partition_of(record->key, static_cast<std::int32_t>(epoch.first.size()));
  if (right != message.partition) {
    return model::fail(Errc::invalid_argument, "It belongs in partition " + std::to_string(right) +
                                                   ", by murmur2 of its key.");
  }
  return LogRecord{std::move(*record), {epoch.epoch, message.partition, message.offset}};
}

// A dead letter that is too large is stored in part, so that the partition goes on.
Result<void> KafkaConsumer::bury(const rd_kafka_message_t& message, const std::string& reason) {
  const KafkaHeaderList own{{"dead-letter-reason", reason},
                            {"dead-letter-topic", context_.names.records},
                            {"dead-letter-partition", std::to_string(message.partition)},
                            {"dead-letter-offset", std::to_string(message.offset)}};
  KafkaOutgoing letter;
  letter.topic = context_.names.dead_letters.c_str();
  if (message.key != nullptr) letter.key.assign(static_cast<char*>(message.key), message.key_len);
  if (message.payload != nullptr) {
    letter.value.assign(static_cast<char*>(message.payload), message.len);
  }
  letter.headers = kafka_headers_of(message);
  letter.headers.insert(letter.headers.end(), own.begin(), own.end());
  const auto store = [&] { return wait_for(context_.producer.send_own(letter), listener_); };
  const auto is_too_large = [](const Result<KafkaPlace>& placed) {
    return !placed && placed.error().code == Errc::too_large;
  };
  auto stored = store();
  if (is_too_large(stored)) {
    letter.value.clear();
    letter.headers.emplace_back("dead-letter-without-value", "too large");
    stored = store();
  }
  if (is_too_large(stored)) {
    letter.headers = own;
    letter.headers.emplace_back("dead-letter-without-value", "too large");
    letter.headers.emplace_back("dead-letter-without-headers", "too large");
    if (letter.key.size() > cut_key_bytes) {
      letter.key.resize(cut_key_bytes);
      letter.headers.emplace_back("dead-letter-with-cut-key", "too large");
    }
    stored = store();
  }
  const bool passes_by = is_too_large(stored);
  if (!stored && !passes_by) return model::fail(stored.error());
  report("The record at " + place(message) + " can't be read, " +
         (passes_by ? "it is too large for " + context_.names.dead_letters + " and passed over. "
                    : "it is in " + context_.names.dead_letters + " now. ") +
         reason);
  return {};
}

// The offsets below `next` count as finished once all records that were handed out before are
// finished.
void KafkaConsumer::pass(Partition& partition, std::int64_t next) {
  partition.next = next;
  if (partition.last_handed_out >= partition.committed) {
    partition.finished_behind[partition.last_handed_out] = next;
  }
}

// Commits passed offsets that follow no unfinished record. If the commit fails, their dead letters
// are written once more after a restart.
void KafkaConsumer::commit_passed() {
  const auto now = SteadyClock::now();
  if (now < commit_passed_at_) return;
  KafkaOffsets offsets;
  for (const auto& [number, partition] : partitions_) {
    if (partition.last_handed_out < partition.committed && partition.next > partition.committed) {
      offsets[number] = partition.next;
    }
  }
  if (auto done = commit_offsets(offsets); !done) {
    report(done.error().message);
    commit_passed_at_ = SteadyClock::now() + context_.settings.request_timeout;
  }
}

// The lists always have all partitions, as the protocol `range` demands.
void KafkaConsumer::on_rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t& list) {
  if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    // `next` continues: it has to ask the brokers, which may fail.
    assigned_.clear();
    for (int at = 0; at < list.cnt; ++at) assigned_.insert(list.elems[at].partition);
    assignment_is_new_ = true;
  } else {
    give_up();
  }
  rd_kafka_yield(client_.get());
}

void KafkaConsumer::give_up() {
  assigned_.clear();
  assignment_is_new_ = false;
  is_returning_ = false;
  library_is_behind_ = false;
  std::vector<std::int32_t> lost;
  for (const auto& [number, partition] : partitions_) lost.push_back(number);
  ++assignment_;
  held_back_.clear();
  unburied_.reset();
  ends_below_since_.reset();
  all_paused_ = false;
  if (!lost.empty()) listener_.on_revoked(lost);
  commit_passed();
  partitions_.clear();
  rd_kafka_assign(client_.get(), nullptr);
}

// For the thread that polls. `wake` makes it give up.
KafkaAsker KafkaConsumer::asker(rd_kafka_t* client) {
  return {.client = client, .wait = context_.settings.request_timeout, .pause = [this] {
            std::unique_lock lock(mutex_);
            return !changed_.wait_for(lock, kafka_look_interval, [this] { return woken_.load(); });
          }};
}

// A partition that stays shorter than its committed offset has lost records. The next records would
// get offsets that sessions have seen, and would look like repeats.
Result<void> KafkaConsumer::check_ends(const KafkaRanges& read) {
  if (!read.lost.empty()) {
    broken_ = kafka_records_lost(read.lost);
    return model::fail(*broken_);
  }
  if (read.ends_below.empty()) {
    ends_below_since_.reset();
    return {};
  }
  const auto now = SteadyClock::now();
  if (!ends_below_since_) ends_below_since_ = now;
  if (now - *ends_below_since_ < context_.settings.request_timeout) {
    return model::fail(Errc::unavailable, read.ends_below + ". It is checked again.");
  }
  broken_ = gone_back(read.ends_below);
  return model::fail(*broken_);
}

Result<void> KafkaConsumer::begin_assignment() {
  partitions_.clear();
  if (auto begun = begin(unread(), asker(client_.get())); !begun) return begun;
  assignment_is_new_ = false;
  // Also without a partition to read: only then is this member's rebalance complete. And also if
  // the assignment is lost already: the group then revokes nothing before the next one.
  return restart_library();
}

// The partitions that are being read go on after an error.
void KafkaConsumer::begin_returning() {
  const auto tried = SteadyClock::now();
  if (tried < return_at_ || rd_kafka_assignment_lost(client_.get()) != 0) return;
  if (auto returned = return_partitions(); !returned) {
    // A try may wait for a store or a broker. The others get at least as much time.
    const auto now = SteadyClock::now();
    return_at_ = now + std::max<SteadyClock::duration>(return_interval, now - tried);
    if (!broken_) listener_.on_put_off(returned.error());
    return;
  }
  is_returning_ = false;
}

Result<void> KafkaConsumer::return_partitions() {
  if (!observer_) {
    auto observer = make_kafka_client(context_.settings, KafkaRole::observer, *this);
    if (!observer) return model::fail(observer.error());
    observer_ = std::move(*observer);
  }
  return begin(unread(), asker(observer_.get()));
}

Result<void> KafkaConsumer::begin(const std::vector<std::int32_t>& numbers,
                                  const KafkaAsker& brokers) {
  KafkaRanges found;
  if (!numbers.empty()) {
    auto read = read_kafka_ranges(brokers, context_.names.records, numbers, *context_.epochs);
    if (!read) return model::fail(read.error());
    found = std::move(*read);
  }
  if (auto fine = check_ends(found); !fine) return fine;
  for (const auto& range : found.ranges) {
    partitions_[range.partition] = {.committed = range.committed,
                                    .next = range.committed,
                                    .pruned = range.first,
                                    .finished_behind = {},
                                    .last_handed_out = range.committed - 1};
  }
  if (auto told = listener_.on_assigned(found.ranges); !told) {
    for (const auto& range : found.ranges) partitions_.erase(range.partition);
    return told;
  }
  library_is_behind_ = true;
  return {};
}

std::vector<std::int32_t> KafkaConsumer::unread() const {
  std::vector<std::int32_t> numbers;
  for (const auto number : assigned_) {
    if (!set_aside_.contains(number) && !partitions_.contains(number)) numbers.push_back(number);
  }
  return numbers;
}

// Makes the library read `partitions_`, each from its next offset.
Result<void> KafkaConsumer::restart_library() {
  unburied_.reset();  // it comes again, because `next` has not passed it
  // If a partition was given up while it was paused, the library still has it paused. This comes
  // before the assignment. A resume beside the library's order to start a partition can make this
  // order look outdated. Then the library drops it, and the partition is never read (librdkafka
  // 2.0.2, rd_kafka_toppar_op_serve; librdkafka's issue 2190).
  pause_all(false);
  KafkaOffsets from;
  for (const auto& [number, partition] : partitions_) from[number] = partition.next;
  auto begun = kafka_result(
      rd_kafka_assign(client_.get(), kafka_partitions(context_.names.records, from).get()),
      "The partitions can't be read");
  if (!begun) return begun;
  library_is_behind_ = false;
  return {};
}

Result<void> KafkaConsumer::set_aside(std::span<const std::int32_t> partitions) {
  std::set<std::int32_t> all(partitions.begin(), partitions.end());
  if (all == set_aside_) return {};
  set_aside_ = std::move(all);
  const auto is_set_aside = [this](std::int32_t number) { return set_aside_.contains(number); };
  std::vector<std::int32_t> lost;
  for (const auto& [number, partition] : partitions_) {
    if (is_set_aside(number)) lost.push_back(number);
  }
  if (!lost.empty()) {
    std::erase_if(held_back_,
                  [&](const LogRecord& each) { return is_set_aside(each.position.partition); });
    if (unburied_ && is_set_aside(unburied_->partition)) unburied_.reset();
    listener_.on_revoked(lost);
    commit_passed();
    for (const auto number : lost) partitions_.erase(number);
    library_is_behind_ = true;
  }
  is_returning_ = !assignment_is_new_ && !unread().empty();
  return_at_ = {};
  ends_below_since_.reset();
  served_at_ = {};  // so that the next poll for no records begins them, too
  return {};
}

Result<void> KafkaConsumer::commit(std::span<const Position> finished) {
  KafkaOffsets offsets;
  for (const auto& at : finished) {
    const auto found = partitions_.find(at.partition);
    if (found == partitions_.end() || at.offset < 0 || at.offset >= found->second.next ||
        context_.epochs->at(at.partition, at.offset).epoch != at.epoch) {
      return model::fail(not_handed_out(at));
    }
    const Partition& partition = found->second;
    if (at.offset < partition.committed) continue;
    const auto behind = partition.finished_behind.find(at.offset);
    offsets[at.partition] =
        behind == partition.finished_behind.end() ? at.offset + 1 : behind->second;
  }
  return commit_offsets(offsets);
}

Result<void> KafkaConsumer::commit_offsets(const KafkaOffsets& offsets) {
  if (offsets.empty()) return {};
  constexpr const char* doing = "The finished positions can't be committed";
  // The partitions' new owner commits for them. An empty group would accept a commit without a
  // generation.
  if (rd_kafka_assignment_lost(client_.get()) != 0) {
    return model::fail(Errc::unavailable,
                       std::string(doing) + ": another member has the partitions now.");
  }
  const auto list = kafka_partitions(context_.names.records, offsets);
  for (int at = 0; at < list->cnt; ++at) {
    auto& each = list->elems[at];
    note_epoch(each, context_.epochs->at(each.partition, each.offset - 1).epoch);
  }
  const KafkaQueue answers(rd_kafka_queue_new(client_.get()));
  auto error = rd_kafka_commit_queue(client_.get(), list.get(), answers.get(), nullptr, nullptr);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return model::fail(kafka_error(error, doing));
  const auto wait = context_.settings.request_timeout;
  const KafkaEvent event(rd_kafka_queue_poll(answers.get(), static_cast<int>(wait.count())));
  if (!event) return model::fail(Errc::timed_out, std::string(doing) + ": no answer in time.");
  error = rd_kafka_event_error(event.get());
  const auto* done = rd_kafka_event_topic_partition_list(event.get());
  for (int at = 0; error == RD_KAFKA_RESP_ERR_NO_ERROR && done != nullptr && at < done->cnt; ++at) {
    error = done->elems[at].err;
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return model::fail(kafka_error(error, doing));
  for (const auto& [number, offset] : offsets) {
    Partition& partition = partitions_.at(number);
    partition.committed = offset;
    partition.finished_behind.erase(partition.finished_behind.begin(),
                                    partition.finished_behind.lower_bound(offset));
  }
  return {};
}

// Pauses or resumes all partitions, unless they are in that state.
void KafkaConsumer::pause_all(bool paused) {
  all_paused_ = paused;
  KafkaOffsets all;
  for (const auto& [number, partition] : partitions_) all[number] = RD_KAFKA_OFFSET_INVALID;
  const auto list = kafka_partitions(context_.names.records, all);
  (paused ? rd_kafka_pause_partitions : rd_kafka_resume_partitions)(client_.get(), list.get());
}

void KafkaConsumer::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    if (queue_) rd_kafka_queue_yield(queue_.get());
  }
  changed_.notify_all();
}

void KafkaConsumer::prune() {
  const auto now = std::chrono::steady_clock::now();
  std::int64_t finished = 0;
  for (const auto& [number, partition] : partitions_) {
    finished += partition.committed - partition.pruned;
  }
  if (finished == 0 || (finished < context_.settings.prune_after_records &&
                        now - pruned_at_ < context_.settings.prune_interval)) {
    return;
  }
  pruned_at_ = now;
  report_prune_answers();
  KafkaOffsets below;
  for (auto& [number, partition] : partitions_) {
    if (partition.committed == partition.pruned) continue;
    below[number] = partition.pruned = partition.committed;
  }
  const auto list = kafka_partitions(context_.names.records, below);
  const KafkaDeleteRecords request(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* requests[] = {request.get()};
  rd_kafka_DeleteRecords(client_.get(), requests, 1, nullptr, prune_answers_.get());
}

void KafkaConsumer::report_prune_answers() {
  while (const KafkaEvent event{rd_kafka_queue_poll(prune_answers_.get(), 0)}) {
    auto error = rd_kafka_event_error(event.get());
    const auto* result = rd_kafka_event_DeleteRecords_result(event.get());
    const auto* list = result == nullptr ? nullptr : rd_kafka_DeleteRecords_result_offsets(result);
    for (int at = 0; list != nullptr && error == RD_KAFKA_RESP_ERR_NO_ERROR && at < list->cnt;
         ++at) {
      error = list->elems[at].err;
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      report(kafka_error(error, "Finished records can't be deleted").message);
    }
  }
}

}  // namespace conversed::queue
