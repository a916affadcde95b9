#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace conversed::daemon {

// All facts that decide about an event, as they are before it has any effect.
struct EventFacts {
  bool seen = false;             // its position is not above the session's
  std::string unreadable{};      // why it is no event of a conversation; empty: it is an event
  std::string_view damage{};     // why the stored session can't be read; empty: it can
  bool execution_lost = false;   // its execution is part of the damage
  bool claim_gone = false;       // its claim was consumed, or its execution has ended
  bool too_late = false;         // scheduled for an active conversation; this one is not active
  bool must_wait = false;        // the session is busy, or other events go first
  std::optional<int> crashes{};  // crashes with it in hand; none: it need not run alone
  bool alone = false;            // no other batch is in hand
  std::string_view refused{};    // why the store can't take it, even into the inbox; or empty
  std::string_view failed{};     // why its Turn failed before; empty: it did not
};

struct Decision {
  enum class Fate : std::uint8_t {
    seen,         // no effect: it has already had its effects
    dropped,      // no effect, but its position is kept
    too_late,     // as `dropped`, and its claim is consumed
    inbox,        // it waits in the store until its session is free
    needs_alone,  // the batch is built again once no other batch is in hand
    dead_letter,  // it is given up, with a reason
    runs,         // as a Turn or, for a notify, without the Flow
  };
  Fate fate = Fate::runs;
  std::string reason{};  // of a dead letter
};

// Decides about one event. Pure; the first rule that fits decides.
// Kept by: TurnDecision.EachRuleDecides.
[[nodiscard]] Decision decide(const EventFacts& facts);

// After this many crashes with it in hand, an event becomes a dead letter.
inline constexpr int max_crashes = 3;

}  // namespace conversed::daemon
