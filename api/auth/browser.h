#pragma once

#include <string>
#include <string_view>

#include "api/http/http.h"

// What the API's pages need of a browser, and what it tells of where a request comes from.
namespace conversed::api {

// What a Content-Security-Policy knows a style or script by that stands in the page itself
// (CSP 3 §2.3.1, hash-source), so that it need not allow any other.
[[nodiscard]] std::string csp_source(std::string_view inline_text);

// Whether a request may come from a page of our own, as far as its browser tells: not from one of
// another site (`Sec-Fetch-Site`, or `Origin` and `Host` where that is not sent), which could ride
// on credentials that the browser remembers. What is no browser, and so can't be led astray, tells
// nothing and may.
[[nodiscard]] bool is_from_own_site(const Request& request);

}  // namespace conversed::api
