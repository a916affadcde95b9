// /management/deliveries: operators list outputs that wait for their webhook, show one, and retry
// or drop it.
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "api/live/assets_cache.h"
#include "api/openapi/description.h"
#include "api/operations/deliveries.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/row_filter.h"
#include "api/operations/tasks.h"
#include "api/operations/why.h"
#include "api/reasons/reasons.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "store/conversation/filters.h"
#include "store/shards/across_shards.h"
#include "store/store.h"

namespace conversed::api {

using model::Errc;
using model::Result;
using nlohmann::json;
using store::Deliveries;
using store::PendingDelivery;
using namespace openapi;

namespace {

constexpr std::string_view no_delivery = "there is no such delivery; the output may be delivered";

Schema delivery_state_schema() {
  return one_of(store::delivery_states());
}

const Shape<PendingDelivery>& delivery_shape() {
  static const auto shape =
      session_shape(&PendingDelivery::key)
          .with("", {{"_id", text(1), &PendingDelivery::output_id},
                     {"seq", integer(1), &PendingDelivery::seq},
                     {"firstId", described("The session's output that goes first.", text(1)),
                      &PendingDelivery::first_output_id},
                     {"createdAt", unix_time(), &PendingDelivery::created_at},
                     {"traceId", text(), &PendingDelivery::trace_id}})
          .with(delivery_progress());
  return shape;
}

json delivery_json(const PendingDelivery& delivery, AssetsCache& assets) {
  json item = delivery_shape()(delivery);
  const auto endpoint = assets.endpoint(delivery.key.endpoint_id);
  item["endpoint"] = endpoint ? json((*endpoint)->name) : json(nullptr);
  item["URLToken"] = endpoint ? json((*endpoint)->url_token) : json(nullptr);
  return item;
}

Schema delivery_schema() {
  return with_members(delivery_shape().schema(),
                      {{"endpoint", nullable(text(1))}, {"URLToken", nullable(url_token())}});
}

// The part of the deliveries that the query names.
Result<Deliveries::Filter> delivery_filter(const Call& call, SessionServices& services) {
  auto common = row_filter(call, services);
  if (!common) return model::fail(common.error());
  Deliveries::Filter filter{.project_id = std::move(common->project_id),
                            .session = std::move(common->session),
                            .created_from = common->created_from,
                            .created_before = common->created_before};
  if (!common->endpoint_id.empty()) filter.endpoint_id = std::move(common->endpoint_id);
  if (const auto state = call.request.parameter("state")) {
    filter.state = store::delivery_state_from(*state);
    if (!filter.state) {
      return model::fail(Errc::invalid_argument, "state must be due, waiting, behind or paused");
    }
  }
  return filter;
}

std::vector<Parameter> delivery_parameters(std::vector<Parameter> more = {}) {
  more.push_back(
      query_parameter("state", "Only deliveries in this state.", delivery_state_schema()));
  return row_filter_parameters(std::move(more));
}

// `ENDPOINT:DUE:SESSION:SEQ`
std::string delivery_place_text(const Deliveries::Place& place) {
  return place.endpoint_id + ':' + std::to_string(model::to_unix_ms(place.due)) + ':' +
         std::to_string(place.session) + ':' + std::to_string(place.seq);
}

Result<Deliveries::Place> place_of_delivery(const Request& request) {
  const auto text = request.parameter("after");
  if (!text) return Deliveries::Place{};
  Deliveries::Place place;
  std::string_view rest(*text);
  place.endpoint_id = rest.substr(0, rest.find(':'));
  rest.remove_prefix(place.endpoint_id.size());
  std::int64_t due = 0;
  for (std::int64_t* number : {&due, &place.session, &place.seq}) {
    const bool more = rest.starts_with(':');
    if (more) rest.remove_prefix(1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *number);
    const bool is_place = number == &due || *number >= 0;
    if (!more || error != std::errc() || !is_place) {
      return model::fail(Errc::invalid_argument, "after must be the `next` of the page before");
    }
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  }
  place.due = model::from_unix_ms(due);
  return place;
}

// A shard's page with the place of each row, by which rows of several shards are merged.
struct PlacedDeliveries {
  struct Row {
    PendingDelivery delivery;
    Deliveries::Place place;
  };
  std::vector<Row> rows;
  std::optional<Deliveries::Place> next;
};

Result<PlacedDeliveries> placed(Deliveries::Page&& page, store::Shard& shard) {
  const auto offset = shard.timers().offset();
  if (!offset) return model::fail(offset.error());
  PlacedDeliveries placed{.rows = {}, .next = std::move(page.next)};
  Deliveries::Place place;
  for (PendingDelivery& delivery : page.rows) {
    const auto& key = delivery.key;
    // A page has the outputs of a session one after the other.
    if (placed.rows.empty() || placed.rows.back().delivery.key != key) {
      auto session = shard.deliveries().sessions({.project_id = key.project_id, .session = key});
      if (!session) return model::fail(session.error());
      place = {.endpoint_id = key.endpoint_id, .session = session->first};
    }
    place.due = delivery.due_at ? *delivery.due_at + *offset : model::Timestamp();
    place.seq = delivery.seq;
    placed.rows.push_back({std::move(delivery), place});
  }
  return placed;
}

Result<Deliveries::Page> page_of_deliveries(store::Store& store, Deliveries::Filter filter,
                                            const Deliveries::Place& after, std::size_t limit) {
  const auto now = store.timer_now();
  const auto list = [&](store::Shard& shard) {
    return shard.deliveries().list(filter, after, limit, now);
  };
  if (filter.session) return list(store.of(*filter.session));
  if (!filter.endpoint_id) {
    auto endpoints = store.assets().endpoints(filter.project_id);
    if (!endpoints) return model::fail(endpoints.error());
    for (auto& endpoint : *endpoints) filter.endpoints.push_back(std::move(endpoint.id));
  }
  if (store.shards().size() == 1) return list(store.first());
  const auto before = [](const Deliveries::Place& a, const Deliveries::Place& b) {
    return std::tie(a.endpoint_id, a.due, a.session, a.seq) <
           std::tie(b.endpoint_id, b.due, b.session, b.seq);
  };
  auto merged = merge_pages(
      store.shards(), limit,
      [&](store::Shard& shard) {
        return list(shard).and_then(
            [&](Deliveries::Page&& page) { return placed(std::move(page), shard); });
      },
      &PlacedDeliveries::Row::place, before);
  if (!merged) return model::fail(merged.error());
  Deliveries::Page page{.rows = {}, .next = std::move(merged->next)};
  for (auto& row : merged->rows) page.rows.push_back(std::move(row.delivery));
  return page;
}

Result<Response> list_deliveries(const Call& call, SessionServices& services) {
  auto filter = delivery_filter(call, services);
  if (!filter) return model::fail(filter.error());
  auto limit = limit_parameter(call.request);
  if (!limit) return model::fail(limit.error());
  auto after = place_of_delivery(call.request);
  if (!after) return model::fail(after.error());
  auto reason = reason_filter(call.request, model::Listed::deliveries);
  if (!reason) return model::fail(reason.error());
  auto page = page_of_deliveries(services.store, *std::move(filter), *after,
                                 static_cast<std::size_t>(*limit));
  if (!page) return model::fail(store_error(page.error()));
  const auto waits = services.reasons.of_page(page->rows);
  if (!waits) return model::fail(store_error(waits.error()));
  json items = json::array();
  for (std::size_t i = 0; i < page->rows.size(); ++i) {
    if (!has_reason((*waits)[i], *reason)) continue;
    items.push_back(delivery_json(page->rows[i], services.assets));
    items.back()["waits"] = json(waits_json((*waits)[i]));
  }
  return ok({{"items", std::move(items)},
             {"next", page->next ? json(delivery_place_text(*page->next)) : json(nullptr)}});
}

// The delivery of the path, in any of the principal's projects.
Result<PendingDelivery> find_delivery(const Call& call, SessionServices& services) {
  const std::string id(call.parameters["outputId"]);
  const auto now = services.store.timer_now();
  auto delivery = find_in_shards(services.store.shards(), [&](store::Shard& shard) {
    return shard.deliveries().get(id, now);
  });
  if (!delivery) return model::fail(store_error(delivery.error()));
  auto project = open_project(services.store, *call.principal, delivery->key.project_id,
                              Role::conversation_admin, no_delivery);
  if (!project) return model::fail(project.error());
  return delivery;
}

Result<Response> show_delivery(const Call& call, SessionServices& services) {
  auto delivery = find_delivery(call, services);
  if (!delivery) return model::fail(delivery.error());
  const auto output =
      services.store.of(delivery->key).outbox().outputs(delivery->key, delivery->seq - 1, 1);
  if (!output) return model::fail(store_error(output.error()));
  json body = delivery_json(*delivery, services.assets);
  body["waits"] = waits_json(services.reasons.of_delivery(*delivery));
  if (!output->empty()) {
    body["text"] = output->front().text;
    body["data"] = output->front().data;
  }
  return ok(body);
}

Result<Response> retry_delivery(const Call& call, SessionServices& services) {
  auto delivery = find_delivery(call, services);
  if (!delivery) return model::fail(delivery.error());
  auto done = services.store.of(delivery->key).deliveries().retry(*delivery);
  if (!done) return model::fail(store_error(done.error()));
  if (services.retry) services.retry(delivery->key);
  return json_response(202, {{"_id", delivery->output_id}, {"firstId", delivery->first_output_id}});
}

Result<Response> drop_delivery(const Call& call, SessionServices& services) {
  auto delivery = find_delivery(call, services);
  if (!delivery) return model::fail(delivery.error());
  auto& deliveries = services.store.of(delivery->key).deliveries();
  auto done = deliveries.drop(*delivery, call.principal->user_id);
  if (!done) return model::fail(store_error(done.error()));
  if (services.deliver) services.deliver(delivery->key);
  return no_content();
}

Result<Response> change_deliveries(const Call& call, SessionServices& services,
                                   std::string_view type, const char* name) {
  auto filter = delivery_filter(call, services);
  if (!filter) return model::fail(filter.error());
  return start_bulk_job(call, services, {type, name, filter->project_id, to_json(*filter)});
}

Result<Response> retry_deliveries(const Call& call, SessionServices& services) {
  return change_deliveries(call, services, model::retry_deliveries, "Retry of deliveries");
}

Result<Response> drop_deliveries(const Call& call, SessionServices& services) {
  return change_deliveries(call, services, model::drop_deliveries, "Drop of deliveries");
}

Link delivery_link(std::string_view name, std::string_view operation) {
  return {name, operation, "outputId", "$response.body#/items/0/_id"};
}

Description describe_list_deliveries() {
  return {
      .summary = "List deliveries",
      .details =
          "Outputs that wait for their webhook: by Endpoint, then by the due time of the session's "
          "first output, then by number. A page may have fewer items than `limit`, even none, "
          "although `next` is set.",
      .parameters =
          delivery_parameters({page_limit(), reason_parameter(model::Listed::deliveries),
                               query_parameter("after", "The `next` of the page before.",
                                               text_like("^[a-z0-9]{24}:-?[0-9]{1,15}:[0-9]{1,18}:"
                                                         "([0-9]{1,18}|9223372036854775806)$"))}),
      .answers = {{.description = "A page of deliveries.",
                   .content = json_content(object(
                       {{"items", list_of(named("PendingDelivery",
                                                with_members(delivery_schema(),
                                                             {{"waits", waits_schema()}})))},
                        {"next", described("The next page's `after`; null: this is the last page.",
                                           nullable(text(1)))}})),
                   .links = {delivery_link("show", "showDelivery"),
                             delivery_link("retry", "retryDelivery"),
                             delivery_link("drop", "dropDelivery")}}},
      .errors = {404}};
}

Description describe_show_delivery() {
  const auto delivery = with_members(delivery_schema(), {{"waits", nullable(waits_schema())},
                                                         {"text", text(), Need::optional},
                                                         {"data", anything(), Need::optional}});
  return {.summary = "Show a delivery",
          .answers = {
              json_answer("The delivery with its output.", named("DeliveryWithOutput", delivery))}};
}

Description describe_retry_delivery() {
  const auto retried =
      object({{"_id", text(1)}, {"firstId", described("The output that goes first.", text(1))}});
  return {.summary = "Retry a delivery now",
          .details =
              "A session's outputs keep their order: its first output is sent now, before those of "
              "other sessions, and the others follow. An Endpoint that fails or is paused gets one "
              "try.",
          .answers = {json_answer("The session is due.", named("RetriedDelivery", retried), 202)}};
}

Description describe_drop_delivery() {
  return {.summary = "Drop a delivery",
          .details =
              "The output is not sent any more. It stays among the session's outputs, with "
              "a discarded dead letter. The outputs behind it follow, and "
              "`X-Conversed-Sequence` shows the gap. If the output is being sent, it may "
              "still arrive.",
          .answers = {empty_answer("The output is dropped.")}};
}

Description describe_retry_deliveries() {
  return {.summary = "Retry all deliveries that fit",
          .details =
              "Begins a job: it visits the pending outputs of before its beginning, session by "
              "session, and makes the sessions of those that fit due now. An Endpoint that fails "
              "gets one try; its other outputs follow when it succeeds. 409 while such a job "
              "runs, with its id in `details.taskId`.",
          .parameters = delivery_parameters(),
          .answers = {bulk_job_answer()},
          .errors = {404, 409}};
}

Description describe_drop_deliveries() {
  return {.summary = "Drop all deliveries that fit",
          .details =
              "Begins a job: it visits the pending outputs of before its beginning, session by "
              "session, and drops those that fit. A cancelled job keeps what it has done. 409 "
              "while such a job runs, with its id in `details.taskId`.",
          .parameters = delivery_parameters(),
          .answers = {bulk_job_answer()},
          .errors = {404, 409}};
}

}  // namespace

const Shape<PendingDelivery>& delivery_progress() {
  static const Shape<PendingDelivery> shape(
      "", {{"state", delivery_state_schema(),
            [](const PendingDelivery& delivery) { return store::to_string(delivery.state); }},
           {"attempts", described("Failed tries of the session's first output.", integer(0)),
            &PendingDelivery::attempts},
           {"dueAt",
            described("The earliest next try of the session's first output; null: no try has "
                      "failed. If its Endpoint waits longer, `expectedAt` of `waits` tells it.",
                      nullable(unix_time())),
            null_if_absent(&PendingDelivery::due_at)}});
  return shape;
}

Operations deliveries_operations() {
  static constexpr Operation rows[] = {
      for_operators("listDeliveries", Method::get, "/management/deliveries",
                    Role::conversation_admin, list_deliveries, describe_list_deliveries),
      for_operators("showDelivery", Method::get, "/management/deliveries/{outputId}",
                    Role::conversation_admin, show_delivery, describe_show_delivery,
                    Audited::always),
      for_operators("retryDeliveries", Method::post, "/management/deliveries/retry",
                    Role::conversation_admin, retry_deliveries, describe_retry_deliveries),
      for_operators("dropDeliveries", Method::post, "/management/deliveries/drop",
                    Role::conversation_admin, drop_deliveries, describe_drop_deliveries),
      for_operators("retryDelivery", Method::post, "/management/deliveries/{outputId}/retry",
                    Role::conversation_admin, retry_delivery, describe_retry_delivery),
      for_operators("dropDelivery", Method::post, "/management/deliveries/{outputId}/drop",
                    Role::conversation_admin, drop_delivery, describe_drop_delivery),
  };
  return rows;
}

}  // namespace conversed::api
