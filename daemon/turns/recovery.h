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
// went down, and how often. Each of them runs alone until it is committed, so that an event which
// brings the daemon down is known by having been the only one. Everything else runs as ever.
//
// A daemon that reads the whole log takes the events from its flight recorder at its start
// (`begin`). Of several daemons, each takes those of the partitions that it takes up, which may
// have been read elsewhere before: as many as can have been in hand. Thread-safe once begun; taking
// up and giving up are for the one thread that consumes.
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
// - What an owner has not reached when it gives its partition up runs alone at the next owner.
//   Kept by: RecoveryTest.EventsThatARunGivesUpUnreachedRunAloneInTheNext.
class Recovery {
 public:
  // The store must outlive it.
  explicit Recovery(store::Store& store) : store_(store) {}

  // Before anything runs; the Committer must be started. `ranges` are all partitions of the log.
  // What the recorder knows of the last run is durable when it returns, and the recorder has begun
  // a new one; null: there is none. Waits until the store works.
  [[nodiscard]] model::Result<void> begin(FlightRecorder* recorder,
                                          std::span<const queue::PartitionRange> ranges);

  // Instead of `begin`: this daemon's run of its own, new at each start.
  void begin_run(std::string run) { run_ = std::move(run); }
  // Takes these up. At most `in_flight` events of partitions that a crash has left behind are
  // taken for those that were in hand, all together; what a run that gives them up has not come to
  // is for the next one. `unavailable`, `timed_out`: to be asked again.
  [[nodiscard]] model::Result<void> take_up(std::span<const queue::PartitionRange> ranges,
                                            std::size_t in_flight);
  // These go to another daemon; with `unfinished` ones they count as left behind.
  enum class InHand : std::uint8_t { finished, unfinished };
  [[nodiscard]] model::Result<void> give_up(std::span<const std::int32_t> partitions,
                                            InHand in_hand);
  // All of them, with nothing unfinished.
  [[nodiscard]] model::Result<void> stopped();

  // In how many crashes the event was, or may have been, in hand; none: it need not run alone.
  // `at`: where the log has it; none if it waited in an inbox of the partition.
  [[nodiscard]] std::optional<int> crashes(const model::Event& event, std::int32_t partition,
                                           const std::optional<model::Position>& at) const;
  // The event, which has that many, is about to run alone. In a cluster its next owner counts one
  // more if this daemon goes down: that is durable when this returns.
  [[nodiscard]] model::Result<void> start(const store::InHand& event, int crashes);
  // These are committed.
  void settled(std::span<const std::string> event_ids);

 private:
  struct Known {
    std::int32_t partition;
    int crashes;
  };
  struct Window {
    store::Attempts::Window of;
    int crashes;  // that each of its events is counted with
  };
  struct State {
    std::map<std::string, Known, std::less<>> events;
    std::map<std::int32_t, Window> windows;  // by partition
    std::size_t left = 0;                    // events that may yet be taken out of the windows
  };
  static void know(State& state, std::vector<store::Attempts::Counted> counted);
  static void forget(State& state, std::int32_t partition);
  void look(const State& state) { any_ = !state.events.empty() || !state.windows.empty(); }

  store::Store& store_;
  std::string run_;  // empty: of a daemon that reads the whole log
  model::Guarded<State> state_;
  std::atomic<bool> any_{false};  // whether `state_` has any
};

}  // namespace conversed::daemon
