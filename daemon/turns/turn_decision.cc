#include "daemon/turns/turn_decision.h"

namespace conversed::daemon {

Decision decide(const EventFacts& facts) {
  using Fate = Decision::Fate;
  const auto bury = [](std::string_view reason) {
    return Decision{Fate::dead_letter, std::string(reason)};
  };
  const auto bury_damaged = [&] {
    return bury("its session is damaged: " + std::string(facts.damage));
  };
  if (facts.seen) return {Fate::seen};
  if (!facts.unreadable.empty()) return bury(facts.unreadable);
  // The claim can't be checked, and no other event consumes it.
  if (facts.execution_lost) return bury_damaged();
  if (facts.claim_gone) return {Fate::dropped};
  if (facts.too_late) return {Fate::too_late};
  if (facts.must_wait) return facts.refused.empty() ? Decision{Fate::inbox} : bury(facts.refused);
  if (facts.crashes && !facts.alone) return {Fate::needs_alone};
  if (!facts.damage.empty()) return bury_damaged();
  if (facts.crashes && *facts.crashes >= max_crashes) {
    return bury("the daemon went down " + std::to_string(max_crashes) +
                " times while it processed this event");
  }
  if (!facts.refused.empty()) return bury(facts.refused);
  if (!facts.failed.empty()) return bury(facts.failed);
  return {Fate::runs};
}

}  // namespace conversed::daemon
