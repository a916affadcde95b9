#pragma once

#include <filesystem>
#include <initializer_list>

#include "store/model/result.h"

namespace conversed::daemon {

// For a program that root runs in the data folder of a service with a user of its own (`conversed
// init` by hand): what root made there would be closed to the service. So the process becomes the
// folder's owner, with that user's groups, and stays it. Does nothing unless it is root's, and
// where the folder is root's or not there yet. Before the first thread is made. On an error the
// process may be anything in between and should end.
[[nodiscard]] model::Result<void> become_owner(const std::filesystem::path& data_dir);

// For the same, where root's rights are needed until the end, as backups and keys may be root's:
// gives what root made in the folder (these names, those that are there) to the folder's owner.
// Does nothing unless the process is root's and the folder is not. `permission_denied`.
[[nodiscard]] model::Result<void> give_to_owner(const std::filesystem::path& data_dir,
                                                std::initializer_list<const char*> names);

}  // namespace conversed::daemon
