#include "flows/tools/check.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "flows/bundle/loader.h"
#include "flows/fields.h"
#include "flows/flow.h"
#include "flows/node_types.h"
#include "flows/tools/ways.h"
#include "flows/turn/turn.h"

namespace conversed::flows::tools {
namespace {

using Names = std::set<std::string, std::less<>>;
using Kind = Flow::Use::Kind;

// The members of `input`; docs/flows/expressions.md lists them.
constexpr std::array<std::string_view, 17> input_members{
    "URLToken",  "answer",  "channel",   "currentTime", "data",   "error",
    "execution", "inputId", "sessionId", "slots",       "source", "state",
    "text",      "traceId", "tool",      "type",        "userId"};

// The first name of a path: `cart` of `context.cart.items[0]`.
std::string first_name(std::string_view path) {
  const auto root = path.find('.');
  if (root == std::string_view::npos) return {};
  const auto rest = path.substr(root + 1);
  return std::string(rest.substr(0, rest.find_first_of(".[")));
}

class Checker {
 public:
  Checker(const Located& root, Report& report) : root_(root), report_(report) {}

  void check() {
    compile_flows();
    std::vector<const Flow*> all;
    for (const auto& flow : flows_) {
      collect(*flow);
      all.push_back(flow.get());
    }
    Names run;  // by Endpoints and the journey
    const auto add_flow_of = [&](const Located* part) {
      const Located* flow = part == nullptr ? nullptr : part->find("flow");
      if (flow != nullptr && flow->is_text()) run.insert(flow->text());
    };
    for (const auto& endpoint : items("endpoints")) add_flow_of(&endpoint);
    if (const Located* proactive = root_.find("proactive")) {
      add_flow_of(proactive->find("journey"));
    }
    const auto reach = reach_of(all, run);
    for (std::size_t i = 0; i < all.size(); ++i) {
      check_ways(*all[i], reach[i]);
      check_names(*all[i]);
    }
    check_unused("connections", "Connection", used_[Kind::connection]);
    check_unused("knowledgeStores", "knowledge store", used_[Kind::knowledge]);
    Names lexicons = used_[Kind::lexicon];
    for (const auto& flow : flows_) {
      lexicons.insert(flow->lexicons().begin(), flow->lexicons().end());
    }
    check_unused("lexicons", "lexicon", lexicons);
    Names entered = used_[Kind::flow];
    entered.merge(run);
    if (!items("endpoints").empty()) check_unused("flows", "Flow", entered);
  }

 private:
  [[nodiscard]] const std::vector<Located>& items(std::string_view list) const {
    static const std::vector<Located> none;
    const Located* found = root_.find(list);
    return found == nullptr ? none : found->items();
  }

  void compile_flows() {
    Report ignored("");
    for (const auto& definition : items("flows")) {
      // Has no problems, because the loader has compiled it already.
      if (auto flow = Flow::compile(View(definition, ignored), nullptr)) {
        flows_.push_back(std::move(flow));
      }
    }
  }

  void warn(Place place, const Flow& flow, const std::string& where, std::string message) {
    report_.add(place, "Flow '" + flow.name() + "'" + (where.empty() ? "" : ", " + where),
                std::move(message));
  }

  void collect(const Flow& flow) {
    for (const auto& slot : flow.slots()) {
      for (const auto& use : slot.outline.uses) used_[use.kind].insert(use.name);
      for (const auto& path : slot.outline.writes) {
        auto& written = path.starts_with("context") ? context_ : profile_;
        written.insert(first_name(path));
      }
      if (slot.type->name == "regexSlotFiller" || slot.type->name == "addLexiconKeyphrase") {
        for (const auto& use : slot.outline.uses) {
          if (use.kind == Kind::slot) filled_.insert(use.name);
        }
      }
    }
  }

  void check_ways(const Flow& flow, const Reach& reach) {
    bool named_circle = false;
    for (std::size_t i = 0; i < flow.slots().size(); ++i) {
      const auto& slot = flow.slots()[i];
      if (!reach.reached[i] && first_of_stretch(flow, reach, i)) {
        warn(slot.outline.place, flow, slot.address, "nothing leads to this Node");
      } else if (reach.reached[i] && !reach.ends[i] && !named_circle) {
        warn(slot.outline.place, flow, slot.address,
             "a circle without a way out: from here the Flow neither ends nor waits, and each Turn "
             "fails at its limit");
        named_circle = true;
      }
    }
  }

  // Only the first of several unreached Nodes in a row is reported.
  static bool first_of_stretch(const Flow& flow, const Reach& reach, std::size_t index) {
    for (std::size_t i = 0; i < flow.slots().size(); ++i) {
      if (i == index || reach.reached[i]) continue;
      for (const NodeIndex to : successors(flow.slots()[i])) {
        if (to == NodeIndex(index) && i < index) return false;
      }
    }
    return true;
  }

  void check_names(const Flow& flow) {
    for (const auto& slot : flow.slots()) {
      for (const auto& read : slot.outline.reads) check_read(flow, slot, read);
      for (const auto& warning : slot.outline.warnings) {
        warn(warning.place, flow, slot.address, warning.message);
      }
      for (const auto& use : slot.outline.uses) {
        if (use.kind != Kind::slot || slot.type->name != "question") continue;
        if (!can_fill(flow, use.name)) {
          warn(use.place, flow, slot.address,
               "no lexicon of this Flow fills the slot '" + use.name + "'; nothing can answer");
        }
      }
    }
  }

  void check_read(const Flow& flow, const Flow::Slot& slot, const Flow::Read& read) {
    const std::string name = read.root + '.' + read.name;
    if (read.root == "input") {
      if (std::ranges::find(input_members, read.name) != input_members.end()) return;
      warn(read.place, flow, slot.address,
           "'" + name + "' is not a member of input" + did_you_mean(read.name, input_members));
    } else if (read.root == "context" && !context_.contains(read.name)) {
      const std::vector<std::string_view> known(context_.begin(), context_.end());
      // Only a warning, because another program may write it.
      warn(read.place, flow, slot.address,
           "'" + name + "' is read, but nothing writes it" + did_you_mean(read.name, known));
    }
  }

  [[nodiscard]] bool can_fill(const Flow& flow, const std::string& slot) const {
    if (filled_.contains(slot)) return true;
    for (const auto& lexicon : items("lexicons")) {
      const Located* name = lexicon.find("name");
      const auto& used = flow.lexicons();
      if (name == nullptr || std::ranges::find(used, name->text()) == used.end()) continue;
      const Located* slots = lexicon.find("slots");
      const auto is_it = [&](const Located& known) { return known.text() == slot; };
      if (is_it(*name) || (slots != nullptr && std::ranges::any_of(slots->items(), is_it))) {
        return true;
      }
    }
    return false;
  }

  void check_unused(std::string_view list, const std::string& what, const Names& used) {
    for (const auto& item : items(list)) {
      const Located* name = item.find("name");
      if (name == nullptr || used.contains(name->text())) continue;
      report_.add(name->place(), std::string(list),
                  "nothing uses the " + what + " '" + name->text() + "'");
    }
  }

  const Located& root_;
  Report& report_;
  std::vector<std::shared_ptr<const Flow>> flows_;
  std::map<Kind, Names> used_;
  Names context_;
  Names profile_;
  Names filled_;
};

std::vector<Finding> findings(Severity severity, Problems problems) {
  std::vector<Finding> list;
  for (auto& problem : problems) list.push_back({severity, std::move(problem)});
  return list;
}

}  // namespace

std::vector<Finding> check_bundle(std::string_view text, std::string_view file_name) {
  const LoadLimits limits{.variables = Variables::may_be_missing};
  if (auto bundle = load_bundle(text, file_name, {}, limits); !bundle) {
    return findings(Severity::error, std::move(bundle.error()));
  }
  auto located = read_source(text, file_name, limits);
  if (!located) return findings(Severity::error, std::move(located.error()));
  Report report{std::string(file_name), limits.max_problems};
  Checker(*located, report).check();
  return findings(Severity::warning, report.take());
}

std::string to_string(const Finding& finding) {
  Problem line = finding.problem;
  const std::string severity = finding.severity == Severity::error ? "error" : "warning";
  line.path = line.path.empty() ? severity : severity + ": " + line.path;
  return flows::to_string(line);
}

}  // namespace conversed::flows::tools
