#pragma once

#include <algorithm>

#include "config/keys.h"

namespace conversed::config {

// For EXPECT_EQ: true if each key has the same value.
inline bool operator==(const Settings& a, const Settings& b) {
  return a.data_dir == b.data_dir && a.master_key == b.master_key &&
         std::ranges::all_of(keys(),
                             [&](const Key& key) { return key.show(a, key) == key.show(b, key); });
}

}  // namespace conversed::config
