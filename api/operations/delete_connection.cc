// DELETE /v2.0/connections/{connectionId}: deletes a Connection, whether or not Flows use it. These
// fail at the Node that does, at once: they look for it by name among what is there.
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/documents.h"
#include "api/operations/objects.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

constexpr std::string_view missing_connection = "there is no such Connection";

Result<Response> delete_connection(const Call& call, ProjectServices& services) {
  auto id = id_of(call, "connectionId");
  if (!id) return model::fail(id.error());
  auto& assets = services.store.assets();
  auto project = open_owner(services.store, *call.principal, assets.project_of_connection(*id),
                            Role::connection_admin, missing_connection);
  if (!project) return model::fail(project.error());
  auto deleted = assets.delete_connection(project->id, *id);
  // Somebody else was faster.
  if (!deleted && deleted.error().code == Errc::not_found) {
    return model::fail(Errc::not_found, std::string(missing_connection));
  }
  if (!deleted) return model::fail(store_error(deleted.error()));
  return no_content();
}

openapi::Description describe_delete_connection() {
  using namespace openapi;
  return {.summary = "Delete a Connection",
          .details = "Flows that use it are not changed: they fail at the Node that does.",
          .parameters = {path_parameter("connectionId", "The Connection.", id())},
          .answers = {{.status = status::no_content, .description = "It is deleted."}},
          .errors = specified_errors()};
}

}  // namespace

constinit const Operation delete_connection_operation =
    for_clients("deleteConnection_2_0", Method::delete_, "/v2.0/connections/{connectionId}",
                Role::connection_admin, delete_connection, describe_delete_connection);

}  // namespace conversed::api
