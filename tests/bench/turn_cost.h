#pragma once

namespace conversed::bench {

// Median CPU time, in microseconds, of a Turn of exactly eight Nodes (conditions, templates, writes
// to the context, two outputs) without I/O, over some tens of thousands of Turns of one session.
// Negative: a Turn failed, which stderr explains.
[[nodiscard]] double turn_cost_us();

}  // namespace conversed::bench
