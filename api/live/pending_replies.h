#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "store/model/event.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::api {

// Calls functions when they are due, on its own thread and outside the lock. A function may call
// back in here. Thread-safe.
class Deadlines {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Token = std::pair<TimePoint, std::uint64_t>;

  // `name`: of the thread, at most 15 bytes.
  explicit Deadlines(std::string name);
  ~Deadlines();
  Deadlines(const Deadlines&) = delete;
  Deadlines& operator=(const Deadlines&) = delete;

  // Calls the function once, at or soon after `when`, unless it is cancelled before.
  Token add(TimePoint when, std::function<void()> function);
  // Does nothing if the call has begun.
  void cancel(const Token& token);
  // Drops the functions that have not begun and joins the thread. Tolerates being called twice.
  void stop();

 private:
  void run(const std::stop_token& stop);

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Token, std::function<void()>> pending_;  // ordered by time
  std::uint64_t last_number_ = 0;
  std::jthread thread_;  // the last member: it uses the others
};

// The answer of `POST /{URLToken}`: finished JSON text (see compose_answer in api/live/answer.h).
// Empty: the user was erased, with the outputs.
struct Answer {
  int status = 200;
  std::string body;

  bool operator==(const Answer&) const = default;
};

// The number of a wait. Never used twice.
using Ticket = std::uint64_t;

// Why a client does not get the whole answer.
enum class Overdue : std::uint8_t { deadline, stop };

// The callbacks of a wait. None may block, except `heard`, which may read the store.
struct ReplyWait {
  std::function<void(model::Result<Answer>)> answered;  // once
  std::function<void(Ticket, Overdue)> overdue;         // once; has to end the wait soon
  std::function<void(Ticket)> heard;                    // the store may have the answer
};

// Clients that wait for the answer to an input, by the input's id. The turn worker calls `finish`
// when its commit is durable, which ends the waits. A wait that hears of another daemon's commit
// reads the answer from the store.
//
// Thread-safe. Callbacks run outside the lock: `answered` on the thread that ends the wait, `heard`
// on a thread for looks, and, at the deadline, `overdue` on a thread for deadlines.
//
// Invariants:
// - A wait goes on past its deadline until the cut is stored or refused. The answer or the cut ends
//   it, whichever comes first.
//   Kept by: PendingReplies.AtItsDeadlineAWaitIsOverdueAndGoesOnUntilItIsEnded,
//   PendingReplies.EveryWaitEndsOnceWhenEndsRace.
// - A look that takes long delays no deadline, and a wait has one look in the queue at most.
//   Kept by: PendingReplies.ALookThatTakesLongDelaysNoDeadline,
//   PendingReplies.WaitingLooksAreMerged.
// - Where a notification of another daemon may have been missed, all waits look again.
//   Kept by: PendingReplies.WaitsHearNotificationsOfTheirInput.
class PendingReplies {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  PendingReplies() = default;
  ~PendingReplies();
  PendingReplies(const PendingReplies&) = delete;
  PendingReplies& operator=(const PendingReplies&) = delete;

  // Waits for the answer to an input. Call it before the input's append, so that no answer comes
  // before the wait. Each of several waits for one id gets the answer. After `cut_off` it is
  // answered `unavailable` at once.
  Ticket wait(std::string input_id, TimePoint deadline, ReplyWait wait);

  // Moves the wait to the input of its Idempotency-Key. False if the wait has ended.
  bool move(Ticket ticket, std::string input_id);

  // Moves the wait's deadline to `deadline` if that is earlier.
  void hasten(Ticket ticket, TimePoint deadline);

  // Ends one wait with the given error or answer. False if it had ended before.
  bool end(Ticket ticket, model::Result<Answer> outcome);
  // Ends one wait without calling `answered`.
  bool drop(Ticket ticket) { return take(ticket).has_value(); }

  [[nodiscard]] bool awaited(const std::string& input_id) const;

  void finish(const std::string& input_id, const model::Result<Answer>& outcome);

  // The store may have answers to these inputs, separated by spaces. Their waits read the store.
  // Empty: all waits do.
  void hear(std::string_view input_ids);
  void look(Ticket ticket);

  // The daemon stops: takes no further wait, and makes every wait overdue.
  void cut_off();
  // Ends every wait and every later one with `unavailable`. Tolerates being called twice.
  void stop();

  [[nodiscard]] std::size_t size() const;

 private:
  struct Wait {
    std::string name;  // the input's id
    std::shared_ptr<const ReplyWait> callbacks;
    TimePoint deadline;
    Deadlines::Token token;  // of the deadline
    bool overdue = false;    // `overdue` was called
    bool looking = false;    // a look is queued
  };
  struct State {
    [[nodiscard]] Wait* find(Ticket ticket);  // null: it has ended
    [[nodiscard]] std::vector<Ticket> all() const;
    [[nodiscard]] std::vector<Ticket> named(const std::string& name) const;
    [[nodiscard]] std::optional<Wait> take(Ticket ticket);

    std::map<Ticket, Wait> waits;
    std::set<std::pair<std::string, Ticket>> names;
    Ticket last = 0;
    bool stopped = false;
  };

  [[nodiscard]] std::vector<Ticket> refuse_more();
  [[nodiscard]] std::optional<Wait> take(Ticket ticket);
  void queue_look(State& state, Ticket ticket);
  void expire(Ticket ticket, Overdue why);
  void tell(Ticket ticket);

  model::Guarded<State> state_;
  // The last members, because their threads use the others. Looks have their own thread: reading
  // the store may take long and must not delay a deadline.
  Deadlines looks_{"looks"};
  Deadlines deadlines_{"deadlines"};
};

enum class WatchEnd : std::uint8_t { notified, deadline, stopped };

// The name of a session's outputs in the notifications between daemons. If two sessions share a
// name, a poll reads the store once more than needed.
[[nodiscard]] std::string outputs_name(const model::SessionKey& key);

// Clients that long-poll an object by its name: a job's id, or `outputs_name`. Each watch ends
// once: by `notify`, or at its deadline.
//
// Thread-safe. Each callback runs exactly once, outside the lock, on a thread of the watch, so that
// `notify` costs a worker next to nothing. `stop` runs the callbacks itself. Callbacks may do a
// point select, except with the reason `stopped`, because stopping has a time limit.
class KeyWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Callback = std::function<void(WatchEnd)>;

  // Watches the object. Call it before you read the object, so that you miss no change. After
  // `stop` the callback runs at once.
  Ticket watch(std::string name, TimePoint deadline, Callback callback);

  // Ends a watch without its callback. False if it has ended.
  bool cancel(Ticket ticket) { return waits_.drop(ticket); }

  // Call this after the commit of changes to these objects, separated by spaces. Empty: any object
  // may have changed.
  // Kept by: KeyWatch.HearsOfCommitsByShortNames.
  void notify(std::string_view names) { waits_.hear(names); }

  // Ends every watch. Tolerates being called twice.
  void stop() { waits_.stop(); }

  [[nodiscard]] std::size_t size() const { return waits_.size(); }

 private:
  PendingReplies waits_;
};

}  // namespace conversed::api
