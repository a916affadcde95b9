#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/live/deadlines.h"
#include "store/cluster/news.h"
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

// Clients that wait for the end of an execution, by the id of the input that began it.
//
// The turn worker, when it builds the unit in which the execution ends, asks `claim`: true means
// that the outputs go to the waiting clients and not to the webhook. From then on the time-out is
// held back, and the worker owes either `finish` (after the commit) or `release` (the commit was
// abandoned; the worker will claim again, and a deadline that has passed fires at once). It is held
// back for `claim_grace` at most: while the store fails, a commit may take for ever. What the
// worker owes then finds nobody, and `finish` says so. A waiter that comes when its id is claimed
// already joins the claim.
//
// Thread-safe. Callbacks are called outside the lock, exactly once each, on the thread of whoever
// ends the wait: the worker's, the deadline's, or the caller of `fail`/`stop`. They must not block.
class AnswerWaiters {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Callback = std::function<void(model::Result<Answer>)>;
  using Ticket = std::uint64_t;
  using Left = std::function<void(const std::string& input_id)>;

  explicit AnswerWaiters(std::chrono::milliseconds claim_grace = std::chrono::seconds(2))
      : claim_grace_(claim_grace) {}
  ~AnswerWaiters();
  AnswerWaiters(const AnswerWaiters&) = delete;
  AnswerWaiters& operator=(const AnswerWaiters&) = delete;

  // Waits for the answer to an input; to be called before its append, so that no answer can come
  // before it. Past the deadline the callback gets `timed_out`, and then, if it was the last one
  // that waited for this input, `left` is called with that: what is held for it has to go the other
  // way.
  // Several may wait on one id: all get the answer. After `stop` the callback gets `unavailable` at
  // once.
  Ticket wait(std::string input_id, TimePoint deadline, Callback callback, Left left = {});

  // The waiter waits for another input from now on: its Idempotency-Key turned out to name that
  // one. False when its wait has ended.
  bool move(Ticket ticket, std::string input_id);

  // Ends one wait with an error or an answer of its own. False when it had ended before.
  bool end(Ticket ticket, model::Result<Answer> outcome);

  // Whether somebody waits for this input now, without claiming it.
  [[nodiscard]] bool awaited(std::string_view input_id) const;

  // For the worker; see above. Claiming a claimed id is true as long as somebody waits there.
  [[nodiscard]] bool claim(std::string_view input_id);
  // To be asked while the commit is made: ends the waits whose deadline has passed, as their answer
  // comes too late, and says whether any goes on. Those that do outlast a commit that takes no
  // longer than `claim_grace`.
  [[nodiscard]] bool keep_waiting(std::string_view input_id);
  // False: nobody was there to be told.
  bool finish(std::string_view input_id, const Answer& answer);
  // As finish, with an error: the Turn failed and the Endpoint has no `errorText`.
  void fail(std::string_view input_id, const model::Error& error);
  void release(std::string_view input_id);

  // Ends every wait with `unavailable`, and all later ones. Tolerates being called twice.
  void stop();

  [[nodiscard]] std::size_t size() const;

  // What is waited for, each once.
  [[nodiscard]] std::vector<std::string> inputs() const;

 private:
  struct Waiter {
    std::string input_id;
    Callback callback;
    Left left;
    TimePoint deadline;
    Deadlines::Token token;
  };
  struct Input {
    bool claimed = false;
    std::vector<Ticket> tickets;
  };
  struct State {
    std::unordered_map<Ticket, Waiter> waiters;
    std::unordered_map<std::string, Input, model::KeyedHash, std::equal_to<>> inputs;
    Ticket last_ticket = 0;
    bool stopped = false;
  };

  // Removes the waiter and hands out its callback; empty when it is gone.
  static Callback take(State& state, Ticket ticket);
  enum class Patience : std::uint8_t { claim_holds, none };
  void expire(Ticket ticket, Patience patience);
  static std::vector<Callback> take_overdue(State& state, const Input& input);
  bool end_all(std::string_view input_id, const model::Result<Answer>& outcome);

  const std::chrono::milliseconds claim_grace_;
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
// daemons tell each other (store/cluster/news.h): two with one name only make a poll look once too
// often.
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
