// A Document as XML 1.0.
#pragma once

#include <string>

#include "api/representation/document.h"

namespace conversed::api {

// Members become elements in their order, arrays repeated elements (an array within an array: of
// the name `item`), null an empty element with `xsi:nil`. Characters that XML forbids in text
// become U+FFFD; in names all but ASCII's letters, digits, `_`, `-` and `.` are written _xHHHH_, as
// is an underscore that could be taken for the beginning of such.
[[nodiscard]] std::string to_xml(const Document& document);

}  // namespace conversed::api
