#include "api/auth/sign_in_page.h"

#include <initializer_list>
#include <utility>

#include "store/text/base64.h"
#include "store/text/markup.h"

namespace conversed::api {
namespace {

using text::escape_markup;

constexpr std::string_view html = "text/html; charset=utf-8";
constexpr std::string_view style =
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:22rem;margin:12vh auto;padding:0 1rem;"
    "color:#1c1c1c;background:#fff}h1{font-size:1.5rem}label{display:block;margin-top:1rem}"
    "input{box-sizing:border-box;width:100%;font:inherit;padding:.5rem;border:1px solid #767676;"
    "border-radius:.25rem}button{margin-top:1.5rem;width:100%;font:inherit;padding:.6rem;border:0;"
    "border-radius:.25rem;background:#0b57d0;color:#fff}"
    "p[role=alert]{padding:.5rem;border-left:.25rem solid #b3261e;background:#fceeee}";

// Each {name} is replaced by a value.
constexpr std::string_view page_text = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign in</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>Sign in</h1>
{content}</main>
</body>
</html>
)";
constexpr std::string_view form_text = R"(<p>to continue to <strong>{client}</strong></p>
{alert}<form method="post" action="authorize">
<input type="hidden" name="request" value="{request}">
<label for="username">E-mail address</label>
<input id="username" name="username" type="email" autocomplete="username" required
  value="{username}">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button type="submit">Sign in</button>
</form>
)";
constexpr std::string_view error_text =
    R"(<p role="alert">This sign-in can't continue: {message}.</p>
<p>Go back to the application and try again. If this page appears again, report it to the operators
of the application with the number <code>{trace}</code>.</p>
)";
constexpr std::string_view alert_text = R"(<p role="alert">{message}</p>
)";

using Values = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Replaces the names by the values. Does not look for names inside a value.
std::string filled(std::string_view text, Values values) {
  std::string out;
  while (true) {
    const auto open = text.find('{');
    out.append(text.substr(0, open));
    if (open == std::string_view::npos) return out;
    const auto close = text.find('}', open);
    const auto name = text.substr(open + 1, close - open - 1);
    for (const auto& [known, value] : values) {
      if (known == name) out.append(value);
    }
    text.remove_prefix(close + 1);
  }
}

std::string page_of(std::string_view content) {
  return filled(page_text, {{"style", style}, {"content", content}});
}

std::string body_of(const SignInPage& page) {
  const std::string alert =
      page.message.empty() ? "" : filled(alert_text, {{"message", escape_markup(page.message)}});
  return page_of(filled(form_text, {{"client", escape_markup(page.client_name)},
                                    {"alert", alert},
                                    {"request", escape_markup(page.request)},
                                    {"username", escape_markup(page.username)}}));
}

// Browsers apply `form-action` to the redirect after the form, too.
HeaderList page_headers(std::string_view form_action) {
  static const std::string allowed_style = csp_source(style);
  return {{"Content-Security-Policy", "default-src 'none'; style-src " + allowed_style +
                                          "; form-action " + std::string(form_action) +
                                          "; frame-ancestors 'none'; base-uri 'none'"},
          {"X-Frame-Options", "DENY"},
          // With `no-referrer`, browsers would send no Origin with the form.
          {"Referrer-Policy", "same-origin"}};
}

}  // namespace

std::string csp_source(std::string_view inline_text) {
  return "'sha256-" + text::sha256_in_base64(inline_text, text::Base64::standard) + "'";
}

Response sign_in_page(const SignInPage& page) {
  auto headers = page_headers("'self' " + std::string(page.redirect_scheme) + ":");
  headers.emplace_back("Cache-Control", "no-store");
  return {.status = status::ok,
          .content_type = std::string(html),
          .headers = std::move(headers),
          .body = body_of(page)};
}

Response error_page(Response error, std::string_view message, std::string_view trace_id) {
  error.content_type = html;
  for (auto& header : page_headers("'none'")) error.headers.push_back(std::move(header));
  error.body = page_of(filled(
      error_text, {{"message", escape_markup(message)}, {"trace", escape_markup(trace_id)}}));
  return error;
}

}  // namespace conversed::api
