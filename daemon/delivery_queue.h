#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/recent.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/keyed_hash.h"
#include "store/outbox.h"

namespace conversed::daemon {

struct DeliveryQueueLimits {
  std::size_t connections = 32;
  std::size_t max_sessions = 100'000;
  std::size_t max_outputs = 20'000;
  std::size_t max_outputs_each = 64;
  // Where there are others: of so many sessions it is known up to which number all is delivered.
  std::size_t max_delivered = 65'536;
};

// What the Deliverer knows of the store's outbox, and whose turn it is. Does no I/O. One thread.
//
// A session that is known here has an entry, in one of these states:
//   ready      its first output can be sent
//   in_flight  its first output is being sent
//   waiting    for its next try, at `due`
//   wanting    has outputs that only the store has
//   idle       has none; kept only while a sweep goes on
//
// A *sweep* reads the store's outbox. What it reads may be behind what happened here meanwhile, so
// it stands between two barriers: the first proves that all marks made before `begin_sweep` are in
// the store, the second that all offers of what the sweep has read have come. In between no entry
// is forgotten, and only entries that were `wanting` at the begin take what was read. That is what
// keeps an output from being sent twice, or before an earlier one.
//
// `backlog` says that the store may have pending outputs of sessions without an entry. Offers for
// unknown sessions are then not trusted to be the oldest: their sessions become `wanting`.
//
// Where sessions come from, and go to, other daemons, each entry is of one *term*, in which the
// session was this one's all the time. What is of a term that is over is forgotten; what is in
// flight ends first.
class DeliveryQueue {
 public:
  enum class State : std::uint8_t { idle, ready, in_flight, waiting, wanting };

  struct Lane;
  struct Session {
    model::SessionKey key;
    Lane* lane = nullptr;
    std::deque<model::Output> outputs;
    State state = State::idle;
    bool more = false;      // the store has further ones, behind those in `outputs`
    bool loadable = false;  // `wanting` since before the sweep that goes on
    bool seen = false;      // by this sweep
    std::uint64_t term = 1;
    int attempts = 0;  // failed tries of the first output
    model::Timestamp due{};
    std::int64_t last_seq = 0;  // the highest that was ever in `outputs`
  };
  // The sessions of one Endpoint.
  struct Lane {
    std::deque<Session*> ready;
    std::size_t in_flight = 0;
    bool failing = false;  // its last POST failed
    bool listed = false;   // in `turns_`
  };

  // The term of a session now; 0: it is another daemon's. Empty: all are ours for ever.
  using TermOf = std::function<std::uint64_t(const model::SessionKey&)>;
  explicit DeliveryQueue(DeliveryQueueLimits limits, TermOf term_of = {})
      : limits_(limits), term_of_(std::move(term_of)), delivered_(limits.max_delivered) {}
  DeliveryQueue(const DeliveryQueue&) = delete;
  DeliveryQueue& operator=(const DeliveryQueue&) = delete;

  // --- What has been committed -------------------------------------------------------------------
  // `pending_up_to`: the highest number that waited in the store before these. If it is not known
  // here, another daemon wrote it, and the store is read.
  void offer(const model::SessionKey& key, std::vector<model::Output> outputs,
             std::int64_t pending_up_to = 0);
  void offer_from_store(const model::SessionKey& key);
  // Sessions have gone, or have come: the store may have anything of those.
  void terms_changed();

  // --- Sending -----------------------------------------------------------------------------------
  // The session whose first output is to be sent next, now `in_flight`; none if there is none or
  // the connections are taken. Endpoints take turns; a failing one gets an eighth of the
  // connections at most, any other three quarters.
  [[nodiscard]] Session* next();

  // How the try ended. Both may forget the session. `done`: its first output needs no further try.
  void done(Session& session);
  void retry(Session& session, model::Timestamp due);

  // Makes sessions ready whose time has come.
  void wake_due(model::Timestamp now);
  [[nodiscard]] std::optional<model::Timestamp> next_due() const;

  // --- Sweeps ------------------------------------------------------------------------------------
  [[nodiscard]] bool wants_sweep() const;
  [[nodiscard]] bool backlog() const { return backlog_; }
  [[nodiscard]] bool can_take_all() const { return sessions_.size() < limits_.max_sessions / 2; }
  void begin_sweep();
  // One session of what was read, with at most `outputs_each` outputs. False if there is no room
  // for it: the sweep ends here, incomplete.
  [[nodiscard]] bool load(store::DueDelivery due, std::size_t outputs_each, model::Timestamp now);
  // `complete`: everything up to the time that was asked for has been read. `all`: that time was
  // the end of time, so what is not known by now does not exist.
  void end_sweep(bool complete, bool all);

  // --- For metrics and tests ---------------------------------------------------------------------
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] std::size_t outputs() const { return outputs_; }
  [[nodiscard]] std::size_t sessions() const { return sessions_.size(); }
  [[nodiscard]] bool quiet() const;  // nothing in flight, ready or wanting

 private:
  [[nodiscard]] std::uint64_t term_of(const model::SessionKey& key) const {
    return term_of_ ? term_of_(key) : 1;
  }
  Session* find(const std::string& key);
  Session* add(std::string encoded, const model::SessionKey& key);  // null: no room
  void take(Session& session, std::vector<model::Output> outputs);
  void make_ready(Session& session);
  void make_wanting(Session& session);
  void make_waiting(Session& session, model::Timestamp due);
  void go_on(Session& session);  // after its first output has been dealt with
  void forget(Session& session);
  void forget_delivered(Session& session);
  bool settle_lost(Session& session);
  void drop_outputs(Session& session);
  [[nodiscard]] std::size_t lane_limit(const Lane& lane) const;
  bool evict();
  bool displace();

  const DeliveryQueueLimits limits_;
  const TermOf term_of_;
  std::unordered_map<std::string, Session, model::KeyedHash, std::equal_to<>> sessions_;
  std::unordered_map<std::string, Lane> lanes_;  // by Endpoint
  std::deque<Lane*> turns_;                      // lanes with ready sessions
  std::set<std::pair<model::Timestamp, Session*>> waiting_;
  std::vector<Session*> wanting_;   // since the last `begin_sweep`
  std::vector<Session*> sweeping_;  // those before it
  std::vector<std::string> idle_;   // to be forgotten at the end of the sweep
  // Sessions without an entry whose outputs up to a number are delivered. Only with `term_of_`.
  Recent delivered_;
  std::size_t in_flight_ = 0;
  std::size_t ready_ = 0;
  std::size_t outputs_ = 0;
  bool backlog_ = true;        // nothing is known before the first sweep
  bool missed_offer_ = false;  // an offer found no room since the last `begin_sweep`
  bool in_sweep_ = false;
};

}  // namespace conversed::daemon
