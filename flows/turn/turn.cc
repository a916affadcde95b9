#include "flows/turn/turn.h"

#include <algorithm>
#include <utility>

#include "flows/json_members.h"
#include "flows/node_types.h"
#include "flows/turn/share.h"
#include "store/model/json.h"
#include "store/text/utf8.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_log_bytes = 1000;
constexpr std::size_t max_log_lines = 100;

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
  scope_.complete_input = [this](std::string_view name) { complete_input(name); };
  scope_.context = &effects_.session.context;
  scope_.profile = &input_.profile.data;
  scope_.tokens = &input_.assets.tokens;
  scope_.now = input_.now;
  scope_.budget = &budget_;
  scope_.observer = input_.observer;
  // The event's id seeds all random choices, so a rerun makes the same ones.
  scope_.random = expression::Random(hash_of(input_.event.id));
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

void Turn::note_node() {
  constexpr std::size_t usual_bytes = 256;
  auto& notes = effects_.notes;
  if (notes.nodes.empty()) notes.nodes.reserve(usual_bytes);
  if (notes.nodes_run > model::TurnNotes::most_nodes) {
    notes.nodes.pop_back();  // the last line feed
    notes.nodes.resize(notes.nodes.rfind('\n') + 1);
  }
  append_here(notes.nodes);
  notes.nodes += '\n';
}

void Turn::append_here(std::string& text) const {
  if (&flow() != &input_.flow) text.append(flow().name()).append(": ");
  text += here().address;
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
  if (const auto made = input_object_.find("locale"); made != input_object_.end()) {
    *made = wording_.locale;
  }
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
  std::string chosen;
  append_here(chosen);
  chosen += " = " + name;
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
