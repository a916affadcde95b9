#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/live/deadlines.h"
#include "store/cluster/notifications.h"
#include "store/model/event.h"
#include "store/model/keyed_hash.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::api {

// What `POST /{URLToken}` is answered with: finished JSON text (see compose_answer in
// api/live/answer.h). Empty: what was said is gone with the user who was erased.
struct Answer {
  int status = 200;
  std::string body;

  bool operator==(const Answer&) const = default;
};

// What a wait does besides being answered. Each must not block, but for `heard`, which may do a
// point select.
struct ReplyWait {
  using Ticket = std::uint64_t;
  std::function<void(model::Result<Answer>)> answered;  // once
  std::function<void(Ticket)> overdue;  // once, at the deadline or a stop: has to end the wait soon
  std::function<void(Ticket)> heard;    // the store may have the answer
};

// Clients that wait for the answer to an input, by its id. The turn worker ends their waits by
// `finish` and `fail` once its commit is durable. Another daemon's is heard of and read from the
// store. At its deadline a wait is not over: whoever began it has the input cut, and ends it then.
//
// Thread-safe. All is called outside the lock: `answered` on the thread of whoever ends the wait,
// `heard` and, at the deadline, `overdue` on a thread of its own.
class PendingReplies {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Ticket = ReplyWait::Ticket;

  PendingReplies() = default;
  ~PendingReplies();
  PendingReplies(const PendingReplies&) = delete;
  PendingReplies& operator=(const PendingReplies&) = delete;

  // Waits for the answer to an input; to be called before its append, so that no answer can come
  // before it. Several may wait on one id: all get the answer. After `cut_off` it is answered
  // `unavailable` at once.
  Ticket wait(std::string input_id, TimePoint deadline, ReplyWait wait);

  // The waiter waits for another input from now on: its Idempotency-Key turned out to name that
  // one. False when its wait has ended.
  bool move(Ticket ticket, std::string input_id);

  // From now on the wait is overdue at `deadline`, if that is earlier.
  void hasten(Ticket ticket, TimePoint deadline);

  // Ends one wait with an error or an answer of its own. False when it had ended before.
  bool end(Ticket ticket, model::Result<Answer> outcome);

  // Whether somebody waits for this input now.
  [[nodiscard]] bool awaited(std::string_view input_id) const;

  // Ends all waits for the input.
  void finish(std::string_view input_id, const Answer& answer);
  // As finish, with an error: the Turn failed and the Endpoint has no `errorText`.
  void fail(std::string_view input_id, const model::Error& error);

  // The store may have the answer: all that wait for it look there.
  void hear(std::string_view input_id);
  // What another daemon has announced of its commits, ids of inputs; empty: maybe of any.
  void heard(std::string_view input_ids);
  // One waiter looks.
  void look(Ticket ticket);

  // Takes no further wait, and has all others overdue, as the daemon stops.
  void cut_off();
  // Ends every wait with `unavailable`, and all later ones. Tolerates being called twice.
  void stop();

  [[nodiscard]] std::size_t size() const;

 private:
  struct PendingReply {
    std::string input_id;
    std::shared_ptr<const ReplyWait> wait;
    TimePoint deadline;
    Deadlines::Token token;  // of the deadline
    bool overdue = false;    // it has been told so
  };
  using WaitPtr = std::shared_ptr<const ReplyWait>;
  struct State {
    std::unordered_map<Ticket, PendingReply> pending_replies;
    std::unordered_map<std::string, std::vector<Ticket>, model::KeyedHash, std::equal_to<>> inputs;
    Ticket last_ticket = 0;
    bool stopped = false;
  };

  // Removes the waiter; empty when it is gone.
  static WaitPtr take(State& state, Ticket ticket);
  static void leave(State& state, const std::string& input_id, Ticket ticket);
  void expire(Ticket ticket);
  void tell(Ticket ticket);
  void end_all(std::string_view input_id, const model::Result<Answer>& outcome);

  model::Guarded<State> state_;
  Deadlines deadlines_;  // the last member: its thread uses the others
};

// Why a watch has ended.
enum class WatchEnd : std::uint8_t { notified, deadline, stopped };

// Clients that long-poll something that has a name. Each watch ends once: by `notify`, or at its
// deadline. Thread-safe. Callbacks are called exactly once each, outside the lock and on the
// watch's own thread (so that `notify` costs a worker next to nothing), but for `stop`, which calls
// back itself. They may do a point select, but not when they are told `stopped`: all who wait are
// told so at once, and the stop has a time to keep.
class KeyWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Callback = std::function<void(WatchEnd)>;
  using Ticket = std::uint64_t;

  KeyWatch() = default;
  ~KeyWatch();
  KeyWatch(const KeyWatch&) = delete;
  KeyWatch& operator=(const KeyWatch&) = delete;

  // To be called before what is watched is read, so that no change can come in between. After
  // `stop` the callback is called at once.
  Ticket watch(std::string key, TimePoint deadline, Callback callback);

  // Ends a watch without calling back: what it waits for was there already. False when it has
  // ended.
  bool cancel(Ticket ticket);

  // For whoever has made a change, after its commit.
  void notify(const std::string& key);
  // For whoever may have missed some.
  void notify_all();

  // Ends every watch. Tolerates being called twice.
  void stop();

  [[nodiscard]] std::size_t size() const;

 private:
  struct Watcher {
    std::string key;
    Callback callback;
    Deadlines::Token token;  // of the deadline, or, once notified, of its call
  };
  struct State {
    std::unordered_map<Ticket, Watcher> watchers;
    std::unordered_map<std::string, std::vector<Ticket>, model::KeyedHash, std::equal_to<>> keys;
    Ticket last_ticket = 0;
    bool stopped = false;
  };

  static Callback take(State& state, Ticket ticket);
  void wake(State& state, const std::vector<Ticket>& tickets);
  void expire(Ticket ticket, WatchEnd why);

  model::Guarded<State> state_;
  Deadlines deadlines_;
};

// Clients that long-poll a session's outputs; see KeyWatch. Sessions have the short names here that
// daemons tell each other (store/cluster/notifications.h): two with one name only make a poll look
// once too often.
class OutputWatch {
 public:
  using TimePoint = KeyWatch::TimePoint;
  using Callback = KeyWatch::Callback;
  using Ticket = KeyWatch::Ticket;

  Ticket watch(const model::SessionKey& key, TimePoint deadline, Callback callback) {
    return watch_.watch(store::short_name(key.encode()), deadline, std::move(callback));
  }
  bool cancel(Ticket ticket) { return watch_.cancel(ticket); }
  // Cheap when nobody watches.
  void notify(const model::SessionKey& key) {
    if (watch_.size() > 0) watch_.notify(store::short_name(key.encode()));
  }
  // What another daemon has announced of its commits; empty: maybe any.
  void heard(std::string_view short_names);
  void stop() { watch_.stop(); }
  [[nodiscard]] std::size_t size() const { return watch_.size(); }

 private:
  KeyWatch watch_;
};

// Clients that long-poll a job's status and progress, by its id; see KeyWatch.
using JobWatch = KeyWatch;

}  // namespace conversed::api
