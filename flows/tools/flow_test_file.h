#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/problem.h"
#include "flows/tools/stubs.h"
#include "store/model/clock.h"
#include "store/model/event.h"

namespace conversed::flows::tools {

// The expected state after a step.
struct Expectation {
  Place place;
  // Expected values, by their names in the file; compared by `difference`. `text` is a list.
  std::vector<std::pair<std::string, nlohmann::json>> values;
  std::optional<std::string> error;  // the Turn fails, and its message contains this
  std::optional<std::string> log;    // one of the log's lines matches, by text_fits
};

struct TestStep {
  std::optional<model::EventType> event;  // `timer`: the time advances; empty: only expectations
  Place place;
  std::optional<std::string> text;
  nlohmann::json data;
  std::chrono::milliseconds time{};  // for `advance`
  std::optional<Expectation> expect;
};

struct TestCase {
  std::string name;
  nlohmann::json context = nlohmann::json::object();
  nlohmann::json profile = nlohmann::json::object();
  StubList stubs;  // tried before those of the file
  std::vector<TestStep> steps;
};

struct TestFile {
  std::string bundle;
  std::string endpoint;  // empty: the first one
  std::string flow;      // replaces the Endpoint's; empty: the Endpoint's
  std::map<std::string, std::string, std::less<>> environment;
  model::Timestamp now{};
  StubList stubs;
  std::vector<TestCase> tests;
};

// Reads the text of a test file, or lists all its problems.
[[nodiscard]] Checked<TestFile> read_test_file(std::string_view text, const std::string& file_name);

// The answer to the call by the text of a stub, such as `{status: 404}`, or lists its problems.
[[nodiscard]] Checked<model::CallResult> read_answer(std::string_view text,
                                                     const model::PendingCall& call);

}  // namespace conversed::flows::tools
