#include "daemon/ctl/files/flow_replay.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "daemon/ctl/output/output.h"
#include "daemon/ctl/output/screen.h"
#include "daemon/ctl/output/table.h"
#include "flows/bundle/loader.h"
#include "store/model/json.h"
#include "store/text/quantity.h"
#include "store/text/times.h"
#include "store/text/utf8.h"

namespace conversed::ctl {
namespace {

using flows::tools::Exchange;
using flows::tools::Replay;
using flows::tools::Said;
using flows::tools::Stage;
using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

constexpr std::size_t most_shown_exchanges = 20;  // of one session
constexpr std::size_t narrowest_column = 20;

json said_json(const std::vector<Said>& all) {
  auto list = json::array();
  for (const auto& said : all) list.push_back({{"text", said.text}, {"data", said.data}});
  return list;
}

json text_or_null(const std::string& text) {
  return text.empty() ? json() : json(text);
}

json exchange_json(const Exchange& exchange) {
  return {{"inputId", exchange.input_id},
          {"input", exchange.input},
          {"atMs", model::to_unix_ms(exchange.at)},
          {"differs", exchange.differs()},
          {"recorded", said_json(exchange.recorded)},
          {"replayed", said_json(exchange.replayed)},
          {"recordedFailure", text_or_null(exchange.recorded_failure)},
          {"replayedFailure", text_or_null(exchange.replayed_failure)},
          {"note", text_or_null(exchange.note)}};
}

// The lines of one side of an exchange.
std::vector<std::string> lines_of(const std::vector<Said>& all, const std::string& failure) {
  std::vector<std::string> lines;
  for (const auto& said : all) {
    auto line = "< " + said.text;
    if (!said.data.is_null()) line += (said.text.empty() ? "" : " ") + model::json_text(said.data);
    lines.push_back(std::move(line));
  }
  if (!failure.empty()) lines.push_back("! the Turn failed: " + failure);
  return lines;
}

// A table with the two sides of a conversation.
class SideBySide {
 public:
  SideBySide() : width_(width()) {}

  void add(const Exchange& exchange) {
    add("=", exchange.input, exchange.input);
    const auto recorded = lines_of(exchange.recorded, exchange.recorded_failure);
    const auto replayed = lines_of(exchange.replayed, exchange.replayed_failure);
    for (std::size_t i = 0; i < std::max(recorded.size(), replayed.size()); ++i) {
      const std::string left = i < recorded.size() ? recorded[i] : "";
      const std::string right = i < replayed.size() ? replayed[i] : "";
      const bool both_failed = left.starts_with('!') && right.starts_with('!');
      add(left == right || both_failed || !exchange.differs() ? "=" : "!=", left, right);
    }
    if (!exchange.note.empty()) add("!=", "", "(" + exchange.note + ")");
  }
  void print() const { table_.print(""); }

 private:
  // Of a column. None: a file takes lines of any length.
  static std::optional<std::size_t> width() {
    const auto shown = screen();
    if (!shown.is_terminal) return std::nullopt;
    return std::max(narrowest_column,
                    (shown.columns - std::min<std::size_t>(shown.columns, 8)) / 2);
  }

  void add(const char* mark, std::string_view left, std::string_view right) {
    for (bool is_first = true; is_first || !left.empty() || !right.empty(); is_first = false) {
      table_.add({Cell(is_first ? mark : " "), part_of(left), part_of(right)});
    }
  }

  // Takes the text's next line.
  Cell part_of(std::string_view& text) const {
    const auto part = width_ ? text::cut(text, *width_) : text;
    text.remove_prefix(part.size());
    return {Cell::Kind::id, std::string(part)};  // never shortened
  }

  const std::optional<std::size_t> width_;
  Table table_{{"", "RECORDED", "REPLAYED"}};
};

}  // namespace

Result<model::Bundle> replayed_bundle(const std::string& text, const std::string& path) {
  const auto value_of = [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
  auto bundle =
      flows::load_bundle(text, path, value_of, {.variables = flows::Variables::may_be_missing});
  if (!bundle) return fail(Errc::invalid_argument, flows::to_string(bundle.error()));
  return *std::move(bundle);
}

FlowReplay::FlowReplay(model::Bundle bundle, std::string flow, std::string on)
    : bundle_(std::move(bundle)), flow_(std::move(flow)), on_(std::move(on)) {}

// A bundle without Endpoints has only Flows to try.
Result<Stage> FlowReplay::stage_for(const flows::tools::Recording& of) {
  auto found = stages_.find(of.endpoint);
  if (found == stages_.end()) {
    const bool has_endpoints = !bundle_.endpoints.empty();
    auto stage = has_endpoints ? flows::tools::stage_of(bundle_, of.endpoint, "")
                               : flows::tools::stage_of(bundle_, "", flow_);
    if (stage) stage->endpoint.name = of.endpoint;
    found = stages_.emplace(of.endpoint, std::move(stage)).first;
  }
  auto stage = found->second;
  if (stage) stage->endpoint.url_token = of.url_token;
  return stage;
}

Result<void> FlowReplay::take(const json& page, std::size_t most) {
  const auto project = page.find("projectId");
  const auto items = page.find("items");
  const auto read_at = page.find("readAtMs");
  if (project == page.end() || !project->is_string() || items == page.end() || !items->is_array() ||
      read_at == page.end() || !read_at->is_number_integer()) {
    return fail(Errc::invalid_argument, "the page of recordings has another shape");
  }
  for (const auto& item : *items) {
    if (sessions_ == most) break;
    const auto recording = flows::tools::recording_from(item, project->get<std::string>());
    if (!recording) return fail(recording.error());
    replay(*recording, model::from_unix_ms(read_at->get<std::int64_t>()));
  }
  return {};
}

void FlowReplay::replay(const flows::tools::Recording& recording, model::Timestamp until) {
  ++sessions_;
  if (recording.endpoint.empty()) {
    ++reasons_["its Endpoint is gone"];
    return;
  }
  const auto stage = stage_for(recording);
  if (!stage) {
    ++reasons_[stage.error().message];
    return;
  }
  auto replayed = flows::tools::replay(*stage, recording, until);
  switch (replayed.outcome) {
    case Replay::Outcome::same:
      ++same_;
      return;
    case Replay::Outcome::not_comparable:
      ++reasons_[replayed.reason];
      return;
    case Replay::Outcome::different:
      differences_.push_back({recording.key, recording.endpoint, std::move(replayed)});
  }
}

json FlowReplay::to_json() const {
  auto reasons = json::array();
  for (const auto& [reason, sessions] : reasons_) {
    reasons.push_back({{"reason", reason}, {"sessions", sessions}});
  }
  auto differences = json::array();
  for (const auto& each : differences_) {
    auto exchanges = json::array();
    for (auto i = each.replay.first; i < each.replay.exchanges.size(); ++i) {
      exchanges.push_back(exchange_json(each.replay.exchanges[i]));
    }
    differences.push_back({{"endpoint", each.endpoint},
                           {"userId", each.key.user_id},
                           {"sessionId", each.key.session_id},
                           {"same", each.replay.first},
                           {"exchanges", std::move(exchanges)}});
  }
  return {{"flow", flow_},
          {"on", on_},
          {"sessions", sessions_},
          {"same", same_},
          {"different", differences_.size()},
          {"notComparable", sessions_ - same_ - differences_.size()},
          {"reasons", std::move(reasons)},
          {"differences", std::move(differences)}};
}

void FlowReplay::print(std::size_t most) const {
  if (sessions_ == 0) {
    return say("No recorded sessions of " + flow_ +
               ". Receipts have the recordings; the setting retention.receipts keeps them.");
  }
  say(text::counted(static_cast<std::int64_t>(sessions_), "session") + " of " + flow_ +
      " replayed on " + on_ + ": " + std::to_string(same_) + " same, " +
      std::to_string(differences_.size()) + " different, " +
      std::to_string(sessions_ - same_ - differences_.size()) + " not comparable");
  for (const auto& [reason, sessions] : reasons_) {
    say("not comparable: " + std::to_string(sessions) + ": " + reason);
  }
  for (std::size_t i = 0; i < std::min(most, differences_.size()); ++i) {
    const auto& [key, endpoint, done] = differences_[i];
    say("");
    say("user " + key.user_id + ", session " + key.session_id + ", Endpoint " + endpoint +
        ", from event " + std::to_string(done.first + 1) + " on (" +
        text::iso_time(done.exchanges[done.first].at) + ")");
    SideBySide table;
    const auto end = std::min(done.exchanges.size(), done.first + most_shown_exchanges);
    for (auto k = done.first; k < end; ++k) table.add(done.exchanges[k]);
    table.print();
    if (const auto left = done.exchanges.size() - end; left > 0) {
      say("and " + text::counted(static_cast<std::int64_t>(left), "event") + " more");
    }
  }
  if (differences_.size() > most) {
    say("");
    say("and " + std::to_string(differences_.size() - most) +
        " more sessions that differ; --show shows them, and --json has all");
  }
}

}  // namespace conversed::ctl
