#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/conversation/outbox.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/keyed_hash.h"

namespace conversed::daemon {

struct DeliveryQueueLimits {
  std::size_t connections = 32;
  std::size_t sessions = 1'024;    // in hand
  std::size_t endpoints = 10'000;  // that are remembered while nothing waits for them
  // An Endpoint is slow when its answers take longer on average, or one that is on its way does.
  std::chrono::milliseconds slow_after{500};
  int failures = 3;  // in a row, none of the same session as the one before: the Endpoint fails
};

// Chooses the Endpoint to deliver to next, and knows the sessions in hand. The outputs themselves
// are in the store: the Deliverer reads the next due sessions of the chosen Endpoint. A session is
// *in hand* until the commit that marks or puts off its outputs is known, so that it is not read
// twice. Does no I/O. One thread.
//
// No webhook takes the connections of the others. Shares of the connections, at most:
//   - three quarters for a project, and for an Endpoint;
//   - three quarters for all *doubtful* Endpoints (failing, slow, or without an answer yet), five
//     eighths for those of one project. The rest is kept for Endpoints that answer;
//   - without an answer yet: one an Endpoint, an eighth a project, a quarter in all;
//   - failing: one an Endpoint, and its next try only when its wait is over. Slow: a quarter an
//     Endpoint. Both kinds together: three eighths a project, half in all.
// Kept by: DeliveryQueueTest.AnEndpointAndAProjectHaveThreeQuarters,
// DeliveryQueueTest.HungEndpointsLeaveConnectionsToThoseThatAnswer,
// DeliveryQueueTest.EndpointsThatHaveNotAnsweredAreTriedByOneAndAFewAtATime,
// DelivererTest.EndpointThatFailsGetsOneTryAtATimeUntilItAnswers.
class DeliveryQueue {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  // When a wait ends, and its number: of those that end together the first to begin comes first.
  using Place = std::pair<model::Timestamp, std::uint64_t>;

  // An Endpoint.
  struct Lane {
    std::string endpoint_id;
    std::string project_id;
    std::optional<model::Timestamp> due;  // when to read its sessions; none: not before it is woken
    model::Timestamp not_before{};        // whatever is due
    // Sessions up to here have been looked at; none: the next read begins with the longest due.
    std::optional<store::DueDelivery> read_up_to;
    bool read_again = false;  // from the beginning, once the end has been reached
    bool in_turn = false;     // in `turns_`; else in `waiting_`, if it has a `due`
    Place place{};            // in `waiting_`
    std::size_t in_hand = 0;
    std::multiset<Steady> begun;    // what is on its way
    int failures = 0;               // since the last answer that took an output
    model::SessionKey failed_last;  // of these
    bool has_answered = false;
    std::chrono::milliseconds takes{0};  // an answer, on average
  };
  struct Session {
    model::SessionKey key;
    Lane* lane = nullptr;
    std::deque<model::Output> outputs;  // read and not dealt with, the first of them now
    int attempts = 0;                   // failed tries of the first output
    std::uint64_t generation = 0;
    std::size_t marks = 0;        // on their way to the store
    bool more = false;            // the store may have further ones: it is read again after this
    std::optional<Steady> begun;  // it has a connection
  };

  explicit DeliveryQueue(DeliveryQueueLimits limits) : limits_(limits) {}
  DeliveryQueue(const DeliveryQueue&) = delete;
  DeliveryQueue& operator=(const DeliveryQueue&) = delete;

  // All times without `steady` are by the clock of timers.
  [[nodiscard]] Lane& lane(const std::string& endpoint_id, const std::string& project_id);
  // The Endpoint may have a session that is due by then.
  void wake(Lane& lane, model::Timestamp due);
  void put_off(Lane& lane, model::Timestamp until);

  // --- Choosing ----------------------------------------------------------------------------------
  // The Endpoint whose sessions are to be read next; null: none, or all connections are taken.
  [[nodiscard]] Lane* next(model::Timestamp now, Steady steady);
  // How many more of its sessions may begin now.
  [[nodiscard]] std::size_t room(const Lane& lane, Steady steady) const;
  // All that is due has been looked at; `next_due`: the first that is not.
  void read_all(Lane& lane, std::optional<model::Timestamp> next_due);

  // --- In hand -----------------------------------------------------------------------------------
  [[nodiscard]] Session* find(const model::SessionKey& key);
  [[nodiscard]] Session& take(Lane& lane, store::DueDelivery due, std::uint64_t generation);
  void begin(Session& session, Steady steady);
  // How its try ended; it keeps its connection until it lands.
  void delivered(Session& session, Steady steady);
  void failed(Session& session, Steady steady);
  void land(Session& session);
  // Whether the session may go on with its next output, instead of giving way to others.
  [[nodiscard]] bool goes_on(const Session& session, Steady steady) const;
  [[nodiscard]] bool fails(const Lane& lane) const { return lane.failures >= limits_.failures; }
  // Tries since it fails: its wait grows with them.
  [[nodiscard]] int tries_in_vain(const Lane& lane) const {
    return lane.failures - limits_.failures + 1;
  }
  // Forgets the session if nothing of it is in hand any more.
  void release_if_done(Session& session, model::Timestamp now);

  // --- Waiting -----------------------------------------------------------------------------------
  [[nodiscard]] std::optional<model::Timestamp> next_due() const;
  // When another Endpoint may begin although nothing ends: one that is waited for becomes slow.
  [[nodiscard]] std::optional<Steady> next_slow(Steady steady) const;
  void forget_idle();
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] bool quiet() const { return sessions_.empty() && turns_.empty(); }

 private:
  enum class Kind : std::uint8_t { answers, untried, slow, fails };
  // Connections that are taken.
  struct Taken {
    std::size_t all = 0;
    std::size_t doubtful = 0;
    std::size_t untried = 0;
    std::size_t bad = 0;
  };
  [[nodiscard]] Kind kind_of(const Lane& lane, Steady steady) const;
  [[nodiscard]] Taken taken(const std::string* project_id, Steady steady) const;
  [[nodiscard]] std::size_t share(std::size_t eighths) const;
  [[nodiscard]] std::size_t share_of(const Lane& lane, Kind kind) const;
  static void tried(const Session& session, Steady steady);
  void wait(Lane& lane);
  void wake_due(model::Timestamp now);

  const DeliveryQueueLimits limits_;
  std::unordered_map<std::string, Lane> lanes_;  // by Endpoint
  // Those in hand, by key.
  std::unordered_map<std::string, Session, model::KeyedHash, std::equal_to<>> sessions_;
  std::deque<Lane*> turns_;  // those with something due
  std::map<Place, Lane*> waiting_;
  std::uint64_t waits_ = 0;        // so far
  std::vector<const Lane*> busy_;  // those with connections
  std::size_t in_flight_ = 0;
};

}  // namespace conversed::daemon
