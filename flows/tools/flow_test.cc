#include "flows/tools/flow_test.h"

#include <algorithm>
#include <utility>

#include "flows/bundle/loader.h"
#include "flows/json_members.h"
#include "flows/tools/flow_test_file.h"
#include "flows/tools/match.h"
#include "flows/tools/rehearsal.h"
#include "flows/tools/trace.h"
#include "store/model/json.h"
#include "store/text/quantity.h"

namespace conversed::flows::tools {
namespace {

using nlohmann::json;

// The step as a line of `flow chat`.
std::string line_of(const TestStep& step) {
  if (step.event == model::EventType::timer) return "/wait " + text::duration_text(step.time);
  std::string line = step.event == model::EventType::inject      ? "/inject"
                     : step.event == model::EventType::follow_up ? "/followUp"
                                                                 : "";
  const auto add = [&](const std::string& part) { line += (line.empty() ? "" : " ") + part; };
  if (step.text) add(*step.text);
  if (!step.data.is_null()) add(model::json_text(step.data));
  return line;
}

class Conversation {
 public:
  Conversation(const Stage& stage, const TestFile& file, const TestCase& test, Coverage& coverage,
               const RunScript& run_script)
      : test_(test),
        run_script_(run_script),
        stubs_(test.stubs, file.stubs),
        trace_(&coverage),
        rehearsal_(
            stage, file.now, [this](const model::PendingCall& call) { return answer(call); },
            &trace_) {
    trace_.set_locale(stage.assets.locales.front());
    rehearsal_.prepare(test.context, test.profile);
    rehearsal_.choose(branches_of(file, &test));
  }

  TestResult run() {
    const auto began = std::chrono::steady_clock::now();
    run_steps();
    TestResult result{.name = test_.name,
                      .took = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::steady_clock::now() - began),
                      .failures = std::move(failures_)};
    if (!result.failures.empty()) result.dialogue = std::move(dialogue_);
    return result;
  }

 private:
  void run_steps() {
    for (const auto& step : test_.steps) {
      if (step.event) take(step);
      if (failures_.empty() && step.expect) judge(*step.expect);
      if (failures_.empty() && !done_.error.empty() && (!step.expect || !step.expect->error)) {
        fail(step.place, "the Turn failed: " + done_.error);
      }
      if (!failures_.empty()) break;
      std::erase_if(dialogue_, [](const std::string& line) { return line.starts_with(' '); });
    }
  }

  void fail(Place place, std::string message) { failures_.push_back({place, std::move(message)}); }

  void take(const TestStep& step) {
    calls_ = json::array();
    searches_ = json::array();
    place_ = step.place;
    const auto taken = step.event == model::EventType::timer
                           ? rehearsal_.advance(step.time)
                           : rehearsal_.take(*step.event, step.text, step.data);
    done_ = rehearsal_.take_done();
    note_dialogue(step);
    if (!taken && failures_.empty()) fail(step.place, taken.error().message);
  }

  void note_dialogue(const TestStep& step) {
    dialogue_.push_back("> " + line_of(step));
    for (const auto& node : trace_.take(rehearsal_, done_)) {
      for (auto& line : lines_of(node)) dialogue_.push_back(std::move(line));
    }
    for (const auto& output : done_.outputs) {
      dialogue_.push_back("< " + output.text);
      if (!output.data.is_null()) dialogue_.push_back("< data: " + model::json_text(output.data));
    }
    for (const auto& line : done_.log) dialogue_.push_back("# log: " + line);
    if (!done_.error.empty()) dialogue_.push_back("! the Turn failed: " + done_.error);
  }

  std::optional<model::CallResult> answer(const model::PendingCall& call) {
    if (call.code) return run(call);
    (call.search ? searches_ : calls_).push_back(request_of(call));
    auto found = stubs_.answer(call);
    trace_.calls(request_of(call), found);
    if (!found) {
      const std::string list = call.search ? "searches" : "calls";
      fail(place_, "no stub under '" + list + "' fits " + to_string(call));
    }
    return found;
  }

  std::optional<model::CallResult> run(const model::PendingCall& call) {
    model::CallResult result;
    result.call_id = call.id;
    if (run_script_) {
      result = run_script_(call);
    } else {
      result.error_code = "sandbox_failed";
      result.error_message = "there is no sandbox of scripts here";
    }
    trace_.calls(request_of(call), result);
    return result;
  }

  // The values after the step, by their names in the file.
  [[nodiscard]] json values() const {
    json texts = json::array();
    json data = json::array();
    for (const auto& output : done_.outputs) {
      texts.push_back(output.text);
      data.push_back(output.data);
    }
    const auto& session = rehearsal_.session();
    const std::string* state = find_text(session.flow_state, "state");
    return {{"text", std::move(texts)},
            {"data", std::move(data)},
            {"context", session.context},
            {"profile", rehearsal_.profile().data},
            {"calls", calls_},
            {"searches", searches_},
            {"node", rehearsal_.waits_at()},
            {"state", state == nullptr ? default_state : *state}};
  }

  void judge(const Expectation& expected) {
    if (expected.error) {
      if (done_.error.find(*expected.error) == std::string::npos) {
        fail(expected.place, "expected an error with '" + *expected.error + "', there is " +
                                 (done_.error.empty() ? "none" : "'" + done_.error + "'"));
      }
    } else if (!done_.error.empty()) {
      fail(expected.place, "the Turn failed: " + done_.error);
    }
    const json found = values();
    for (const auto& [name, wanted] : expected.values) {
      if (auto differs = difference(found[name], wanted)) {
        fail(expected.place, name + ": " + *differs);
      }
    }
    if (expected.log &&
        std::none_of(done_.log.begin(), done_.log.end(),
                     [&](const std::string& line) { return text_fits(line, *expected.log); })) {
      fail(expected.place, "log: no line fits '" + *expected.log + "'");
    }
  }

  const TestCase& test_;
  const RunScript& run_script_;
  Stubs stubs_;
  Trace trace_;
  Rehearsal rehearsal_;
  std::vector<std::string> dialogue_;  // lines about Nodes begin with a blank
  // Of the step:
  Place place_;
  Rehearsal::Done done_;
  json calls_ = json::array();
  json searches_ = json::array();
  std::vector<Failure> failures_;
};

Checked<SuiteResult> run_tests(std::string_view text, const std::string& file_name,
                               const ReadFile& read, std::string_view only,
                               const RunScript& run_script) {
  const auto refused = [&](std::string message) {
    return tl::unexpected(Problems{{file_name, {}, "", std::move(message)}});
  };
  const auto file = read_test_file(text, file_name);
  if (!file) return tl::unexpected(file.error());
  const auto source = read(file->bundle);
  if (!source) return refused("the bundle " + file->bundle + " can't be read");
  const auto bundle = load_bundle(*source, file->bundle, [&](std::string_view name) {
    const auto found = file->environment.find(name);
    return found == file->environment.end() ? std::nullopt : std::optional(found->second);
  });
  if (!bundle) return tl::unexpected(bundle.error());
  const auto stage = stage_of(*bundle, file->endpoint, file->flow);
  if (!stage) return refused(stage.error().message);
  auto flows = flows_of(*bundle, *stage);
  if (auto unknown = unknown_choices(*file, file_name, flows); !unknown.empty()) {
    return tl::unexpected(std::move(unknown));
  }
  SuiteResult suite{.file = file_name,
                    .bundle = file->bundle,
                    .coverage = Coverage(std::move(flows), bundle->locales.front())};
  for (const auto& test : file->tests) {
    if (test.name.find(only) == std::string::npos) continue;
    suite.tests.push_back(Conversation(*stage, *file, test, *suite.coverage, run_script).run());
  }
  return suite;
}

}  // namespace

bool SuiteResult::passed() const {
  return problems.empty() && std::all_of(tests.begin(), tests.end(), [](const TestResult& test) {
           return test.failures.empty();
         });
}

SuiteResult run_flow_tests(std::string_view text, const std::string& file_name,
                           const ReadFile& read, std::string_view only,
                           const RunScript& run_script) {
  auto suite = run_tests(text, file_name, read, only, run_script);
  if (!suite) return {.file = file_name, .problems = std::move(suite.error())};
  return std::move(*suite);
}

}  // namespace conversed::flows::tools
