// GET /management/console: the web console. The page has nothing of its own: it asks the other
// management routes, so that its user sees and does what his roles let him.
#include "api/console/console.h"

#include <string>

#include "api/auth/browser.h"
#include "api/openapi/description.h"
#include "api/operations.h"

namespace conversed::api {
namespace {

void show(Call /*call*/, Services& /*services*/, Reply reply) {
  static const std::string policy =
      "default-src 'none'; style-src " + csp_source(console_style) + "; script-src " +
      csp_source(console_script) +
      "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  reply.send({.status = status::ok,
              .content_type = "text/html; charset=utf-8",
              .headers = {{"Content-Security-Policy", policy},
                          {"X-Frame-Options", "DENY"},
                          {"X-Content-Type-Options", "nosniff"},
                          {"Referrer-Policy", "same-origin"},
                          {"Cache-Control", "no-store"}},
              .body = std::string(console_page)});
}

openapi::Description describe() {
  using namespace openapi;
  return {.tag = "Management",
          .summary = "Get the web console",
          .details = "A page for browsers, which ask their user for the credentials.",
          .answers = {{.description = "The page.", .content = {{"text/html", text(1)}}}}};
}

}  // namespace

constinit const Operation console_operation{.id = "console",
                                            .method = Method::get,
                                            .path = "/management/console",
                                            .credential = Credential::basic,
                                            .role = Role::member,
                                            .run = show,
                                            .describe = describe};

}  // namespace conversed::api
