#include "api/representation/input.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "api/http/http_syntax.h"
#include "store/model/ids.h"
#include "store/model/json.h"
#include "store/text/utf8.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

tl::unexpected<model::Error> wrong(std::string_view name, std::string_view problem) {
  return model::fail(Errc::invalid_argument, std::string(name).append(problem));
}

// One text for each alternative of Member's `place`, in order.
constexpr std::array types{" must be a string", " must be a string", " must be true or false",
                           " must be a list of strings", " must be an object"};
static_assert(types.size() == std::variant_size_v<decltype(Member::place)>);

// Each of these moves a member into its place. False if the member has another type.

bool take(json& member, std::string& place) {
  if (!member.is_string()) return false;
  place = std::move(member.get_ref<std::string&>());
  return true;
}

bool take(json& member, std::optional<std::string>& place) {
  return take(member, place.emplace());
}

bool take(json& member, bool& place) {
  if (!member.is_boolean()) return false;
  place = member.get<bool>();
  return true;
}

bool take(json& member, std::vector<std::string>& place) {
  if (!member.is_array()) return false;
  for (json& item : member) {
    if (!take(item, place.emplace_back())) return false;
  }
  return true;
}

bool take(json& member, json& place) {
  if (!member.is_object()) return false;
  place = std::move(member);
  return true;
}

Result<json> parse_object(std::string_view body) {
  if (body.empty()) return model::fail(Errc::invalid_argument, "a JSON body is required");
  auto object = model::parse_json(body);
  if (object && !object->is_object()) {
    return model::fail(Errc::invalid_argument, "the body must be a JSON object");
  }
  return object;
}

// Unicode's category Cc.
bool has_control_character(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = text::decode(text, at);
    if (code < 0x20 || (code >= 0x7F && code <= 0x9F)) return true;
    at += bytes;
  }
  return false;
}

}  // namespace

Result<std::int64_t> number_parameter(const Request& request, std::string_view name,
                                      std::int64_t min, std::int64_t max, std::int64_t absent) {
  const auto text = request.parameter(name);
  if (!text) return absent;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (text->empty() || error != std::errc{} || stop != end || value < min || value > max) {
    return wrong(
        name, " must be a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return value;
}

Result<std::int64_t> limit_parameter(const Request& request) {
  return number_parameter(request, "limit", 1, max_page_limit, default_page_limit);
}

Result<std::int64_t> wait_parameter(const Request& request) {
  return number_parameter(request, "wait", 0, max_wait_seconds, 0);
}

Result<std::string> required_parameter(const Request& request, std::string_view name) {
  const auto text = request.parameter(name);
  if (!text || text->empty()) {
    return model::fail(Errc::invalid_argument,
                       "the query parameter " + std::string(name) + " is required");
  }
  return std::string(*text);
}

Result<bool> read_dry_run(const Request& request) {
  const auto text = request.parameter("dryRun").value_or("false");
  if (text == "true" || text == "false") return text == "true";
  return wrong("dryRun", " must be true or false");
}

Result<void> read_members(json& object, std::initializer_list<Member> members) {
  for (const Member& each : members) {
    const auto member = object.find(each.name);
    if (member == object.end() || member->is_null()) continue;
    const bool fits = std::visit([&](auto* place) { return take(*member, *place); }, each.place);
    if (!fits) return wrong(each.name, types[each.place.index()]);
  }
  return {};
}

Result<json> read_object(const Request& request, std::initializer_list<Member> members) {
  auto object = parse_object(request.body);
  if (!object) return object;
  if (auto read = read_members(*object, members); !read) return model::fail(read.error());
  return object;
}

Result<std::int64_t> whole_number(const json& object, const char* name, std::int64_t least,
                                  std::int64_t most) {
  const auto member = object.find(name);
  if (member != object.end() && member->is_number()) {
    const auto number = member->get<double>();
    const bool in_range =
        number >= static_cast<double>(least) && number <= static_cast<double>(most);
    if (in_range && std::floor(number) == number) return static_cast<std::int64_t>(number);
  }
  return wrong(name, " must be a whole number, " + std::to_string(least) +
                         (most == max_whole_number ? " or more" : " to " + std::to_string(most)));
}

Result<void> check_name(std::string_view name, std::string_view value) {
  if (value.empty()) return wrong(name, " must not be empty");
  if (value.size() > max_name_bytes) return wrong(name, " must have at most 512 bytes");
  if (has_control_character(value)) return wrong(name, " must not contain control characters");
  return {};
}

Result<std::string> normal_url_token(std::string_view text) {
  std::string token = lower_case(text);
  if (!model::is_url_token(token)) return wrong("URLToken", " must be 64 hexadecimal digits");
  return token;
}

Result<MessageBody> parse_message(std::string_view body, UrlTokenIn place) {
  auto object = parse_object(body);
  if (!object) return model::fail(object.error());
  MessageBody message;
  if (place == UrlTokenIn::body) {
    std::optional<std::string> token;
    if (auto read = read_members(*object, {{"URLToken", &token}}); !read) {
      return model::fail(read.error());
    }
    if (!token) return wrong("URLToken", " is required");
    auto normal = normal_url_token(*token);
    if (!normal) return model::fail(normal.error());
    message.url_token = *std::move(normal);
  }
  std::optional<std::string> user;
  std::optional<std::string> session;
  auto read = read_members(*object, {{"userId", &user},
                                     {"sessionId", &session},
                                     {"text", &message.text},
                                     {"data", &message.data}});
  if (!read) return model::fail(read.error());
  for (const auto& [name, value] : {std::pair("userId", &user), std::pair("sessionId", &session)}) {
    if (!*value) return wrong(name, " is required");
    if (auto checked = check_name(name, **value); !checked) return model::fail(checked.error());
  }
  message.user_id = *std::move(user);
  message.session_id = *std::move(session);
  if ((!message.text || message.text->empty()) && message.data.is_null()) {
    return model::fail(Errc::invalid_argument, "text or data is required");
  }
  return message;
}

}  // namespace conversed::api
