#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/service/due_lanes.h"
#include "store/conversation/outbox.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/keyed_hash.h"

namespace conversed::daemon {

struct DeliveryQueueLimits {
  std::size_t connections = 32;
  std::size_t sessions = 1'024;                      // in hand
  std::size_t waiting = 256;                         // how many of them may wait for a connection
  std::size_t waiting_bytes = std::size_t{4} << 20;  // of their outputs, about
  std::size_t endpoints = 10'000;                    // in memory while idle
  std::size_t outputs_a_session = 16;  // sent before another session of the Endpoint has its turn
  // An Endpoint is slow if its answers, on average, or the answer that it owes take longer than
  // this.
  std::chrono::milliseconds slow_after{500};
  // The Endpoint fails after so many failures in a row, each of another session than the last.
  int failures = 3;
};

// Chooses the Endpoint to read next, and knows the sessions in hand. A session is *in hand* until
// the commit that marks or puts off its outputs is known, so that it is not read twice. Does no
// I/O. One thread.
//
// A commit hands its outputs over in memory. A session in hand takes them if it has all earlier
// ones. Another session takes them only if all other pending outputs of the Endpoint are in hand
// and no read of the Endpoint can have seen them. Else they are read from the store.
// Kept by: DeliveryQueueTest.NewestOutputsAreTakenOnlyWhileNoneIsLeftInTheStore,
// DeliveryQueueTest.OutputsAreAddedBehindThoseInHandOnly,
// DelivererTest.OutputThatAReadMayHaveSeenIsNotHandedOver.
//
// No webhook takes the connections of other webhooks. The largest shares of the connections:
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

  struct Session;
  struct Lane : DueLane<store::DueDelivery> {
    std::string endpoint_id;
    std::string project_id;
    std::multiset<Steady> begun;         // of each POST in flight
    int failures = 0;                    // since the webhook last accepted an output
    model::SessionKey failed_last;       // the session of the last failure
    bool has_answered = false;           // since it is in memory
    bool paused = false;                 // until it is known to be resumed
    std::deque<Session*> waiting;        // in hand, for a connection
    bool must_read = true;               // the store may have outputs that are not in hand
    bool unreadable = false;             // the last reads found a damaged session
    Steady read_at{};                    // when the last read ended
    std::uint64_t generation = 0;        // the newest of ownership when that read began
    std::chrono::milliseconds takes{0};  // from POST to answer, on average
  };
  struct Session {
    model::SessionKey key;
    Lane* lane = nullptr;
    std::deque<model::Output> outputs;  // pending; the first is being delivered
    std::int64_t last_seq = 0;          // of the outputs that were in hand
    std::size_t taken = 0;              // outputs since it last began to wait for a connection
    std::size_t waiting_bytes = 0;      // of its outputs, about; 0: it does not wait
    int attempts = 0;                   // failed tries of the first output
    std::uint64_t generation = 0;       // of ownership
    std::size_t marks = 0;              // submitted to the store, not known yet
    bool more = false;                  // the store may have further outputs
    std::optional<Steady> begun;        // set while it has a connection
  };

  explicit DeliveryQueue(DeliveryQueueLimits limits) : limits_(limits) {}
  DeliveryQueue(const DeliveryQueue&) = delete;
  DeliveryQueue& operator=(const DeliveryQueue&) = delete;

  // All times without `steady` are by the clock of timers.
  [[nodiscard]] Lane& lane(const std::string& endpoint_id, const std::string& project_id);
  // Null: the Endpoint has no lane.
  [[nodiscard]] Lane* find_lane(const std::string& endpoint_id) {
    const auto found = lanes_.find(endpoint_id);
    return found == lanes_.end() ? nullptr : &found->second;
  }
  // The store may have a session of the Endpoint that is due at `due`.
  void wake(Lane& lane, model::Timestamp due) {
    lane.must_read = true;
    turns_.wake(lane, due);
  }
  // Gives the Endpoint no turn before `until`. Its waiting sessions leave the memory and stay in
  // the store.
  void put_off(Lane& lane, model::Timestamp until);
  // The same for a paused Endpoint. It counts as failing from now on, so it gets only one try at
  // `until`.
  void pause(Lane& lane, model::Timestamp until) {
    lane.failures = std::max(lane.failures, limits_.failures);
    lane.paused = true;
    put_off(lane, until);
  }
  // Ends the Endpoint's pause, if there is one. The Endpoint then gets its next turn now.
  void resume(Lane& lane, model::Timestamp now) {
    if (std::exchange(lane.paused, false)) put_off(lane, now);
  }

  // --- Choosing ----------------------------------------------------------------------------------
  // The Endpoint to read next; null: none, or all connections are taken.
  [[nodiscard]] Lane* next(model::Timestamp now, Steady steady);
  // How many more sessions of the Endpoint may begin now.
  [[nodiscard]] std::size_t room(const Lane& lane, Steady steady) const;
  // How many more sessions may be read now. If the Endpoint answers, some may wait for a
  // connection.
  [[nodiscard]] std::size_t room_to_read(const Lane& lane, Steady steady) const;
  // How many bytes of outputs may be read now. One session may always be read.
  [[nodiscard]] std::size_t bytes_to_read() const {
    return room_left(limits_.waiting_bytes, waiting_bytes_);
  }
  // Notes that all due sessions have been read. `next_due`: of the first session that is not due.
  void read_all(Lane& lane, std::optional<model::Timestamp> next_due) {
    lane.must_read = lane.read_again || next_due.has_value();
    turns_.read_all(lane, next_due);
  }

  // --- In hand -----------------------------------------------------------------------------------
  [[nodiscard]] Session* find(const model::SessionKey& key);
  [[nodiscard]] Session& take(Lane& lane, store::DueDelivery due, std::uint64_t generation);
  // Whether a session that is not in hand can be taken with its newest pending outputs, which no
  // read has seen at `unseen_until` or before. Else it has to be read.
  [[nodiscard]] bool takes_newest(const Lane& lane, Steady unseen_until, Steady steady) const;
  // Adds the newest pending outputs of a session in hand behind its others, or leaves them in the
  // store. A session without outputs, which only awaits its marks, then waits for a connection.
  void add(Session& session, std::vector<model::Output> newest, model::Timestamp now,
           Steady steady);
  // Lets the session wait for a connection.
  void wait(Session& session, model::Timestamp now);
  // Takes the session that has waited longest; null: none.
  [[nodiscard]] Session* next_waiting(Lane& lane);
  void begin(Session& session, Steady steady);
  // Notes the end of a try. The session keeps its connection until `land`.
  void delivered(Session& session, Steady steady);
  void failed(Session& session, Steady steady);
  void land(Session& session);
  // Whether the session may go on with its next output. Else another session has its turn.
  [[nodiscard]] bool goes_on(const Session& session, Steady steady) const;
  [[nodiscard]] bool fails(const Lane& lane) const { return lane.failures >= limits_.failures; }
  // Tries since the Endpoint counts as failing. Its wait grows with this number.
  [[nodiscard]] int tries_in_vain(const Lane& lane) const {
    return lane.failures - limits_.failures + 1;
  }
  // Removes the session's outputs from memory. They are read from the store when its turn comes.
  void leave(Session& session, model::Timestamp now);
  // Removes the session once it has no outputs in hand and no unknown marks.
  void release_if_done(Session& session, model::Timestamp now);

  // --- Waiting -----------------------------------------------------------------------------------
  [[nodiscard]] std::optional<model::Timestamp> next_due() const { return turns_.next_due(); }
  // When an Endpoint in flight becomes slow. This may make room for another Endpoint.
  [[nodiscard]] std::optional<Steady> next_slow(Steady steady) const;
  void forget_idle();
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] bool quiet() const { return sessions_.empty() && turns_.in_turn() == 0; }

 private:
  enum class Kind : std::uint8_t { answers, untried, slow, fails };
  struct Taken {
    std::size_t all = 0;
    std::size_t doubtful = 0;
    std::size_t untried = 0;
    std::size_t bad = 0;
  };
  [[nodiscard]] Kind kind_of(const Lane& lane, Steady steady) const;
  [[nodiscard]] Taken taken(const std::string* project_id, Steady steady) const;
  [[nodiscard]] bool may_wait(const Lane& lane, Steady steady) const;
  [[nodiscard]] std::size_t share(std::size_t eighths) const;
  [[nodiscard]] std::size_t share_of(const Lane& lane, Kind kind) const;
  static void tried(const Session& session, Steady steady);
  template <typename Outputs>
  void count_waiting(Session& session, const Outputs& outputs);

  const DeliveryQueueLimits limits_;
  std::unordered_map<std::string, Lane> lanes_;  // by Endpoint
  std::unordered_map<std::string, Session, model::KeyedHash, std::equal_to<>> sessions_;
  DueLanes<Lane> turns_;
  std::vector<const Lane*> busy_;  // lanes with connections
  std::size_t in_flight_ = 0;
  std::size_t waiting_ = 0;  // sessions
  std::size_t waiting_bytes_ = 0;
};

}  // namespace conversed::daemon
