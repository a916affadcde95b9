// GET /management/console, to which /management redirects: the web console, and the files that its
// page loads. They contain no data. The page requests the other management routes with its user's
// credentials, so the user's roles apply.
#include <string>
#include <string_view>
#include <utility>

#include "api/console/console.h"
#include "api/openapi/description.h"
#include "api/operations/operations.h"

namespace conversed::api {
namespace {

using model::Result;
using namespace openapi;

constexpr int not_modified = 304;

// Scripts, styles and data come from the daemon alone, and none stands in the page.
constexpr std::string_view policy =
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

Result<Response> show_console(const Call& /*call*/, DaemonServices& /*services*/) {
  const ConsoleFile& page = *console_file("console.html");
  return Response{.status = status::ok,
                  .content_type = std::string(page.content_type),
                  .headers = {{"Content-Security-Policy", std::string(policy)},
                              {"X-Frame-Options", "DENY"},
                              {"Referrer-Policy", "same-origin"},
                              {"Cache-Control", "no-store"}},
                  .body = std::string(page.text)};
}

Result<Response> show_file(const Call& call, DaemonServices& /*services*/) {
  const std::string path = std::string(call.parameters["consoleFolder"]) + "/" +
                           std::string(call.parameters["consoleFile"]);
  const ConsoleFile* file = console_file(path);
  if (file == nullptr) return model::fail(model::Errc::not_found, "the console has no such file");
  // The browser keeps the file, and asks each time whether it is still the same.
  HeaderList headers{{"ETag", std::string(file->etag)}, {"Cache-Control", "private, no-cache"}};
  if (call.request.header("if-none-match") == file->etag) {
    return Response{.status = not_modified, .headers = std::move(headers)};
  }
  return Response{.status = status::ok,
                  .content_type = std::string(file->content_type),
                  .headers = std::move(headers),
                  .body = std::string(file->text)};
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

Description describe_file() {
  const Header etag{"ETag", "Of the file's content.", text(1)};
  return {.summary = "Get a file of the web console",
          .parameters = {header_parameter("If-None-Match", "The ETag of a kept file.", text(1))},
          .answers = {{.description = "The file.",
                       .content = {{"text/css", text()},
                                   {"text/javascript", text()},
                                   {"image/svg+xml", text()}},
                       .headers = {etag}},
                      {.status = not_modified,
                       .description = "The kept file is still the same.",
                       .headers = {etag}}}};
}

}  // namespace

Operations console_operations() {
  static constexpr Operation rows[] = {
      for_operators("console", Method::get, "/management/console", Role::member, show_console,
                    describe),
      for_operators("consoleFile", Method::get, "/management/console/{consoleFolder}/{consoleFile}",
                    Role::member, show_file, describe_file),
      for_all("management", Method::get, "/management", lead_there, describe_way),
      for_all("managementFolder", Method::get, "/management/", lead_there, describe_way),
  };
  return rows;
}

}  // namespace conversed::api
