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
#include "store/model/clock.h"
#include "store/model/event.h"

namespace conversed::flows::tools {

// The answer of an upstream or of a language model.
struct Stub {
  std::string method;  // empty: any
  std::string url;     // fits as text_fits says; empty: any
  int status = 200;
  nlohmann::json body;
  std::string error;      // instead of an answer: `timeout`, `refused`, ...
  bool of_model = false;  // fits calls to language models only
  std::int64_t tokens = 0;
  std::int64_t times = 0;  // calls of one conversation that it answers; 0: all
};

// The result of a search in knowledge.
struct SearchStub {
  std::string store;  // empty: any
  std::string query;  // fits as text_fits says; empty: any
  nlohmann::json hits = nlohmann::json::array();
  std::string error;       // instead of hits
  std::int64_t times = 0;  // as above
};

// The state that a step has to lead to.
struct Expectation {
  Place place;
  // Values as `difference` takes them, by their names in the file; `text` is a list.
  std::vector<std::pair<std::string, nlohmann::json>> values;
  std::optional<std::string> error;  // the Turn fails, with this in its message
  std::optional<std::string> log;    // one of the lines, as text_fits says
};

struct TestStep {
  std::optional<model::EventType> event;  // `timer`: the time advances; nothing: only expectations
  Place place;
  std::optional<std::string> text;
  nlohmann::json data;
  std::chrono::milliseconds time{};  // of `advance`
  std::optional<Expectation> expect;
};

struct TestCase {
  std::string name;
  nlohmann::json context = nlohmann::json::object();
  nlohmann::json profile = nlohmann::json::object();
  std::vector<Stub> stubs;           // before those of the file; the first that fits answers
  std::vector<SearchStub> searches;  // likewise
  std::vector<TestStep> steps;
};

struct TestFile {
  std::string bundle;
  std::string endpoint;  // empty: the first one
  std::string flow;      // instead of the Endpoint's; empty: that
  std::map<std::string, std::string, std::less<>> environment;
  model::Timestamp now{};
  std::vector<Stub> stubs;
  std::vector<SearchStub> searches;
  std::vector<TestCase> tests;
};

// Reads the text of a test file, or lists all of its problems.
[[nodiscard]] Checked<TestFile> read_test_file(std::string_view text, const std::string& file_name);

}  // namespace conversed::flows::tools
