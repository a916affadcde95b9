#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::store {

// A user's message whose client waits for the answer.
struct AwaitedInput {
  model::SessionKey session;
  std::string id;
  std::optional<model::Position> position{};  // of its record in the log; empty: not known yet
};

// How far an input has come, and what it has said.
struct InputState {
  enum class Stage : std::uint8_t {
    unseen,   // its record has not been taken up, or its session is erased
    runs,     // it runs, or waits in its session's inbox
    at_rest,  // it has said all that it will ever say
    failed,   // it has failed; its key is free
  };
  Stage stage = Stage::unseen;
  // Set if the input is cut: outputs with a number up to this one are its answer, and later ones go
  // to the webhook.
  std::optional<std::int64_t> cut_behind{};
  std::optional<model::Timestamp> answer_until{};  // of an uncut one that runs: its deadline
  std::optional<std::string> kept{};               // of a keyed one at rest: its answer
  std::vector<model::Output> said{};
};

// Answers to `POST /{URLToken}`. The outputs of an input are its answer until the input is cut. The
// cut is a row. Answers of keyed inputs, and failures, are kept by the input's id until they
// expire; the Committer writes them with the Turn. Thread-safe; blocks on the disk. Errors:
// `unavailable`.
//
// An output goes one way: it is the answer of its input, or a delivery. Writers take turns, so
// either the commit or the cut comes first. A SessionCommit that adds answers to a cut input, or
// comes past the deadline, is a conflict; rebuilt, its outputs are deliveries.
// Kept by: AnswersTest.AnAnswerToACutInputIsAConflictAndADeliveryIsNot,
// AnswersTest.AnAnswerPastItsDeadlineIsAConflict.
//
// An input is at rest when its session's position is past its record's, and neither the execution
// nor the inbox holds it.
// Kept by: AnswersTest.AnInputIsAtRestOncePositionExecutionAndInboxArePastIt.
class Answers : Rows {
 public:
  using Rows::Rows;

  [[nodiscard]] model::Result<InputState> look(const AwaitedInput& input,
                                               model::Timestamp now) const;

  // Cuts the input unless it is at rest, and reports its state. Does not block; `done` is
  // called on the Committer's thread. Errors as Committer::write without patience.
  void cut(const AwaitedInput& input, std::function<void(model::Result<InputState>)> done);

  [[nodiscard]] model::Result<bool> is_cut(const std::string& input_id) const;

  // Whether the claim of a keyed event has been consumed.
  [[nodiscard]] model::Result<bool> claimed(const std::string& event_id) const;

  // Deletes expired answers, cuts that are older than an answer may be, and claims of keyed events
  // from before `claims_before`, up to `limit` of each in one transaction. Returns the largest of
  // the numbers.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp now,
                                                  model::Timestamp claims_before,
                                                  std::size_t limit);
};

}  // namespace conversed::store
