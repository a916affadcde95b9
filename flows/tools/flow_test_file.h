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

// A stub of an upstream or a language model, with its answer.
struct Stub {
  std::string method;  // empty: any
  std::string url;     // compared by text_fits; empty: any
  int status = 200;
  nlohmann::json body;
  std::string error;      // replaces the answer: `timeout`, `refused`, ...
  bool of_model = false;  // matches only calls to language models
  std::int64_t tokens = 0;
  std::int64_t times = 0;  // how many calls of one conversation it answers; 0: all
};

// A stub of a search in knowledge, with its result.
struct SearchStub {
  std::string store;  // empty: any
  std::string query;  // compared by text_fits; empty: any
  nlohmann::json hits = nlohmann::json::array();
  std::string error;       // replaces the hits
  std::int64_t times = 0;  // as above
};

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
  std::vector<Stub> stubs;           // tried before those of the file; the first match answers
  std::vector<SearchStub> searches;  // like `stubs`
  std::vector<TestStep> steps;
};

struct TestFile {
  std::string bundle;
  std::string endpoint;  // empty: the first one
  std::string flow;      // replaces the Endpoint's; empty: the Endpoint's
  std::map<std::string, std::string, std::less<>> environment;
  model::Timestamp now{};
  std::vector<Stub> stubs;
  std::vector<SearchStub> searches;
  std::vector<TestCase> tests;
};

// Reads the text of a test file, or lists all its problems.
[[nodiscard]] Checked<TestFile> read_test_file(std::string_view text, const std::string& file_name);

}  // namespace conversed::flows::tools
