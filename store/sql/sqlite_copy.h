#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>

#include "store/model/result.h"

// Copies of SQLite files, for backups.
namespace conversed::store {

// Copies the file to the new file `to` (mode 0600, durable when this returns), while others go on
// reading and writing. The copy is one snapshot of a moment after the call, read by slices of a
// megabyte. `go_on` is asked before each slice, and false ends the copy. Meanwhile the source's
// write-ahead log can't be emptied. The writer of the source keeps the source open.
//
// Errors name the files without their folders: `conflict` if `to` exists, `unavailable` if a file
// can't be read or written, or the copy was ended. The written part is then removed.
[[nodiscard]] model::Result<void> copy_sqlite_file(const std::filesystem::path& from,
                                                   const std::filesystem::path& to,
                                                   const std::function<bool()>& go_on);

// Whether a file without a writer is an SQLite database whose pages fit together.
// `internal` if it is not, `unavailable` if it can't be read or the check was ended. Takes time in
// proportion to its size. Meanwhile `go_on`, unless it is empty, is asked repeatedly, and false
// ends the check. A request to stop ends it at once.
[[nodiscard]] model::Result<void> check_sqlite_file(const std::filesystem::path& file,
                                                    const std::function<bool()>& go_on = {},
                                                    const std::stop_token& stop = {});

}  // namespace conversed::store
