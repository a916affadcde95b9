// GET /management/console, to which /management redirects: the web console. The page contains no
// data. It requests the other management routes with its user's credentials, so the user's roles
// apply.
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

// A relative address keeps the base path and any path that a proxy adds.
Result<Response> lead_there(const Call& call, DaemonServices& /*services*/) {
  const bool within = call.request.path.ends_with('/');
  return Response{.status = status::found,
                  .headers = {{"Location", within ? "console" : "management/console"}}};
}

Description describe_way() {
  return {.summary = "Find the web console",
          .details = "Redirects to `/management/console`.",
          .answers = {{.status = status::found,
                       .description = "A redirect to the console.",
                       .headers = {{"Location", "The console.", text(1)}}}}};
}

Description describe() {
  return {.summary = "Get the web console",
          .details = "A page for browsers. The browser asks its user for the credentials.",
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
