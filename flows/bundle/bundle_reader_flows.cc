// Flows, Endpoints and the proactive part of a bundle.
#include <algorithm>
#include <utility>

#include "flows/bundle/bundle_reader.h"
#include "flows/flow_compiler.h"
#include "store/model/ids.h"
#include "store/model/url.h"
#include "store/model/webhook_secret.h"

namespace conversed::flows {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds longest = hours(24 * 366);
constexpr std::size_t max_text_characters = 4000;

// `HH:MM`, 00:00 to 23:59.
bool is_time_of_day(std::string_view text) {
  const auto digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  if (text.size() != 5 || text[2] != ':') return false;
  if (!digit(0) || !digit(1) || !digit(3) || !digit(4)) return false;
  return text.substr(0, 2) <= "23" && text[3] <= '5';
}

void read_quiet_hours(const View& view) {
  const Fields fields(view, {"from", "to", "timezone"});
  for (const std::string_view field : {"from", "to"}) {
    const auto at = fields.require(field);
    const auto time = at ? at->text() : std::nullopt;
    if (time && !is_time_of_day(*time)) at->problem("expected a time of day such as \"22:00\"");
  }
  if (const auto at = fields.require("timezone")) {
    const auto zone = at->text();
    if (zone && !is_time_zone(*zone))
      at->problem("unknown time zone; expected one such as UTC or Europe/Berlin");
  }
  const auto from = fields.find("from");
  const auto to = fields.find("to");
  if (from && to && from->value().is_text() && to->value().is_text() &&
      from->value().text() == to->value().text()) {
    to->problem("is the same as `from`; choose another hour, or leave `quietHours` out");
  }
}

// A text of the bundle that users read.
void expect_short(const Fields& fields, std::string_view field) {
  const auto at = fields.find(field);
  if (!at || !at->value().is_text()) return;
  if (count_characters(at->value().text()) > max_text_characters) {
    at->problem("the text has more than " + std::to_string(max_text_characters) +
                " characters; shorten it");
  }
}

}  // namespace

void BundleReader::read_flow(const View& view) {
  model::BundleFlow flow;
  const auto compiled = Flow::compile(view, &known_);
  // The compiler has checked the fields; the name must be unique as well.
  for (const auto& member : view.value().members()) {
    if (member.name != "name" || !member.value.is_text()) continue;
    flow.name = member.value.text();
    if (!seen_flows_.insert(flow.name).second) {
      view.member(member).problem("'" + flow.name + "' is used twice; rename one");
    }
  }
  if (compiled != nullptr) flow.definition = view.value().to_json();
  bundle_.flows.push_back(std::move(flow));
}

void BundleReader::read_endpoint(const View& view) {
  const Fields fields(
      view, {"name", "flow", "sessionExpiry", "activeOnly", "errorText", "urlToken", "output"});
  model::BundleEndpoint endpoint;
  endpoint.name = fields.name("name");
  expect_unique(fields, "name", endpoint.name, seen_endpoints_);
  endpoint.flow = fields.name("flow");
  if (const auto at = fields.find("flow"); at && !endpoint.flow.empty()) {
    expect_known(*at, "there is no Flow", known_.flows);
  }
  if (const auto at = fields.find("sessionExpiry")) {
    endpoint.session_expiry = at->duration(seconds(1), longest).value_or(endpoint.session_expiry);
  }
  endpoint.active_only = fields.flag("activeOnly", false);
  endpoint.error_text = fields.optional_text("errorText");
  expect_short(fields, "errorText");
  if (const auto at = fields.find("urlToken")) {
    endpoint.url_token = at->text().value_or("");
    if (at->value().is_text() && !model::is_url_token(endpoint.url_token)) {
      at->problem("a URL token is 64 characters of 0-9 and a-f");
    }
    expect_unique(fields, "urlToken", endpoint.url_token, seen_url_tokens_);
  }
  if (const auto at = fields.find("output")) read_output(*at, endpoint);
  bundle_.endpoints.push_back(std::move(endpoint));
}

void BundleReader::read_output(const View& view, model::BundleEndpoint& endpoint) {
  const Fields fields(view, {"webhook"});
  const auto at = fields.find("webhook");
  if (!at) return;
  const Fields webhook_fields(*at, {"url", "secret"});
  model::BundleWebhook webhook;
  if (const auto url = webhook_fields.require("url")) {
    const auto text = url->text();
    if (text) webhook.url = expand(*url, *text);
    if (text && has_variable(*text)) webhook.url_source = *text;
    if (const auto problem = model::url_problem(webhook.url);
        text && is_known(*text) && !problem.empty()) {
      url->problem(std::string(problem));
    }
  }
  if (const auto secret = webhook_fields.find("secret")) {
    webhook.secret_source = secret->text().value_or("");
    webhook.secret = expand(*secret, webhook.secret_source);
    if (secret->value().is_text() && webhook.secret_source.empty()) {
      secret->problem("the text is empty; write one, or leave `secret` out");
    }
    if (!webhook.secret.empty() && is_known(webhook.secret_source)) {
      const auto key = model::webhook_key(webhook.secret);
      if (!key) secret->problem(key.error().message);
    }
    if (!has_variable(webhook.secret_source)) webhook.secret_source.clear();
    webhook.has_secret = !webhook.secret.empty();
  }
  endpoint.webhook.push_back(std::move(webhook));
}

void BundleReader::read_proactive(const Fields& top) {
  const auto view = top.find("proactive");
  if (!view) return;
  const Fields fields(*view, {"journey"});
  if (const auto journey = fields.require("journey")) read_journey(*journey);
  bundle_.proactive = view->value().to_json();
}

void BundleReader::read_journey(const View& view) {
  const Fields fields(view, {"after", "text", "flow", "endpoint", "quietHours", "expiresAfter",
                             "maxPerSession", "maxPerDay"});
  std::optional<milliseconds> after;
  if (const auto at = fields.require("after")) after = at->duration(seconds(1), longest);
  if (const auto flow = fields.find("flow")) {
    if (const auto at = fields.find("text"))
      at->problem("a journey has `text` or `flow`; remove one");
    if (flow->name()) expect_known(*flow, "there is no Flow", known_.flows);
  } else {
    (void)fields.text("text");
    expect_short(fields, "text");
  }
  if (const auto at = fields.find("endpoint"); at && at->name()) {
    expect_known(*at, "there is no Endpoint", seen_endpoints_);
  }
  if (const auto at = fields.find("expiresAfter")) {
    const auto expires = at->duration(seconds(1), longest);
    if (after && expires && *expires < *after) {
      at->problem(
          "is shorter than `after`: the follow-up would expire before it is due; make it longer");
    }
  }
  if (const auto at = fields.find("maxPerSession")) (void)at->integer(1, 1000);
  if (const auto at = fields.find("maxPerDay")) (void)at->integer(1, 1000);
  if (const auto quiet = fields.find("quietHours")) read_quiet_hours(*quiet);
}

}  // namespace conversed::flows
