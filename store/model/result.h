#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "store/model/error.h"

namespace conversed::model {

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
