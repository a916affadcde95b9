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
  std::optional<model::Position> position{};  // of its record in the log; empty: still unknown
};

// The progress of an input, and its answer.
struct InputState {
  enum class Stage : std::uint8_t {
    unseen,   // its record has not been processed, or its session is erased
    runs,     // it runs, or waits in its session's inbox
    at_rest,  // it will have no more outputs
    failed,   // it has failed, and its key is free
  };
  Stage stage = Stage::unseen;
  // Set if the input is cut: outputs with a number up to this one are its answer, and later ones go
  // to the webhook.
  std::optional<std::int64_t> cut_behind{};
  std::optional<model::Timestamp> answer_until{};  // the deadline, if it runs and is not cut
  std::optional<std::string> kept{};               // the answer, if it is keyed and at rest
  std::vector<model::Output> said{};
};

// Answers to `POST /{URLToken}`. The outputs of an input are its answer until the input is cut. A
// cut is a row. Answers of keyed inputs, and failures, are kept under the input's id until they
// expire. The Committer writes them with the Turn. Thread-safe; blocks on the disk. Errors:
// `unavailable`.
//
// An output is either part of its input's answer or a delivery. Writers take turns, so either the
// commit or the cut comes first. A SessionCommit that adds answers to a cut input, or comes past
// the deadline, is a conflict. After the rebuild its outputs are deliveries.
// Kept by: AnswersTest.AnAnswerToACutInputIsAConflictAndADeliveryIsNot,
// AnswersTest.AnAnswerPastItsDeadlineIsAConflict.
//
// An input is at rest when its session's position is past its record and neither the execution nor
// the inbox holds it. Kept by: AnswersTest.AnInputIsAtRestOncePositionExecutionAndInboxArePastIt.
class Answers : Rows {
 public:
  using Rows::Rows;

  [[nodiscard]] model::Result<InputState> look(const AwaitedInput& input,
                                               model::Timestamp now) const;

  // Cuts the input unless it is at rest, and reports its state. Does not block; `done` is
  // called on the Committer's thread. Errors as Committer::write with `Patience::none`.
  void cut(const AwaitedInput& input, std::function<void(model::Result<InputState>)> done);

  [[nodiscard]] model::Result<bool> is_cut(const std::string& input_id) const;

  // Whether the claim of a keyed event has been consumed.
  [[nodiscard]] model::Result<bool> claimed(const std::string& event_id) const;

  // Deletes expired answers, cuts that are older than any answer, and claims of keyed events that
  // are older than `claims_before`, up to `limit` of each in one transaction. Returns the largest
  // of the three numbers.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp now,
                                                  model::Timestamp claims_before,
                                                  std::size_t limit);
};

}  // namespace conversed::store
