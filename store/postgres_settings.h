#pragma once

#include <chrono>
#include <string>

namespace conversed::store {

struct PostgresSettings {
  // libpq's: postgresql://user:password@host:port/database or "host=... dbname=...". Several hosts
  // are tried in turn for the one that can be written to. Never logged.
  std::string url{};
  // How long the server may take for a connection or a statement, and a transaction between two.
  std::chrono::milliseconds timeout{10'000};
  // How long a transaction that writes waits for those of other daemons.
  std::chrono::milliseconds turn_timeout{5'000};
  // Whether, of all sessions that ask for this, one alone may write to the schema at a time; others
  // can't connect. For a daemon whose deliveries, calls and timers nobody else may see to.
  bool alone = false;
};

}  // namespace conversed::store
