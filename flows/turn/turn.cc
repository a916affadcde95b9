#include "flows/turn/turn.h"

#include <algorithm>
#include <set>
#include <utility>

#include "flows/json_members.h"
#include "flows/lexicon/lexicon.h"
#include "flows/node_types.h"
#include "flows/turn/share.h"
#include "store/model/json.h"
#include "store/text/times.h"
#include "store/text/utf8.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_log_bytes = 1000;
constexpr std::size_t max_log_lines = 100;
// Walking through some bytes of a value takes a few ns, and copying them ten times that.
constexpr std::size_t json_bytes_a_step = 16;

// Whether the value nests no deeper than `most`. A scalar has depth 0. Recurses at most that deep.
bool nests_within(const nlohmann::json& value, std::size_t most) {
  if (!value.is_structured()) return true;
  return most > 0 && std::all_of(value.begin(), value.end(), [most](const nlohmann::json& part) {
           return nests_within(part, most - 1);
         });
}

constexpr std::size_t longest_noted_path = 100;

std::string_view noted_name(expression::Path::Root root) {
  return root == expression::Path::Root::context ? "context" : "profile";
}

// None: it is too large.
std::optional<std::string> noted_json(const nlohmann::json& value, std::size_t bytes) {
  if (bytes > model::TurnNotes::most_value_bytes) return std::nullopt;
  auto text = model::json_text(value);
  if (text.size() > model::TurnNotes::most_value_bytes) return std::nullopt;
  return text;
}

}  // namespace

Turn::Turn(TurnInput input)
    : input_(std::move(input)),
      budget_(input_.limits.turn_steps, input_.limits.turn_bytes, std::move(input_.is_overdue)) {
  frames_.push_back({&input_.flow, input_.flow_version});
  show_arguments();
  effects_.session = std::move(input_.session);
  context_.value = &effects_.session.context;
  context_.limit = input_.limits.context_bytes;
  profile_.limit = input_.limits.profile_bytes;
  scope_.input = &input_object_;
  scope_.complete_input = [this] { complete_input(); };
  scope_.context = &effects_.session.context;
  scope_.profile = &input_.profile.data;
  scope_.tokens = &input_.assets.tokens;
  scope_.now = input_.now;
  scope_.budget = &budget_;
  scope_.observer = input_.observer;
  // The event's id seeds all random choices, so a rerun makes the same ones.
  scope_.random = expression::Random(hash_of(input_.event.id));
}

// Few Flows read these members.
void Turn::complete_input() {
  if (std::exchange(input_is_complete_, true)) return;
  const auto& event = input_.event;
  input_object_["URLToken"] = input_.endpoint.url_token;
  input_object_["channel"] = input_.endpoint.name;
  input_object_["currentTime"] = text::iso_time(input_.now);
  input_object_["execution"] = executions_;
  input_object_["inputId"] = event.id;
  input_object_["sessionId"] = event.session.session_id;
  input_object_["traceId"] = event.trace_id;
  input_object_["userId"] = event.session.user_id;
}

nlohmann::json& Turn::input_object() {
  complete_input();
  return input_object_;
}

const std::string& Turn::input_text() const {
  static const std::string none;
  const std::string* text = find_text(input_object_, "text");
  return text == nullptr ? none : *text;
}

std::size_t Turn::measure(const nlohmann::json& value, std::size_t enough) {
  const std::size_t size = model::json_size(value, enough);
  // Pays afterwards, when the size is known. The limit of the value bounds it.
  budget_.step(size / json_bytes_a_step);
  return size;
}

Result<void> Turn::check_budget() const {
  const auto& limits = input_.limits;
  switch (budget_.lack()) {
    case expression::TurnBudget::Lack::nothing:
      return {};
    case expression::TurnBudget::Lack::steps:
      return exceeded("the Turn takes more than ", limits.turn_steps,
                      " steps; let its expressions do less, or add a Node that waits for an input");
    case expression::TurnBudget::Lack::bytes:
      return exceeded("the Turn makes more than ", limits.turn_bytes,
                      " bytes of values; let its expressions copy less");
    case expression::TurnBudget::Lack::time:
      break;
  }
  return failure(model::Errc::too_large, "the Turn takes too long");
}

Result<void> Turn::output(std::string text, nlohmann::json data) {
  if (effects_.outputs.size() >= input_.limits.outputs_per_turn) {
    return exceeded("more than ", input_.limits.outputs_per_turn, " outputs in one Turn");
  }
  constexpr std::size_t max_data_depth = 64;
  if (!nests_within(data, max_data_depth)) {
    return failure(model::Errc::too_large, "the data of an output is nested too deeply");
  }
  const std::size_t limit = input_.limits.output_bytes;
  if (text.size() > limit || text.size() + measure(data, limit) > limit) {
    return exceeded("an output of more than ", limit, " bytes");
  }
  model::Output output;
  output.id = execution_.input_id + '-' + std::to_string(++outputs_made_);
  output.seq = ++effects_.session.last_output_seq;
  output.input_id = execution_.input_id;
  output.text = std::move(text);
  output.data = std::move(data);
  output.trace_id = execution_.trace_id;
  output.tracestate = execution_.tracestate;
  output.created_at = input_.now;
  effects_.outputs.push_back(std::move(output));
  return {};
}

Turn::Root& Turn::root(expression::Path::Root which) {
  if (which == expression::Path::Root::context) return context_;
  if (!effects_.profile) {
    // The first write. Until now the stored profile was read in place.
    effects_.profile = input_.profile;
    profile_.value = &effects_.profile->data;
    scope_.profile = profile_.value;
  }
  return profile_;
}

Result<void> Turn::check_size(Root& root, std::string_view name, std::size_t added) {
  root.grown += added;
  // A write may have replaced a value, so the sum may be too large. The root is measured again only
  // if the sum exceeds the limit.
  if (root.is_measured && root.measured + root.grown <= root.limit) return {};
  root.measured = measure(*root.value, root.limit);
  root.is_measured = true;
  root.grown = 0;
  if (root.measured <= root.limit) return {};
  return exceeded("the " + std::string(name) + " grows beyond ", root.limit, " bytes");
}

Result<void> Turn::assign(const expression::Path& path, nlohmann::json value) {
  // Each step of the path has a dot or a bracket. Counting these may overestimate the depth.
  const auto steps = static_cast<std::size_t>(std::count_if(
      path.text().begin(), path.text().end(), [](char c) { return c == '.' || c == '['; }));
  const std::size_t depth = input_.limits.value_depth;
  if (steps > depth || !nests_within(value, depth - steps)) {
    return exceeded(path.text() + " would be nested deeper than ", depth, "");
  }
  Root& target = root(path.root());
  const std::size_t bytes = measure(value, target.limit);
  note_write(path, bytes, &value);
  if (auto done = path.assign(*target.value, std::move(value)); !done) {
    return failure(done.error().code, done.error().message);
  }
  if (path.root() == expression::Path::Root::profile) choose_locale();
  return check_size(target, noted_name(path.root()), path.text().size() + bytes);
}

Result<void> Turn::check_assign(const expression::Path& path, nlohmann::json value) {
  const bool is_profile = path.root() == expression::Path::Root::profile;
  const bool writes_profile = effects_.profile.has_value();
  const auto written = written_.size();
  Root& target = root(path.root());
  (void)measure(*target.value, target.limit);  // pays for the copy
  nlohmann::json before = *target.value;
  auto notes = effects_.notes;
  auto done = assign(path, std::move(value));
  *target.value = std::move(before);
  target.is_measured = false;
  if (is_profile && !writes_profile) {
    // The stored profile is read in place again, and the Turn does not write it.
    effects_.profile.reset();
    profile_.value = nullptr;
    scope_.profile = &input_.profile.data;
  }
  if (is_profile) choose_locale();
  effects_.notes = std::move(notes);
  written_.erase(written_.begin() + static_cast<std::ptrdiff_t>(written), written_.end());
  return done;
}

void Turn::note_step(std::string step) {
  constexpr std::size_t usual_nodes = 16;
  auto& nodes = effects_.notes.nodes;
  if (nodes.empty()) nodes.reserve(usual_nodes);
  if (nodes.size() < model::TurnNotes::most_nodes) nodes.emplace_back();
  nodes.back() = of_its_flow(std::move(step));
}

std::string Turn::of_its_flow(std::string step) const {
  return &flow() == &input_.flow ? std::move(step) : flow().name() + ": " + step;
}

model::TurnNotes::Change* Turn::note_change(std::string_view path, std::size_t bytes,
                                            const nlohmann::json* value) {
  auto& changes = effects_.notes.changes;
  const auto shown = text::cut(path, longest_noted_path);
  const auto known = std::ranges::find(changes, shown, &model::TurnNotes::Change::path);
  const bool is_new = known == changes.end();
  if (is_new && changes.size() == model::TurnNotes::most_changes) {
    ++effects_.notes.left_out;
    return nullptr;
  }
  if (is_new) {
    changes.emplace_back().path = shown;
  } else {
    std::rotate(known, known + 1, changes.end());
  }
  auto& change = changes.back();
  change.bytes = bytes;
  change.removed = value == nullptr;
  change.value = value == nullptr ? std::nullopt : noted_json(*value, bytes);
  return is_new ? &change : nullptr;
}

void Turn::note_before(model::TurnNotes::Change& change, const Root& root,
                       const nlohmann::json* before) {
  change.bytes_before = before == nullptr ? 0 : measure(*before, root.limit);
  if (before != nullptr) change.before = noted_json(*before, *change.bytes_before);
}

void Turn::note_write(const expression::Path& path, std::size_t bytes,
                      const nlohmann::json* value) {
  const Root& of = root(path.root());
  const auto* const before = path.find(*of.value);
  if (before == value || (before != nullptr && value != nullptr && *before == *value)) return;
  auto* const change = note_change(path.text(), bytes, value);
  if (change == nullptr) return;
  const bool is_reset = std::ranges::any_of(effects_.notes.changes, [&](const auto& each) {
    return each.path == noted_name(path.root());
  });
  const bool is_known = !is_reset && path.text().size() <= longest_noted_path &&
                        std::ranges::none_of(written_, [&](const expression::Path& each) {
                          return each.may_overlap(path);
                        });
  written_.push_back(path);
  if (is_known) note_before(*change, of, before);
}

void Turn::note_reset(expression::Path::Root which) {
  auto* const change = note_change(noted_name(which), 0, nullptr);
  const bool is_known =
      change != nullptr && std::ranges::count(written_, which, &expression::Path::root) == 0;
  if (is_known) note_before(*change, root(which), root(which).value);
}

void Turn::erase(const expression::Path& path) {
  note_write(path, 0, nullptr);
  path.erase(*root(path.root()).value);
  if (path.root() == expression::Path::Root::profile) choose_locale();
}

void Turn::reset_context() {
  note_reset(expression::Path::Root::context);
  effects_.session.context = nlohmann::json::object();
  context_.is_measured = false;
}

void Turn::reset_profile() {
  note_reset(expression::Path::Root::profile);
  Root& profile = root(expression::Path::Root::profile);
  *profile.value = nlohmann::json::object();
  profile.is_measured = false;
  choose_locale();
}

void Turn::choose_locale() {
  constexpr std::size_t names_a_step = 16;
  const auto& known = input_.assets.locales;
  budget_.step(1 + known.size() / names_a_step);
  const std::string* chosen = find_text(*scope_.profile, "locale");
  std::string_view locale = matching_locale(chosen == nullptr ? "" : *chosen, known);
  if (locale.empty()) locale = matching_locale(locale_, known);
  const std::string_view primary = known.empty() ? std::string_view() : known.front();
  wording_ = {.locale = locale.empty() ? primary : locale, .primary = primary};
  input_object_["locale"] = wording_.locale;
}

void Turn::set_input_error(std::string_view code, std::string_view message, int status) {
  input_object_["error"] = {{"code", code}, {"message", message}, {"status", status}};
}

// Two Flows may have Nodes with the same address. A Flow's name contains no line feed.
std::string Turn::memory_key(const std::string& flow_name, const std::string& address) const {
  const bool own = !input_.is_follow_up_flow && flow_name == input_.flow.name();
  return own ? address : flow_name + '\n' + address;
}

Result<nlohmann::json*> Turn::memory() {
  const std::string key = memory_key(flow().name(), here().address);
  const auto found = memory_.find(key);
  if (found != memory_.end()) return &*found;
  if (memory_.size() >= input_.limits.memory_keys) {
    return exceeded("the session remembers something of more than ", input_.limits.memory_keys,
                    " Nodes");
  }
  return &memory_[key];
}

void Turn::take_input() {
  if (!untaken_.empty() && untaken_.back()["n"] == executions_) untaken_.erase(untaken_.size() - 1);
}

Turn::Loop* Turn::loop() {
  auto& loops = frames_.back().loops;
  const auto found = std::ranges::find(loops, top().at, &Loop::node);
  return found == loops.end() ? nullptr : &*found;
}

Result<void> Turn::begin_loop(nlohmann::json list) {
  if (auto good = check_kept(list); !good) return good;
  frames_.back().loops.push_back({top().at, 0, std::move(list)});
  return {};
}

Result<void> Turn::check_kept(const nlohmann::json& value) {
  const Limits& limits = input_.limits;
  if (!nests_within(value, limits.value_depth)) {
    return exceeded("a value is nested deeper than ", limits.value_depth, "");
  }
  std::size_t bytes = measure(value, limits.frame_bytes);
  for (const auto& frame : frames_) {
    for (const auto& each : frame.loops) bytes += measure(each.list, limits.frame_bytes);
    bytes += measure(frame.arguments, limits.frame_bytes);
  }
  if (bytes <= limits.frame_bytes) return {};
  return exceeded("the lists of loops and the arguments of Flows take more than ",
                  limits.frame_bytes, " bytes");
}

void Turn::set_state(std::string name) {
  state_ = std::move(name);
  input_object_["state"] = state_.empty() ? default_state : state_;
}

Result<void> Turn::replace_input(std::string text, nlohmann::json data) {
  input_object_["type"] = text.empty() ? "data" : "text";
  input_object_["text"] = std::move(text);
  input_object_["data"] = data.is_null() ? nlohmann::json::object() : std::move(data);
  input_object_["slots"] = nlohmann::json::object();
  slots_filled_.reset();
  return find_slots({&input_.flow});
}

namespace {

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
  const auto known = lexicons_of_hits(input_object_["slots"]);
  std::vector<std::shared_ptr<const lexicon::Lexicon>> held;
  std::vector<const lexicon::Lexicon*> lexicons;
  std::set<const lexicon::Lexicon*> firsts;  // of the first Flow
  bool finds_more = false;
  for (const auto& [name, of_first] : lexicons_of(flows)) {
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
      if (takes_hit(slot.size() + size)) put_hit(input_object_["slots"], slot, to_json(hit));
    }
  }
  return {};
}

bool Turn::takes_hit(std::size_t bytes) {
  const Limits& limits = input_.limits;
  if (!slots_filled_) {
    const auto& slots = input_object_["slots"];
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

Result<void> Turn::add_keyphrase(const std::string& lexicon, nlohmann::json entry) {
  constexpr std::size_t max_entry_bytes = 4096;
  if (!nests_within(entry, input_.limits.value_depth) ||
      measure(entry, max_entry_bytes) > max_entry_bytes) {
    return exceeded("a keyphrase with its synonyms and data is larger than ", max_entry_bytes,
                    " bytes");
  }
  std::size_t known = 0;
  for (const auto& list : keyphrases_) known += list.size();
  auto& list = keyphrases_[lexicon];
  if (!list.is_array()) list = nlohmann::json::array();
  const auto same = std::ranges::find_if(
      list, [&](const nlohmann::json& item) { return item["main"] == entry["main"]; });
  if (same != list.end()) {
    *same = std::move(entry);
    return {};
  }
  if (known >= input_.limits.keyphrases) {
    return exceeded("the session adds more than ", input_.limits.keyphrases,
                    " keyphrases to lexicons");
  }
  list.push_back(std::move(entry));
  return {};
}

void Turn::add_slot(const std::string& slot, nlohmann::json hit) {
  if (takes_hit(slot.size() + model::json_size(hit, input_.limits.slot_bytes))) {
    put_hit(input_object_["slots"], slot, std::move(hit));
  }
}

Result<void> Turn::follow_up(FollowUpWish wish) {
  constexpr std::size_t most = 20;
  if (++follow_ups_made_ > std::int64_t{most}) {
    return exceeded("more than ", most, " follow-ups in one execution");
  }
  if (wish.text.size() + measure(wish.data, input_.limits.output_bytes) >
      input_.limits.output_bytes) {
    return exceeded("a follow-up of more than ", input_.limits.output_bytes, " bytes");
  }
  if (!nests_within(wish.data, input_.limits.value_depth)) {
    return failure(model::Errc::too_large, "the data of a follow-up is nested too deeply");
  }
  follow_ups_settled_ = true;
  const auto& journey = input_.assets.journey;
  model::FollowUp made;
  made.id = execution_.input_id + "-f" + std::to_string(follow_ups_made_);
  made.session = effects_.session.key;
  made.trace_id = execution_.trace_id;
  made.tracestate = execution_.tracestate;
  made.due_at = input_.now + wish.after;
  if (journey) made.due_at = past_quiet_hours(journey->quiet_hours, made.due_at);
  if (wish.expires_after) made.plan.expires_at = input_.now + *wish.expires_after;
  made.plan.flow_id = std::move(wish.flow_id);
  made.text = std::move(wish.text);
  made.data = std::move(wish.data);
  effects_.follow_ups.push_back(std::move(made));
  return {};
}

void Turn::cancel_follow_ups() {
  follow_ups_settled_ = true;
  effects_.follow_ups_cancelled = true;
  effects_.follow_ups.clear();
}

std::size_t Turn::random_below(std::size_t bound) {
  const auto drawn = static_cast<std::size_t>(scope_.random.next() * static_cast<double>(bound));
  return std::min(drawn, bound - 1);
}

double Turn::fixed_draw(const std::string& name) const {
  return flows::fixed_draw(effects_.session.key, {flow().name(), here().address, name});
}

std::string_view Turn::set_branch() const {
  if (input_.branches == nullptr) return {};
  const auto found = input_.branches->find(here().address);
  return found == input_.branches->end() ? std::string_view() : found->second;
}

void Turn::note_branch(const std::string& name) {
  auto& branches = effects_.notes.branches;
  auto chosen = of_its_flow(here().address + " = " + name);
  const bool is_noted = std::ranges::find(branches, chosen) != branches.end();
  if (!is_noted && branches.size() < model::TurnNotes::most_branches) {
    branches.push_back(std::move(chosen));
  }
  if (input_.observer != nullptr) {
    input_.observer->evaluated("branch", Result<nlohmann::json>(nlohmann::json(name)));
  }
}

void Turn::log(std::string line) {
  if (effects_.log.size() >= max_log_lines) return;
  line.resize(text::cut(line, max_log_bytes).size());
  effects_.log.push_back(std::move(line));
}

tl::unexpected<model::Error> Turn::failure(model::Errc code, std::string_view message) const {
  std::string text = "Flow '" + flow().name() + "'";
  if (top().at != end_of_flow) {
    text += ", Node " + here().address + " (" + std::string(here().type->name) + ")";
  }
  return model::fail(code, text + ": " + std::string(message));
}

tl::unexpected<model::Error> Turn::exceeded(std::string_view before, std::size_t limit,
                                            std::string_view after) const {
  return failure(model::Errc::too_large,
                 std::string(before) + std::to_string(limit) + std::string(after));
}

// A Node overrides the functions that its `awaits` names. The Turn checks `awaits` first, so only a
// defect of a Node type reaches these defaults.
Result<Step> Node::on_input(Turn& turn) const {
  return turn.failure(model::Errc::internal, "takes no input");
}

Result<Step> Node::on_call_result(Turn& turn, const model::CallResult&) const {
  return turn.failure(model::Errc::internal, "takes no result of a call");
}

Result<Step> Node::on_timer(Turn& turn) const {
  return turn.failure(model::Errc::internal, "takes no timer");
}

Result<Step> Node::on_time_out(Turn& turn) const {
  return turn.failure(model::Errc::internal, "takes no time-out");
}

// In a newer version another Node may stand where one entered the Flow. ExecuteFlow's takes the
// value.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Result<void> Node::on_return(Turn&, nlohmann::json) const {
  return {};
}

}  // namespace conversed::flows
