// GET /management/endpoints: lists the Endpoints of a project.
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Result;
using nlohmann::json;
using store::EndpointInfo;
using namespace openapi;

const Shape<EndpointInfo>& endpoint_shape() {
  static const Shape<EndpointInfo> shape(
      "EndpointSummary",
      {{"_id", id(), &EndpointInfo::id},
       {"projectId", id(), &EndpointInfo::project_id},
       {"name", text(1), &EndpointInfo::name},
       {"URLToken", url_token(), &EndpointInfo::url_token},
       {"flow", described("The name of its Flow.", text(1)), &EndpointInfo::flow},
       {"hasWebhook", boolean(), &EndpointInfo::has_webhook}});
  return shape;
}

Result<Response> list_endpoints(const Call& call, ProjectServices& services) {
  auto project = project_of(services.store, call, call.operation.role);
  if (!project) return model::fail(project.error());
  return items_response(services.store.assets().endpoints(project->id), endpoint_shape());
}

Description describe_list_endpoints() {
  return {.summary = "List the Endpoints of a project",
          .parameters = {project_parameter()},
          .answers = {json_answer("The Endpoints, by name.", items_of(endpoint_shape().schema()))},
          .errors = {404}};
}

}  // namespace

Operations endpoints_operations() {
  static constexpr Operation rows[] = {
      for_operators("listEndpoints", Method::get, "/management/endpoints", Role::member,
                    list_endpoints, describe_list_endpoints),
  };
  return rows;
}

}  // namespace conversed::api
