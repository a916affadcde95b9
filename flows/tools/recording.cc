#include "flows/tools/recording.h"

#include <map>
#include <utility>

namespace conversed::flows::tools {
namespace {

using model::EventType;
using nlohmann::json;

model::Timestamp time_of(const json& object, const char* name) {
  return model::from_unix_ms(object.value(name, std::int64_t{0}));
}

model::CallResult result_of(const json& result) {
  const json& answer = result.at("answer");
  model::CallResult read;
  read.call_id = result.at("id").get<std::string>();
  read.status = answer.value("status", 0);
  read.body = answer.value("body", json());
  read.error_code = answer.value("error", "");
  read.error_message = answer.value("message", "");
  read.model_tokens = answer.value("tokens", std::int64_t{0});
  return read;
}

// An event with a claim of the kind that its type has.
void read_claim(const json& turn, model::Event& event) {
  using Kind = model::Claim::Kind;
  const bool is_timer = event.type == EventType::timer || event.type == EventType::time_out;
  const auto id = turn.value(event.type == EventType::timer ? "timer" : "claim", "");
  if (id.empty()) return;
  event.claim = model::Claim{is_timer                             ? Kind::timer
                             : event.type == EventType::follow_up ? Kind::follow_up
                                                                  : Kind::keyed_event,
                             id};
}

model::Event event_of(const json& turn, const model::SessionKey& key) {
  model::Event event;
  event.type =
      model::event_type_from(turn.at("event").get<std::string>()).value_or(EventType::notify);
  event.session = key;
  event.id = turn.at("inputId").get<std::string>();
  event.accepted_at = time_of(turn, "acceptedAtMs");
  event.trace_id = turn.value("traceId", "");
  if (turn.contains("text")) event.text = turn.at("text").get<std::string>();
  event.data = turn.value("data", json());
  read_claim(turn, event);
  if (event.type == EventType::timer) event.id = turn.value("eventId", event.id);
  if (event.type != EventType::call_result) return event;
  const json& result = turn.at("result");
  event.id = result.at("id").get<std::string>() + "-r";
  event.claim = model::Claim{model::Claim::Kind::pending_call, result.at("id").get<std::string>()};
  if (result.contains("answer")) event.result = result_of(result);
  return event;
}

RecordedTurn turn_of(const json& turn, const model::SessionKey& key) {
  RecordedTurn read;
  read.input_id = turn.at("inputId").get<std::string>();
  read.at = time_of(turn, "atMs");
  read.event = event_of(turn, key);
  read.begins = turn.value("begins", false);
  read.state = turn.value("state", json());
  read.profile = turn.value("profile", json::object());
  read.profile_version = turn.value("profileVersion", std::int64_t{0});
  read.changes_profile = turn.value("changesProfile", false);
  if (const auto wait = turn.find("waitsFor"); wait != turn.end()) {
    read.waits_for = RecordedWait{wait->at("id").get<std::string>(), wait->value("to", ""),
                                  wait->value("request", "")};
  }
  for (const auto& due : turn.value("followUps", json::array())) {
    read.follow_ups.push_back(model::from_unix_ms(due.get<std::int64_t>()));
  }
  if (const auto said = turn.find("said"); said != turn.end()) {
    read.first_output = said->at(0).get<std::int64_t>();
    read.output_count = said->at(1).get<std::int64_t>();
  }
  for (const auto& output : turn.value("outputs", json::array())) {
    read.outputs.push_back({output.at("text").get<std::string>(), output.at("data")});
  }
  read.failed = turn.contains("failure");
  read.failure = turn.value("failure", "");
  read.ended = turn.value("ended", "");
  if (const auto missing = turn.value("missing", ""); !missing.empty()) {
    read.missing = missing + " is not recorded";
  }
  return read;
}

// The version of the profile grows by one with each commit that changes it.
class ProfileVersions {
 public:
  // Whether only the Turns so far have changed the profile.
  bool are_own(const RecordedTurn& turn) {
    const bool is_next = changed_ && turn.profile_version == version_ + 1;
    const bool good = !known_ || turn.profile_version == version_ || is_next;
    if (!known_ || is_next) changed_ = false;
    known_ = true;
    version_ = turn.profile_version;
    changed_ = changed_ || turn.changes_profile;
    return good;
  }

 private:
  bool known_ = false;
  bool changed_ = false;  // since this version
  std::int64_t version_ = 0;
};

// The number of the first output behind a gap: outputs that no recorded Turn has said. 0: there is
// no gap.
std::int64_t first_behind_a_gap(const std::vector<RecordedTurn>& turns) {
  std::map<std::int64_t, std::int64_t> said;  // first numbers and counts
  for (const auto& turn : turns) {
    if (turn.first_output != 0) said[turn.first_output] = turn.output_count;
  }
  std::int64_t next = said.empty() ? 0 : said.begin()->first;
  for (const auto& [first, count] : said) {
    if (first != next) return first;
    next = first + count;
  }
  return 0;
}

void mark_gaps(std::vector<RecordedTurn>& turns) {
  ProfileVersions versions;
  const auto behind = first_behind_a_gap(turns);
  for (auto& turn : turns) {
    const bool is_own = versions.are_own(turn);
    if (!turn.missing.empty()) continue;
    if (behind != 0 && turn.first_output >= behind) {
      turn.missing = "an event without a receipt came in between";
    } else if (!is_own) {
      turn.missing = "another session of the user has changed the profile";
    }
  }
}

}  // namespace

model::Result<Recording> recording_from(const json& item, const std::string& project_id) {
  try {
    Recording recording;
    const auto text = [&](const char* name) {
      const json& value = item.at(name);
      return value.is_null() ? std::string() : value.get<std::string>();
    };
    recording.key = {project_id, text("endpointId"), text("userId"), text("sessionId")};
    recording.endpoint = text("endpoint");
    recording.url_token = text("URLToken");
    recording.not_whole = text("notWhole");
    for (const auto& turn : item.at("turns")) {
      recording.turns.push_back(turn_of(turn, recording.key));
    }
    mark_gaps(recording.turns);
    return recording;
  } catch (const json::exception& error) {
    return model::fail(model::Errc::invalid_argument,
                       std::string("the recording has another shape: ") + error.what());
  }
}

}  // namespace conversed::flows::tools
