#include "store/cluster/session_notifications.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/model/json.h"
#include "store/model/names.h"

namespace conversed::store {

namespace {

constexpr model::Names<SessionNotification::Kind, 2> kinds{{{
    {SessionNotification::Kind::touch, "touch"},
    {SessionNotification::Kind::deliver, "deliver"},
}}};

}  // namespace

std::optional<SessionNotification> session_notification_from(std::string_view payload) {
  const auto value = model::parse_json(payload);
  if (!value || !value->is_object()) return std::nullopt;
  for (const auto& [kind, name] : kinds.all) {
    const auto session = value->find(name);
    if (session != value->end() && session->is_string()) {
      return SessionNotification{kind, session->get<std::string>()};
    }
  }
  return std::nullopt;
}

void announce(Connection& connection, const SessionNotification& notification) {
  std::string text(sessions_topic);
  text += ' ' + nlohmann::json{{kinds.name_of(notification.kind), notification.session}}.dump(
                    -1, ' ', false, nlohmann::json::error_handler_t::replace);
  announce(connection, text.size() <= max_notification_bytes ? text : std::string(sessions_topic));
}

}  // namespace conversed::store
