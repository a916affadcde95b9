#include "store/commit/committer.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <variant>

#include "store/cluster/notifications.h"
#include "store/commit/row_writes.h"
#include "store/commit/session_commit_writes.h"
#include "store/model/ids.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/guarded.h"
#include "store/runtime/thread_name.h"
#include "store/sql/database.h"
#include "store/sql/read.h"
#include "store/sql/sql.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::fail;
using model::Result;

// Items move from the submitter through the queue into a batch. The commit, a large object, does
// not.
struct CommitItem {
  std::unique_ptr<EncodedCommit> encoded;
  Committer::Done done;
  Outcome outcome = Outcome::conflict;
};
// Once its caller has been told, `work` and `done` are empty.
struct WriteItem {
  Committer::Work work;
  Committer::WriteDone done;
  Committer::Patience patience = Committer::Patience::until_it_works;
  Result<void> result;                           // of the last try
  std::vector<std::function<void()>> on_commit;  // of the last try
  bool alone = false;                            // runs outside of any transaction
};
struct MarkItem {
  std::function<void(Connection&)> write;
  std::function<void()> marked;
  std::optional<PlainDelivery> delivery;
};
using Item = std::variant<CommitItem, WriteItem, MarkItem>;

WriteItem* to_run_alone(Item& item) {
  auto* write = std::get_if<WriteItem>(&item);
  return write != nullptr && write->alone ? write : nullptr;
}

WriteItem* impatient(Item& item) {
  auto* write = std::get_if<WriteItem>(&item);
  if (write == nullptr || write->patience != Committer::Patience::none) return nullptr;
  return write->done ? write : nullptr;
}

void end(WriteItem& write, Result<void> result) {
  write.work = nullptr;
  if (auto done = std::exchange(write.done, nullptr)) done(std::move(result));
}

model::Error failing_error() {
  return {Errc::unavailable, "the store can't be written to now; nothing was changed"};
}

model::Error unknown_error() {
  return {Errc::timed_out,
          "the store failed during the write; it is not known whether the change was made"};
}

// A savepoint confines errors of the work. Throws only failures of the database: they concern the
// whole transaction.
void run_work(Connection& connection, WriteItem& write, Now now, const PartitionGate& gate) {
  // A write without work is empty in this try, even if an earlier try ran its work.
  write.on_commit.clear();
  if (!write.work) return;
  // Throws the errors of earlier statements here, so that they are not attributed to this work.
  connection.settle();
  connection.savepoint();
  Result<void>& result = write.result;
  Writer writer(connection, now, gate);
  try {
    result = write.work(writer);
    if (result) connection.release_savepoint();
  } catch (const SqlError& error) {
    if (error.kind() == SqlError::Kind::failed) throw;
    result = error.kind() == SqlError::Kind::too_long
                 ? fail(Errc::timed_out, "the store takes too long for this write")
                 : fail(to_error(error));
  } catch (const std::exception&) {
    result = fail(Errc::internal, "a write could not be made");
  }
  if (!result) return connection.rollback_to_savepoint();
  write.on_commit = writer.take_on_commit();
}

Result<void> run_outside(Connection& connection, const Committer::Work& work, Now now,
                         const PartitionGate& gate) {
  try {
    Writer writer(connection, now, gate);
    return work(writer);
  } catch (const SqlError& error) {
    return fail(to_error(error));
  } catch (const std::exception&) {
    return fail(Errc::internal, "the write failed inside the store");
  }
}

}  // namespace

struct Committer::Impl {
  Impl(Committer& owner_, Database& database, const model::Clock& clock_,
       CommitterSettings settings_)
      : owner(owner_),
        connection(database.writer()),
        clock(clock_),
        settings(std::move(settings_)),
        gated(database.dialect() == Dialect::postgres) {}

  enum class Attempt : std::uint8_t {
    committed,
    refused,   // the database refuses a value in the batch; rolled back
    too_long,  // the server's time limit has passed; rolled back
    failed,    // the store has failed; rolled back, unless the COMMIT itself failed
  };

  void push(Item item);
  void loop();
  bool wait_for_batch(std::vector<Item>& batch);
  void commit(std::span<Item> batch);
  Attempt attempt(std::span<Item> batch);
  void apply_all(std::span<Item> batch);
  [[nodiscard]] Attempt look_up();
  [[nodiscard]] bool admit();
  void dismiss_impatient(std::span<Item> tried);
  bool back_off(std::chrono::milliseconds delay);
  void finish(std::span<Item> batch);
  static void refuse(Item& item);
  static void give_up(std::span<Item> batch);
  void report(bool healthy);

  Committer& owner;
  Connection& connection;
  const model::Clock& clock;
  const CommitterSettings settings;
  const bool gated;  // a file is the whole store
  bool admitted = settings.admit == nullptr;
  PartitionGate gate;
  model::Guarded<std::function<void(bool)>> health_listener;

  std::mutex mutex;
  std::condition_variable filled;   // the Committer's thread waits for work or the stop
  std::condition_variable drained;  // submitters wait for room
  std::deque<Item> waiting;
  bool hurried = false;  // a commit or write waits, too, or the marks shall not wait
  bool running = false;
  bool stopping = false;
  bool retrying = true;

  std::thread thread;
  std::thread::id thread_id;  // under `mutex`

  // For the Committer's thread: the marker of the running transaction, and whether its COMMIT
  // reported an error, so that its outcome has to be looked up.
  const std::string writer_id = model::new_id();
  std::int64_t batch_number = 0;
  std::uint64_t last_commits = 0;                        // of the last transaction
  std::chrono::steady_clock::time_point commit_begun{};  // of the last COMMIT
  bool outcome_unknown = false;
  bool outcome_uncertain = false;  // the last try's COMMIT reported an error, but may have worked
  std::span<Item> in_hand;         // taken from `waiting`; tried as a whole or in parts
};

Committer::Committer(Database& database, const model::Clock& clock, CommitterSettings settings)
    : impl_(std::make_unique<Impl>(*this, database, clock, std::move(settings))) {}

Committer::~Committer() {
  stop();
}

void Committer::start() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->running || impl_->stopping) return;
  impl_->running = true;
  impl_->thread = std::thread([this] { impl_->loop(); });
  impl_->thread_id = impl_->thread.get_id();
}

void Committer::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->running = false;
  }
  impl_->filled.notify_all();
  impl_->drained.notify_all();
  if (impl_->thread.joinable()) impl_->thread.join();
  // Items are left only if the thread never started, since the thread drains the queue.
  std::deque<Item> left;
  {
    const std::lock_guard lock(impl_->mutex);
    left.swap(impl_->waiting);
  }
  for (Item& item : left) Impl::give_up(std::span(&item, 1));
}

void Committer::stop_retrying() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->retrying = false;
  }
  impl_->filled.notify_all();
}

void Committer::submit(SessionCommit commit, Done done) {
  submit(std::make_unique<EncodedCommit>(encode(std::move(commit))), std::move(done));
}

void Committer::submit(std::unique_ptr<EncodedCommit> encoded, Done done) {
  impl_->push(CommitItem{std::move(encoded), std::move(done)});
}

void Committer::write(Work work, WriteDone done, Patience patience) {
  impl_->push(WriteItem{std::move(work), std::move(done), patience, {}, {}, false});
}

Result<void> Committer::write_and_wait_for(Work work, Patience patience) {
  std::promise<Result<void>> promise;
  auto result = promise.get_future();
  WriteDone done = [&](Result<void> written) { promise.set_value(std::move(written)); };
  write(std::move(work), std::move(done), patience);
  return result.get();
}

void Committer::probe() {
  if (probing_.exchange(true)) return;
  write([](Writer&) { return Result<void>(); }, [this](const Result<void>&) { probing_ = false; });
}

Result<void> Committer::run_alone(Work work) {
  std::promise<Result<void>> promise;
  auto result = promise.get_future();
  WriteDone done = [&](Result<void> ran) { promise.set_value(std::move(ran)); };
  impl_->push(WriteItem{std::move(work), std::move(done), Patience::none, {}, {}, true});
  return result.get();
}

void Committer::mark(std::function<void(Connection&)> write, std::function<void()> marked,
                     std::optional<PlainDelivery> delivery) {
  impl_->push(MarkItem{std::move(write), std::move(marked), std::move(delivery)});
}

void Committer::hurry() {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->hurried || impl_->waiting.empty()) return;
    impl_->hurried = true;
  }
  impl_->filled.notify_one();
}

void Committer::on_health(std::function<void(bool)> listener) {
  impl_->health_listener.with([&](auto& current) { current = std::move(listener); });
}

void Committer::Impl::push(Item item) {
  std::unique_lock lock(mutex);
  // `healthy` turns false before waiting writes are dismissed, so no write is missed.
  const auto dismissed = [&] { return impatient(item) != nullptr && !owner.healthy(); };
  // A callback runs on the thread that makes room, so it must not wait for room.
  if (std::this_thread::get_id() != thread_id) {
    drained.wait(lock,
                 [&] { return waiting.size() < settings.max_waiting || stopping || dismissed(); });
  }
  if (stopping) {
    lock.unlock();
    give_up(std::span(&item, 1));
    return;
  }
  if (dismissed()) {
    lock.unlock();
    end(std::get<WriteItem>(item), fail(failing_error()));
    return;
  }
  const bool hurries = !std::holds_alternative<MarkItem>(item);
  waiting.push_back(std::move(item));
  const bool first = waiting.size() == 1;
  const bool ends_wait = waiting.size() == settings.max_batch || (hurries && !hurried);
  hurried = hurried || ends_wait;
  lock.unlock();
  if (first || ends_wait) filled.notify_one();
}

bool Committer::Impl::wait_for_batch(std::vector<Item>& batch) {
  batch.clear();
  std::unique_lock lock(mutex);
  filled.wait(lock, [this] { return !waiting.empty() || stopping; });
  if (waiting.empty()) return false;
  filled.wait_for(lock, settings.mark_wait, [this] { return hurried || stopping; });
  constexpr std::size_t several = 4;
  if (gated && last_commits >= several) {
    filled.wait_for(lock, settings.commit_wait,
                    [this] { return stopping || waiting.size() >= settings.max_batch; });
  }
  const std::size_t count = std::min(waiting.size(), settings.max_batch);
  for (std::size_t i = 0; i < count; ++i) {
    const bool alone = to_run_alone(waiting.front()) != nullptr;
    if (alone && !batch.empty()) break;
    batch.push_back(std::move(waiting.front()));
    waiting.pop_front();
    if (alone) break;
  }
  hurried = !waiting.empty();
  lock.unlock();
  drained.notify_all();
  return true;
}

void Committer::Impl::loop() {
  model::name_this_thread("committer");
  std::vector<Item> batch;
  while (wait_for_batch(batch)) {
    in_hand = batch;
    if (WriteItem* alone = to_run_alone(batch.front()); alone != nullptr) {
      end(*alone, run_outside(connection, alone->work, settings.now(clock), gate));
    } else {
      commit(batch);
    }
  }
}

// Commits the batch in as few transactions as its values allow, in order.
void Committer::Impl::commit(std::span<Item> batch) {
  auto delay = settings.min_backoff;
  for (;;) {
    const Attempt tried = attempt(batch);
    switch (tried) {
      case Attempt::committed:
        report(true);
        return finish(batch);
      case Attempt::refused:
      case Attempt::too_long:
        // A database that refuses values is healthy. If the batch took too long, each half may also
        // take long, so writes with `Patience::none` fail first.
        tried == Attempt::refused ? report(true) : dismiss_impatient(batch);
        if (batch.size() == 1) {
          refuse(batch.front());
          return finish(batch);
        }
        commit(batch.first(batch.size() / 2));
        return commit(batch.subspan(batch.size() / 2));
      case Attempt::failed:
        report(false);
        dismiss_impatient(batch);
        if (!back_off(delay)) {
          outcome_unknown = false;  // the next batch has another outcome
          return give_up(batch);
        }
        delay = std::min(delay * 2, settings.max_backoff);
    }
  }
}

// One transaction. If an earlier try's COMMIT reported an error, looks up first whether that try
// took effect.
Committer::Impl::Attempt Committer::Impl::attempt(std::span<Item> batch) {
  if (outcome_unknown && look_up() == Attempt::committed) return Attempt::committed;
  if (outcome_unknown) return Attempt::failed;
  outcome_uncertain = false;
  if (!admitted && !admit()) return Attempt::failed;
  try {
    ++batch_number;
    connection.begin();
    if (gated) gate.ask(connection);
    apply_all(batch);
    model::fault_point("store.before_commit");
    commit_begun = std::chrono::steady_clock::now();
    outcome_unknown = true;
    connection.commit();
    outcome_unknown = false;
    model::fault_point("store.after_commit");
    return Attempt::committed;
  } catch (const SqlError& error) {
    connection.rollback();
    owner.last_failure_.with([&](std::string& failure) { failure = error.what(); });
    if (error.kind() == SqlError::Kind::refused) {
      outcome_unknown = false;  // a refused COMMIT certainly had no effect
      return Attempt::refused;
    }
    // A single SessionCommit is tried again without limit, since its events must have effects; a
    // single mark, too, since its service waits for it. A write has its own limit (run_work).
    const bool too_long = error.kind() == SqlError::Kind::too_long && batch.size() > 1;
    if (!outcome_unknown) return too_long ? Attempt::too_long : Attempt::failed;
    // At a silent server a look-up would time out, too, while callers wait. So the next try looks
    // up the outcome.
    const Attempt found = error.silent() ? Attempt::failed : look_up();
    outcome_uncertain = outcome_unknown || error.uncertain();
    return found;
  }
}

bool Committer::Impl::admit() {
  const auto admits = with_errors(connection, [&](Connection&) { return settings.admit(); });
  admitted = admits.has_value();
  if (!admits) {
    owner.last_failure_.with([&](std::string& failure) { failure = admits.error().message; });
    connection.rollback();
  }
  return admitted;
}

// Whether a COMMIT that reported an error took effect. `failed`: it did not, or the look-up failed
// and the outcome stays unknown.
Committer::Impl::Attempt Committer::Impl::look_up() {
  try {
    // In a transaction, which waits for its turn: the server may still run the lost connection's
    // COMMIT.
    connection.begin();
    const bool durable = connection.value<std::int64_t>("SELECT batch FROM writers WHERE id = :i",
                                                        writer_id) == batch_number;
    connection.rollback();
    outcome_unknown = false;
    return durable ? Attempt::committed : Attempt::failed;
  } catch (const SqlError&) {
    connection.rollback();
    return Attempt::failed;
  }
}

// Fails the writes with `Patience::none`. The batch is tried again without them, which also shows
// when the store works again.
void Committer::Impl::dismiss_impatient(std::span<Item> tried) {
  // `tried` is a part of `in_hand`.
  const auto first = static_cast<std::size_t>(tried.data() - in_hand.data());
  for (std::size_t i = 0; i < in_hand.size(); ++i) {
    WriteItem* write = impatient(in_hand[i]);
    if (write == nullptr) continue;
    const bool in_try = i >= first && i < first + tried.size();
    end(*write, fail(in_try && outcome_uncertain ? unknown_error() : failing_error()));
  }
  std::vector<Item> dismissed;
  {
    const std::lock_guard lock(mutex);
    std::deque<Item> patient;
    for (Item& item : waiting) {
      const bool waits = impatient(item) == nullptr;
      waits ? patient.push_back(std::move(item)) : dismissed.push_back(std::move(item));
    }
    waiting.swap(patient);
  }
  drained.notify_all();
  for (Item& item : dismissed) end(std::get<WriteItem>(item), fail(failing_error()));
}

void Committer::Impl::apply_all(std::span<Item> batch) {
  const Now now = settings.now(clock);
  BatchTotals totals;
  CommitGroup commits(connection, now, totals, gate);
  for (Item& item : batch) {
    if (auto* commit = std::get_if<CommitItem>(&item)) {
      commits.add(*commit->encoded, commit->outcome);
    } else if (auto* write = std::get_if<WriteItem>(&item)) {
      // The work may read their rows.
      if (write->work) {
        commits.flush();
        totals.receipts.flush(connection);
        gate.look(connection);
      }
      run_work(connection, *write, now, gate);
    } else {
      const auto& mark = std::get<MarkItem>(item);
      mark.write(connection);
      if (mark.delivery) totals.receipts.add(*mark.delivery);
    }
  }
  commits.flush();
  totals.flush(connection, now);
  connection.run(
      "INSERT INTO writers (id, batch, written_at) VALUES (:i, :b, :w)"
      " ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, written_at = excluded.written_at",
      writer_id, batch_number, now.wall);
}

// False if there must be no further try.
bool Committer::Impl::back_off(std::chrono::milliseconds delay) {
  std::unique_lock lock(mutex);
  return !filled.wait_for(lock, delay, [this] { return stopping || !retrying; });
}

void Committer::Impl::finish(std::span<Item> batch) {
  std::uint64_t committed = 0;
  for (Item& item : batch) {
    if (auto* commit = std::get_if<CommitItem>(&item)) {
      committed += commit->outcome == Outcome::committed ? 1 : 0;
      commit->encoded->commit.unseen_until = commit_begun;
      if (commit->done) commit->done(commit->outcome, commit->encoded->commit);
    } else if (auto* write = std::get_if<WriteItem>(&item)) {
      for (const auto& told : write->on_commit) told();
      end(*write, std::move(write->result));
    } else if (const auto& mark = std::get<MarkItem>(item); mark.marked) {
      mark.marked();
    }
  }
  last_commits = committed;
  owner.commits_.fetch_add(committed, std::memory_order_relaxed);
  owner.transactions_.fetch_add(1, std::memory_order_relaxed);
}

void Committer::Impl::refuse(Item& item) {
  if (auto* commit = std::get_if<CommitItem>(&item)) {
    commit->outcome = Outcome::poison;
  } else if (auto* write = std::get_if<WriteItem>(&item)) {
    write->result = fail(Errc::conflict, "the store refuses these values");
    write->on_commit.clear();
  } else {
    std::get<MarkItem>(item).marked = nullptr;
  }
}

void Committer::Impl::give_up(std::span<Item> batch) {
  for (Item& item : batch) {
    auto* write = std::get_if<WriteItem>(&item);
    if (write != nullptr) end(*write, fail(Errc::unavailable, "the store is stopping"));
  }
}

void Committer::Impl::report(bool healthy) {
  if (owner.healthy_.exchange(healthy) == healthy) return;
  const auto listener = health_listener.with([](const auto& current) { return current; });
  if (listener) listener(healthy);
}

}  // namespace conversed::store
