#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "flows/tools/recording.h"
#include "flows/tools/rehearsal.h"

namespace conversed::flows::tools {

// An input, or a timer that fell due, with the outputs that followed.
struct Exchange {
  std::string input_id{};
  std::string input{};  // for people: `> hello`, or `(time-out)`
  model::Timestamp at{};
  std::vector<Said> recorded{};
  std::vector<Said> replayed{};
  std::string recorded_failure{};  // why a Turn failed; empty: none did
  std::string replayed_failure{};
  std::string note{};  // why it differs, beside its outputs
  // Recorded outputs are gone, since the user's next message withdrew them: they are not compared.
  bool is_withdrawn = false;

  [[nodiscard]] bool differs() const;
};

// The comparison of a recorded conversation with its replay.
struct Replay {
  enum class Outcome : std::uint8_t { same, different, not_comparable };
  Outcome outcome = Outcome::same;
  std::string reason{};  // why it can't be compared, if no difference was found before
  std::vector<Exchange> exchanges{};
  std::size_t first = 0;  // the first exchange that differs; their number: none does
};

// Runs the recorded inputs on the stage, at their times, and compares what is said. Has no effects:
// - A call gets the recorded answer of the next equal request (request_mark) of its
//   execution. A request that the recording lacks is a difference, and ends the replay.
// - A sleep ends when the execution's next recorded sleep ended. Follow-ups and time-outs run when
//   they ran. Those that the recording lacks run when they are due, up to `until`: the time when
//   the recording was read.
// - A follow-up that came too late, or was one too many, does not run.
//
// Ids, times and the user's profile are the recorded ones, so an unchanged Flow says the same. The
// replay ends where the recording lacks something. Bounded by the recording, and by limits that the
// reason names. Pure. Thread-safe.
// Kept by: Replay.OfTheSameFlowSaysTheSame, Replay.EndsAtACallThatTheRecordingLacks,
// Replay.RunsTimersAtTheirRecordedTimes.
[[nodiscard]] Replay replay(const Stage& stage, const Recording& recording, model::Timestamp until);

}  // namespace conversed::flows::tools
