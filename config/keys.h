#pragma once

// The one table of settings. Parsing, the names of environment variables, error messages, the
// commented default file and what a reload can change are all read off it; a new setting is a
// member of a struct in settings.h and a row here.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace conversed::config {

// How a value is written. It decides how the text is read and what Key::min and max count.
enum class Form : std::uint8_t {
  whole,      // a whole number
  duration,   // milliseconds
  size,       // bytes
  flag,       // true or false
  word,       // one of Key::words
  words,      // a list of Key::words, at least one, none twice
  host,       // a host name or an IP address
  path,       // a folder; empty: the default place
  base_path,  // the beginning of a URL's path, or empty
  topic,      // what Kafka takes in a topic's name
  name,       // the same, or empty
  servers,    // a list of host:port
  pairs,      // a list of name=value; secret
  networks,   // a list of CIDR ranges, IP addresses and host names
  ranges,     // a list of CIDR ranges and IP addresses
  url,        // of a PostgreSQL database, or empty; secret
  file,       // the path of a file, or empty
  text,       // one line of any characters, or empty
  secret,     // 32 bytes or more, or empty
};

// One setting. Immutable, with static lifetime.
struct Key {
  std::string_view path;  // `queue.kafka.topic_prefix`
  Form form;
  std::uint64_t min;  // of whole, duration and size; both inclusive
  std::uint64_t max;
  std::span<const std::string_view> words;  // of word and words
  std::string_view doc;                     // one or two sentences for operators
  bool reloads;                             // whether SIGHUP does, or it takes a restart

  // Sets the value. nullopt: done; else what is wrong, where the expected form does not say it all
  // (it may be empty). `items` has one element unless the form is a list. On failure nothing is
  // changed.
  std::optional<std::string> (*assign)(Settings&, const Key&,
                                       const std::vector<std::string>& items);
  // The value as it is written, one element unless the form is a list. Shows a secret, too: compare
  // the result, and ask is_secret() before printing it.
  std::vector<std::string> (*show)(const Settings&, const Key&);

  [[nodiscard]] bool is_list() const;
  [[nodiscard]] bool is_secret() const {
    return form == Form::url || form == Form::secret || form == Form::pairs;
  }
  // `CONVERSED_QUEUE_KAFKA_TOPIC_PREFIX`.
  [[nodiscard]] std::string variable() const;
  // `a whole number from 0 to 65535`; reads on after "expected ".
  [[nodiscard]] std::string expected() const;
};

// In the order of the default file; the keys of one area are neighbours.
[[nodiscard]] std::span<const Key> keys();

// The commented default file: every key with its explanation, its form and its default. It is the
// text of config/conversed.yaml.
[[nodiscard]] std::string default_file();

// Environment variables that begin with CONVERSED_ and are no setting. Those that end with '_' are
// prefixes: they belong to the tests, and a daemon that is not under test ignores them.
[[nodiscard]] std::span<const std::string_view> reserved_variables();

// The paths of what differs between two settings, in the table's order; never the values.
[[nodiscard]] std::vector<std::string_view> changed_keys(const Settings& before,
                                                         const Settings& after);

// What a reload came to, as paths in the table's order.
struct Reloaded {
  std::vector<std::string_view> applied;
  std::vector<std::string_view> need_restart;
};

// Takes over from `wanted` what can be changed while the daemon runs, and nothing else.
[[nodiscard]] Reloaded reload(Settings& running, const Settings& wanted);

}  // namespace conversed::config
