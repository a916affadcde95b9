// Makes `input` of a Turn. Its members come from the event. Lexicons find its slots in the text.
#include <algorithm>
#include <set>
#include <utility>

#include "flows/json_members.h"
#include "flows/lexicon/lexicon.h"
#include "flows/turn/turn.h"
#include "store/model/json.h"
#include "store/text/times.h"

namespace conversed::flows {
namespace {

std::string_view source_name(model::EventType type) {
  using model::EventType;
  if (type == EventType::user_message) return "user";
  if (type == EventType::time_out) return "timeOut";
  return type == EventType::follow_up ? "followUp" : "inject";
}

// The entries that a session added to a lexicon. Their shape was checked before they were stored.
// Entries of a wrong shape are left out.
std::vector<lexicon::Entry> added_entries(const nlohmann::json& list) {
  std::vector<lexicon::Entry> entries;
  const auto texts = [](const nlohmann::json& value, const char* name) {
    std::vector<std::string> found;
    const nlohmann::json* items = find_member(value, name);
    if (items == nullptr || !items->is_array()) return found;
    for (const auto& item : *items) {
      if (item.is_string()) found.push_back(item.get<std::string>());
    }
    return found;
  };
  for (const auto& item : list) {
    const std::string* main = find_text(item, "main");
    if (main == nullptr) continue;
    entries.push_back({.main_keyphrase = *main,
                       .keyphrases = texts(item, "keyphrases"),
                       .slots = texts(item, "slots"),
                       .data = item.value("data", nlohmann::json())});
  }
  return entries;
}

// The ids of the lexicons with hits in `input.slots`.
std::set<std::string, std::less<>> lexicons_of_hits(const nlohmann::json& slots) {
  std::set<std::string, std::less<>> ids;
  for (const auto& hits : slots) {
    for (const auto& hit : hits) {
      if (const std::string* id = find_text(hit, "lexiconId")) ids.insert(*id);
    }
  }
  return ids;
}

// The names of the Flows' lexicons without repeats, and whether the first Flow has each.
std::vector<std::pair<std::string, bool>> lexicons_of(const std::vector<const Flow*>& flows) {
  std::vector<std::pair<std::string, bool>> lexicons;
  std::set<std::string_view> seen;
  for (const Flow* flow : flows) {
    for (const auto& name : flow->lexicons()) {
      if (seen.insert(name).second) lexicons.emplace_back(name, flow == flows.front());
    }
  }
  return lexicons;
}

std::size_t lexicon_hit_size(const lexicon::Hit& hit, std::size_t enough) {
  constexpr std::size_t members = 150;  // the bytes of the members' names and numbers
  return members + 2 * hit.entry->main_keyphrase.size() + hit.phrase->size() +
         model::json_size(hit.entry->data, enough);
}

void put_hit(nlohmann::json& slots, const std::string& slot, nlohmann::json hit) {
  auto& hits = slots[slot];
  if (!hits.is_array()) hits = nlohmann::json::array();
  hits.push_back(std::move(hit));
}

}  // namespace

// Each member is made when it is read, since a Flow reads few of them.
void Turn::complete_input(std::string_view name) {
  using nlohmann::json;
  struct Member {
    std::string_view name;
    json (*value)(const Turn&);
  };
  static constexpr Member members[] = {
      {"URLToken", [](const Turn& turn) -> json { return turn.input_.endpoint.url_token; }},
      {"channel", [](const Turn& turn) -> json { return turn.input_.endpoint.name; }},
      {"currentTime", [](const Turn& turn) -> json { return text::iso_time(turn.input_.now); }},
      {"data", [](const Turn& turn) -> json { return turn.event_data(); }},
      {"execution", [](const Turn& turn) -> json { return turn.executions_; }},
      {"inputId", [](const Turn& turn) -> json { return turn.input_.event.id; }},
      {"locale", [](const Turn& turn) -> json { return turn.wording_.locale; }},
      {"sessionId", [](const Turn& turn) -> json { return turn.input_.event.session.session_id; }},
      {"slots", [](const Turn&) -> json { return json::object(); }},
      {"source", [](const Turn& turn) -> json { return source_name(turn.input_.event.type); }},
      {"state", [](const Turn& turn) -> json { return turn.state_name(); }},
      {"text", [](const Turn& turn) -> json { return turn.input_text(); }},
      {"traceId", [](const Turn& turn) -> json { return turn.input_.event.trace_id; }},
      {"type",
       [](const Turn& turn) -> json { return turn.input_text().empty() ? "data" : "text"; }},
      {"userId", [](const Turn& turn) -> json { return turn.input_.event.session.user_id; }},
  };
  if (input_is_complete_) return;
  for (const auto& member : members) {
    if (!name.empty() && name != member.name) continue;
    if (!input_object_.contains(member.name)) input_object_[member.name] = member.value(*this);
  }
  input_is_complete_ = name.empty();
}

// Always an object, so that `!input.data.orderId` is true for an input without data.
nlohmann::json Turn::event_data() const {
  const auto& data = input_.event.data;
  return data.is_null() ? nlohmann::json::object() : data;
}

nlohmann::json& Turn::input_object() {
  complete_input();
  return input_object_;
}

const std::string& Turn::input_text() const {
  static const std::string none;
  if (const std::string* text = find_text(input_object_, "text")) return *text;
  const auto& said = input_.event.text;
  return input_is_complete_ || !said ? none : *said;
}

nlohmann::json& Turn::input_slots() {
  complete_input("slots");
  return input_object_["slots"];
}

void Turn::set_input_error(std::string_view code, std::string_view message, int status) {
  input_object_["error"] = {{"code", code}, {"message", message}, {"status", status}};
}

void Turn::set_state(std::string name) {
  state_ = std::move(name);
  input_object_["state"] = state_name();
}

Result<void> Turn::replace_input(std::string text, nlohmann::json data) {
  input_object_["type"] = text.empty() ? "data" : "text";
  input_object_["text"] = std::move(text);
  input_object_["data"] = data.is_null() ? nlohmann::json::object() : std::move(data);
  input_object_["slots"] = nlohmann::json::object();
  slots_filled_.reset();
  return find_slots({&input_.flow});
}

std::vector<const Flow*> Turn::entered_flows() const {
  std::vector<const Flow*> flows;
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    flows.push_back(frame->flow);
  }
  return flows;
}

Result<std::vector<std::shared_ptr<const lexicon::Lexicon>>> Turn::lexicon_of(
    const std::string& name) {
  std::vector<std::shared_ptr<const lexicon::Lexicon>> parts;
  auto found = input_.library->find_lexicon(name);
  if (!found && found.error().code == model::Errc::not_found) return parts;
  if (!found) return model::fail(found.error());
  const auto added = keyphrases_.find(name);
  // The lexicon is made for one search. That takes a step for some bytes.
  if (added != keyphrases_.end() &&
      budget_.step(model::json_size(*added, input_.limits.turn_steps) / 4)) {
    parts.push_back(
        std::make_shared<const lexicon::Lexicon>((*found)->id(), name, added_entries(*added)));
  }
  parts.push_back(std::move(*found));
  return parts;
}

Result<void> Turn::find_slots(const std::vector<const Flow*>& flows) {
  if (input_text().empty() || input_.library == nullptr) return {};
  const auto lexicons_to_search = lexicons_of(flows);
  if (lexicons_to_search.empty()) return {};
  const auto known = lexicons_of_hits(input_slots());
  std::vector<std::shared_ptr<const lexicon::Lexicon>> held;
  std::vector<const lexicon::Lexicon*> lexicons;
  std::set<const lexicon::Lexicon*> firsts;  // of the first Flow
  bool finds_more = false;
  for (const auto& [name, of_first] : lexicons_to_search) {
    auto parts = lexicon_of(name);
    if (!parts) return model::fail(parts.error());
    for (auto& part : *parts) {
      lexicons.push_back(part.get());
      if (of_first) firsts.insert(part.get());
      finds_more = finds_more || !known.contains(part->id());
      held.push_back(std::move(part));
    }
  }
  if (!finds_more) return {};
  // One search for all lexicons, because their hits may overlap.
  auto hits = lexicon::find_keyphrases(input_text(), lexicons, input_.limits.slot_hits, &budget_);
  std::stable_partition(hits.begin(), hits.end(),
                        [&](const lexicon::Hit& hit) { return firsts.contains(hit.lexicon); });
  for (const auto& hit : hits) {
    if (known.contains(hit.lexicon->id())) continue;
    // Counts the hit before the copy, because an entry's data may be large.
    const std::size_t size = lexicon_hit_size(hit, input_.limits.slot_bytes);
    if (!budget_.step(size / json_bytes_a_step)) break;
    for (const auto& slot : hit.slots()) {
      if (takes_hit(slot.size() + size)) put_hit(input_slots(), slot, to_json(hit));
    }
  }
  return {};
}

bool Turn::takes_hit(std::size_t bytes) {
  const Limits& limits = input_.limits;
  if (!slots_filled_) {
    const auto& slots = input_slots();
    slots_filled_ = Filled{};
    for (const auto& hits : slots) slots_filled_->hits += hits.size();
    slots_filled_->bytes = measure(slots, limits.slot_bytes);
  }
  Filled& filled = *slots_filled_;
  const bool taken = filled.hits < limits.slot_hits && filled.bytes + bytes <= limits.slot_bytes;
  if (taken) {
    ++filled.hits;
    filled.bytes += bytes;
  }
  if ((!taken || filled.hits == limits.slot_hits) && !std::exchange(slots_full_, true)) {
    log("the Flow '" + flow().name() + "': input.slots is full; it holds at most " +
        std::to_string(limits.slot_hits) + " hits and " + std::to_string(limits.slot_bytes) +
        " bytes, and further hits are left out");
  }
  return taken;
}

void Turn::add_slot(const std::string& slot, nlohmann::json hit) {
  if (takes_hit(slot.size() + model::json_size(hit, input_.limits.slot_bytes))) {
    put_hit(input_slots(), slot, std::move(hit));
  }
}

}  // namespace conversed::flows
