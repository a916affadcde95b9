#pragma once

#include <string>

#include "store/paging/paging.h"

// The paged lists of assets. For the .cc files of this folder and their tests.
namespace conversed::store {

[[nodiscard]] PagedList entry_list(const std::string& lexicon_id);
[[nodiscard]] PagedList chunk_list(const std::string& source_id);

}  // namespace conversed::store
