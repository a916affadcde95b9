// Reads values from a request: parameters of its query and members of its body. Each function
// returns `invalid_argument`, with the parameter or member, for a value that it refuses.
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

// A whole number. `absent` if the parameter is missing.
[[nodiscard]] model::Result<std::int64_t> number_parameter(const Request& request,
                                                           std::string_view name, std::int64_t min,
                                                           std::int64_t max, std::int64_t absent);

// The largest `limit` of a list's page.
inline constexpr std::int64_t max_page_limit = 100;
inline constexpr std::int64_t default_page_limit = 25;
[[nodiscard]] model::Result<std::int64_t> limit_parameter(const Request& request);

// `wait`: the longest delay of an answer in seconds.
inline constexpr std::int64_t max_wait_seconds = 30;
[[nodiscard]] model::Result<std::int64_t> wait_parameter(const Request& request);

// A parameter that must be present and not empty.
[[nodiscard]] model::Result<std::string> required_parameter(const Request& request,
                                                            std::string_view name);

// `dryRun`; default false.
[[nodiscard]] model::Result<bool> read_dry_run(const Request& request);

// ---- JSON objects

// A member and the place that its value is moved to. An absent or null member leaves its place
// unchanged. The place's type decides the member's type; json* takes an object.
struct Member {
  const char* name;
  std::variant<std::string*, std::optional<std::string>*, bool*, std::vector<std::string>*,
               nlohmann::json*>
      place;
};
[[nodiscard]] model::Result<void> read_members(nlohmann::json& object,
                                               std::initializer_list<Member> members);

// The body as a JSON object without the moved values. Ignores unknown members.
[[nodiscard]] model::Result<nlohmann::json> read_object(const Request& request,
                                                        std::initializer_list<Member> members = {});

// The largest whole number that every JSON reader holds exactly (RFC 8259 §6).
inline constexpr std::int64_t max_whole_number = 9'007'199'254'740'991;

// The whole number in a member of the object. 1.0 is one, as in JSON Schema. `most` at its largest
// sets no limit.
[[nodiscard]] model::Result<std::int64_t> whole_number(const nlohmann::json& object,
                                                       const char* name, std::int64_t least,
                                                       std::int64_t most = max_whole_number);

// ---- Messages

inline constexpr std::size_t max_name_bytes = 512;  // of `userId` and `sessionId`

// The checked body of an inject, a notify or a user's message.
struct MessageBody {
  std::string url_token;  // 64 lower-case hex digits
  std::string user_id;    // 1 to 512 bytes without control characters
  std::string session_id;
  std::optional<std::string> text;
  nlohmann::json data;  // an object or null; `text` or `data` is present
};

// Whether the body names the Endpoint, or the path did.
enum class UrlTokenIn : std::uint8_t { body, path };

// Ignores a URLToken in the body if the path has one, which the caller sets. A null or empty text
// counts as absent.
[[nodiscard]] model::Result<MessageBody> parse_message(std::string_view body, UrlTokenIn place);

// Checks a `userId` or `sessionId` from any part of a request.
[[nodiscard]] model::Result<void> check_name(std::string_view name, std::string_view value);

// Converts to lower case. `invalid_argument` unless it has 64 hex digits.
[[nodiscard]] model::Result<std::string> normal_url_token(std::string_view text);

}  // namespace conversed::api
