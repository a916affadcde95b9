#pragma once

#include <string>
#include <string_view>

namespace conversed::store {

// Unicode's full case folding, under which "Straße" and "STRASSE" are the same. Bytes that are not
// UTF-8 become replacement characters. Thread-safe.
[[nodiscard]] std::string fold_case(std::string_view text);

}  // namespace conversed::store
