#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/turns/flight_recorder.h"
#include "queue/log.h"
#include "store/conversation/attempts.h"
#include "store/model/event.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

// Attributes crashes to events: knows which events were, or may have been, in hand when a daemon
// went down, and how often. Each such event runs alone until it is committed. So after the next
// crash the guilty event is the only one in hand. All other events run side by side.
//
// A daemon that reads the whole log takes the events from its flight recorder at its start
// (`begin`). In a cluster each daemon takes the events of the partitions that it takes up, at most
// as many as their former owner can have had in hand. Thread-safe once begun; taking up and giving
// up are for the thread that consumes.
//
// Invariants:
// - An event that brings the daemon down three times is a dead letter, however the process ends.
//   Kept by: RecoveryTest.AnEventIsGivenUpAfterThreeCrashesAndItsNeighborsRunOnce.
// - Each run of the recorder is counted once: the counts and the run's number are one transaction.
//   Kept by: RecoveryTest.AStartThatEndsBeforeItsRecorderBeginsIsNotCountedTwice.
// - An innocent event loses its count in the transaction of its effects.
//   Kept by: RecoveryTest.ACountIsForgottenWithItsEventsCommit.
// - The next start forgets the count of an event that was committed just before the crash.
//   Kept by: RecoveryTest.ACommittedEventIsForgottenAlthoughItIsStillNoted.
// - Of all partitions that a crash left together, at most `in_flight` events run alone: unfinished
//   records from the committed position on, and older events in inboxes.
//   Kept by: RecoveryTest.NoMoreEventsRunAloneThanWereInFlightInAllLeftPartitions.
// - If an owner gives its partition up early, the events that it has not reached run alone at the
//   next owner. Kept by: RecoveryTest.EventsThatARunGivesUpUnreachedRunAloneInTheNext.
class Recovery {
 public:
  // The store must outlive it.
  explicit Recovery(store::Store& store) : store_(store) {}

  // Call it before anything runs; the Committer must be started. `ranges` are all partitions of the
  // log. When it returns, the store has the recorder's notes of the last run, and the recorder has
  // begun a new run. `recorder` may be null. Waits until the store works.
  [[nodiscard]] model::Result<void> begin(FlightRecorder* recorder,
                                          std::span<const queue::PartitionRange> ranges);

  // For a cluster, instead of `begin`. `run` is the id of this daemon's run, new at each start.
  void begin_run(std::string run) { run_ = std::move(run); }
  // Takes these partitions up. If a crash left some of them behind, at most `in_flight` of their
  // events, in all, count as having been in hand. If this run gives partitions up before it has
  // reached such events, the next run takes them over. `unavailable`, `timed_out`: ask again.
  [[nodiscard]] model::Result<void> take_up(std::span<const queue::PartitionRange> ranges,
                                            std::size_t in_flight);
  // These partitions go to another daemon. With `unfinished` events they count as left behind by a
  // crash.
  enum class InHand : std::uint8_t { finished, unfinished };
  [[nodiscard]] model::Result<void> give_up(std::span<const std::int32_t> partitions,
                                            InHand in_hand);
  // Gives up all partitions, without unfinished events.
  [[nodiscard]] model::Result<void> stopped();

  // The number of crashes with the event possibly in hand. None: it need not run alone. `at`: its
  // position in the log; none if it waited in an inbox of the partition.
  [[nodiscard]] std::optional<int> crashes(const model::Event& event, std::int32_t partition,
                                           const std::optional<model::Position>& at) const;
  // Tells that the event, with this number of crashes, is about to run alone. In a cluster its next
  // owner counts one more crash if this daemon goes down: that is durable when this returns.
  [[nodiscard]] model::Result<void> start(const store::InHand& event, int crashes);
  // Tells that these events are committed.
  void settled(std::span<const std::string> event_ids);

 private:
  struct Known {
    std::int32_t partition;
    int crashes;
  };
  struct Window {
    store::Attempts::Window of;
    int crashes;  // the count of each of its events
  };
  struct State {
    std::map<std::string, Known, std::less<>> events;
    std::map<std::int32_t, Window> windows;  // by partition
    std::size_t left = 0;                    // events that the windows may still yield
  };
  static void know(State& state, std::vector<store::Attempts::Counted> counted);
  static void forget(State& state, std::int32_t partition);
  void look(const State& state) { any_ = !state.events.empty() || !state.windows.empty(); }

  store::Store& store_;
  std::string run_;  // empty: this daemon reads the whole log
  model::Guarded<State> state_;
  std::atomic<bool> any_{false};  // whether `state_` has events or windows
};

}  // namespace conversed::daemon
