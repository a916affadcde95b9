#include "daemon/turns/turn_decision.h"

#include <gtest/gtest.h>

#include <vector>

namespace conversed::daemon {
namespace {

using Fate = Decision::Fate;

TEST(TurnDecision, EachRuleDecides) {
  struct Row {
    const char* rule;
    EventFacts facts;
    Fate fate;
    std::string reason{};
  };
  const std::string damaged = "its session is damaged: bad context";
  const std::string deadly = "the daemon went down 3 times while it processed this event";
  const std::vector<Row> rows{
      {"nothing speaks against it", {}, Fate::runs},
      {"a record that came again has no effects", {.seen = true}, Fate::seen},
      {"even one that can't be read", {.seen = true, .unreadable = "no JSON"}, Fate::seen},
      {"a record that is no event is a dead letter",
       {.unreadable = "no JSON"},
       Fate::dead_letter,
       "no JSON"},
      {"a consumed claim leaves no effects", {.claim_gone = true}, Fate::dropped},
      {"nor a dead letter of a damaged session",
       {.damage = "bad context", .claim_gone = true},
       Fate::dropped},
      {"a claim that can't be checked counts for nothing",
       {.damage = "bad context", .execution_lost = true, .claim_gone = true},
       Fate::dead_letter,
       damaged},
      {"a schedule for active conversations only is dropped", {.too_late = true}, Fate::too_late},
      {"a busy session's events wait", {.must_wait = true}, Fate::inbox},
      {"and need not run alone yet", {.must_wait = true, .crashes = 3}, Fate::inbox},
      {"what the store refuses waits nowhere",
       {.must_wait = true, .refused = "refused"},
       Fate::dead_letter,
       "refused"},
      {"an event of a crash runs alone", {.crashes = 1}, Fate::needs_alone},
      {"also one that will be given up", {.crashes = 3}, Fate::needs_alone},
      {"alone it runs", {.crashes = 2, .alone = true}, Fate::runs},
      {"after three crashes it does not", {.crashes = 3, .alone = true}, Fate::dead_letter, deadly},
      {"nothing runs on a damaged session", {.damage = "bad context"}, Fate::dead_letter, damaged},
      {"whatever else is known of the event",
       {.damage = "bad context", .crashes = 3, .alone = true, .refused = "refused"},
       Fate::dead_letter,
       damaged},
      {"a refused event does not run", {.refused = "refused"}, Fate::dead_letter, "refused"},
      {"nor one whose Turn has failed", {.failed = "loops"}, Fate::dead_letter, "loops"},
      {"which fails in its place, and not before",
       {.must_wait = true, .failed = "loops"},
       Fate::inbox},
  };
  for (const auto& row : rows) {
    const Decision decision = decide(row.facts);
    EXPECT_EQ(decision.fate, row.fate) << row.rule;
    EXPECT_EQ(decision.reason, row.reason) << row.rule;
  }
}

}  // namespace
}  // namespace conversed::daemon
