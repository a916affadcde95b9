#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/model/result.h"

namespace conversed::api {

inline constexpr std::size_t max_name_bytes = 512;  // of `userId` and `sessionId`

// The body of inject and of a user's message, checked.
struct MessageBody {
  std::string url_token;  // 64 lower-case hex digits
  std::string user_id;    // 1 to 512 bytes without control characters
  std::string session_id;
  std::optional<std::string> text;
  nlohmann::json data;  // an object, or null for none; one of `text` and `data` is there
};

// Whether the body names the Endpoint, or the path did.
enum class UrlTokenIn : std::uint8_t { body, path };

// Unknown members are ignored, and so is a URLToken in the body when the path has one: the caller
// sets it. A null is as good as absent, and so is an empty text. Errors: `invalid_argument`, naming
// the member.
[[nodiscard]] model::Result<MessageBody> parse_message(std::string_view body, UrlTokenIn place);

// The check of `userId` and `sessionId`, wherever they come from.
[[nodiscard]] model::Result<void> check_name(std::string_view name, std::string_view value);

// Lower-cases; `invalid_argument` unless it is 64 hex digits.
[[nodiscard]] model::Result<std::string> normal_url_token(std::string_view text);

}  // namespace conversed::api
