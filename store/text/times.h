#pragma once

#include <chrono>
#include <string>

// Times as texts, in UTC. Pure; thread-safe.
namespace conversed::text {

using Milliseconds = std::chrono::sys_time<std::chrono::milliseconds>;

// By a format of strftime, in English. A year that no `int` can hold: the seconds since 1970.
[[nodiscard]] std::string utc_time(std::chrono::sys_seconds time, const char* format);

// `2026-11-21T04:12:46.123Z`, as JavaScript's toISOString writes it. Requires a year of four
// digits.
[[nodiscard]] std::string iso_time(Milliseconds time);

}  // namespace conversed::text
