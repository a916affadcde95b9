#pragma once

#include <chrono>
#include <cstdint>
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
  // What a session that writes to the schema has for as long as it is there: those of daemons share
  // it, and a command that needs them all stopped has it alone. Whoever can't have it within
  // `turn_timeout` is refused, with the names of those who have it.
  enum class Place : std::uint8_t { none, shared, alone };
  Place place = Place::none;
};

}  // namespace conversed::store
