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

// The representation with the highest q-value in `accept`, the value of all Accept headers joined
// by commas. Of equal ones that which is named most exactly, then that which is named first. What
// we can't make falls back to JSON, and so does no header at all.
[[nodiscard]] MediaType negotiate(std::string_view accept);
[[nodiscard]] MediaType negotiate(const Request& request);

// Whether the client would rather have a page than JSON, as browsers say of what they are to show.
[[nodiscard]] bool prefers_html(const Request& request);

}  // namespace conversed::api
