// GET /management/endpoints: lists the Endpoints of a project.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/endpoint_health.h"
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
      "", {{"_id", id(), &EndpointInfo::id},
           {"projectId", id(), &EndpointInfo::project_id},
           {"name", text(1), &EndpointInfo::name},
           {"URLToken", url_token(), &EndpointInfo::url_token},
           {"flow", described("The name of its Flow.", text(1)), &EndpointInfo::flow},
           {"hasWebhook", boolean(), &EndpointInfo::has_webhook}});
  return shape;
}

Schema endpoint_schema() {
  return named("EndpointSummary",
               with_members(endpoint_shape().schema(),
                            {{"webhookState", described("Null: the Endpoint has no webhook.",
                                                        nullable(webhook_state_schema()))},
                             {"rate", delivery_rate_schema()}}));
}

Result<Response> list_endpoints(const Call& call, ProjectServices& services) {
  auto project = project_of(services.store, call, call.operation.role);
  if (!project) return model::fail(project.error());
  const auto endpoints = services.store.assets().endpoints(project->id);
  if (!endpoints) return model::fail(store_error(endpoints.error()));
  json items = json::array();
  for (const EndpointInfo& endpoint : *endpoints) {
    json& item = items.emplace_back(endpoint_shape()(endpoint));
    item["webhookState"] = nullptr;
    item["rate"] = delivery_rate_json(services.delivery_rate, endpoint.id);
    if (!endpoint.has_webhook) continue;
    // Null while a shard is away.
    const auto failure = worst_health(services.store, endpoint.id);
    if (failure) item["webhookState"] = webhook_state(*failure);
  }
  return ok({{"items", std::move(items)}});
}

Description describe_list_endpoints() {
  return {.summary = "List the Endpoints of a project",
          .parameters = {project_parameter()},
          .answers = {json_answer("The Endpoints, by name.", items_of(endpoint_schema()))},
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
