// Compares answers with the OpenAPI document. Every answer in the tests of operations is checked,
// so that no operation gives an undocumented answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.h"

namespace conversed::api::test {

// The contradictions between the answer and the document: an undocumented status, media type or
// body, a member that no schema names, or any answer but a refusal for an undocumented operation.
// Thread-safe.
[[nodiscard]] std::vector<std::string> undocumented(Method method, std::string_view path,
                                                    const Response& response);

}  // namespace conversed::api::test
