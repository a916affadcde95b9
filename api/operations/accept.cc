#include "api/operations/accept.h"

#include <algorithm>
#include <utility>

#include "api/live/assets_cache.h"
#include "api/live/busy_sessions.h"
#include "api/live/digest.h"
#include "api/replies.h"
#include "flows/turn/turn.h"
#include "store/model/hex.h"
#include "store/model/trace.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Endpoint;
using model::Errc;
using model::Event;
using model::Result;

constexpr std::size_t max_key_bytes = 255;

// A missing and a foreign Endpoint have the same error, so clients can't tell them apart.
tl::unexpected<model::Error> no_endpoint() {
  return model::fail(Errc::not_found, "there is no Endpoint with this URLToken");
}

}  // namespace

Result<std::shared_ptr<const Endpoint>> find_endpoint(AssetsCache& assets,
                                                      std::string_view url_token) {
  auto endpoint = assets.endpoint_by_token(url_token);
  if (!endpoint && endpoint.error().code == Errc::not_found) return no_endpoint();
  if (!endpoint) return model::fail(store_error(endpoint.error()));
  return endpoint;
}

Result<std::shared_ptr<const Endpoint>> find_endpoint_for(AssetsCache& assets,
                                                          const Principal& principal,
                                                          std::string_view url_token) {
  auto endpoint = find_endpoint(assets, url_token);
  if (!endpoint) return endpoint;
  switch (principal.access((*endpoint)->organisation_id, (*endpoint)->project_id,
                           Role::conversation_admin)) {
    case Access::granted:
      return endpoint;
    case Access::denied:
      return model::fail(Errc::permission_denied,
                         "the role conversationAdmin is needed in the Endpoint's project");
    case Access::hidden:
      break;
  }
  return no_endpoint();
}

Event make_event(model::Timestamp now, model::EventType type, const Endpoint& endpoint,
                 MessageBody&& body, const Request& request,
                 const std::optional<queue::AppendKey>& key) {
  Event event;
  event.id = model::new_event_id(now, request.sampled);
  event.type = type;
  event.session = {endpoint.project_id, endpoint.id, std::move(body.user_id),
                   std::move(body.session_id)};
  event.accepted_at = now;
  event.trace_id = request.trace_id;
  event.tracestate = request.tracestate;
  event.text = std::move(body.text);
  event.data = std::move(body.data);
  if (key) event.origin.key = receipt_key(endpoint.organisation_id, key->key);
  return event;
}

Result<void> check_session(MessageServices& services, const Endpoint& endpoint,
                           const Event& event) {
  const auto bound = static_cast<std::int64_t>(services.options.limits.inbox);
  if (services.busy.is_full(event.session.encode(), bound, services.options.steady_now())) {
    return model::fail(Errc::too_many, "too many messages wait for this session; try again later");
  }
  if (!endpoint.active_only || event.type != model::EventType::inject) return {};
  auto session = services.store.of(event.session).sessions().load(event.session);
  if (!session) return model::fail(store_error(session.error()));
  if (!*session || flows::starts_afresh(**session, endpoint, event.accepted_at)) {
    return model::fail(Errc::conflict, "the conversation is not active: it never began or expired");
  }
  return {};
}

Result<std::optional<queue::AppendKey>> append_key(const Request& request,
                                                   const std::string& organisation_id,
                                                   std::string_view route) {
  const auto header = request.header("idempotency-key");
  if (!header) return std::nullopt;
  if (request.count_headers("idempotency-key") > 1) {
    return model::fail(Errc::invalid_argument, "there is more than one Idempotency-Key header");
  }
  const bool printable =
      std::all_of(header->begin(), header->end(), [](char c) { return c >= 0x20 && c <= 0x7E; });
  if (header->empty() || header->size() > max_key_bytes || !printable) {
    return model::fail(Errc::invalid_argument,
                       "Idempotency-Key must have 1 to 255 printable characters");
  }
  queue::AppendKey key;
  key.scope = organisation_id + ' ' + std::string(route);
  key.key = *header;
  key.body_hash = digest({request.body});
  return key;
}

std::string receipt_key(std::string_view organisation_id, std::string_view key) {
  constexpr std::size_t digits = 32;  // as many as of a trace id
  return model::hex(digest({organisation_id, key})).substr(0, digits);
}

store::AnswerKey answer_key(const queue::AppendKey& key) {
  return {key.scope, key.key, model::hex(key.body_hash)};
}

}  // namespace conversed::api
