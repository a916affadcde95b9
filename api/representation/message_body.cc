#include "api/representation/message_body.h"

#include <algorithm>
#include <utility>

#include "api/http/http_syntax.h"
#include "store/model/ids.h"
#include "store/model/json.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

// Unicode's category Cc, in UTF-8 that is known to be valid.
bool has_control_character(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    if (byte == 0xC2 && i + 1 < text.size()) {
      const auto next = static_cast<unsigned char>(text[i + 1]);
      if (next >= 0x80 && next <= 0x9F) return true;
    }
  }
  return false;
}

// The text of a member; nothing when it is absent or null.
Result<std::optional<std::string>> take_text(json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || member->is_null()) return std::nullopt;
  if (!member->is_string()) {
    return model::fail(Errc::invalid_argument, std::string(name) + " must be a string");
  }
  return std::move(member->get_ref<std::string&>());
}

Result<std::string> take_name(json& object, const char* name) {
  auto text = take_text(object, name);
  if (!text) return model::fail(text.error());
  if (!*text) return model::fail(Errc::invalid_argument, std::string(name) + " is required");
  if (auto checked = check_name(name, **text); !checked) return model::fail(checked.error());
  return std::move(**text);
}

Result<std::string> take_url_token(json& object) {
  auto text = take_text(object, "URLToken");
  if (!text) return model::fail(text.error());
  if (!*text) return model::fail(Errc::invalid_argument, "URLToken is required");
  return normal_url_token(**text);
}

}  // namespace

Result<void> check_name(std::string_view name, std::string_view value) {
  const std::string what(name);
  if (value.empty()) return model::fail(Errc::invalid_argument, what + " must not be empty");
  if (value.size() > max_name_bytes) {
    return model::fail(Errc::invalid_argument, what + " must have at most 512 bytes");
  }
  if (has_control_character(value)) {
    return model::fail(Errc::invalid_argument, what + " must not contain control characters");
  }
  return {};
}

Result<std::string> normal_url_token(std::string_view text) {
  std::string token = lower_case(text);
  if (!model::is_url_token(token)) {
    return model::fail(Errc::invalid_argument, "URLToken must be 64 hexadecimal digits");
  }
  return token;
}

Result<MessageBody> parse_message(std::string_view body, UrlTokenIn place) {
  if (body.empty()) return model::fail(Errc::invalid_argument, "a JSON body is required");
  auto object = model::parse_json(body);
  if (!object) return model::fail(object.error());
  if (!object->is_object()) {
    return model::fail(Errc::invalid_argument, "the body must be a JSON object");
  }
  MessageBody message;
  if (place == UrlTokenIn::body) {
    auto token = take_url_token(*object);
    if (!token) return model::fail(token.error());
    message.url_token = std::move(*token);
  }
  auto user = take_name(*object, "userId");
  if (!user) return model::fail(user.error());
  message.user_id = std::move(*user);
  auto session = take_name(*object, "sessionId");
  if (!session) return model::fail(session.error());
  message.session_id = std::move(*session);
  auto text = take_text(*object, "text");
  if (!text) return model::fail(text.error());
  message.text = std::move(*text);
  if (const auto data = object->find("data"); data != object->end()) {
    if (!data->is_null() && !data->is_object()) {
      return model::fail(Errc::invalid_argument, "data must be an object");
    }
    message.data = std::move(*data);
  }
  if ((!message.text || message.text->empty()) && message.data.is_null()) {
    return model::fail(Errc::invalid_argument, "text or data is required");
  }
  return message;
}

}  // namespace conversed::api
