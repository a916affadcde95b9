#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace conversed::model {

// The kinds of expected failure. `api/http/error_reply.cc` maps each to one HTTP status.
enum class Errc : std::uint8_t {
  invalid_argument,   // the input is wrong; the message names the place
  unauthenticated,    // no valid credentials
  permission_denied,  // known, but not allowed
  not_found,          // missing or foreign; the two can't be told apart
  conflict,           // against the current state
  too_large,          // over a size limit
  too_many,           // over a rate, inbox or queue limit; try again later
  quota_exhausted,    // the plan is used up
  not_supported,      // switched off, or not part of the program
  bad_upstream,       // an upstream refused or answered nonsense; nothing was done
  unavailable,        // an upstream is down or full; nothing was done
  timed_out,          // no answer in time; the outcome is unknown
  internal,           // a defect or bad stored data
};

// An expected failure as a value. The message is for people: it never holds a secret, SQL or a
// stack.
struct Error {
  Errc code = Errc::internal;
  std::string message;
};

// A value or an Error. Functions that return one are [[nodiscard]].
template <typename T>
using Result = tl::expected<T, Error>;

// `return fail(Errc::not_found, "...")` in any function that returns a Result.
[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

// `return fail(result.error())` hands an error on.
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace conversed::model
