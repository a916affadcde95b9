#pragma once

#include <atomic>

namespace conversed::store {

// Whether a PostgreSQL server answers, shared by all its connections. While the server is silent,
// reads fail at once. Otherwise each would block a thread of the API for the whole time-out.
// PostgresWatch keeps asking the server and finds it again. Thread-safe.
// Kept by: PostgresTest.OfASilentServerNothingIsRead.
class PostgresPulse {
 public:
  [[nodiscard]] bool answers() const { return answers_.load(std::memory_order_relaxed); }
  void found() { answers_.store(true, std::memory_order_relaxed); }
  void lost() { answers_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> answers_{true};
};

}  // namespace conversed::store
