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

#include "api/deadlines.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/guarded.h"
#include "store/news.h"
#include "store/replies.h"

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
  // more than the daemons' clocks differ.
  std::chrono::milliseconds reply_lifetime{15'000};
  std::chrono::milliseconds sweep_interval{5'000};
  // A client waits for as long as its daemon says, and so much longer: clocks differ.
  std::chrono::milliseconds clock_tolerance{5'000};
};

// What the exchange has done by others, from any thread; must not block.
struct AnswerExchangePorts {
  std::function<void(const model::SessionKey&)> touch;    // if the session is this daemon's
  std::function<void(const model::SessionKey&)> deliver;  // likewise: some are due in the store
};

// Answers to `POST /{URLToken}` where the client waits at another daemon than the one that runs the
// Turn; only where daemons share a store. The event names the daemon, the Turn's transaction leaves
// a reply for it (store/replies.h) and tells of it; the waiting daemon takes that in a transaction
// which decides whether its client has the outputs or the webhook gets them. Until it has told so,
// the lane of the session stands still, for `patience` at most: then the reply is taken back.
//
// Clients of this daemon whose session is here, too, need none of this, unless others wait for the
// same input. Thread-safe; `start` and `stop` belong to one thread.
class AnswerExchange {
 public:
  using Settled = std::function<void(bool pending)>;

  // All must outlive it, and the Committer's last callback must be before its end.
  AnswerExchange(AnswerExchangeSettings settings, store::Store& store, api::AnswerWaiters& waiters,
                 const model::Clock& clock, AnswerExchangePorts ports);
  ~AnswerExchange();
  AnswerExchange(const AnswerExchange&) = delete;
  AnswerExchange& operator=(const AnswerExchange&) = delete;

  void start();
  // Lanes that still wait go on. Tolerates double stop and stop without start.
  void stop();

  [[nodiscard]] const std::string& daemon() const { return settings_.daemon; }

  // For chains: other daemons whose clients may still wait for the input.
  [[nodiscard]] std::vector<std::string> elsewhere(const std::string& input_id,
                                                   std::span<const model::Awaited> awaited) const;
  // Until when, by this daemon's clock, if any may.
  [[nodiscard]] std::optional<model::Timestamp> waited_until(
      const std::string& input_id, std::span<const model::Awaited> awaited) const;
  [[nodiscard]] model::Timestamp reply_expiry() const {
    return clock_.now() + settings_.reply_lifetime;
  }

  // For the worker: the outputs of an input hang on a reply that is about to be committed. Then
  // either `forget`, if it was not, or `when_settled`, which calls back once, on any thread:
  // whether outputs have become pending.
  void expect(const std::string& input_id);
  void forget(const std::string& input_id);
  void when_settled(const std::string& input_id, Settled then);
  // The session holds outputs for a client elsewhere: its lane is to run then, if nothing is heard.
  void touch_at(const model::SessionKey& key, model::Timestamp when);

  // For the API: what other daemons have to hear.
  void left(const std::string& input_id, const model::SessionKey& key);
  void ended(const std::string& input_id, const std::string& reason);
  void touch(const model::SessionKey& key);
  void deliver(const model::SessionKey& key);

 private:
  // A reply that this daemon has written, until it is known where the outputs go.
  struct Owed {
    bool settled = false;
    bool pending = false;  // once it is settled
    Settled then;          // empty: not committed yet
    api::Deadlines::Token deadline;
  };
  struct State {
    std::unordered_map<std::string, Owed> owed;  // by input
    // Whose clients have left, by input and daemon, and when that was heard.
    std::map<std::pair<std::string, std::string>, std::chrono::steady_clock::time_point> left;
    bool stopped = false;
  };

  void hear_answer(std::string_view payload);
  void hear_session(std::string_view payload);
  // Whether there is a reply to this daemon, or may only be the kept answer of a keyed input.
  enum class Expects : std::uint8_t { reply, kept };
  void settle(const std::string& input_id, Expects expects);
  void give(const std::string& input_id, Expects expects, const store::Replies::Settled& settled);
  void note_settled(const store::AnswerNews& news);
  void note_left(const store::AnswerNews& news);
  void take_back(const std::string& input_id);
  void conclude(const std::string& input_id, bool pending);
  void look_again();
  void sweep();
  void touch_here(const std::string& session);

  const AnswerExchangeSettings settings_;
  store::Store& store_;
  api::AnswerWaiters& waiters_;
  const model::Clock& clock_;
  const AnswerExchangePorts ports_;
  model::Guarded<State> state_;
  api::Deadlines deadlines_;  // uses the others
  store::News::Subscription answers_;
  store::News::Subscription sessions_;
};

}  // namespace conversed::daemon
