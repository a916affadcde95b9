#pragma once

#include <string>
#include <string_view>

#include "api/http/http.h"

namespace conversed::api {

struct SignInPage {
  std::string_view client_name;
  std::string_view request;          // hidden field; the form sends it
  std::string_view redirect_scheme;  // of the URI after the sign-in
  std::string_view username = {};    // as typed in the last try
  std::string_view message = {};     // the error of the last try
};

// The page on which a user signs in: one form with `username` and `password`, posted to
// `authorize`. It has no script, can't be framed, and isn't cached.
[[nodiscard]] Response sign_in_page(const SignInPage& page);

// The hash of an inline style or script for a Content-Security-Policy (CSP 3 §2.3.1, hash-source).
// With it the page has to allow no other style or script.
[[nodiscard]] std::string csp_source(std::string_view inline_text);

// The page without the form. It shows why no sign-in is possible. `error` is the answer for a
// program. Its status and headers stay; the page replaces its body.
[[nodiscard]] Response error_page(Response error, std::string_view message,
                                  std::string_view trace_id);

}  // namespace conversed::api
