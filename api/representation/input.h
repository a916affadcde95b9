// Values from a request: parameters of its query and members of its body. Each function answers
// `invalid_argument`, naming the parameter or member, for a value that it does not take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/http.h"
#include "store/model/result.h"

namespace conversed::api {

// ---- The query

// A whole number; `absent` without the parameter.
[[nodiscard]] model::Result<std::int64_t> number_parameter(const Request& request,
                                                           std::string_view name, std::int64_t min,
                                                           std::int64_t max, std::int64_t absent);

// Items of a page of a list: `limit` is 1 to this, or the default.
inline constexpr std::int64_t max_page_limit = 100;
inline constexpr std::int64_t default_page_limit = 25;
[[nodiscard]] model::Result<std::int64_t> limit_parameter(const Request& request);

// `wait`: how long the answer may be held back, in seconds.
inline constexpr std::int64_t max_wait_seconds = 30;
[[nodiscard]] model::Result<std::int64_t> wait_parameter(const Request& request);

// A parameter that has to be there and not empty.
[[nodiscard]] model::Result<std::string> required_parameter(const Request& request,
                                                            std::string_view name);

// `dryRun`; default false.
[[nodiscard]] model::Result<bool> read_dry_run(const Request& request);

// ---- JSON objects

// A member and the place that its value is moved to. An absent or null member leaves its place as
// it is. The place says which type the member must have; json* takes an object.
struct Member {
  const char* name;
  std::variant<std::string*, std::optional<std::string>*, bool*, std::vector<std::string>*,
               nlohmann::json*>
      place;
};
[[nodiscard]] model::Result<void> read_members(nlohmann::json& object,
                                               std::initializer_list<Member> members);

// The body as a JSON object, without the values that were moved to the members' places. Unknown
// members are ignored.
[[nodiscard]] model::Result<nlohmann::json> read_object(const Request& request,
                                                        std::initializer_list<Member> members = {});

// ---- Messages

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

// Ignores a URLToken in the body when the path has one: the caller sets it. A null is as good as
// absent, and so is an empty text.
[[nodiscard]] model::Result<MessageBody> parse_message(std::string_view body, UrlTokenIn place);

// The check of `userId` and `sessionId`, wherever they come from.
[[nodiscard]] model::Result<void> check_name(std::string_view name, std::string_view value);

// Lower-cases; 64 hex digits are required.
[[nodiscard]] model::Result<std::string> normal_url_token(std::string_view text);

}  // namespace conversed::api
