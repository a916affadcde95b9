#pragma once

#include <string>
#include <string_view>

#include "api/http/http.h"

namespace conversed::api {

struct SignInPage {
  std::string_view client_name;
  std::string_view request;          // hidden; goes with the form
  std::string_view redirect_scheme;  // of where a browser goes after a sign-in
  std::string_view username = {};    // what was typed before
  std::string_view message = {};     // what was wrong with it
};

// The page on which a user signs in: one form with `username` and `password`, that is posted to
// `authorize`. It needs no script and allows none, can't be framed, and isn't cached.
[[nodiscard]] Response sign_in_page(const SignInPage& page);

// The name of an inline style or script in a Content-Security-Policy (CSP 3 §2.3.1, hash-source).
// The page then needs to allow no other.
[[nodiscard]] std::string csp_source(std::string_view inline_text);

// The same page without a form: the reason why no sign-in is possible. `error` is the answer that a
// program would get. Its status and headers stay; the page replaces its body.
[[nodiscard]] Response error_page(Response error, std::string_view message,
                                  std::string_view trace_id);

}  // namespace conversed::api
