#pragma once

// Settings from a YAML file and the environment. All problems are reported at once.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "config/settings.h"

namespace conversed::config {

// Of a settings file or of a credential.
inline constexpr std::size_t max_file_bytes = 1024 * 1024;

// Names and values of environment variables.
using Environment = std::vector<std::pair<std::string, std::string>>;

// One problem of the settings, for people. Never contains the value of a secret.
// Kept by: Load.SecretsAreNeverShown.
struct Problem {
  std::string file;          // the name that the operator gave, or `environment_source`
  std::uint32_t line = 0;    // from 1; 0: no line applies
  std::uint32_t column = 0;  // from 1; 0: no column applies
  std::string path{};        // the key (`listen.port`) or the variable; may be empty
  std::string message{};
};

// The `file` of a Problem whose value came from an environment variable.
inline constexpr std::string_view environment_source = "environment";

// One line a problem, each ended by '\n', in the order given:
//   conversed.yaml:12: listen.port: expected a whole number from 0 to 65535, got "eighty"
//   conversed.yaml:3:7: illegal map value              (the syntax: no key to name, so the column)
//   environment: CONVERSED_WORKERS: expected ...
[[nodiscard]] std::string format_problems(const std::vector<Problem>& problems);

// The problems of queue.kafka.properties, without values. May be empty.
using KafkaCheck = std::function<std::vector<std::string>(const KafkaSettings&)>;

struct Inputs {
  std::optional<std::filesystem::path> file;  // none: the built-in defaults
  Environment environment{};
  bool root = false;   // whether the user is root, for the default data_dir
  unsigned cores = 0;  // for the default of workers; 0: unknown
  // The folder of secrets from a service manager. Empty: none.
  std::filesystem::path credentials = {};
  KafkaCheck kafka_problems{};
};

// The inputs of this process. No other thread may change the environment meanwhile.
[[nodiscard]] Inputs inputs_of_process(std::optional<std::filesystem::path> file,
                                       KafkaCheck kafka_problems = {});

// The defaults, changed by the file, then by the credentials (a file named like a secret key, such
// as store.postgres.url), then by the environment (CONVERSED_LISTEN_PORT). Every value of the
// result has its form and is in range, so its users need no checks. data_dir is never empty, and
// workers is never 0. A failure has at least one problem: the problems of the file in its order, of
// the credentials, of the environment, then of combinations. Reads only the file and the
// credentials (max_file_bytes each). Throws only std::bad_alloc. Thread-safe.
[[nodiscard]] tl::expected<Settings, std::vector<Problem>> load(const Inputs& inputs);

// Settings that are allowed but probably mistakes, each with advice, for the log and the status.
[[nodiscard]] std::vector<std::string> warnings_of(const Settings& settings);

}  // namespace conversed::config
