#include "store/cluster/session_notifications.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/model/json.h"

namespace conversed::store {

namespace {

constexpr std::array<std::pair<SessionNotification::Kind, std::string_view>, 2> kinds{{
    {SessionNotification::Kind::touch, "touch"},
    {SessionNotification::Kind::deliver, "deliver"},
}};

}  // namespace

std::optional<SessionNotification> session_notification_from(std::string_view payload) {
  const auto value = model::parse_json(payload);
  if (!value || !value->is_object()) return std::nullopt;
  for (const auto& [kind, name] : kinds) {
    const auto session = value->find(name);
    if (session != value->end() && session->is_string()) {
      return SessionNotification{kind, session->get<std::string>()};
    }
  }
  return std::nullopt;
}

void announce(Connection& connection, const SessionNotification& notification) {
  const auto kind =
      std::ranges::find(kinds, notification.kind, [](const auto& each) { return each.first; });
  std::string text(sessions_topic);
  text += ' ' + nlohmann::json{{kind->second, notification.session}}.dump(
                    -1, ' ', false, nlohmann::json::error_handler_t::replace);
  announce(connection, text.size() <= max_notification_bytes ? text : std::string(sessions_topic));
}

}  // namespace conversed::store
