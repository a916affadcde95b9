#pragma once

#include <array>
#include <string_view>

namespace conversed::flows {

// The codes of failed calls, which Flows read as `input.error.code`. docs/flows/concepts.md and
// nodes.md (`code`) describe them.
// Kept by: ErrorCodes.AreInTheHandbook.
inline constexpr std::array<std::string_view, 23> call_error_codes{"status",
                                                                   "timeout",
                                                                   "refused",
                                                                   "egress_refused",
                                                                   "host_refused",
                                                                   "invalid_url",
                                                                   "invalid_header",
                                                                   "too_large",
                                                                   "invalid_answer",
                                                                   "turn_limit",
                                                                   "token_limit",
                                                                   "no_prompt",
                                                                   "quota_exhausted",
                                                                   "search_failed",
                                                                   "connection_deleted",
                                                                   "knowledge_deleted",
                                                                   "knowledge_damaged",
                                                                   "script_error",
                                                                   "memory",
                                                                   "result_too_large",
                                                                   "crashed",
                                                                   "sandbox_failed",
                                                                   "code_off"};

// The code of a Turn that failed, which the Flow for errors reads.
inline constexpr std::string_view turn_error_code = "turn_failed";

}  // namespace conversed::flows
