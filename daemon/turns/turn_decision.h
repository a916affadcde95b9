#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace conversed::daemon {

// Everything that decides about an event, as it is known before the event has any effect.
struct EventFacts {
  bool seen = false;             // its position is not above the session's
  std::string unreadable{};      // why it is no event of a conversation; empty: it is one
  std::string_view damage{};     // why the stored session can't be read; empty: it can
  bool execution_lost = false;   // it answers an execution that is part of the damage
  bool claim_gone = false;       // its claim was consumed, or its execution is over
  bool too_late = false;         // scheduled for an active conversation; this one is not active
  bool must_wait = false;        // the session is busy, or other events go first
  std::optional<int> crashes{};  // counted with it in hand; none: it need not run alone
  bool alone = false;            // nothing else is in hand
  std::string_view refused{};    // why the store can't take it, not even into the inbox; or empty
  std::string_view failed{};     // why its Turn failed before; empty: it did not
};

struct Decision {
  enum class Fate : std::uint8_t {
    seen,         // nothing happens: it has had its effects
    dropped,      // it has none, but its position counts
    too_late,     // the same, and its claim is consumed
    inbox,        // it waits in the store until its session is free
    needs_alone,  // nothing of the batch is built before nothing else is in hand
    dead_letter,  // it is given up with a reason
    runs,         // as a Turn, or past the Flow
  };
  Fate fate = Fate::runs;
  std::string reason{};  // of a dead letter
};

// Decides about one event. Pure; the first rule that fits decides.
// Kept by: TurnDecision.EachRuleDecides.
[[nodiscard]] Decision decide(const EventFacts& facts);

// So many crashes with one event in hand make it a dead letter.
inline constexpr int max_crashes = 3;

}  // namespace conversed::daemon
