#pragma once

// Settings from a YAML file and the environment. What is wrong is reported all at once: an operator
// should not have to start the daemon once for each slip.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "config/problem.h"
#include "config/settings.h"

namespace conversed::config {

// Of a settings file, or of a credential.
inline constexpr std::size_t max_file_bytes = 1024 * 1024;

// Names and values of environment variables.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Which drivers besides the embedded ones this program was built with.
struct Drivers {
  bool kafka = false;
  // What is wrong with queue.kafka.properties, for each that is; names no value. May be empty.
  std::function<std::vector<std::string>(const KafkaSettings&)> kafka_problems{};
  bool postgres = false;
};

struct Inputs {
  std::optional<std::filesystem::path> file;  // none: the built-in default
  Environment environment;
  bool root = false;  // whether the user is root, for the default data_dir
  // The folder of secrets that a service manager hands over; empty: none.
  std::filesystem::path credentials = {};
  Drivers drivers;
};

// The inputs of this process. Not to be called while another thread changes the environment.
[[nodiscard]] Inputs inputs_of_process(std::optional<std::filesystem::path> file, Drivers drivers);

// The defaults, changed by the file, changed by the credentials (a file store.postgres.url and the
// like, for what is secret), changed by the environment (CONVERSED_LISTEN_PORT and the like).
// Everything in the result is in range and of its form; data_dir is never empty. On failure
// there is at least one problem: those of the file in its order, those of the credentials, those of
// the environment, then what doesn't fit together. Reads the file and the credentials
// (max_file_bytes each) and nothing else; creates nothing. Throws nothing but std::bad_alloc.
// Thread-safe.
[[nodiscard]] tl::expected<Settings, std::vector<Problem>> load(const Inputs& inputs);

}  // namespace conversed::config
