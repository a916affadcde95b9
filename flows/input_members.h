#pragma once

#include <array>
#include <string_view>

namespace conversed::flows {

// The members of `input` in expressions. docs/flows/expressions.md tells what each has.
inline constexpr std::array<std::string_view, 20> input_members{
    "text",    "data",      "type",     "source",  "slots",       "state",     "locale",
    "userId",  "sessionId", "URLToken", "channel", "currentTime", "execution", "inputId",
    "traceId", "error",     "tool",     "answer",  "event",       "events"};

}  // namespace conversed::flows
