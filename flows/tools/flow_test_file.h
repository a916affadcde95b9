#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/keys.h"
#include "flows/problem.h"
#include "flows/tools/stubs.h"
#include "flows/turn/turn.h"
#include "store/model/clock.h"
#include "store/model/event.h"

namespace conversed::flows::tools {

// The keys of a test file. docs/flows/testing.md describes them.
// Kept by: Reference.HasTheFactsOfTheCode.
inline constexpr std::int64_t most_answers = 1'000'000'000;
// 2026-06-16 10:00 UTC: a Tuesday in the middle of a year, far from special days of the calendar.
inline constexpr std::int64_t default_now = 1'781'604'000'000;
inline constexpr Key expectation_keys[]{
    may_have("text", Form::anything),       may_have("data", Form::anything),
    may_have("context", Form::any_mapping), may_have("profile", Form::any_mapping),
    may_have("calls", Form::anything),      may_have("searches", Form::anything),
    may_have("node", Form::text),           may_have("state", Form::text),
    may_have("error", Form::text),          may_have("log", Form::text)};
inline constexpr Key input_keys[]{may_have("text", Form::text), may_have("data", Form::anything)};
inline constexpr Key step_keys[]{
    may_have("user", Form::text_or_mapping).of(input_keys), may_have("inject", Form::anything),
    may_have("followUp", Form::anything),
    may_have("advance", Form::duration)
        .within(std::chrono::milliseconds(1), std::chrono::hours(24 * 366)),
    may_have("expect", Form::mapping).of(expectation_keys)};
inline constexpr Key tool_call_keys[]{must_have("tool", Form::text),
                                      may_have("arguments", Form::anything)};
inline constexpr Key call_stub_keys[]{
    may_have("method", Form::text),
    may_have("url", Form::text),
    may_have("status", Form::number).within(100, 599).by_default(200),
    may_have("body", Form::anything),
    may_have("error", Form::text),
    may_have("llm", Form::text_or_mappings).of(tool_call_keys),
    may_have("tokens", Form::number).within(0, most_answers),
    may_have("times", Form::number).within(1, most_answers)};
inline constexpr Key hit_keys[]{may_have("id", Form::anything), may_have("source", Form::anything),
                                may_have("text", Form::anything), may_have("data", Form::anything),
                                may_have("score", Form::anything)};
inline constexpr Key search_stub_keys[]{
    may_have("store", Form::text), may_have("query", Form::text),
    may_have("hits", Form::texts_and_mappings).of(hit_keys), may_have("error", Form::text),
    may_have("times", Form::number).within(1, most_answers)};
inline constexpr Key test_keys[]{must_have("name", Form::name),
                                 may_have("context", Form::any_mapping),
                                 may_have("profile", Form::any_mapping),
                                 may_have("calls", Form::mappings).of(call_stub_keys),
                                 may_have("searches", Form::mappings).of(search_stub_keys),
                                 may_have("splits", Form::text_map),
                                 must_have("steps", Form::mappings).of(step_keys)};
inline constexpr Key test_file_keys[]{
    must_have("bundle", Form::text),
    may_have("endpoint", Form::text),
    may_have("flow", Form::text),
    may_have("environment", Form::text_map),
    may_have("now", Form::number).within(0, std::int64_t{1} << 45).by_default(default_now),
    may_have("calls", Form::mappings).of(call_stub_keys),
    may_have("searches", Form::mappings).of(search_stub_keys),
    may_have("splits", Form::text_map),
    must_have("tests", Form::mappings).of(test_keys)};

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

// The branch that a `split` Node takes.
struct SplitChoice {
  std::string node;  // its address
  std::string branch;
  Place place;
};

struct TestCase {
  std::string name;
  nlohmann::json context = nlohmann::json::object();
  nlohmann::json profile = nlohmann::json::object();
  StubList stubs;                   // tried before those of the file
  std::vector<SplitChoice> splits;  // instead of the file's
  std::vector<TestStep> steps;
};

struct TestFile {
  std::string bundle;
  std::string endpoint;  // empty: the first one
  std::string flow;      // replaces the Endpoint's; empty: the Endpoint's
  std::map<std::string, std::string, std::less<>> environment;
  model::Timestamp now{};
  StubList stubs;
  std::vector<SplitChoice> splits;
  std::vector<TestCase> tests;
};

// The choices of the file and of one of its tests, which may be null.
[[nodiscard]] SetBranches branches_of(const TestFile& file, const TestCase* test);
// The choices of the file and its tests that none of the Flows has.
[[nodiscard]] Problems unknown_choices(const TestFile& file, const std::string& file_name,
                                       const std::vector<std::shared_ptr<const Flow>>& flows);

// Reads the text of a test file, or lists all its problems.
[[nodiscard]] Checked<TestFile> read_test_file(std::string_view text, const std::string& file_name);

// The answer to the call by the text of a stub, such as `{status: 404}`, or lists its problems.
[[nodiscard]] Checked<model::CallResult> read_answer(std::string_view text,
                                                     const model::PendingCall& call);

}  // namespace conversed::flows::tools
