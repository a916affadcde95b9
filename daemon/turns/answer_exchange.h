#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/live/deadlines.h"
#include "daemon/service/service_thread.h"
#include "store/cluster/news.h"
#include "store/commit/replies.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/runtime/guarded.h"

namespace conversed::api {
class AnswerWaiters;
}
namespace conversed::store {
class Store;
}

namespace conversed::daemon {

struct AnswerExchangeSettings {
  std::string daemon;  // this one's name among those that share the store; not empty
  // How long a lane waits for the daemon whose client is to get the answer.
  std::chrono::milliseconds patience{2'500};
  // After which anybody takes a reply back: whoever wrote it has gone, too. Above `patience` by
  // more than the daemons differ in what they measure.
  std::chrono::milliseconds reply_lifetime{15'000};
  std::chrono::milliseconds sweep_interval{5'000};
  // A client waits for as long as its daemon says, and so much longer: each measures the clock that
  // they share.
  std::chrono::milliseconds clock_tolerance{5'000};
};

// What the exchange has done by others, from any thread; must not block.
struct AnswerExchangePorts {
  std::function<void(const model::SessionKey&)> touch;    // if the session is this daemon's
  std::function<void(const model::SessionKey&)> deliver;  // likewise: some are due in the store
};

// Answers to `POST /{URLToken}` where the client waits at another daemon than the one that runs the
// Turn; only where daemons share a store. The event names the daemon, the Turn's transaction leaves
// a reply for it (store/commit/replies.h) and tells of it; the waiting daemon takes that in a
// transaction which decides whether its client has the outputs or the webhook gets them. Until it
// has told so, the lane of the session stands still, for `patience` at most: then the reply is
// taken back.
//
// Clients of this daemon whose session is here, too, need none of this, unless others wait for the
// same input. Thread-safe; `start` and `stop` belong to one thread. What waits for the store does
// so on a thread of its own, so that neither the news nor what is due are late.
class AnswerExchange {
 public:
  using Settled = std::function<void(bool pending)>;
  // The clock of timers, which the daemons share (daemon/timers/timer_clock.h). Thread-safe.
  using Now = std::function<model::Timestamp()>;

  // All must outlive it, and the Committer's last callback must be before its end.
  AnswerExchange(AnswerExchangeSettings settings, store::Store& store, api::AnswerWaiters& waiters,
                 Now now, AnswerExchangePorts ports);
  ~AnswerExchange();
  AnswerExchange(const AnswerExchange&) = delete;
  AnswerExchange& operator=(const AnswerExchange&) = delete;

  // At most once, and not after `stop`.
  [[nodiscard]] model::Result<void> start();
  // Lanes that still wait go on; what others are to hear is on its way. Tolerates double stop and
  // stop without start.
  void stop();

  [[nodiscard]] const std::string& daemon() const { return settings_.daemon; }

  // A client of this daemon that waits for so long from now on.
  [[nodiscard]] model::Awaited awaited_for(std::chrono::milliseconds time) const {
    return {settings_.daemon, now_() + time};
  }

  // For chains: other daemons whose clients may still wait for the input.
  [[nodiscard]] std::vector<std::string> elsewhere(const std::string& input_id,
                                                   std::span<const model::Awaited> awaited) const;
  // Until when, by the clock that they share, if any may.
  [[nodiscard]] std::optional<model::Timestamp> waited_until(
      const std::string& input_id, std::span<const model::Awaited> awaited) const;
  [[nodiscard]] model::Timestamp reply_expiry() const { return now_() + settings_.reply_lifetime; }

  // For the worker: the outputs of an input hang on a reply that is about to be committed. Then
  // either `forget`, if it was not, or `when_settled`, which calls back once, on any thread:
  // whether outputs have become pending.
  void expect(const std::string& input_id);
  void forget(const std::string& input_id);
  void when_settled(const std::string& input_id, Settled then);
  // The session holds outputs for a client elsewhere: its lane is to run then, if nothing is heard.
  void touch_at(const model::SessionKey& key, model::Timestamp when);

  // For the API: what other daemons have to hear. `until`: of the last of this daemon's waits for
  // the input, as `awaited_for` said it; does not block.
  void left(const std::string& input_id, const model::SessionKey& key, model::Timestamp until);
  void ended(const std::string& input_id, const std::string& reason);
  void touch(const model::SessionKey& key);
  void deliver(const model::SessionKey& key);

 private:
  // Whether there is a reply to this daemon, or may only be the kept answer of a keyed input.
  enum class Expects : std::uint8_t { reply, kept };
  // A reply that this daemon has written, until it is known where the outputs go.
  struct Owed {
    bool settled = false;
    bool pending = false;  // once it is settled
    Settled then;          // empty: not committed yet
    api::Deadlines::Token deadline;
  };
  // Waits of a daemon's clients for an input are over that were to end at `until` or before. A
  // repeat under its Idempotency-Key waits for longer.
  struct Left {
    model::Timestamp until{};
    std::chrono::steady_clock::time_point heard_at;
  };
  struct State {
    std::unordered_map<std::string, Owed> owed;                // by input
    std::map<std::pair<std::string, std::string>, Left> left;  // by input and daemon
    bool stopped = false;
  };
  struct Letters {
    bool stop = false;
    bool look = false;                        // at the store: something may have been missed
    std::vector<std::function<void()>> work;  // that may wait for the store
    [[nodiscard]] bool empty() const { return !stop && !look && work.empty(); }
  };

  void run();
  void post_look();
  // What there is too much of is found by a look.
  void post_settle(const std::string& input_id, Expects expects);
  void hear_answer(std::string_view payload);
  void hear_session(std::string_view payload);
  void settle(const std::string& input_id, Expects expects);
  void give(const std::string& input_id, Expects expects, const store::Replies::Settled& settled);
  void note_settled(const store::AnswerNews& news);
  void note_left(const store::AnswerNews& news);
  void take_back(const std::string& input_id);
  void conclude(const std::string& input_id, bool pending);
  void look_for_replies();
  void look_again();
  void sweep();
  // Touches the session that is told of; if that could not be told, all that may need it.
  void touch_here(const std::string& session);

  const AnswerExchangeSettings settings_;
  store::Store& store_;
  api::AnswerWaiters& waiters_;
  const Now now_;
  const AnswerExchangePorts ports_;
  model::Guarded<State> state_;
  api::Deadlines deadlines_;       // these use the others
  ServiceThread<Letters> thread_;  // does what may wait for the store
  store::News::Subscription answers_;
  store::News::Subscription sessions_;
};

}  // namespace conversed::daemon
