// GET /management/console, where /management leads: the web console. The page has nothing of its
// own: it asks the other management routes, so that its user sees and does what his roles let him.
#include <string>

#include "api/auth/sign_in_page.h"
#include "api/console/console.h"
#include "api/openapi/description.h"
#include "api/operations/operations.h"

namespace conversed::api {
namespace {

using model::Result;
using namespace openapi;

Result<Response> show_console(const Call& /*call*/, DaemonServices& /*services*/) {
  static const std::string policy =
      "default-src 'none'; style-src " + csp_source(console_style) + "; script-src " +
      csp_source(console_script) +
      "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  return Response{.status = status::ok,
                  .content_type = "text/html; charset=utf-8",
                  .headers = {{"Content-Security-Policy", policy},
                              {"X-Frame-Options", "DENY"},
                              {"Referrer-Policy", "same-origin"},
                              {"Cache-Control", "no-store"}},
                  .body = std::string(console_page)};
}

// Relative, so that it keeps the base path and whatever a proxy puts before it.
Result<Response> lead_there(const Call& call, DaemonServices& /*services*/) {
  const bool within = call.request.path.ends_with('/');
  return Response{.status = status::found,
                  .headers = {{"Location", within ? "console" : "management/console"}}};
}

Description describe_way() {
  return {.summary = "Find the web console",
          .details = "Leads to `/management/console`.",
          .answers = {{.status = status::found,
                       .description = "The way there.",
                       .headers = {{"Location", "The console.", text(1)}}}}};
}

Description describe() {
  return {.summary = "Get the web console",
          .details = "A page for browsers, which ask their user for the credentials.",
          .answers = {{.description = "The page.", .content = {{"text/html", text(1)}}}}};
}

}  // namespace

Operations console_operations() {
  static constexpr Operation rows[] = {
      for_operators("console", Method::get, "/management/console", Role::member, show_console,
                    describe),
      for_all("management", Method::get, "/management", lead_there, describe_way),
      for_all("managementFolder", Method::get, "/management/", lead_there, describe_way),
  };
  return rows;
}

}  // namespace conversed::api
