// Holds answers against the OpenAPI document: what every test of operations gets is checked, so
// that none can be answered in a way that the document does not tell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.h"

namespace conversed::api::test {

// What the document does not allow of this answer: a status, a media type or a body that it does
// not have for the operation, or any answer but a refusal where it has no operation. Members that
// no schema names count, too. Thread-safe.
[[nodiscard]] std::vector<std::string> undocumented(Method method, std::string_view path,
                                                    const Response& response);

}  // namespace conversed::api::test
