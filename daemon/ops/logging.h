#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "config/settings.h"

// The daemon's log: one line per event to stderr. A line is written before the call returns, so
// that a crash loses none. All functions are thread-safe.
namespace conversed::daemon::log {

using Level = config::LogLevel;

// One detail of a line. Holds views, which are valid only within the full expression of the call.
//
// The value of each key that names a secret is written as `***` (see `is_secret_key`).
// Other values are written as they are: never put a secret, a body or a URL's query there.
struct Field {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, bool v) : key(k), value(v) {}
  Field(std::string_view k, double v) : key(k), value(v) {}
  template <std::signed_integral T>
  Field(std::string_view k, T v) : key(k), value(static_cast<std::int64_t>(v)) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Field(std::string_view k, T v)
      : key(k), value(static_cast<std::uint64_t>(v)) {}

  std::string_view key;
  Value value;
};
using Fields = std::initializer_list<Field>;

// Sets level and format. Before the first call: JSON, from `info` on. May be called again.
void open(const config::LogSettings& settings);

// Whether lines of a level are written. For details that are costly to make.
[[nodiscard]] bool enabled(Level level);

// `event` is a constant phrase in lower case. Variable parts go into fields.
//
// A warning or an error that equals one of the last minute, with all fields, and has no `traceId`
// is counted instead of written. After that minute the next write adds a line with the count,
// `repeated`.
void write(Level level, std::string_view event, Fields fields);
inline void debug(std::string_view event, Fields fields = {}) {
  if (enabled(Level::debug)) write(Level::debug, event, fields);
}
inline void info(std::string_view event, Fields fields = {}) {
  if (enabled(Level::info)) write(Level::info, event, fields);
}
inline void warn(std::string_view event, Fields fields = {}) {
  if (enabled(Level::warn)) write(Level::warn, event, fields);
}
inline void error(std::string_view event, Fields fields = {}) {
  if (enabled(Level::error)) write(Level::error, event, fields);
}

// Whether the value of a key is withheld: `key`, or a name that ends with password, token, secret,
// authorization, credential or apikey, in any case, with any `-` and `_`.
[[nodiscard]] bool is_secret_key(std::string_view key);

// One line without its end. JSON: {"time","level","event", fields...}, always valid by RFC 8259:
// invalid UTF-8 in a value becomes U+FFFD. Text: control characters are escaped, so that a value
// can't forge a line. `unix_ms`: milliseconds since the Unix epoch.
[[nodiscard]] std::string format(config::LogFormat format, std::int64_t unix_ms, Level level,
                                 std::string_view event, Fields fields);

// Sends lines to `sink` instead of stderr. An empty function restores stderr. For tests.
void set_sink(std::function<void(std::string_view line)> sink);

}  // namespace conversed::daemon::log
