#include "daemon/front_door.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/operations/all.h"
#include "daemon/ops/logging.h"
#include "daemon/ops/version.h"

namespace conversed::daemon {

using model::fail;
using model::Result;

namespace {

Span span_of(const api::AnsweredRequest& answered) {
  const auto method = std::string(api::method_name(answered.method));
  const auto took = std::chrono::system_clock::now() - answered.begun;
  Span span{.trace_id = answered.trace.trace_id,
            .span_id = std::string(answered.span_id),
            .parent_id = answered.trace.parent_id,
            .name = method + ' ' + std::string(answered.route),
            .kind = Span::Kind::server,
            .begin = std::chrono::floor<std::chrono::microseconds>(answered.begun),
            .took = std::chrono::duration_cast<std::chrono::microseconds>(took),
            .attributes = {{"http.request.method", method},
                           {"http.route", std::string(answered.route)},
                           {"http.response.status_code", answered.status}},
            .error = answered.status >= 500 ? std::to_string(answered.status) : ""};
  if (!answered.event_id.empty()) {
    span.attributes.emplace_back("conversed.event.id", std::string(answered.event_id));
  }
  return span;
}

// The error of a listener, with its settings. `group`: their first part.
model::Error with_settings(model::Error error, const std::string& group) {
  error.message += "; the settings are " + group + ".address and " + group + ".port";
  return error;
}

}  // namespace

FrontDoor::FrontDoor(const config::Settings& settings, const model::Clock& clock,
                     model::Heartbeats& heartbeats, DataFolder folder, Spans* spans)
    : settings_(settings),
      clock_(clock),
      heartbeats_(heartbeats),
      folder_(std::move(folder)),
      spans_(spans),
      metrics_(settings.metrics.series),
      router_(api::all_operations(), settings.api) {
  metrics_.add_source([this] {
    if (spans_ != nullptr) metrics_.spans_dropped.raise_to(spans_->dropped());
    if (!api_) return;
    for (const auto& [status, count] : api_->answer_counts()) {
      metrics_.requests(status).raise_to(count);
    }
  });
}

FrontDoor::~FrontDoor() {
  stop();
}

Result<void> FrontDoor::listen() {
  if (listens_) return {};
  if (std::ranges::find(settings_.roles, config::Role::api) != settings_.roles.end()) {
    if (auto opened = open_api(); !opened) return opened;
  }
  api::HttpSettings http;
  http.address = settings_.admin.address;
  http.port = settings_.admin.port;
  http.threads = 1;
  http.max_body = 0;
  http.max_connections = 100;
  http.cors = false;  // no web page needs the admin listener
  http.name = "admin";
  http.heartbeats = &heartbeats_;
  auto admin =
      api::HttpServer::open(std::move(http), [this](api::Request&& request, api::Reply reply) {
        answer_admin(request, std::move(reply));
      });
  if (!admin) return fail(with_settings(admin.error(), "admin"));
  admin_ = std::move(*admin);
  if (auto started = admin_->start(); !started) return started;
  if (api_) {
    if (auto started = api_->start(); !started) return started;
    log::info("listening", {{"address", settings_.listen.address},
                            {"port", api_->port()},
                            {"adminPort", admin_->port()},
                            {"version", version}});
  } else {
    log::info("listening, without the API", {{"adminPort", admin_->port()}, {"version", version}});
  }
  listens_ = true;
  write_ports();
  return {};
}

Result<void> FrontDoor::open_api() {
  api::HttpSettings http;
  http.address = settings_.listen.address;
  http.port = settings_.listen.port;
  http.threads = settings_.api.threads;
  for (const auto& proxy : settings_.trusted_proxies) {
    if (const auto range = config::AddressRange::parse(proxy)) {
      http.trusted_proxies.push_back(*range);
    }
  }
  http.max_header = settings_.api.max_header_bytes;
  http.max_body = settings_.api.max_body_bytes;
  http.max_large_bodies = settings_.limits.large_bodies_bytes;
  http.header_timeout = settings_.api.header_timeout;
  http.body_timeout = settings_.api.body_timeout;
  http.idle_timeout = settings_.api.idle_timeout;
  http.max_connections = settings_.limits.connections;
  http.max_connections_per_address = settings_.limits.connections_per_address;
  http.body_rule = [this](const api::Request& head) { return router_.body_rule(head); };
  http.clock = &clock_;
  http.name = "api";
  http.heartbeats = &heartbeats_;
  http.on_defect = [](std::string_view message) { log::error("defect", {{"message", message}}); };
  http.sample = spans_ != nullptr ? settings_.telemetry.otlp.sample : 0;
  if (spans_ != nullptr) {
    http.on_answer = [this](const api::AnsweredRequest& answered) {
      // A stranger's requests must not displace the spans of others.
      const bool refused = answered.status == api::status::unauthorized || answered.status == 429;
      if (answered.trace.sampled && !refused) spans_->add(span_of(answered));
    };
  }
  http.on_error = [this](const api::ErrorAnswer& answer) { error_log_.write(answer); };
  auto opened =
      api::HttpServer::open(std::move(http), [this](api::Request&& request, api::Reply reply) {
        router_.handle(std::move(request), std::move(reply));
      });
  if (!opened) return fail(with_settings(opened.error(), "listen"));
  api_ = std::move(*opened);
  return {};
}

void FrontDoor::answer_admin(const api::Request& request, api::Reply reply) {
  if (request.method != api::Method::get && request.method != api::Method::head) {
    reply.send({.status = 405,
                .content_type = "text/plain; charset=utf-8",
                .headers = {{"Allow", "GET, HEAD"}},
                .body = "GET only\n"});
  } else if (request.path == "/healthz") {
    reply.text(api::status::ok, "ok\n");
  } else if (request.path == "/readyz") {
    const auto reason = not_ready();
    if (reason.empty()) return reply.text(api::status::ok, "ready\n");
    reply.text(503, "not ready: " + std::string(reason) + "\n");
  } else if (request.path == "/metrics") {
    reply.send({.status = api::status::ok,
                .content_type = "text/plain; version=0.0.4; charset=utf-8",
                .body = metrics_.expose()});
  } else {
    reply.fail({model::Errc::not_found, "This listener has /healthz, /readyz and /metrics."});
  }
}

void FrontDoor::open(api::Services& services, std::function<std::string_view()> not_ready) {
  not_ready_ = std::move(not_ready);
  open_ = true;
  router_.open(services);
}

std::string_view FrontDoor::not_ready() const {
  return open_ ? not_ready_() : "the store is not there yet";
}

// `run/ports.json` is for scripts and tests. On a full disk the daemon works without it and tries
// again.
void FrontDoor::write_ports() {
  const std::lock_guard lock(ports_mutex_);
  if (!listens_ || ports_written_) return;
  const auto api_port = api_ ? std::optional(api_->port()) : std::nullopt;
  auto written = folder_.write_ports(api_port, admin_->port());
  ports_written_ = written.has_value();
  if (!written) {
    log::warn("run/ports.json can't be written; trying again",
              {{"error", written.error().message}});
  }
}

bool FrontDoor::drain(std::chrono::milliseconds limit) {
  return !api_ || api_->drain(limit);
}

void FrontDoor::stop_api() {
  if (api_) api_->stop();
}

void FrontDoor::stop() {
  stop_api();
  if (admin_) admin_->stop();
  folder_.remove_ports();
}

}  // namespace conversed::daemon
