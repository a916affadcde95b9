#pragma once

#include <string>
#include <string_view>

#include "store/model/result.h"

namespace conversed::ctl {

// The whole text of a file or pipe. `not_found`, with its name, if it does not exist, is a folder,
// or can't be read to its end.
[[nodiscard]] model::Result<std::string> read_file(const std::string& path);

// Replaces the text of a file. `unavailable`, with its name, if it can't be written.
[[nodiscard]] model::Result<void> write_file(const std::string& path, std::string_view text);

// Writes a file that does not exist yet. `conflict` if it does.
[[nodiscard]] model::Result<void> write_new_file(const std::string& path, std::string_view text);

}  // namespace conversed::ctl
