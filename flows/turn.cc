#include "flows/turn.h"

#include <algorithm>
#include <utility>

#include "flows/node_types.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_log_bytes = 1000;
constexpr std::size_t max_log_lines = 100;

// Whether the value nests no deeper than `most`; a scalar has depth 0. Goes no deeper itself.
bool nests_within(const nlohmann::json& value, std::size_t most) {
  if (!value.is_structured()) return true;
  return most > 0 && std::all_of(value.begin(), value.end(), [most](const nlohmann::json& part) {
           return nests_within(part, most - 1);
         });
}

// Roughly the bytes of the value as JSON text; counting stops at `enough`. The caller has seen to
// it that the value nests within bounds.
std::size_t json_size(const nlohmann::json& value, std::size_t enough) {
  constexpr std::size_t scalar_size = 8;
  if (value.is_string()) return value.get_ref<const std::string&>().size() + 2;
  if (!value.is_structured()) return scalar_size;
  std::size_t size = 2;
  if (value.is_array()) {
    for (const auto& item : value) {
      size += json_size(item, enough) + 1;
      if (size > enough) break;
    }
    return size;
  }
  for (const auto& [name, member] : value.get_ref<const nlohmann::json::object_t&>()) {
    size += name.size() + 4 + json_size(member, enough);
    if (size > enough) break;
  }
  return size;
}

}  // namespace

Turn::Turn(TurnInput input) : input_(std::move(input)) {
  effects_.session = std::move(input_.session);
  context_.value = &effects_.session.context;
  context_.limit = input_.limits.context_bytes;
  profile_.limit = input_.limits.profile_bytes;
  scope_.input = &input_object_;
  scope_.context = &effects_.session.context;
  scope_.profile = &input_.profile.data;
  scope_.tokens = &input_.assets.tokens;
  scope_.now = input_.now;
  // FNV-1a of the event's id: all that happens by chance in a Turn hangs on this, so that a rerun
  // comes to the same.
  std::uint64_t seed = 0xcbf29ce484222325;
  for (const char c : input_.event.id) {
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  scope_.random = expression::Random(seed);
}

const std::string& Turn::input_text() const {
  static const std::string none;
  const auto text = input_object_.find("text");
  return text != input_object_.end() && text->is_string() ? text->get_ref<const std::string&>()
                                                          : none;
}

Result<void> Turn::output(std::string text, nlohmann::json data) {
  if (effects_.outputs.size() >= input_.limits.outputs_per_turn) {
    return failure(
        model::Errc::too_large,
        "more than " + std::to_string(input_.limits.outputs_per_turn) + " outputs in one Turn");
  }
  constexpr std::size_t max_data_depth = 64;
  if (!nests_within(data, max_data_depth)) {
    return failure(model::Errc::too_large, "the data of an output is nested too deeply");
  }
  const std::size_t limit = input_.limits.output_bytes;
  if (text.size() > limit || text.size() + json_size(data, limit) > limit) {
    return failure(model::Errc::too_large,
                   "an output of more than " + std::to_string(limit) + " bytes");
  }
  model::Output output;
  output.id = execution_.input_id + '-' + std::to_string(++outputs_made_);
  output.seq = ++effects_.session.last_output_seq;
  output.input_id = execution_.input_id;
  output.text = std::move(text);
  output.data = std::move(data);
  output.trace_id = execution_.trace_id;
  output.created_at = input_.now;
  effects_.outputs.push_back(std::move(output));
  return {};
}

Turn::Root& Turn::root(expression::Path::Root which) {
  if (which == expression::Path::Root::context) return context_;
  if (!effects_.profile) {
    // The first write: until now the stored profile was read in place.
    effects_.profile = input_.profile;
    profile_.value = &effects_.profile->data;
    scope_.profile = profile_.value;
  }
  return profile_;
}

Result<void> Turn::check_size(Root& root, std::string_view name, std::size_t added) {
  root.grown += added;
  // What was written may have replaced something: only when the sum says "too large" is it certain
  // enough to walk through the whole again.
  if (root.is_measured && root.measured + root.grown <= root.limit) return {};
  root.measured = json_size(*root.value, root.limit);
  root.is_measured = true;
  root.grown = 0;
  if (root.measured <= root.limit) return {};
  return failure(model::Errc::too_large, "the " + std::string(name) + " grows beyond " +
                                             std::to_string(root.limit) + " bytes");
}

Result<void> Turn::assign(const expression::Path& path, nlohmann::json value) {
  // Each step of the path is a dot or a bracket; counting them errs on the safe side only.
  const auto steps = static_cast<std::size_t>(std::count_if(
      path.text().begin(), path.text().end(), [](char c) { return c == '.' || c == '['; }));
  const std::size_t depth = input_.limits.value_depth;
  if (steps > depth || !nests_within(value, depth - steps)) {
    return failure(model::Errc::too_large,
                   path.text() + " would be nested deeper than " + std::to_string(depth));
  }
  Root& target = root(path.root());
  const std::size_t added = path.text().size() + json_size(value, target.limit);
  if (auto done = path.assign(*target.value, std::move(value)); !done) {
    return failure(done.error().code, done.error().message);
  }
  const bool in_context = path.root() == expression::Path::Root::context;
  return check_size(target, in_context ? "context" : "profile", added);
}

void Turn::erase(const expression::Path& path) {
  path.erase(*root(path.root()).value);
}

void Turn::reset_context() {
  effects_.session.context = nlohmann::json::object();
  context_.is_measured = false;
}

void Turn::set_input_error(std::string_view code, std::string_view message, int status) {
  input_object_["error"] = {{"code", code}, {"message", message}, {"status", status}};
}

Result<void> Turn::follow_up(FollowUpWish wish) {
  constexpr std::int64_t most = 20;
  if (++follow_ups_made_ > most) {
    return failure(model::Errc::too_large,
                   "more than " + std::to_string(most) + " follow-ups in one execution");
  }
  if (wish.text.size() + json_size(wish.data, input_.limits.output_bytes) >
      input_.limits.output_bytes) {
    return failure(
        model::Errc::too_large,
        "a follow-up of more than " + std::to_string(input_.limits.output_bytes) + " bytes");
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
  made.due_at = input_.event.accepted_at + wish.after;
  if (journey) made.due_at = past_quiet_hours(journey->quiet_hours, made.due_at);
  if (wish.expires_after) made.plan.expires_at = input_.event.accepted_at + *wish.expires_after;
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

bool Turn::first_pass() {
  return once_marks_.emplace(here().address, true).second;
}

std::size_t Turn::random_below(std::size_t bound) {
  const auto drawn = static_cast<std::size_t>(scope_.random.next() * static_cast<double>(bound));
  return std::min(drawn, bound - 1);
}

void Turn::log(std::string line) {
  if (effects_.log.size() >= max_log_lines) return;
  if (line.size() > max_log_bytes) {
    // Not within a character: its first byte is the last that is no continuation.
    std::size_t end = max_log_bytes;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
    line.resize(end);
  }
  effects_.log.push_back(std::move(line));
}

tl::unexpected<model::Error> Turn::failure(model::Errc code, std::string_view message) const {
  std::string text = "Flow '" + input_.flow.name() + "'";
  if (at_ != end_of_flow) {
    text += ", Node " + here().address + " (" + std::string(here().type->name) + ")";
  }
  return model::fail(code, text + ": " + std::string(message));
}

}  // namespace conversed::flows
