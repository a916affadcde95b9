#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flows/problem.h"
#include "flows/tools/coverage.h"
#include "store/model/effects.h"
#include "store/model/event.h"

namespace conversed::flows::tools {

// Runs files of conversations that test a Flow. docs/flows/testing.md has their format.

// One expectation that is not met.
struct Failure {
  Place place;  // of the expectation or of the step
  std::string message;
};

// The result of one conversation.
struct TestResult {
  std::string name;
  std::chrono::microseconds took{};
  std::vector<Failure> failures{};  // of the first step that fails; empty: passed
  // If it failed: its steps up to there, as `flow chat` shows them, and the Nodes of the last one.
  std::vector<std::string> dialogue{};
};

struct SuiteResult {
  std::string file;
  Problems problems{};  // of the file or of its bundle; if there are any, no test ran
  std::vector<TestResult> tests{};
  std::string bundle{};                // as the file names it
  std::optional<Coverage> coverage{};  // of the tests that ran; empty if none could

  [[nodiscard]] bool passed() const;
};

// The text of a file by its name in the test file. Nothing if it can't be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& name)>;

// Runs the script of a `code` Node.
using RunScript = std::function<model::CallResult(const model::PendingCall&)>;

// Runs the conversations of a test file one after the other, each in its own session: those whose
// name contains `only`. The file sets the time. Without `run_script` each script fails with
// "sandbox_failed". Thread-safe.
[[nodiscard]] SuiteResult run_flow_tests(std::string_view text, const std::string& file_name,
                                         const ReadFile& read, std::string_view only = {},
                                         const RunScript& run_script = {});

// The results as JUnit XML for CI servers. Failures have file and line.
[[nodiscard]] std::string junit_of(const std::vector<SuiteResult>& suites);

}  // namespace conversed::flows::tools
