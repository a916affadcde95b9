#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/turns/batch_claims.h"
#include "daemon/turns/batch_failures.h"
#include "daemon/turns/batch_follow_ups.h"
#include "daemon/turns/batch_inbox.h"
#include "daemon/turns/batch_outputs.h"
#include "daemon/turns/batch_turns.h"
#include "daemon/turns/turn_decision.h"

namespace conversed::daemon {

// A Turn that failed while a batch was built.
struct FailedTurn {
  std::string event_id;
  std::string reason;
  std::chrono::steady_clock::duration spent{};  // by all Turns of the batch so far
};

// What earlier tries to build a batch have found.
struct EarlierBuilds {
  std::map<std::string, std::string> failed{};  // Turns, by event id: why
  std::chrono::steady_clock::duration spent{};  // by Turns
};

// Builds one batch (see turn_batch.h): gathers the facts about each event, has `decide` decide, and
// carries the decision out on the draft. Used once, by one thread.
class TurnBatchBuilder {
 public:
  // All must outlive it.
  TurnBatchBuilder(const TurnBatchContext& context, const TurnBatchInput& input,
                   const EarlierBuilds& earlier)
      : draft_{context, input}, earlier_(earlier) {}

  // Errors: see `build_turn_batch`.
  [[nodiscard]] model::Result<std::variant<TurnBatch, FailedTurn>> build();

 private:
  // An event that is decided about.
  struct Candidate {
    const queue::LogRecord* logged = nullptr;  // null: it was taken from the inbox
    BatchInbox::Waiting waited{};              // unless `logged`
    std::optional<model::Event> event{};       // none: unreadable
    BatchClaims::Found claim{};

    [[nodiscard]] store::InboxEvent parts() const;
    [[nodiscard]] std::optional<model::Position> at() const;
  };

  [[nodiscard]] model::Result<void> load();
  [[nodiscard]] model::Result<void> drain();
  [[nodiscard]] model::Result<void> take(Candidate candidate);

  // Facts. They change nothing of the draft.
  [[nodiscard]] model::Result<EventFacts> look_at(Candidate& candidate) const;
  [[nodiscard]] model::Result<bool> has_had_effects(const model::Position& at) const;
  [[nodiscard]] std::string read(Candidate& candidate) const;
  [[nodiscard]] bool is_too_late(const Candidate& candidate) const;
  [[nodiscard]] bool must_wait(const Candidate& candidate) const;
  [[nodiscard]] bool may_start() const;
  [[nodiscard]] std::int32_t partition_of(const Candidate& candidate) const;

  // Decisions, carried out.
  [[nodiscard]] model::Result<void> carry_out(const Candidate& candidate, const EventFacts& facts,
                                              const Decision& decision);
  void accept(const Candidate& candidate, Decision::Fate fate);
  void count_use(const model::Event& event);
  [[nodiscard]] model::Result<void> let_wait(const Candidate& candidate, const Decision& decision);
  [[nodiscard]] model::Result<void> start(const Candidate& candidate, const EventFacts& facts,
                                          const Decision& decision);

  [[nodiscard]] bool stopped() const { return failed_ || draft_.batch.wants_alone; }
  void close();
  void settle_time_outs();
  void prepare_after_commit();

  BatchDraft draft_;
  BatchOutputs outputs_{draft_};
  BatchClaims claims_{draft_};
  BatchInbox inbox_{draft_};
  BatchFailures failures_{draft_, outputs_};
  BatchFollowUps follow_ups_{draft_, outputs_};
  BatchTurns turns_{draft_, outputs_, follow_ups_};

  const EarlierBuilds& earlier_;
  std::vector<std::string> time_outs_;  // that the stored session waits for
  std::string damage_;                  // of the stored session; nothing runs on it
  bool execution_lost_ = false;         // it can't be read: only the store knows its calls
  bool begun_ = false;                  // a Turn
  std::optional<FailedTurn> failed_;
};

}  // namespace conversed::daemon
