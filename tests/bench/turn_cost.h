#pragma once

namespace conversed::bench {

// The median CPU time, in microseconds, of a Turn of exactly eight Nodes (conditions, templates,
// writes to the context, two outputs) without I/O, over some tens of thousands of Turns of one
// session. Negative if a Turn failed; stderr has the reason.
[[nodiscard]] double turn_cost_us();

}  // namespace conversed::bench
