#include "daemon/ops/admin.h"

#include <utility>

namespace conversed::daemon {
namespace {

using model::Errc;

void answer(const AdminSources& sources, const api::Request& request, api::Reply reply) {
  if (request.method != api::Method::get && request.method != api::Method::head) {
    reply.send({.status = 405,
                .content_type = "text/plain; charset=utf-8",
                .headers = {{"Allow", "GET, HEAD"}},
                .body = "GET only\n"});
  } else if (request.path == "/healthz") {
    reply.text(api::status::ok, "ok\n");
  } else if (request.path == "/readyz") {
    const auto reason = sources.not_ready();
    if (reason.empty()) return reply.text(api::status::ok, "ready\n");
    reply.text(503, "not ready: " + std::string(reason) + "\n");
  } else if (request.path == "/metrics") {
    reply.send({.status = api::status::ok,
                .content_type = "text/plain; version=0.0.4; charset=utf-8",
                .headers = {},
                .body = sources.metrics()});
  } else {
    reply.fail({Errc::not_found, "There are /healthz, /readyz and /metrics here."});
  }
}

}  // namespace

model::Result<std::unique_ptr<api::HttpServer>> open_admin_server(
    const config::AdminSettings& settings, AdminSources sources, model::Heartbeats& heartbeats) {
  api::HttpSettings http;
  http.address = settings.address;
  http.port = settings.port;
  http.threads = 1;
  http.max_body = 0;
  http.max_connections = 100;
  http.cors = false;  // no page has any business here
  http.name = "admin";
  http.heartbeats = &heartbeats;
  return api::HttpServer::open(
      http, [sources = std::move(sources)](api::Request&& request, api::Reply reply) {
        answer(sources, request, std::move(reply));
      });
}

}  // namespace conversed::daemon
