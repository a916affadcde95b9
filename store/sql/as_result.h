#pragma once

#include <type_traits>
#include <utility>

#include "store/model/result.h"

namespace conversed::store {

namespace detail {
template <typename T>
struct AsResult {
  using Type = model::Result<T>;
};
template <typename T>
struct AsResult<model::Result<T>> {
  using Type = model::Result<T>;
};
}  // namespace detail

// Result<T> of a T, of nothing, and of a Result<T>.
template <typename T>
using AsResult = typename detail::AsResult<T>::Type;

// Calls `work(argument)`; where it returns nothing, that is success.
template <typename F, typename Argument>
[[nodiscard]] AsResult<std::invoke_result_t<F, Argument&>> returned(F&& work, Argument& argument) {
  if constexpr (std::is_void_v<std::invoke_result_t<F, Argument&>>) {
    std::forward<F>(work)(argument);
    return {};
  } else {
    return std::forward<F>(work)(argument);
  }
}

}  // namespace conversed::store
