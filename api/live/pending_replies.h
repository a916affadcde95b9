#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/live/deadlines.h"
#include "api/live/tickets.h"
#include "store/model/event.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::api {

// The answer of `POST /{URLToken}`: finished JSON text (see compose_answer in api/live/answer.h).
// Empty: the user was erased, and the outputs with the user.
struct Answer {
  int status = 200;
  std::string body;

  bool operator==(const Answer&) const = default;
};

// Why a client does not get all of its answer.
enum class Overdue : std::uint8_t { deadline, stop };

// The callbacks of a wait. None may block, except `heard`, which may read the store.
struct ReplyWait {
  std::function<void(model::Result<Answer>)> answered;  // once
  std::function<void(Ticket, Overdue)> overdue;         // once; has to end the wait soon
  std::function<void(Ticket)> heard;                    // the store may have the answer
};

// Clients that wait for the answer to an input, by its id. The turn worker ends their waits by
// `finish` once its commit is durable. They hear of another daemon's commit and read the answer
// from the store.
//
// Thread-safe. Callbacks run outside the lock: `answered` on the thread that ends the wait, `heard`
// on a thread for looks, and, at the deadline, `overdue` on a thread for deadlines.
//
// Invariants:
// - A wait goes on past its deadline until the cut is stored or refused. The answer or the cut ends
//   it, whichever comes first.
//   Kept by: PendingReplies.AtItsDeadlineAWaitIsOverdueAndGoesOnUntilItIsEnded,
//   PendingReplies.EveryWaitEndsOnceWhoeverRacesToEndIt.
// - A look that takes long delays no deadline, and a wait has one look in the queue at most.
//   Kept by: PendingReplies.ALookThatTakesLongDelaysNoDeadline, PendingReplies.LooksThatWaitAreOne.
// - Where a notification of another daemon may have been missed, all waits look again.
//   Kept by: PendingReplies.ThoseThatWaitForAnInputHearOfIt.
class PendingReplies {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  PendingReplies() = default;
  ~PendingReplies();
  PendingReplies(const PendingReplies&) = delete;
  PendingReplies& operator=(const PendingReplies&) = delete;

  // Waits for the answer to an input. Call it before the input's append, so that no answer comes
  // before the wait. Several waits for one id all get the answer. After `cut_off` it is answered
  // `unavailable` at once.
  Ticket wait(std::string input_id, TimePoint deadline, ReplyWait wait);

  // The wait is for another input from now on, which its Idempotency-Key names. False when the wait
  // has ended.
  bool move(Ticket ticket, std::string input_id);

  // From now on the wait is overdue at `deadline`, if that is earlier.
  void hasten(Ticket ticket, TimePoint deadline);

  // Ends one wait with an error or an answer of its own. False when it had ended before.
  bool end(Ticket ticket, model::Result<Answer> outcome);

  // Whether a client waits for this input now.
  [[nodiscard]] bool awaited(const std::string& input_id) const;

  // Ends all waits for the input.
  void finish(const std::string& input_id, const model::Result<Answer>& outcome);

  // The store may have answers to these inputs, separated by spaces: their waits look there. Empty:
  // all waits look.
  void hear(std::string_view input_ids);
  // One wait looks in the store.
  void look(Ticket ticket);

  // Takes no further wait. All others are overdue: the daemon stops.
  void cut_off();
  // Ends every wait with `unavailable`, and all later ones. Tolerates being called twice.
  void stop();

  [[nodiscard]] std::size_t size() const;

 private:
  struct Wait {
    std::shared_ptr<const ReplyWait> callbacks;
    TimePoint deadline;
    Deadlines::Token token;  // of the deadline
    bool overdue = false;    // it has been told so
    bool looking = false;    // a look is queued
  };
  struct State {
    Tickets<Wait> waits;  // by input
    bool stopped = false;
  };

  void queue_look(State& state, Ticket ticket);
  void expire(Ticket ticket, Overdue why);
  void tell(Ticket ticket);

  model::Guarded<State> state_;
  // The last members: their threads use the others. Looks read the store, which may take long, and
  // must not delay a deadline.
  Deadlines looks_;
  Deadlines deadlines_;
};

// Why a watch has ended.
enum class WatchEnd : std::uint8_t { notified, deadline, stopped };

// The name of a session's outputs, as the notifications between daemons have it
// (store/cluster/notifications.h). If two sessions share a name, a poll
// looks once more than needed.
[[nodiscard]] std::string outputs_name(const model::SessionKey& key);

// Clients that long-poll a thing by its name: a job's id, or `outputs_name`. Each watch ends once:
// by `notify`, or at its deadline.
//
// Thread-safe. Each callback runs exactly once, outside the lock. It runs on the watch's own
// thread, so that `notify` costs a worker next to nothing; `stop` calls back itself. Callbacks may
// do a point select, except when they are told `stopped`: the stop has a time to keep.
class KeyWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Callback = std::function<void(WatchEnd)>;

  KeyWatch() = default;
  ~KeyWatch();
  KeyWatch(const KeyWatch&) = delete;
  KeyWatch& operator=(const KeyWatch&) = delete;

  // Call it before you read the thing, so that you miss no change. After `stop` the callback is
  // called at once.
  Ticket watch(std::string name, TimePoint deadline, Callback callback);

  // Ends a watch without calling back, since the change was there already. False when it has ended.
  bool cancel(Ticket ticket);

  // After the commit of changes to these, separated by spaces. Empty: maybe to any.
  // Kept by: KeyWatch.HearsOfCommitsByShortNames.
  void notify(std::string_view names);

  // Ends every watch. Tolerates being called twice.
  void stop();

  [[nodiscard]] std::size_t size() const;

 private:
  struct Watch {
    Callback callback;
    Deadlines::Token token;  // of the deadline, or, once notified, of its call
  };
  struct State {
    Tickets<Watch> watches;
    bool stopped = false;
  };

  void expire(Ticket ticket, WatchEnd why);

  model::Guarded<State> state_;
  Deadlines deadlines_;
};

}  // namespace conversed::api
