#include "api/operations/row_filter.h"

#include <iterator>
#include <utility>

#include "api/live/assets_cache.h"
#include "api/operations/accept.h"
#include "api/operations/management.h"
#include "store/text/quantity.h"

namespace conversed::api {

using model::Errc;
using model::Result;
using namespace openapi;

namespace {

// The time that is the parameter's duration ago.
Result<std::optional<model::Timestamp>> time_ago(const Request& request, const char* name,
                                                 model::Timestamp now) {
  const auto text = request.parameter(name);
  if (!text) return std::nullopt;
  const auto duration = text::parse_duration(*text);
  if (!duration) {
    return model::fail(Errc::invalid_argument,
                       std::string(name) + " must be a duration such as 20m or 2h");
  }
  return now - *duration;
}

// Sets Endpoint, session and their project.
Result<void> read_session(RowFilter& filter, const Call& call, SessionServices& services) {
  const Request& request = call.request;
  const auto token = request.parameter("URLToken");
  const auto user = request.parameter("userId");
  const auto session = request.parameter("sessionId");
  if (user || session) {
    auto key = session_of(services.assets, *call.principal, token.value_or(""), user.value_or(""),
                          session.value_or(""));
    if (!key) return model::fail(key.error());
    filter.project_id = key->project_id;
    filter.session = *std::move(key);
  } else if (token) {
    auto normal = normal_url_token(*token);
    if (!normal) return model::fail(normal.error());
    auto endpoint = find_endpoint_for(services.assets, *call.principal, *normal);
    if (!endpoint) return model::fail(endpoint.error());
    filter.project_id = (*endpoint)->project_id;
    filter.endpoint_id = (*endpoint)->id;
  }
  return {};
}

}  // namespace

Result<RowFilter> row_filter(const Call& call, SessionServices& services) {
  RowFilter filter;
  if (auto read = read_session(filter, call, services); !read) return model::fail(read.error());
  if (filter.project_id.empty() || call.request.parameter("projectId")) {
    auto project = project_of(services.store, call, Role::conversation_admin);
    if (!project) return model::fail(project.error());
    if (!filter.project_id.empty() && filter.project_id != project->id) {
      return model::fail(Errc::not_found, "the project has no such Endpoint");
    }
    filter.project_id = project->id;
  }
  const auto now = services.clock.now();
  auto before = time_ago(call.request, "olderThan", now);
  if (!before) return model::fail(before.error());
  auto from = time_ago(call.request, "newerThan", now);
  if (!from) return model::fail(from.error());
  filter.created_before = *before;
  filter.created_from = *from;
  return filter;
}

std::vector<Parameter> row_filter_parameters(std::vector<Parameter> more) {
  std::vector<Parameter> all{
      project_parameter(),
      query_parameter("URLToken", "Only this Endpoint's.", url_token()),
      query_parameter("userId", "Only a session's, with `URLToken` and `sessionId`.",
                      conversation_name()),
      query_parameter("sessionId", "Only a session's, with `URLToken` and `userId`.",
                      conversation_name()),
      query_parameter("olderThan", "Only older ones, such as 20m or 2h.", duration_schema()),
      query_parameter("newerThan", "Only newer ones, such as 20m or 2h.", duration_schema())};
  std::ranges::move(more, std::back_inserter(all));
  return all;
}

}  // namespace conversed::api
