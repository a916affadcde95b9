#pragma once

#include <cstddef>
#include <cstdint>

// The bytes between the daemon and a sandbox process, both on one machine and of one build.
//
// A request is a RequestHeader, the script and the values as JSON. A reply is a ReplyHeader and its
// text. Both pass through the sandbox's socket. When the run's process has ended, the sandbox
// writes the process's wait status, an int, into its pipe.
namespace conversed::daemon {

inline constexpr int sandbox_socket = 0;  // file descriptors of the sandbox
inline constexpr int sandbox_pipe = 1;
inline constexpr int sandbox_program = 3;  // its program; it closes this at its start

struct RequestHeader {
  std::uint32_t script_bytes = 0;
  std::uint32_t values_bytes = 0;
  std::uint32_t result_bytes = 0;  // of the largest result
  std::uint32_t timeout_ms = 0;
};

enum class ReplyKind : std::uint32_t {
  value,      // the result as JSON
  failed,     // the script's error
  memory,     // no text: the script needs too much memory
  too_large,  // no text: the result is too large
};

struct ReplyHeader {
  ReplyKind kind = ReplyKind::value;
  std::uint32_t bytes = 0;
};

inline constexpr std::size_t max_error_bytes = 1'000;

}  // namespace conversed::daemon
