#include "store/cluster/session_news.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/cluster/news.h"
#include "store/model/json.h"

namespace conversed::store {

namespace {

constexpr std::array<std::pair<SessionNews::Kind, std::string_view>, 2> kinds{{
    {SessionNews::Kind::touch, "touch"},
    {SessionNews::Kind::deliver, "deliver"},
}};

}  // namespace

std::optional<SessionNews> session_news_from(std::string_view payload) {
  const auto value = model::parse_json(payload);
  if (!value || !value->is_object()) return std::nullopt;
  for (const auto& [kind, name] : kinds) {
    const auto session = value->find(name);
    if (session != value->end() && session->is_string()) {
      return SessionNews{kind, session->get<std::string>()};
    }
  }
  return std::nullopt;
}

void announce(Connection& connection, const SessionNews& news) {
  const auto kind =
      std::ranges::find(kinds, news.kind, [](const auto& each) { return each.first; });
  std::string text(sessions_topic);
  text += ' ' + nlohmann::json{{kind->second, news.session}}.dump(
                    -1, ' ', false, nlohmann::json::error_handler_t::replace);
  announce(connection, text.size() <= max_news_bytes ? text : std::string(sessions_topic));
}

}  // namespace conversed::store
