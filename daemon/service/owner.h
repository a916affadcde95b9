#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/model/result.h"

namespace conversed::daemon {

// For a command that root runs in the data folder of another user, such as `conversed init` by
// hand: the service could not open files of root. The process becomes the folder's owner, with that
// user's groups, for the rest of its life. Does nothing if the process does not run as root, or if
// the folder is missing or belongs to root. Call it before the first thread is made. After an error
// the process may be half changed and has to end. Kept by: test_service.py Owner.
[[nodiscard]] model::Result<void> become_owner(const std::filesystem::path& data_dir);

// For a command that needs root's rights until its end, since backups and keys may belong to root:
// gives the files of these names in the folder, if they exist, to the folder's owner. Does nothing
// unless the process runs as root and the folder belongs to another user. Error:
// `permission_denied`.
[[nodiscard]] model::Result<void> give_to_owner(const std::filesystem::path& data_dir,
                                                const std::vector<std::string>& names);

}  // namespace conversed::daemon
