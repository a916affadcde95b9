// POST /management/backups: copies of store and log that belong together, made while the daemon
// works, into the folder of the setting `backup.dir`. Takes the role platformAdmin.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

Result<Response> back_up(const Call& call, DaemonServices& services) {
  auto body = read_object(call.request);
  if (!body) return model::fail(body.error());
  auto name = text_member(*body, "name");
  if (!name) return model::fail(name.error());
  if (name->empty() && body->contains("name")) {
    return model::fail(Errc::invalid_argument, "name must not be empty");
  }
  if (!services.back_up) return model::fail(Errc::not_supported, "there is nothing to back up");
  auto made = services.back_up(*name);
  if (!made) return model::fail(made.error());
  return json_response(status::created, {{"name", made->name},
                                         {"path", made->path},
                                         {"bytes", made->bytes},
                                         {"createdAt", unix_seconds(made->created_at)}});
}

openapi::Description describe_back_up() {
  using namespace openapi;
  const auto name = text_like("^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$");
  const auto body = object({{"name", described("Default: the time.", name), Need::optional}});
  const auto backup = object({{"name", text(1)},
                              {"path", described("On the daemon's machine.", text(1))},
                              {"bytes", integer(0)},
                              {"createdAt", unix_time()}});
  return {.summary = "Make a backup",
          .details =
              "Of store and log, as `conversectl restore` takes it. The master key is not in "
              "it.",
          .body = json_content(named("NewBackup", body)),
          .answers = {{.status = status::created,
                       .description = "It is on the disk.",
                       .content = json_content(named("Backup", backup))}},
          .errors = {409, 501}};
}

}  // namespace

constinit const Operation back_up_operation = for_operators(
    "backUp", Method::post, "/management/backups", Role::platform_admin, back_up, describe_back_up);

}  // namespace conversed::api
