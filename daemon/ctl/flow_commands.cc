// conversectl flow: tools for designers. Those in this file need no daemon: they work on files.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/ctl/commands.h"
#include "flows/flow.h"
#include "flows/loader.h"
#include "flows/tools/check.h"
#include "flows/tools/flow_test.h"
#include "flows/tools/graph.h"

namespace conversed::ctl {
namespace {

using flows::tools::Severity;

// A `${NAME}` that is not set here is set where the bundle is imported: something that is a URL as
// well as a text stands for it.
std::optional<std::string> any_value(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value != nullptr ? value : "http://localhost/" + std::string(name);
}

int check(const std::vector<std::string>& paths, bool strict, bool json) {
  bool good = true;
  auto report = nlohmann::json::array();
  for (const auto& path : paths) {
    const auto text = read_file(path);
    if (!text) return failed(text.error());
    const auto findings = flows::tools::check_bundle(*text, path, any_value);
    for (const auto& finding : findings) {
      const bool is_error = finding.severity == Severity::error;
      good = good && !is_error && !strict;
      if (json) {
        const auto& problem = finding.problem;
        report.push_back({{"file", problem.file},
                          {"line", problem.place.line},
                          {"column", problem.place.column},
                          {"severity", is_error ? "error" : "warning"},
                          {"path", problem.path},
                          {"message", problem.message}});
      } else {
        std::cout << to_string(finding) << "\n";
      }
    }
    if (findings.empty() && !json) std::cout << path << ": no findings\n";
  }
  if (json) std::cout << report.dump() << "\n";
  return good ? 0 : 1;
}

// Graphviz writes to our output.
int draw(const std::string& dot) {
  std::cout.flush();
  std::FILE* pipe = popen("dot -Tsvg", "w");
  if (pipe == nullptr) return failed({model::Errc::unavailable, "dot can't be started"});
  std::fwrite(dot.data(), 1, dot.size(), pipe);
  if (pclose(pipe) == 0) return 0;
  return failed({model::Errc::unavailable,
                 "dot failed; it comes with Graphviz (apt install graphviz). --format mermaid and "
                 "--format dot do without"});
}

int graph(const std::string& path, const std::string& name, const std::string& format) {
  const auto text = read_file(path);
  if (!text) return failed(text.error());
  const auto bundle = flows::load_bundle(*text, path, any_value);
  if (!bundle) {
    return failed({model::Errc::invalid_argument, flows::to_string(bundle.error())});
  }
  for (const auto& flow : bundle->flows) {
    if (!name.empty() && flow.name != name) continue;
    const auto compiled = flows::Flow::compile(flow.definition);
    if (!compiled) continue;
    if (format == "svg") return draw(flows::tools::dot_of(**compiled));
    std::cout << (format == "dot" ? flows::tools::dot_of(**compiled)
                                  : flows::tools::mermaid_of(**compiled));
    return 0;
  }
  return failed({model::Errc::not_found, path + ": there is no Flow '" + name + "'"});
}

void print(const flows::tools::SuiteResult& suite) {
  if (!suite.problems.empty()) std::cout << flows::to_string(suite.problems) << "\n";
  for (const auto& test : suite.tests) {
    std::cout << (test.failures.empty() ? "ok    " : "FAIL  ") << suite.file << ": " << test.name
              << " (" << static_cast<double>(test.took.count()) / 1000 << " ms)\n";
    for (const auto& failure : test.failures) {
      std::cout << "      " << suite.file << ':' << failure.place.line << ": " << failure.message
                << "\n";
    }
  }
}

flows::tools::SuiteResult run_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return {.file = path, .problems = {{"", {}, "", text.error().message}}, .tests = {}};
  const auto folder = std::filesystem::path(path).parent_path();
  return flows::tools::run_flow_tests(
      *text, path, [&](const std::string& name) -> std::optional<std::string> {
        auto bundle = read_file(folder / name);
        return bundle ? std::optional(std::move(*bundle)) : std::nullopt;
      });
}

// A file that can't be read fails as one whose tests do: the others run, and the results of all are
// written.
int test(const std::vector<std::string>& paths, const std::string& junit) {
  std::vector<flows::tools::SuiteResult> suites;
  bool passed = true;
  for (const auto& path : paths) {
    suites.push_back(run_file(path));
    passed = passed && suites.back().passed();
    print(suites.back());
  }
  if (!junit.empty()) {
    std::ofstream file(junit, std::ios::binary);
    file << flows::tools::junit_of(suites);
    if (!file.flush()) return failed({model::Errc::unavailable, junit + ": can't be written"});
  }
  return passed ? 0 : 1;
}

}  // namespace

void add_flow_commands(CLI::App& app, Action& action) {
  auto* flow = app.add_subcommand(
      "flow", "Checks, draws and tests Flows of files; versions of those of the daemon");
  flow->require_subcommand(1);

  struct Asked {
    std::vector<std::string> paths;
    std::string path;
    std::string flow;
    std::string format = "mermaid";
    std::string junit;
    bool strict = false;
  };
  auto asked = std::make_shared<Asked>();

  auto* checking = flow->add_subcommand("check", "Says what is wrong with bundles, line by line");
  checking->add_option("FILE", asked->paths, "YAML or JSON bundles")->required();
  checking->add_flag("--strict", asked->strict, "Exit 1 for warnings, too");
  checking->callback([asked, &action] {
    action = [asked](Client& client) {
      return check(asked->paths, asked->strict, client.options().json);
    };
  });

  auto* drawing = flow->add_subcommand("graph", "Draws a Flow");
  drawing->add_option("FILE", asked->path, "A YAML or JSON bundle")->required();
  drawing->add_option("FLOW", asked->flow, "The Flow's name; default: the first");
  drawing->add_option("--format", asked->format, "mermaid, dot, or svg (by Graphviz)")
      ->check(CLI::IsMember({"mermaid", "dot", "svg"}))
      ->capture_default_str();
  drawing->callback([asked, &action] {
    action = [asked](Client&) { return graph(asked->path, asked->flow, asked->format); };
  });

  auto* testing = flow->add_subcommand("test", "Runs conversations that a file describes");
  testing->add_option("FILE", asked->paths, "Test files, see flows/tools/README.md")->required();
  testing->add_option("--junit", asked->junit, "Write the results to this file as JUnit's XML");
  testing->callback(
      [asked, &action] { action = [asked](Client&) { return test(asked->paths, asked->junit); }; });
  add_version_commands(*flow, action);
}

}  // namespace conversed::ctl
