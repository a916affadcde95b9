// conversectl flow.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/files/flow_chat.h"
#include "daemon/ctl/files/flow_new.h"
#include "daemon/ctl/files/flow_replay.h"
#include "daemon/ctl/files/flow_test.h"
#include "daemon/ctl/files/graphviz.h"
#include "daemon/ctl/files/text_file.h"
#include "daemon/ctl/names.h"
#include "flows/bundle/loader.h"
#include "flows/flow.h"
#include "flows/tools/check.h"
#include "flows/tools/graph.h"
#include "flows/tools/schema.h"
#include "store/text/utf8.h"

namespace conversed::ctl {
namespace {

using flows::tools::Severity;

int check(Client& client, const Values& values) {
  const bool json = client.options().json;
  bool good = true;
  auto report = nlohmann::json::array();
  for (const auto& path : values.lists.at("FILE")) {
    const auto text = read_file(path);
    if (!text) return failed(text.error());
    const auto findings = flows::tools::check_bundle(*text, path);
    for (const auto& finding : findings) {
      const bool is_error = finding.severity == Severity::error;
      good = good && !is_error && !values.flag("--strict");
      if (json) {
        const auto& problem = finding.problem;
        report.push_back({{"file", problem.file},
                          {"line", problem.place.line},
                          {"column", problem.place.column},
                          {"severity", is_error ? "error" : "warning"},
                          {"path", problem.path},
                          {"message", problem.message}});
      } else {
        say(to_string(finding));
      }
    }
    if (findings.empty() && !json) say(path + ": no findings");
  }
  if (json) say_json(report);
  return good ? 0 : 1;
}

model::Result<std::string> drawn(const flows::Flow& flow, const std::string& format,
                                 const std::string& locale) {
  if (format == "mermaid") return flows::tools::mermaid_of(flow, locale);
  const auto dot = flows::tools::dot_of(flow, locale);
  return format == "dot" ? dot : drawn_by_graphviz(dot);
}

struct NamedFlow {
  std::string name;
  std::shared_ptr<const flows::Flow> flow;
  std::string locale{};  // the primary one of its bundle
};

model::Result<NamedFlow> flow_of_file(const Values& values) {
  const auto& source = values.text("FILE_OR_FLOW");
  const auto& name = values.text("FLOW");
  const auto text = read_file(source);
  if (!text) return model::fail(text.error());
  const auto bundle =
      flows::load_bundle(*text, source, {}, {.variables = flows::Variables::may_be_missing});
  if (!bundle) return model::fail(model::Errc::invalid_argument, flows::to_string(bundle.error()));
  for (const auto& flow : bundle->flows) {
    if (!name.empty() && flow.name != name) continue;
    const auto compiled = flows::Flow::compile(flow.definition);
    if (compiled) return NamedFlow{flow.name, *compiled, bundle->locales.front()};
  }
  return model::fail(model::Errc::not_found, source + ": there is no Flow '" + name + "'");
}

model::Result<NamedFlow> flow_of_daemon(Client& client, const Values& values) {
  const auto id = find_flow(client, values, values.text("FILE_OR_FLOW"));
  if (!id) return model::fail(id.error());
  const auto answer = client.manage("GET", "/management/flows/" + encode(*id) + "/definition");
  if (!answer) return model::fail(answer.error());
  const Fields found(*answer);
  auto compiled = flows::Flow::compile(found.any("definition"));
  if (compiled) return NamedFlow{found.text("name"), *compiled, found.text_if_any("primaryLocale")};
  return model::fail(model::Errc::internal,
                     "this conversectl can't read the Flow; are it and the daemon of one version?");
}

// Whether `source` is a path: it has a bundle's extension or names an existing file. Else it is a
// Flow's name or id.
bool is_file(const std::string& source) {
  std::error_code unknown;
  const auto extension = std::filesystem::path(source).extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json" ||
         std::filesystem::exists(source, unknown);
}

int graph(Client& client, const Values& values) {
  const auto& format = values.text("--format");
  const bool from_file = !values.text("FLOW").empty() ||
                         (!values.is_typed("--project") && is_file(values.text("FILE_OR_FLOW")));
  const auto found = from_file ? flow_of_file(values) : flow_of_daemon(client, values);
  if (!found) return failed(found.error());
  auto picture = drawn(*found->flow, format, found->locale);
  if (!picture) return failed(picture.error());
  if (client.options().json) {
    return say_json({{"name", found->name}, {"format", format}, {"text", *picture}});
  }
  if (picture->ends_with('\n')) picture->pop_back();
  say_lines(*picture);
  return 0;
}

int test(Client& client, const Values& values) {
  return flow_test({.files = values.lists.at("FILE"),
                    .only = values.text("--only"),
                    .junit = values.text("--junit"),
                    .coverage = values.flag("--coverage"),
                    .picture = values.text("--coverage-picture"),
                    .watched = !values.text(watch_option).empty(),
                    .json = client.options().json});
}

int chat_with_file(Client& client, const Values& values) {
  return flow_chat({.file = values.text("FILE"),
                    .endpoint = values.text("--endpoint"),
                    .flow = values.text("--flow"),
                    .trace = values.flag("--trace"),
                    .json = client.options().json});
}

int make_new(Client& client, const Values& values) {
  return flow_new(values.text("FILE"), client.options().json);
}

int schema(Client& client, const Values& values) {
  const auto made = values.text("KIND") == "test" ? flows::tools::test_file_schema()
                                                  : flows::tools::bundle_schema();
  say_lines(made.dump(client.options().json ? -1 : 2));
  return 0;
}

Command chat_command() {
  return Command{
      "flow chat",
      {"Talk to a bundle's Flow in the terminal, without a daemon", "shop.yaml --endpoint web",
       "write the conversation into a test file, and use `flow test`."},
      {Option{"FILE", "A bundle; or a test file, whose stubs answer the calls"}.require().file(),
       Option{"--endpoint", "The Endpoint's name; default: the first"},
       Option{"--flow", "A Flow's name; default: the Endpoint's"},
       Option{"--trace", "Show the Nodes of each Turn, with values, changes and calls",
              Option::Kind::flag}}}
      .runs(chat_with_file);
}

Command graph_command() {
  return Command{
      "flow graph",
      {"Draw a Flow of the daemon, or of a bundle's file", "shop.yaml Orders --format dot"},
      {Option{"FILE_OR_FLOW",
              "A Flow's name or id; or a YAML or JSON bundle, which needs no daemon"}
           .require()
           .file(),
       Option{"FLOW", "The Flow's name in the bundle; default: the first"}, scope_option(),
       Option{"--format", "mermaid, dot, or svg (by Graphviz)"}.with_preset("mermaid").one_of(
           {"mermaid", "dot", "svg"})}}
      .runs(graph);
}

Command test_command() {
  constexpr auto flag = Option::Kind::flag;
  return Command{
      "flow test",
      {"Run the conversations of test files", "shop.test.yaml --coverage",
       "mend the Flow where a test fails, then use `import`."},
      {Option{"FILE", "Test files; docs/flows/testing.md has the format", Option::Kind::several}
           .require()
           .file(),
       Option{"--only", "Run only the tests whose name contains this"},
       Option{"--coverage", "List Nodes that never run and branches that are never taken", flag},
       Option{"--coverage-picture",
              "Draw them into this file: .svg (by Graphviz), or .dot for Graphviz"}
           .file(),
       Option{"--junit", "Write the results to this file as JUnit's XML"}.file()}}
      .runs(test)
      .watched();
}

Command schema_command() {
  return Command{
      "flow schema",
      {"Print the JSON Schema of bundles or of flow tests, for editors", "bundle",
       "write it to a file, and name the file in the first line of a bundle: "
       "`# yaml-language-server: $schema=FILE`."},
      {Option{"KIND", "bundle or test"}.with_preset("bundle").one_of({"bundle", "test"})}}
      .runs(schema);
}

// ---- flow replay: the daemon only reads the recordings; the Flow runs here, without effects

constexpr std::size_t most_in_page = 100;
constexpr std::size_t most_pages = 500;  // 200 sessions each, most of which may be of other Flows

struct NewVersion {
  model::Bundle bundle;
  std::string name;  // for people
};

model::BundleFlow* find_in(model::Bundle& bundle, const std::string& flow) {
  const auto found = std::ranges::find(bundle.flows, flow, &model::BundleFlow::name);
  return found == bundle.flows.end() ? nullptr : &*found;
}

// The project as it is, with one Flow in that version.
model::Result<NewVersion> version_of_daemon(Client& client, const Values& values,
                                            const std::string& id, const Fields& flow) {
  const auto project = "/management/projects/" + encode(flow.text("projectId")) + "/export";
  auto exported = client.manage("GET", project);
  if (!exported) return model::fail(exported.error());
  auto bundle = replayed_bundle(Fields(*exported).text("text"), "the project");
  if (!bundle) return model::fail(bundle.error());
  const auto& version = values.text("--version");
  auto path = "/management/flows/" + encode(id) + "/definition";
  if (!version.empty()) path += "?version=" + version;
  const auto answer = client.manage("GET", path);
  if (!answer) return model::fail(answer.error());
  const Fields found(*answer);
  auto* replaced = find_in(*bundle, flow.text("name"));
  if (replaced == nullptr)
    return model::fail(model::Errc::conflict, "the Flow was deleted meanwhile");
  replaced->definition = found.any("definition");
  return NewVersion{*std::move(bundle), "version " + std::to_string(found.number("version"))};
}

model::Result<NewVersion> version_of_file(const std::string& path, const std::string& flow) {
  const auto text = read_file(path);
  if (!text) return model::fail(text.error());
  auto bundle = replayed_bundle(*text, path);
  if (!bundle) return model::fail(bundle.error());
  if (find_in(*bundle, flow) == nullptr) {
    return model::fail(model::Errc::not_found, path + ": there is no Flow '" + flow + "'");
  }
  return NewVersion{*std::move(bundle), path};
}

model::Result<nlohmann::json> read_recordings(Client& client, const std::string& id,
                                              const std::string& token, std::size_t limit,
                                              const std::string& after) {
  auto path = "/management/flows/" + encode(id) +
              "/recordings?limit=" + std::to_string(std::min(limit, most_in_page));
  if (!token.empty()) path += "&URLToken=" + encode(token);
  if (!after.empty()) path += "&after=" + after;
  return client.manage("GET", path);
}

// The URLToken of the Endpoint whose sessions are replayed. Empty: sessions of all Endpoints are.
model::Result<std::string> replayed_endpoint(Client& client, const Values& values) {
  const auto& endpoint = values.text("--endpoint");
  return endpoint.empty() ? std::string() : find_endpoint(client, values, endpoint);
}

// `flow`: the first page of its recordings.
model::Result<FlowReplay> begin_replay(Client& client, const Values& values, const std::string& id,
                                       const Fields& flow) {
  const auto& path = values.text("FILE");
  auto version = path.empty() ? version_of_daemon(client, values, id, flow)
                              : version_of_file(path, flow.text("name"));
  if (!version) return model::fail(version.error());
  return FlowReplay(std::move(version->bundle), flow.text("name"), std::move(version->name));
}

// Reads and replays page by page.
model::Result<FlowReplay> replay_recordings(Client& client, const Values& values) {
  const auto id = find_flow(client, values, values.text("FLOW"));
  if (!id) return model::fail(id.error());
  const auto token = replayed_endpoint(client, values);
  if (!token) return model::fail(token.error());
  const auto most = static_cast<std::size_t>(std::stoul(values.text("--last")));
  const bool shows_progress = isatty(STDERR_FILENO) != 0 && !client.options().json;
  std::optional<FlowReplay> replay;
  std::string after;
  for (std::size_t pages = 0; pages < most_pages; ++pages) {
    const auto left = replay ? most - replay->sessions() : most;
    const auto page = read_recordings(client, *id, *token, left, after);
    if (!page) return model::fail(page.error());
    const Fields flow(*page);
    if (!replay) {
      auto begun = begin_replay(client, values, *id, flow);
      if (!begun) return model::fail(begun.error());
      replay.emplace(*std::move(begun));
    }
    if (auto taken = replay->take(*page, most); !taken) return model::fail(taken.error());
    if (shows_progress) {
      note("replayed " + std::to_string(replay->sessions()) + " of " + std::to_string(most) +
           " sessions");
    }
    if (!flow.has("next") || replay->sessions() == most) break;
    after = std::to_string(flow.number("next"));
  }
  return *std::move(replay);
}

int replay(Client& client, const Values& values) {
  const auto done = replay_recordings(client, values);
  if (!done) return failed(done.error());
  if (client.options().json) {
    say_json(done->to_json());
  } else {
    done->print(static_cast<std::size_t>(std::stoul(values.text("--show"))));
  }
  return done->has_differences() ? 1 : 0;
}

Command replay_command() {
  constexpr auto number = Option::Kind::number;
  return Command{
      "flow replay",
      {"Replay recorded sessions on a bundle or a version, without effects; the exit code is 1 if "
       "dialogues differ",
       "Orders shop.yaml", "`import` the bundle if the differences are as you want them."},
      {Option{"FLOW", "The Flow's name or id"}.require().found_by(find_flow),
       Option{"FILE", "A bundle with the changed Flow; default: the version of the daemon"}.file(),
       scope_option(),
       Option{"--version", "A version of the Flow; default: the one in effect", number},
       Option{"--last", "How many sessions, the newest first", number}.with_preset("500").at_most(
           10'000),
       Option{"--endpoint", "Only sessions of this Endpoint: its name or URLToken"}.found_by(
           find_endpoint),
       Option{"--show", "How many sessions that differ are shown", number}.with_preset("10")}}
      .checked_by([](const Values& values) {
        const bool is_refused = !values.text("FILE").empty() && !values.text("--version").empty();
        return std::string(is_refused ? "give a FILE or --version, not both" : "");
      })
      .runs(replay);
}

// ---- Versions

// A value on one line, cut if it is long.
std::string short_text(const nlohmann::json& value) {
  constexpr std::size_t longest = 100;
  const std::string whole = value.is_null() ? "(nothing)" : value.dump();
  const std::string text(text::cut(whole, longest));
  return text.size() < whole.size() ? text + "..." : text;
}

void show_change(const Fields& change) {
  const auto kind = change.text("change");
  const auto path = change.text_if_any("path");
  const auto type = change.text_if_any("type");
  const char* mark = kind == "added" ? "+" : kind == "removed" ? "-" : kind == "moved" ? ">" : "~";
  std::string line = std::string("  ") + mark + " " + (path.empty() ? "the Flow" : path);
  if (!type.empty()) line += " " + type;
  if (change.has("id")) line += " '" + change.text("id") + "'";
  if (change.has("oldPath")) line += " (was " + change.text("oldPath") + ")";
  if (change.has("node")) {
    const nlohmann::json& node = change.any("node");
    const bool has_type = node.is_object() && node.contains(type);
    line += ": " + short_text(has_type ? node.at(type) : node);
  }
  say(line);
  for (const Fields& field : change.objects("fields")) {
    say("      " + field.text("name") + ": " + short_text(field.any("before")) + " -> " +
        short_text(field.any("after")));
  }
}

void show_diff(const Fields& found, const Values& values) {
  const auto changes = found.objects("changes");
  say(filled("{name}: version {from} to {to}", found, values) +
      (changes.empty() ? ", no differences" : ""));
  for (const Fields& change : changes) show_change(change);
}

std::string of_turns(const Fields& ramp, const char* failures, const char* turns) {
  return std::to_string(ramp.number(failures)) + " of " + std::to_string(ramp.number(turns));
}

// How a ramp goes, or how it ended.
void show_ramp(const Fields& ramp) {
  const auto version = [&](const char* field) {
    return "version " + std::to_string(ramp.number(field));
  };
  const auto ending = ramp.text_if_any("ending");
  const auto ramped = version("version");
  const auto bound = std::to_string(ramp.number("maxErrors")) + " %";
  if (ending == "finished") {
    say("The ramp of " + ramped + " is finished: all sessions run it.");
  } else if (ending == "stopped") {
    say("The ramp of " + ramped + " was stopped: all sessions went back to " +
        version("stableVersion") + ".");
  } else if (ending == "errors") {
    say("The ramp of " + ramped + " was taken back, because more than " + bound +
        " of its Turns failed: all sessions went back to " + version("stableVersion") + ".");
  } else {
    say("A ramp gives " + ramped + " to " + std::to_string(ramp.number("share")) +
        " % of the sessions. It is taken back if more than " + bound + " of its Turns fail.");
  }
  say("Failed Turns: " + of_turns(ramp, "failures", "turns") + " of " + ramped + ", " +
      of_turns(ramp, "stableFailures", "stableTurns") + " of " + version("stableVersion") + ".");
}

Cell percent_cell(const Fields& item, const char* field) {
  const auto share = item.number(field);
  return share == 0 ? std::string() : std::to_string(share) + " %";
}

// Whether the ramp runs, or all sessions still run the version that its end gave them.
bool is_present(const Fields& ramp, const std::vector<Fields>& versions) {
  const auto ending = ramp.text_if_any("ending");
  if (ending.empty()) return true;
  const auto left = ramp.number(ending == "finished" ? "version" : "stableVersion");
  return std::ranges::any_of(versions, [&](const Fields& each) {
    return each.number("version") == left && each.number("share") > 0;
  });
}

void show_versions(const Fields& found, const Values& values) {
  rows({column("VERSION", "version"), column("SESSIONS", "share", percent_cell),
        column("CREATED", "createdAt", time_cell), column("BY", "createdBy"),
        column("ROLLBACK TO", "restoredFrom")},
       "No versions.")(found, values);
  if (!found.has("ramp")) return;
  const auto ramp = found.object("ramp");
  if (is_present(ramp, found.items())) show_ramp(ramp);
}

// A share such as `10%` or `10`.
std::optional<std::int64_t> percent(std::string text) {
  if (text.ends_with('%')) text.pop_back();
  constexpr std::size_t most_digits = 3;
  const bool is_number = !text.empty() && text.size() <= most_digits &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  constexpr std::int64_t all = 100;
  if (is_number && std::stoll(text) <= all) return std::stoll(text);
  return std::nullopt;
}

std::string check_percent(const std::string& text) {
  return percent(text) ? "" : "write whole percent from 0% to 100%, such as 10%";
}

std::string check_ramp(const Values& values) {
  const bool has_share = !values.text("SHARE").empty();
  if (values.flag("--stop")) {
    const bool has_more = has_share || !values.text("--max-errors").empty();
    return has_more
               ? "give --stop only the FLOW, and the VERSION if no other version's ramp may be "
                 "stopped"
               : "";
  }
  if (has_share) return {};
  return "name the VERSION and the SHARE of the sessions, such as `flow ramp Orders 5 10%`, or use "
         "--stop";
}

model::Result<void> prepare_ramp(const Values& values, Request& request) {
  if (values.flag("--stop")) {
    request.method = "DELETE";
    request.body = nullptr;
    if (!values.text("VERSION").empty()) {
      request.query +=
          (request.query.empty() ? "version=" : "&version=") + encode(values.text("VERSION"));
    }
    return {};
  }
  request.body["share"] = percent(values.text("SHARE")).value_or(0);
  if (const auto bound = percent(values.text("--max-errors"))) request.body["maxErrors"] = *bound;
  return {};
}

Command ramp_command(const Option& flow) {
  return Command{
      "flow ramp",
      {"Give a version of a Flow to a share of the sessions, or end that", "Orders 5 10%",
       "`flow versions` shows the failures of both versions."},
      {flow, scope_option(),
       Option{"VERSION", "A version that is not in effect, such as one of `import --hold`",
              Option::Kind::number}
           .in_field("version"),
       Option{"SHARE", "Of the sessions: 10%, later more; 100% finishes the ramp, 0% stops it"}
           .checked_by(check_percent),
       Option{"--max-errors",
              "The ramp is taken back if more of its Turns fail; default: 5%, or as it is"}
           .checked_by(check_percent),
       Option{"--stop",
              "Take the version back from all sessions. With VERSION: only if the ramp is of that "
              "version",
              Option::Kind::flag}},
      "POST /management/flows/{FLOW}/ramp",
      [](const Fields& ramp, const Values&) { show_ramp(ramp); }}
      .prepared_by(prepare_ramp)
      .checked_by(check_ramp);
}

}  // namespace

// `new`, `check`, `chat`, `graph`, `schema` and `test` work on files, without a daemon. `graph`
// also draws Flows of a daemon.
std::vector<Group> flow_commands() {
  constexpr auto number = Option::Kind::number;
  const Option flow = Option{"FLOW", "The Flow's name or id"}.require().found_by(find_flow);
  return {{"flow",
           "Write, check, draw, test and replay Flows; list, restore and ramp versions",
           {Command{"flow new",
                    {"Write a small bundle and its test file, to begin with", "shop.yaml",
                     "edit the bundle, and talk to it by `flow chat`."},
                    {Option{"FILE", "The new bundle; the test file stands beside it"}
                         .with_preset("flow.yaml")
                         .file()}}
                .runs(make_new),
            chat_command(),
            Command{"flow check",
                    {"Check bundles and list their problems, with lines", "--strict shop.yaml",
                     "`flow test` runs conversations."},
                    {Option{"FILE", "YAML or JSON bundles", Option::Kind::several}.require().file(),
                     Option{"--strict", "Exit 1 for warnings, too", Option::Kind::flag}}}
                .runs(check),
            graph_command(), test_command(), schema_command(),
            Command{"flow versions",
                    {"List the versions of a Flow of the daemon", "Orders",
                     "`flow diff` compares two of them, `flow rollback` restores one."},
                    {flow, scope_option()},
                    "GET /management/flows/{FLOW}/versions",
                    show_versions},
            Command{"flow diff",
                    {"Show the differences between two versions of a Flow", "Orders 3 4"},
                    {flow, scope_option(),
                     Option{"FROM", "Older version; default: the one in effect before TO", number}
                         .in_query("from"),
                     Option{"TO", "The newer version; default: the newest", number}.in_query("to")},
                    "GET /management/flows/{FLOW}/diff",
                    show_diff},
            replay_command(),
            Command{"flow rollback",
                    {"Make a new version that is equal to an older one", "Orders 3",
                     "sessions take the new version with their next input."},
                    {flow, scope_option(),
                     Option{"VERSION", "The older version", number}.in_field("version").require()},
                    "POST /management/flows/{FLOW}/rollback",
                    says({"{name} is at version {version}, which is equal to version "
                          "{restoredFrom}"})},
            ramp_command(flow)}}};
}

}  // namespace conversed::ctl
