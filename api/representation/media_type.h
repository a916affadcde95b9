// Which of our representations a client gets: `Accept` (RFC 9110 §12.5.1) against what we can make.
#pragma once

#include <cstdint>
#include <string_view>

#include "api/http/http.h"

namespace conversed::api {

// In the order of our own preference, where a client has none.
enum class MediaType : std::uint8_t { json, hal, xml, text_xml, csv };

// What the Content-Type header says: "application/json; charset=utf-8".
[[nodiscard]] std::string_view content_type(MediaType type);

// The representation to which the Accept headers give the highest q-value. Of equal ones the most
// exactly named, then the first. JSON without the header, and where we can make none of them.
[[nodiscard]] MediaType negotiate(const Request& request);

// Whether the client prefers HTML to JSON, as a browser does for a page that it shows.
[[nodiscard]] bool prefers_html(const Request& request);

}  // namespace conversed::api
