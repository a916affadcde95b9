#include "api/auth/browser.h"

#include "api/http/http_syntax.h"
#include "store/text/base64.h"

namespace conversed::api {

std::string csp_source(std::string_view inline_text) {
  return "'sha256-" + text::sha256_in_base64(inline_text, text::Base64::standard) + "'";
}

bool is_from_own_site(const Request& request) {
  if (const auto site = request.header("sec-fetch-site")) return *site == "same-origin";
  const auto origin = request.header("origin");
  if (!origin) return true;
  const auto scheme_end = origin->find("://");
  return scheme_end != std::string_view::npos &&
         equals_ignoring_case(origin->substr(scheme_end + 3), request.header("host").value_or(""));
}

}  // namespace conversed::api
