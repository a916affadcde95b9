#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace conversed::store {

struct PostgresSettings {
  // libpq's: postgresql://user:password@host:port/database or "host=... dbname=...". Of several
  // hosts the first writable one is used. Never logged.
  std::string url{};
  // How long the server may take for a connection or a statement, and a transaction between two.
  std::chrono::milliseconds timeout{10'000};
  // How long a transaction that writes waits for those of other daemons.
  std::chrono::milliseconds turn_timeout{5'000};
  // An advisory lock that a writing session holds until it ends. Daemons share it; a command that
  // needs all daemons stopped takes it alone. A session that does not get it within `turn_timeout`
  // is refused, with the names of the daemons that hold it.
  enum class Place : std::uint8_t { none, shared, alone };
  Place place = Place::none;
};

// Whether a PostgreSQL server answers, shared by all its connections. While the server is silent,
// reads fail at once. Otherwise each would block a thread of the API for the whole time-out.
// PostgresWatch keeps asking the server and finds it again. Thread-safe.
// Kept by: PostgresTest.ReadsFailFastWhileTheServerIsSilent.
class PostgresPulse {
 public:
  [[nodiscard]] bool answers() const { return answers_.load(std::memory_order_relaxed); }
  void found() { answers_.store(true, std::memory_order_relaxed); }
  void lost() { answers_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> answers_{true};
};

}  // namespace conversed::store
