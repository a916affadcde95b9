#include "flows/tools/check.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "flows/bundle/loader.h"
#include "flows/error_codes.h"
#include "flows/fields.h"
#include "flows/flow.h"
#include "flows/input_members.h"
#include "flows/local_text.h"
#include "flows/node_types.h"
#include "flows/tools/missing_answers.h"
#include "flows/tools/ways.h"
#include "flows/turn/turn.h"
#include "store/text/ascii.h"
#include "store/text/joined.h"

namespace conversed::flows::tools {
namespace {

using expression::Facts;
using Kind = Flow::Use::Kind;

constexpr std::array<std::string_view, 4> roots{"arguments", "context", "input", "profile"};

// The text of a member. Empty if it is missing or no text.
std::string text_of(const Located& value, std::string_view member) {
  const Located* found = value.find(member);
  return found != nullptr && found->is_text() ? found->text() : std::string();
}

// The first name of a path: `cart` of `context.cart.items[0]`.
std::string first_name(std::string_view path) {
  const auto root = path.find('.');
  if (root == std::string_view::npos) return {};
  const auto rest = path.substr(root + 1);
  return std::string(rest.substr(0, rest.find_first_of(".[")));
}

// The last name of a path: `total` of `context.cart.total[0]`.
std::string last_name(std::string_view path) {
  const auto name = path.substr(path.rfind('.') + 1);
  return std::string(name.substr(0, name.find('[')));
}

// Bounds, because the daemon checks what its users import.
constexpr std::size_t most_ways = 10'000'000;  // Nodes times Flows that Endpoints run
constexpr std::size_t most_loops = 1'000;      // of a Flow
constexpr std::size_t most_near = 1'000;       // names among which a near one is searched
constexpr std::size_t most_values = 100;       // of a member of `input`

class Checker {
 public:
  Checker(const Located& root, Report& report, Scripts scripts)
      : root_(root), report_(report), scripts_(scripts) {}

  void check() {
    compile_flows();
    find_values();
    std::vector<const Flow*> all;
    for (const auto& flow : flows_) {
      collect(*flow);
      all.push_back(flow.get());
    }
    Names run;  // by Endpoints and the journey
    for (const auto& endpoint : items("endpoints")) {
      for (const auto* member : {"flow", "onError"}) run.insert(text_of(endpoint, member));
    }
    if (const Located* proactive = root_.find("proactive")) {
      if (const Located* journey = proactive->find("journey")) {
        run.insert(text_of(*journey, "flow"));
      }
    }
    run.erase("");
    find_waits();
    std::size_t nodes = all.size();
    for (const auto* flow : all) nodes += flow->slots().size();
    const bool has_ways =
        nodes <= most_ways / std::max<std::size_t>(run.empty() ? all.size() : run.size(), 1);
    const auto reach = has_ways ? reach_of(all, run) : std::vector<Reach>();
    check_endpoints();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (has_ways) check_ways(*all[i], reach[i]);
      check_nodes(*all[i]);
      check_loops(*all[i]);
      for (auto& missing : missing_answers(*all[i])) {
        warn(missing.question->outline.place, *all[i], missing.question->address,
             std::move(missing.message));
      }
    }
    check_labels();
    if (is_partial()) return;  // a Flow with errors may use anything
    check_slots();
    check_unused("connections", "Connection", used_[Kind::connection]);
    check_unused("knowledgeStores", "knowledge store", used_[Kind::knowledge]);
    Names lexicons = used_[Kind::lexicon];
    for (const auto& flow : flows_) {
      lexicons.insert(flow->lexicons().begin(), flow->lexicons().end());
    }
    check_unused("lexicons", "lexicon", lexicons);
    Names entered = used_[Kind::flow];
    entered.merge(run);
    if (!items("endpoints").empty()) {
      check_unused("flows", "Flow", entered);
    } else if (!flows_.empty()) {
      report_.add(root_.find("flows")->place(), "flows",
                  "the bundle has no Endpoint, so no user reaches its Flows; add `endpoints`");
    }
  }

 private:
  [[nodiscard]] const std::vector<Located>& items(std::string_view list) const {
    static const std::vector<Located> none;
    const Located* found = root_.find(list);
    return found == nullptr ? none : found->items();
  }

  [[nodiscard]] Names names_in(std::string_view list, std::string_view member) const {
    Names names;
    for (const auto& item : items(list)) names.insert(text_of(item, member));
    names.erase("");
    return names;
  }

  void compile_flows() {
    Report ignored("");
    for (const auto& definition : items("flows")) {
      // A Flow with errors is left out. The loader reports them.
      if (auto flow = Flow::compile(View(definition, ignored), nullptr)) {
        flows_.push_back(std::move(flow));
      }
    }
  }

  [[nodiscard]] bool is_partial() const { return flows_.size() < items("flows").size(); }

  // The names that an expression may have, and the values of members of `input`.
  void find_values() {
    labels_ = names_in("tokens", "label");
    words_ = labels_;
    words_.insert(roots.begin(), roots.end());
    values_["input.source"] = {"followUp", "inject", "timeOut", "user"};
    values_["input.type"] = {"data", "text"};
    auto& codes = values_["input.error.code"];
    codes.insert(call_error_codes.begin(), call_error_codes.end());
    codes.emplace(turn_error_code);
    auto channels = names_in("endpoints", "name");
    const bool is_bounded = !channels.empty() && channels.size() <= most_values;
    if (is_bounded) values_["input.channel"] = std::move(channels);
    find_locales();
    find_states();
  }

  void find_locales() {
    const Located* project = root_.find("project");
    const Located* list = project == nullptr ? nullptr : project->find("locales");
    if (list == nullptr) {
      locales_.emplace_back("en");
    } else if (list->items().size() <= most_values) {
      for (const auto& item : list->items()) {
        if (item.is_text()) locales_.push_back(item.text());
      }
    }
    if (!locales_.empty()) values_["input.locale"] = Names(locales_.begin(), locales_.end());
  }

  // Unknown if a Flow computes a state.
  void find_states() {
    Names states{"default"};
    for (const auto& flow : flows_) {
      for (const auto& slot : flow->slots()) {
        if (slot.type->name != "setState") continue;
        if (slot.outline.label.find("{{") != std::string::npos) return;
        states.insert(slot.outline.label);
        if (states.size() > most_values) return;
      }
    }
    if (!is_partial()) values_["input.state"] = std::move(states);
  }

  // The Flows with a Node that waits for an input, and those that enter such a Flow.
  void find_waits() {
    std::map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < flows_.size(); ++i) places.emplace(flows_[i]->name(), i);
    Backwards waits(flows_.size());
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      for (const auto& slot : flows_[i]->slots()) {
        if (slot.type != &execute_flow_node) continue;
        const auto to = places.find(slot.outline.uses.front().name);
        if (to != places.end()) waits.add_way(i, to->second);
      }
    }
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const bool has_wait = std::ranges::any_of(flows_[i]->slots(), [](const auto& slot) {
        return slot.node->awaits() == Node::Awaits::input;
      });
      if (has_wait) waits.mark(i);
    }
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      if (waits.marked()[i]) waits_.insert(flows_[i]->name());
    }
  }

  void warn(Place place, const Flow& flow, const std::string& where, std::string message) {
    report_.add(place, "Flow '" + flow.name() + "'" + (where.empty() ? "" : ", " + where),
                std::move(message));
  }

  void collect(const Flow& flow) {
    for (const auto& slot : flow.slots()) {
      collect_uses(slot);
      for (const auto& path : slot.outline.writes) {
        auto& written = path.starts_with("context") ? context_ : profile_;
        written.insert(first_name(path));
        places_.emplace(last_name(path), path);
        const auto [known, is_first] = is_flag_.emplace(path, slot.outline.writes_flag);
        known->second = known->second && slot.outline.writes_flag;
      }
    }
  }

  void collect_uses(const Flow::Slot& slot) {
    const bool grows = slot.type->name == "addLexiconKeyphrase";
    const bool fills = grows || slot.type->name == "regexSlotFiller";
    for (const auto& use : slot.outline.uses) {
      used_[use.kind].insert(use.name);
      if (grows && use.kind == Kind::lexicon) grown_.insert(use.name);
      if (fills && use.kind == Kind::slot) filled_.insert(use.name);
      if (use.kind != Kind::flow) continue;
      const auto& given = slot.outline.arguments;
      arguments_[use.name].insert(given.begin(), given.end());
    }
  }

  void check_ways(const Flow& flow, const Reach& reach) {
    // Only the first of several unreached Nodes in a row is reported.
    std::vector<bool> follows(flow.slots().size(), false);
    for (std::size_t i = 0; i < flow.slots().size(); ++i) {
      if (reach.reached[i]) continue;
      for (const NodeIndex to : successors(flow.slots()[i])) {
        if (to > NodeIndex(i) && to != end_of_flow) follows[static_cast<std::size_t>(to)] = true;
      }
    }
    bool named_circle = false;
    for (std::size_t i = 0; i < flow.slots().size(); ++i) {
      const auto& slot = flow.slots()[i];
      if (!reach.reached[i] && !follows[i]) {
        warn(slot.outline.place, flow, slot.address, "nothing leads to this Node");
      } else if (reach.reached[i] && !reach.ends[i] && !named_circle) {
        warn(slot.outline.place, flow, slot.address,
             "a circle without a way out: from here the Flow neither ends nor waits, and each Turn "
             "fails at its limit");
        named_circle = true;
      }
    }
  }

  // An Endpoint whose Flow has no Nodes answers nothing.
  void check_endpoints() {
    for (const auto& endpoint : items("endpoints")) {
      const auto name = text_of(endpoint, "flow");
      const auto flow =
          std::ranges::find(flows_, name, [](const auto& each) { return each->name(); });
      if (flow == flows_.end() || !(*flow)->slots().empty()) continue;
      report_.add(endpoint.find("flow")->place(), "endpoints",
                  "the Flow '" + name + "' has no Nodes, so its users get no answer; add some");
    }
  }

  void check_nodes(const Flow& flow) {
    for (const auto& slot : flow.slots()) {
      check_reads(flow, slot);
      if (slot.type->name == "code" && scripts_ == Scripts::no_scripts) {
        warn(slot.outline.place, flow, slot.address,
             "this daemon runs no scripts, so the Node fails with code_off; an operator sets "
             "flows.code");
      }
      if (slot.type->name == "switch") check_cases({flow, slot, slot.outline.place});
      for (const auto& warning : slot.outline.warnings) {
        warn(warning.place, flow, slot.address, warning.message);
      }
      for (const auto& each : slot.outline.locales) check_locales({flow, slot, each.place}, each);
      for (const auto& use : slot.outline.pauses) {
        if (!waits_.contains(use.name)) continue;
        warn(use.place, flow, slot.address,
             "while the Flow '" + use.name +
                 "' waits for an input, the timeout is off; let it wait elsewhere");
      }
      if (slot.type->name == "question") check_slots(flow, slot);
    }
  }

  void check_reads(const Flow& flow, const Flow::Slot& slot) {
    const bool takes_events = slot.type->name == "waitForEvent" || slot.type->name == "collect";
    for (const auto& read : slot.outline.reads) {
      check_read({flow, slot, read.place}, read.facts);
      // The expressions of these types give a value, such as `context.cart || []`.
      const bool is_value = slot.type->name == "switch" || slot.type->name == "forEach";
      if (read.is_condition && !is_value) check_constants({flow, slot, read.place}, read.facts);
      if (takes_events) check_event({flow, slot, read.place}, read.facts);
    }
  }

  void check_slots(const Flow& flow, const Flow::Slot& question) {
    for (const auto& use : question.outline.uses) {
      if (use.kind != Kind::slot || can_fill(flow, use.name)) continue;
      warn(use.place, flow, question.address,
           "no lexicon of this Flow fills the slot '" + use.name + "'; nothing can answer");
    }
  }

  // Each end of an inner loop removes its item.
  void check_loops(const Flow& flow) {
    std::vector<NodeIndex> loops;
    for (std::size_t i = 0; i < flow.slots().size() && loops.size() < most_loops; ++i) {
      if (flow.slots()[i].type->name == "forEach") loops.push_back(NodeIndex(i));
    }
    for (const NodeIndex inner : loops) {
      for (const NodeIndex outer : loops) {
        if (!flow.slot(outer).node->repeats(inner)) continue;
        for (const auto& path : flow.slot(inner).outline.writes) {
          if (std::ranges::count(flow.slot(outer).outline.writes, path) == 0) continue;
          warn(flow.slot(inner).outline.place, flow, flow.slot(inner).address,
               "the forEach " + flow.slot(outer).address + " around it needs '" + path +
                   "', too; choose another place");
        }
      }
    }
  }

  void check_labels() {
    for (const auto& token : items("tokens")) {
      const auto label = text_of(token, "label");
      if (std::ranges::find(roots, label) == roots.end()) continue;
      auto message = "'" + label + "' is a word of expressions, so only '{{";
      message.append(label).append("}}' alone means this Token; choose another label");
      report_.add(token.find("label")->place(), "tokens", std::move(message));
    }
  }

  // A text of a Node.
  struct At {
    const Flow& flow;
    const Flow::Slot& slot;
    Place place;
  };
  void warn(const At& at, std::string message) {
    warn(at.place, at.flow, at.slot.address, std::move(message));
  }

  // Searches no near word for a finding that is not kept.
  [[nodiscard]] std::string hint(const std::string& word, const Names& known) const {
    return report_.is_full() || known.size() > most_near ? "" : did_you_mean(word, known);
  }

  void check_read(const At& at, const Facts& facts) {
    const std::set<std::string> paths(facts.paths.begin(), facts.paths.end());
    for (const auto& path : paths) check_path(at, path);
    for (const auto& doubt : facts.doubts) check_doubt(at, doubt);
    for (const auto& [path, text] : facts.comparisons) check_comparison(at, path, text);
    for (const auto& inside : facts.single_braces) check_braces(at, inside);
  }

  void check_constants(const At& at, const Facts& facts) {
    for (const auto& [source, path] : facts.constants) {
      std::string message = source;
      message += " beside `||` is always true, so the comparison has no effect; write `";
      message += path.empty() ? "input.text" : path;
      message.append(" == ").append(source).append("`");
      warn(at, std::move(message));
    }
  }

  void check_path(const At& at, const std::string& path) {
    const auto name = first_name(path);
    if (path.find('.') + 1 + name.size() < path.size()) return;  // its beginning is a path, too
    if (path.starts_with("input.")) {
      if (std::ranges::find(input_members, name) != input_members.end()) return;
      warn(at, "'" + path + "' is not a member of input" + did_you_mean(name, input_members));
    } else if (path.starts_with("context.") && !context_.contains(name) && !is_partial()) {
      // Only a warning, because another program may write it.
      warn(at, "'" + path + "' is read, but nothing writes it" + hint(name, context_));
    } else if (path.starts_with("arguments.") && !is_partial()) {
      const auto& given = arguments_[at.flow.name()];
      if (given.contains(name)) return;
      warn(at, "'" + path + "' is read, but no executeFlow of '" + at.flow.name() +
                   "' gives it; write it under its `with`" + hint(name, given));
    }
  }

  void check_doubt(const At& at, const Facts::Doubt& doubt) {
    if (labels_.contains(doubt.braces)) return;
    for (const auto& word : std::set<std::string>(doubt.words.begin(), doubt.words.end())) {
      if (words_.contains(word)) continue;
      const auto place = places_.find(word);
      warn(at, "'" + word +
                   "' is neither arguments, context, input, profile nor the label of a Token" +
                   (place == places_.end() ? hint(word, words_)
                                           : "; did you mean '" + place->second + "'?"));
    }
    for (const auto& failure : doubt.failures) warn(at, failure);
  }

  void check_braces(const At& at, const std::string& inside) {
    const bool is_value = inside.starts_with("arguments.") || inside.starts_with("context.") ||
                          inside.starts_with("input.") || inside.starts_with("profile.") ||
                          labels_.contains(inside);
    if (!is_value) return;
    warn(at, "'{" + inside + "}' stays as it is written; write '{{" + inside + "}}' for its value");
  }

  // Whether only yesNo questions write the path.
  [[nodiscard]] bool is_flag(std::string_view path) const {
    const auto found = is_flag_.find(path);
    if (is_partial() || found == is_flag_.end() || !found->second) return false;
    if (!path.starts_with("context.")) return false;  // a profile outlasts its Flows
    while ((path = path.substr(0, path.rfind('.'))) != "context") {
      if (is_flag_.contains(path)) return false;
    }
    return true;
  }

  void check_locales(const At& at, const Flow::Locales& text) {
    for (const auto& name : locales_) {
      if (!matching_locale(name, text.names).empty()) continue;
      warn(at, "the text has none for the locale '" + name + "', whose users read that of '" +
                   locales_.front() + "'");
    }
  }

  void check_comparison(const At& at, const std::string& path, const std::string& text) {
    const auto values = values_.find(path);
    if (path == "input.channel" && values != values_.end() && !values->second.contains(text)) {
      warn(at, "no Endpoint of the bundle is named '" + text + "', so 'input.channel' never is");
    } else if (values != values_.end() && !values->second.contains(text)) {
      warn(at, "'" + path + "' is never '" + text + "'" + instead(path, text, values->second));
    } else if (is_flag(path) && is_word(text, " ") && !text::is_digit(text.front())) {
      warn(at, "'" + path + "' is true or false, never the text '" + text + "'; write `" + path +
                   "` or `!" + path + "`");
    }
  }

  // The values that a path may have. The codes of errors are many, so a near one is enough.
  [[nodiscard]] static std::string instead(std::string_view path, const std::string& text,
                                           const Names& values) {
    const auto near = path == "input.error.code" ? did_you_mean(text, values) : std::string();
    return near.empty() ? "; it is one of " + text::joined(values) : near;
  }

  void check_cases(const At& at) {
    const auto& subject = at.slot.outline.label;
    const bool is_member = subject == "type" || subject == "state";
    const std::string path = (is_member ? "input." : "") + subject;
    const auto found = values_.find(path);
    Names values = found == values_.end() ? Names() : found->second;
    if (is_flag(path)) values = {"false", "true"};
    if (values.empty() || values.size() > most_values) return;
    const std::string never = "'" + path + "' is never '";
    for (const auto& way : at.slot.outline.ways) {
      const auto is_way = [&](const std::string& value) {
        return text::equals_ignoring_case(value, way.name);
      };
      if (way.name == "default" || std::ranges::any_of(values, is_way)) continue;
      warn(at,
           std::string(never).append(way.name).append("'").append(instead(path, way.name, values)));
    }
  }

  [[nodiscard]] bool can_fill(const Flow& flow, const std::string& slot) const {
    if (filled_.contains(slot)) return true;
    for (const auto& lexicon : items("lexicons")) {
      const auto name = text_of(lexicon, "name");
      const auto& used = flow.lexicons();
      if (std::ranges::find(used, name) == used.end()) continue;
      const Located* slots = lexicon.find("slots");
      const auto is_it = [&](const Located& known) { return known.scalar() == slot; };
      if (name == slot || (slots != nullptr && std::ranges::any_of(slots->items(), is_it))) {
        return true;
      }
    }
    return false;
  }

  static Names texts_of(const Located& value, std::string_view member) {
    Names texts;
    const Located* list = value.find(member);
    if (list == nullptr) return texts;
    for (const auto& item : list->items()) {
      if (item.is_text()) texts.insert(item.text());
    }
    return texts;
  }

  // Slots of lexicons that none of their entries fills. An entry without slots fills the one with
  // the lexicon's name.
  void check_slots() {
    for (const auto& lexicon : items("lexicons")) {
      const auto name = text_of(lexicon, "name");
      const Located* slots = lexicon.find("slots");
      if (slots == nullptr || grown_.contains(name)) continue;
      Names filled = filled_;
      if (const Located* entries = lexicon.find("entries")) {
        for (const auto& entry : entries->items()) {
          Names of_entry = texts_of(entry, "slots");
          if (of_entry.empty()) of_entry.insert(name);
          filled.merge(of_entry);
        }
      }
      for (const auto& slot : slots->items()) {
        if (!slot.is_text() || filled.contains(slot.text())) continue;
        report_.add(slot.place(), "lexicons",
                    "no entry of '" + name + "' fills the slot '" + slot.text() +
                        "'; name it in the `slots` of its entries");
      }
    }
  }

  // An event that came earlier is no input any more.
  void check_event(const At& at, const Facts& facts) {
    const auto reads = [&](std::string_view path) {
      return std::ranges::find(facts.paths, path) != facts.paths.end();
    };
    if (reads("input.event")) return;
    for (const auto* name : {"data", "text"}) {
      if (!reads(std::string("input.") + name)) continue;
      warn(at, std::string("'input.") + name +
                   "' is that of the current input, not of the event; write 'input.event." + name +
                   "'");
    }
  }

  void check_unused(std::string_view list, const std::string& what, const Names& used) {
    for (const auto& item : items(list)) {
      const auto name = text_of(item, "name");
      if (name.empty() || used.contains(name)) continue;
      auto message = "nothing uses the " + what + " '";
      message.append(name).append("'");
      report_.add(item.find("name")->place(), std::string(list), std::move(message));
    }
  }

  const Located& root_;
  Report& report_;
  const Scripts scripts_;
  std::vector<std::shared_ptr<const Flow>> flows_;
  std::map<Kind, Names> used_;
  Names context_;
  Names profile_;
  std::map<std::string, std::string, std::less<>> places_;  // written paths by their last names
  Names filled_;
  Names grown_;                                          // lexicons to which Nodes add entries
  Names waits_;                                          // Flows that wait for an input
  std::map<std::string, Names, std::less<>> arguments_;  // of each Flow
  std::map<std::string, bool, std::less<>> is_flag_;     // each written path
  Names labels_;                                         // of Tokens
  Names words_;
  std::vector<std::string> locales_;                  // of the project; empty: too many to look at
  std::map<std::string, Names, std::less<>> values_;  // of paths, if all are known
};

std::vector<Finding> findings(Severity severity, Problems problems) {
  std::vector<Finding> list;
  for (auto& problem : problems) list.push_back({severity, std::move(problem)});
  return list;
}

}  // namespace

Problems warnings_of(const Located& bundle, std::string_view file_name, const Problems& errors,
                     Scripts scripts) {
  Report report{std::string(file_name)};
  Checker(bundle, report, scripts).check();
  Problems warnings = report.take();
  // The error at the same place says more.
  std::erase_if(warnings, [&](const Problem& warning) {
    return warning.place.line > 0 &&
           std::ranges::find(errors, warning.place, &Problem::place) != errors.end();
  });
  return warnings;
}

std::vector<Finding> check_bundle(std::string_view text, std::string_view file_name) {
  const LoadLimits limits{.variables = Variables::may_be_missing};
  auto located = read_source(text, file_name, limits);
  if (!located) return findings(Severity::error, std::move(located.error()));
  if (located->find("bundle") != nullptr && located->find("tests") != nullptr) {
    Report report{std::string(file_name)};
    report.add(located->place(), "",
               "this is a test file: run it by `flow test`, and check the bundle that it names");
    return findings(Severity::error, report.take());
  }
  Problems errors;
  if (auto bundle = load_bundle(*located, file_name, {}, limits); !bundle) {
    errors = std::move(bundle.error());
  }
  auto found = findings(Severity::warning, warnings_of(*located, file_name, errors));
  std::ranges::move(findings(Severity::error, std::move(errors)), std::back_inserter(found));
  // The line without a place counts the problems that are not listed.
  std::ranges::stable_sort(found, {}, [](const Finding& finding) {
    const auto [line, column] = finding.problem.place;
    return std::tuple(line == 0, line, column);
  });
  return found;
}

std::string to_string(const Finding& finding) {
  Problem line = finding.problem;
  const std::string severity = finding.severity == Severity::error ? "error" : "warning";
  line.path = line.path.empty() ? severity : severity + ": " + line.path;
  return flows::to_string(line);
}

}  // namespace conversed::flows::tools
