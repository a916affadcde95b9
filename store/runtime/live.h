#pragma once

#include <memory>
#include <utility>

#include "store/runtime/guarded.h"

namespace conversed::model {

// A value that a reload of the settings may replace at any time: call `get` for each use. Copies
// share the value. Thread-safe.
template <typename T>
class Live {
 public:
  Live() = default;
  explicit Live(T value) : value_(std::make_shared<Guarded<T>>(std::move(value))) {}

  [[nodiscard]] T get() const {
    return value_->with([](const T& value) { return value; });
  }
  void set(T value) const {
    value_->with([&](T& current) { std::swap(current, value); });
  }

 private:
  std::shared_ptr<Guarded<T>> value_ = std::make_shared<Guarded<T>>();
};

}  // namespace conversed::model
