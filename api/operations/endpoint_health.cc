// GET /management/endpoints/{endpointId}/health: the health of the Endpoint's webhook.
// POST /management/endpoints/{endpointId}/resume: ends the pause of a webhook that failed for long.
#include <algorithm>
#include <cmath>
#include <utility>

#include "api/live/assets_cache.h"
#include "api/openapi/description.h"
#include "api/operations/endpoint_health.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {

using model::Result;
using store::EndpointFailure;
using namespace openapi;

namespace {

constexpr std::string_view missing_endpoint = "there is no such Endpoint";

// A member that says something only while the webhook fails.
template <typename Get>
auto while_failing(Get get) {
  return [get](const EndpointFailure& failure) {
    return failure.failing_since ? Value(to_value(std::invoke(get, failure))) : Value();
  };
}

// The Endpoint of the path, in a project where the principal holds the role.
Result<model::Endpoint> path_endpoint(const Call& call, SessionServices& services) {
  auto id = id_of(call, "endpointId");
  if (!id) return model::fail(id.error());
  const auto endpoint = services.assets.endpoint(*id);
  const auto project = endpoint ? Result<std::string>((*endpoint)->project_id)
                                : Result<std::string>(model::fail(endpoint.error()));
  auto owner = open_owner(services.store, *call.principal, project, Role::conversation_admin,
                          missing_endpoint);
  if (!owner) return model::fail(owner.error());
  return **endpoint;
}

// Adds the health that another shard keeps.
void add_health(EndpointFailure& worst, const EndpointFailure& more) {
  // An absent time is below all others.
  const auto earliest = [](auto a, auto b) { return a && b ? std::min(a, b) : std::max(a, b); };
  const bool is_newer = std::pair(more.failing_since.has_value(), more.last_at) >
                        std::pair(worst.failing_since.has_value(), worst.last_at);
  if (is_newer) {
    worst.last_status = more.last_status;
    worst.last_error = more.last_error;
    worst.last_at = more.last_at;
  }
  worst.failing_since = earliest(worst.failing_since, more.failing_since);
  worst.failures += more.failures;
  if (!more.paused()) return;
  worst.next_probe = worst.paused() ? std::min(worst.next_probe, more.next_probe) : more.next_probe;
  worst.paused_since = earliest(worst.paused_since, more.paused_since);
}

Result<Response> shown_health(const std::string& endpoint_id, SessionServices& services) {
  auto failure = worst_health(services.store, endpoint_id);
  if (!failure) return model::fail(store_error(failure.error()));
  auto offset = services.store.first().timers().offset();
  if (!offset) return model::fail(store_error(offset.error()));
  auto shown = webhook_health()(failure->by_wall_clock(*offset));
  shown["rate"] = delivery_rate_json(services.delivery_rate, endpoint_id);
  return ok(shown);
}

Result<Response> show_health(const Call& call, SessionServices& services) {
  auto endpoint = path_endpoint(call, services);
  if (!endpoint) return model::fail(endpoint.error());
  return shown_health(endpoint->id, services);
}

// `conflict` unless the Endpoint is paused in one of the shards. Another error is that of a shard;
// the others have resumed it.
Result<void> resume_in_shards(store::Store& store, const std::string& endpoint_id) {
  std::optional<Result<void>> resumed;
  Result<void> not_paused;
  for (const auto& shard : store.shards()) {
    auto done = shard->endpoint_health().resume(endpoint_id);
    if (!done && done.error().code == model::Errc::conflict) {
      not_paused = std::move(done);
    } else if (!resumed || !done) {
      resumed = std::move(done);
    }
  }
  return resumed ? *std::move(resumed) : not_paused;
}

Result<Response> resume_endpoint(const Call& call, SessionServices& services) {
  auto endpoint = path_endpoint(call, services);
  if (!endpoint) return model::fail(endpoint.error());
  auto done = resume_in_shards(services.store, endpoint->id);
  if (!done) return model::fail(store_error(done.error()));
  if (services.resume_endpoint) services.resume_endpoint(endpoint->id);
  return shown_health(endpoint->id, services);
}

Schema shown_health_schema() {
  return named("WebhookHealth",
               with_members(webhook_health().schema(), {{"rate", delivery_rate_schema()}}));
}

Description describe_show_health() {
  return {.summary = "Show how an Endpoint's webhook does",
          .details =
              "A webhook that fails for `delivery.pause_after` is paused: it gets one try a "
              "minute until a try succeeds or an operator resumes it.",
          .answers = {json_answer("The webhook's health.", shown_health_schema())}};
}

Description describe_resume_endpoint() {
  return {.summary = "Resume a paused Endpoint",
          .details =
              "One of its outputs is tried now. The others follow when it succeeds. The time of "
              "the pause does not "
              "count as time of `delivery.retry_for`.",
          .answers = {json_answer("The webhook's health.", shown_health_schema())},
          .errors = {409}};
}

}  // namespace

Result<EndpointFailure> worst_health(store::Store& store, const std::string& endpoint_id) {
  EndpointFailure worst{.endpoint_id = endpoint_id};
  for (const auto& shard : store.shards()) {
    auto found = shard->endpoint_health().find(endpoint_id);
    if (!found) return model::fail(found.error());
    if (*found) add_health(worst, **found);
  }
  return worst;
}

std::string_view webhook_state(const EndpointFailure& failure) {
  if (failure.paused()) return "paused";
  return failure.failing_since ? "fails" : "works";
}

Schema webhook_state_schema() {
  return one_of({"works", "fails", "paused"});
}

const Shape<EndpointFailure>& webhook_health() {
  using Row = EndpointFailure;
  const auto status = [](const Row& row) {
    return row.last_status == 0 ? Value() : Value(row.last_status);
  };
  const auto next_probe = [](const Row& row) {
    return row.paused() ? Value(to_value(row.next_probe)) : Value();
  };
  const auto paused_since = [](const Row& row) {
    return row.paused() ? Value(to_value(*row.paused_since)) : Value();
  };
  static const Shape<Row> shape(
      "",
      {{"state", webhook_state_schema(), webhook_state},
       {"failingSince", nullable(unix_time()), null_if_absent(&Row::failing_since)},
       {"failures", described("Failed tries since then.", integer(0)), &Row::failures},
       {"lastStatus", described("HTTP; null: there was no answer.", nullable(integer(100, 999))),
        while_failing(status)},
       {"lastError", nullable(text()), while_failing(&Row::last_error)},
       {"lastFailureAt", nullable(unix_time()), while_failing(&Row::last_at)},
       {"pausedSince", nullable(unix_time()), paused_since},
       {"nextProbeAt", nullable(unix_time()), next_probe}});
  return shape;
}

namespace {

const Shape<DeliveryRate>& delivery_rate_shape() {
  using Rate = DeliveryRate;
  // To tenths.
  const auto per_minute = [](const Rate& rate) {
    const auto seconds = std::max<std::int64_t>(1, rate.time.count());
    return std::round(static_cast<double>(rate.posts) * 600 / static_cast<double>(seconds)) / 10;
  };
  const auto failed_percent = [](const Rate& rate) {
    return rate.posts == 0 ? Value() : Value((rate.failed * 100 + rate.posts / 2) / rate.posts);
  };
  static const Shape<Rate> shape(
      "",
      {{"seconds",
        described("How long POSTs were counted: 300 at most, less after a start.", integer(0, 300)),
        [](const Rate& rate) { return rate.time.count(); }},
       {"posts", integer(0), &Rate::posts},
       {"failed", described("Without an answer of 2xx.", integer(0)), &Rate::failed},
       {"perMinute", Schema({{"type", "number"}, {"minimum", 0}}), per_minute},
       {"failedPercent", described("Null: there was no POST.", nullable(integer(0, 100))),
        failed_percent}});
  return shape;
}

}  // namespace

Value delivery_rate_json(const DeliveryRates& rates, const std::string& endpoint_id) {
  return rates ? delivery_rate_shape()(rates(endpoint_id)) : Value();
}

Schema delivery_rate_schema() {
  return described("POSTs of the last minutes, by the daemon that answers. Null: it sends none.",
                   nullable(delivery_rate_shape().schema()));
}

Operations endpoint_health_operations() {
  static constexpr Operation rows[] = {
      for_operators("showEndpointHealth", Method::get, "/management/endpoints/{endpointId}/health",
                    Role::conversation_admin, show_health, describe_show_health),
      for_operators("resumeEndpoint", Method::post, "/management/endpoints/{endpointId}/resume",
                    Role::conversation_admin, resume_endpoint, describe_resume_endpoint),
  };
  return rows;
}

}  // namespace conversed::api
