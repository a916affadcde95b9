// Chooses the representation of an answer by `Accept` (RFC 9110 §12.5.1).
#pragma once

#include <cstdint>
#include <string_view>

#include "api/http/http.h"

namespace conversed::api {

// Ordered by our preference, which decides if the client has none.
enum class MediaType : std::uint8_t { json, hal, xml, text_xml, csv };

// The value of the Content-Type header: "application/json; charset=utf-8".
[[nodiscard]] std::string_view content_type(MediaType type);

// The representation with the highest q-value in the Accept headers. Among equal ones the most
// exactly named wins, then the first. JSON if there is no header, or none of them can be made.
[[nodiscard]] MediaType negotiate(const Request& request);

// Whether the client prefers HTML to JSON. A browser does for a page that it shows.
[[nodiscard]] bool prefers_html(const Request& request);

}  // namespace conversed::api
