// A Document as CSV (RFC 4180).
#pragma once

#include <string>

#include "api/representation/document.h"

namespace conversed::api {

// A header row, then one row an item, or one row for an object; nested values as JSON text, null as
// an empty cell. A cell that begins with `=`, `+`, `-`, `@` or a tab gets a `'` before it: programs
// that show tables would take it for a formula. Totals and cursors have no room here.
[[nodiscard]] std::string to_csv(const Document& document);

}  // namespace conversed::api
