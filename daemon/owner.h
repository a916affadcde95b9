#pragma once

#include <filesystem>

#include "store/model/result.h"

namespace conversed::daemon {

// For a program that root runs in the data folder of a service with a user of its own (`conversed
// init` by hand): what root made there would be closed to the service. So the process becomes the
// folder's owner, with that user's groups, and stays it. Does nothing unless it is root's, and
// where the folder is root's or not there yet. Before the first thread is made. On an error the
// process may be anything in between and should end.
[[nodiscard]] model::Result<void> become_owner(const std::filesystem::path& data_dir);

}  // namespace conversed::daemon
