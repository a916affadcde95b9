#include "daemon/ctl/files/flow_test.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/ctl/files/code_runs.h"
#include "daemon/ctl/files/graphviz.h"
#include "daemon/ctl/files/text_file.h"
#include "daemon/ctl/output/output.h"
#include "flows/tools/flow_test.h"

namespace conversed::ctl {
namespace {

using flows::tools::Coverage;
using flows::tools::SuiteResult;
using nlohmann::json;

SuiteResult run_file(const std::string& path, const std::string& only) {
  const auto text = read_file(path);
  if (!text) return {.file = path, .problems = {{"", {}, "", text.error().message}}};
  const auto folder = std::filesystem::path(path).parent_path();
  auto suite = flows::tools::run_flow_tests(
      *text, path,
      [&](const std::string& name) -> std::optional<std::string> {
        auto bundle = read_file(folder / name);
        return bundle ? std::optional(std::move(*bundle)) : std::nullopt;
      },
      only, run_script);
  suite.bundle = (folder / suite.bundle).lexically_normal();
  return suite;
}

void show(const SuiteResult& suite, bool only_failed) {
  if (!suite.problems.empty()) say_lines(flows::to_string(suite.problems));
  for (const auto& test : suite.tests) {
    const bool passed = test.failures.empty();
    if (passed && only_failed) continue;
    std::ostringstream took;
    took << static_cast<double>(test.took.count()) / 1000;
    say((passed ? "ok    " : "FAIL  ") + suite.file + ": " + test.name + " (" + took.str() +
        " ms)");
    for (const auto& line : test.dialogue) say("      " + line);
    for (const auto& failure : test.failures) {
      say("      " + suite.file + ':' + std::to_string(failure.place.line) + ": " +
          failure.message);
    }
  }
}

// The coverage of each bundle, by its path, by all test files together.
std::map<std::string, Coverage> coverage_of(const std::vector<SuiteResult>& suites) {
  std::map<std::string, Coverage> all;
  for (const auto& suite : suites) {
    if (!suite.coverage) continue;
    const auto [found, is_new] = all.emplace(suite.bundle, *suite.coverage);
    if (!is_new) found->second.add(*suite.coverage);
  }
  return all;
}

void show(const std::map<std::string, Coverage>& coverage) {
  for (const auto& [bundle, of_bundle] : coverage) {
    for (const auto& flow : of_bundle.report()) {
      say(bundle + ": " + to_string(flow));
      for (const auto& missed : flow.missed) say("      " + missed);
    }
  }
}

json to_json(const Coverage& coverage) {
  json flows = json::array();
  for (const auto& flow : coverage.report()) {
    flows.push_back({{"flow", flow.flow},
                     {"nodes", flow.nodes},
                     {"nodesRun", flow.nodes_run},
                     {"branches", flow.branches},
                     {"branchesTaken", flow.branches_taken},
                     {"missed", flow.missed}});
  }
  return flows;
}

json to_json(const SuiteResult& suite) {
  json problems = json::array();
  for (const auto& problem : suite.problems) {
    problems.push_back({{"line", problem.place.line}, {"message", problem.message}});
  }
  json tests = json::array();
  for (const auto& test : suite.tests) {
    json failures = json::array();
    for (const auto& failure : test.failures) {
      failures.push_back({{"line", failure.place.line}, {"message", failure.message}});
    }
    tests.push_back({{"name", test.name},
                     {"passed", test.failures.empty()},
                     {"microseconds", test.took.count()},
                     {"failures", std::move(failures)},
                     {"dialogue", test.dialogue}});
  }
  return {{"file", suite.file},
          {"passed", suite.passed()},
          {"problems", std::move(problems)},
          {"tests", std::move(tests)}};
}

// A picture has the Flows of one bundle.
model::Result<void> draw(const std::map<std::string, Coverage>& coverage, const std::string& path) {
  if (coverage.size() != 1) {
    return model::fail(model::Errc::invalid_argument,
                       "a picture shows one bundle; give the test files of one bundle");
  }
  const auto dot = coverage.begin()->second.dot();
  if (path.ends_with(".dot")) return write_file(path, dot);
  const auto picture = drawn_by_graphviz(dot);
  return picture ? write_file(path, *picture) : model::fail(picture.error());
}

}  // namespace

int flow_test(const FlowTestOptions& options) {
  if (!options.picture.empty() && !options.picture.ends_with(".svg") &&
      !options.picture.ends_with(".dot")) {
    return failed({model::Errc::invalid_argument,
                   options.picture + ": the name of a picture ends in .svg or .dot"});
  }
  std::vector<SuiteResult> suites;
  std::size_t failures = 0;
  std::size_t tests = 0;
  for (const auto& path : options.files) {
    suites.push_back(run_file(path, options.only));
    tests += suites.back().tests.size() + (suites.back().problems.empty() ? 0 : 1);
    failures += suites.back().problems.empty() ? 0 : 1;
    for (const auto& test : suites.back().tests) failures += test.failures.empty() ? 0 : 1;
  }
  if (tests == 0) {
    return failed({model::Errc::not_found, "no test's name contains '" + options.only + "'"});
  }
  if (options.json) {
    const auto coverage = coverage_of(suites);
    json report = json::array();
    for (const auto& suite : suites) {
      report.push_back(to_json(suite));
      if (!options.coverage || !suite.coverage) continue;
      report.back()["bundle"] = suite.bundle;
      report.back()["coverage"] = to_json(coverage.at(suite.bundle));
    }
    say_json(report);
  } else {
    if (options.watched) {
      say(std::to_string(failures) + " of " + std::to_string(tests) + " tests fail");
    }
    for (const auto& suite : suites) show(suite, options.watched);
    if (options.coverage) show(coverage_of(suites));
  }
  if (!options.junit.empty()) {
    const auto written = write_file(options.junit, flows::tools::junit_of(suites));
    if (!written) return failed(written.error());
  }
  if (!options.picture.empty()) {
    const auto drawn = draw(coverage_of(suites), options.picture);
    if (!drawn) return failed(drawn.error());
  }
  return failures == 0 || options.watched ? 0 : 1;
}

}  // namespace conversed::ctl
