#pragma once

#include <atomic>

namespace conversed::store {

// Whether a PostgreSQL server answers, as all who ask it find it. Readers ask here first: while the
// server is silent they fail at once, where each would wait for the time-out, and with it the
// thread that reads requests. PostgresWatch goes on asking the server, and finds it again.
// Thread-safe.
class PostgresPulse {
 public:
  [[nodiscard]] bool answers() const { return answers_.load(std::memory_order_relaxed); }
  void found() { answers_.store(true, std::memory_order_relaxed); }
  void lost() { answers_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> answers_{true};
};

}  // namespace conversed::store
