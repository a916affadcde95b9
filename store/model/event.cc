#include "store/model/event.h"

#include <algorithm>
#include <array>
#include <utility>

#include "store/model/ids.h"
#include "store/model/json.h"
#include "store/model/names.h"
#include "store/model/trace.h"

namespace conversed::model {
namespace {

constexpr int value_version = 1;
constexpr std::int64_t last_accepted_at_ms = 253'402'300'799'999;  // the year 9999 ends

constexpr Names<EventType, 7> event_types{{{
    {EventType::user_message, "userMessage"},
    {EventType::inject, "inject"},
    {EventType::follow_up, "followUp"},
    {EventType::call_result, "callResult"},
    {EventType::timer, "timer"},
    {EventType::notify, "notify"},
    {EventType::time_out, "timeOut"},
}}};

constexpr Names<Claim::Kind, 6> claim_kinds{{{
    {Claim::Kind::keyed_event, "keyedEvent"},
    {Claim::Kind::pending_call, "pendingCall"},
    {Claim::Kind::timer, "timer"},
    {Claim::Kind::dead_letter, "deadLetter"},
    {Claim::Kind::follow_up, "followUp"},
    {Claim::Kind::schedule, "schedule"},
}}};

std::optional<Claim> decode_claim(const nlohmann::json& value) {
  if (!value.is_object()) return std::nullopt;
  const auto kind = claim_kinds.value_of(value.value("kind", ""));
  return kind ? std::optional(Claim{*kind, value.value("id", "")}) : std::nullopt;
}

void append_name(std::string& text, std::string_view name) {
  text.append("\"").append(name).append("\":");
}

// Each event has it, so it is written without JSON values for its members.
void append_origin(std::string& text, const Origin& origin) {
  char before = '{';
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    text += before;
    append_name(text, name);
    append_quoted(text, value);
    before = ',';
  };
  add("daemon", origin.daemon);
  add("key", origin.key);
  add("organisation", origin.organisation_id);
  add("user", origin.user_id);
  text += '}';
}

nlohmann::json encode_result(const CallResult& result) {
  nlohmann::json value{{"callId", result.call_id},
                       {"status", result.status},
                       {"body", result.body},
                       {"errorCode", result.error_code},
                       {"errorMessage", result.error_message}};
  if (result.model_tokens > 0) value["modelTokens"] = result.model_tokens;
  return value;
}

CallResult decode_result(nlohmann::json& value) {
  CallResult result;
  result.call_id = value.value("callId", "");
  result.status = value.value("status", 0);
  if (auto body = value.find("body"); body != value.end()) result.body = std::move(*body);
  result.error_code = value.value("errorCode", "");
  result.error_message = value.value("errorMessage", "");
  result.model_tokens = std::max(value.value("modelTokens", std::int64_t{0}), std::int64_t{0});
  return result;
}

// Throws nlohmann's exceptions on members of a wrong type; the caller turns them into values.
Result<Event> decode_members(Event event, nlohmann::json& value) {
  if (value.value("v", 0) != value_version) {
    return fail(Errc::invalid_argument, "event " + event.id + ": unknown format version");
  }
  // Microseconds of today are beyond the last of them, too.
  const auto at = value.find("at");
  if (at == value.end() || !at->is_number_integer() || at->get<std::int64_t>() < 0 ||
      at->get<std::int64_t>() > last_accepted_at_ms) {
    return fail(Errc::invalid_argument,
                "event " + event.id + ": its member at is no time in milliseconds");
  }
  event.accepted_at = from_unix_ms(at->get<std::int64_t>());
  const auto own = value.find("own");
  event.is_own = own != value.end() && own->is_boolean() && own->get<bool>();
  if (const auto from = value.find("from"); event.is_own && from != value.end()) {
    event.origin = {.daemon = from->value("daemon", ""),
                    .user_id = from->value("user", ""),
                    .key = from->value("key", ""),
                    .organisation_id = from->value("organisation", "")};
  }
  // It goes into headers of requests.
  if (const auto state = value.find("tracestate"); state != value.end()) {
    const auto& text = state->get_ref<const std::string&>();
    if (is_tracestate(text)) event.tracestate = text;
  }
  if (auto text = value.find("text"); text != value.end()) {
    event.text = std::move(text->get_ref<std::string&>());
  }
  if (auto data = value.find("data"); data != value.end()) event.data = std::move(*data);
  if (auto claim = value.find("claim"); claim != value.end()) {
    event.claim = decode_claim(*claim);
    if (!event.claim) return fail(Errc::invalid_argument, "event " + event.id + ": unknown claim");
  }
  if (auto result = value.find("result"); result != value.end()) {
    event.result = decode_result(*result);
  }
  if (auto plan = value.find("followUp"); plan != value.end()) {
    auto read = follow_up_plan_from(*plan);
    if (!read) return fail(Errc::invalid_argument, "event " + event.id + ": a bad follow-up");
    event.follow_up = *std::move(read);
  }
  // An id of any other form can't be the daemon's own.
  if (auto until = value.find("answerUntil"); until != value.end() && until->is_number_integer() &&
                                              event.type == EventType::user_message &&
                                              is_id(event.id)) {
    const auto ms = until->get<std::int64_t>();
    if (ms >= 0 && ms <= last_accepted_at_ms) event.answer_until = from_unix_ms(ms);
  }
  return event;
}

}  // namespace

std::string SessionKey::encode() const {
  std::string text;
  text.reserve(project_id.size() + endpoint_id.size() + user_id.size() + session_id.size() + 3);
  text += project_id;
  text += separator;
  text += user_id;
  text += separator;
  text += endpoint_id;
  text += separator;
  text += session_id;
  return text;
}

Result<SessionKey> SessionKey::decode(std::string_view text) {
  std::array<std::string_view, 4> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto end = text.find(separator);
    const bool last = i + 1 == parts.size();
    if (last != (end == std::string_view::npos)) {
      return fail(Errc::invalid_argument, "a session key has four parts");
    }
    parts[i] = text.substr(0, end);
    if (!last) text.remove_prefix(end + 1);
  }
  return SessionKey{.project_id = std::string(parts[0]),
                    .endpoint_id = std::string(parts[2]),
                    .user_id = std::string(parts[1]),
                    .session_id = std::string(parts[3])};
}

std::string_view to_string(EventType type) {
  return event_types.name_of(type);
}

std::optional<EventType> event_type_from(std::string_view text) {
  return event_types.value_of(text);
}

std::string encode_value(const Event& event) {
  std::string text = "{\"v\":" + std::to_string(value_version) + R"(,"own":true,"at":)" +
                     std::to_string(to_unix_ms(event.accepted_at));
  const auto add = [&](std::string_view name, const nlohmann::json& value) {
    append_name(text += ',', name);
    append_json(text, value);
  };
  if (event.origin != Origin()) {
    text += ",\"from\":";
    append_origin(text, event.origin);
  }
  const auto add_text = [&](std::string_view name, std::string_view value) {
    append_name(text += ',', name);
    append_quoted(text, value);
  };
  if (!event.tracestate.empty()) add_text("tracestate", event.tracestate);
  if (event.text) add_text("text", *event.text);
  if (!event.data.is_null()) add("data", event.data);
  if (event.claim) {
    add("claim", {{"kind", claim_kinds.name_of(event.claim->kind)}, {"id", event.claim->id}});
  }
  if (event.result) add("result", encode_result(*event.result));
  if (event.follow_up) add("followUp", to_json(*event.follow_up));
  if (event.answer_until) add("answerUntil", to_unix_ms(*event.answer_until));
  return text += '}';
}

nlohmann::json to_json(const FollowUpPlan& plan) {
  nlohmann::json value{{"flowId", plan.flow_id}, {"ofJourney", plan.of_journey}};
  if (plan.expires_at) value["expiresAt"] = to_unix_ms(*plan.expires_at);
  return value;
}

Result<FollowUpPlan> follow_up_plan_from(const nlohmann::json& value) {
  try {
    FollowUpPlan plan;
    plan.flow_id = value.at("flowId").get<std::string>();
    plan.of_journey = value.at("ofJourney").get<bool>();
    if (value.contains("expiresAt")) {
      plan.expires_at = from_unix_ms(value.at("expiresAt").get<std::int64_t>());
    }
    return plan;
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::internal, "a stored follow-up can't be read");
  }
}

Result<Event> decode_event(std::string_view key, std::string_view id, std::string_view type,
                           std::string_view trace_id, std::string_view value) {
  Event event;
  event.id = id;
  event.trace_id = trace_id_of(trace_id);
  auto session = SessionKey::decode(key);
  if (!session) return fail(session.error());
  event.session = std::move(*session);
  const auto known = event_type_from(type);
  if (!known) return fail(Errc::invalid_argument, "event " + event.id + ": unknown type");
  event.type = *known;
  auto parsed = parse_json(value);
  if (!parsed) return fail(parsed.error());
  if (!parsed->is_object())
    return fail(Errc::invalid_argument, "event " + event.id + ": no object");
  try {
    return decode_members(std::move(event), *parsed);
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::invalid_argument, "event: a member has the wrong type");
  }
}

}  // namespace conversed::model
