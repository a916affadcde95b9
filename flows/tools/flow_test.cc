#include "flows/tools/flow_test.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "flows/bundle/loader.h"
#include "flows/json_members.h"
#include "flows/lexicon/lexicon.h"
#include "flows/tools/flow_test_file.h"
#include "flows/tools/match.h"
#include "flows/turn/standing.h"

namespace conversed::flows::tools {
namespace {

using model::Errc;
using nlohmann::json;

// The library of a test's Turns: the Flows and lexicons of a bundle.
class BundleLibrary final : public Library {
 public:
  // The bundle was checked, so its Flows compile.
  explicit BundleLibrary(const model::Bundle& bundle) {
    for (const auto& flow : bundle.flows) {
      if (auto compiled = Flow::compile(flow.definition)) flows_.emplace(flow.name, *compiled);
    }
    for (const auto& source : bundle.lexicons) {
      std::vector<lexicon::Entry> entries;
      for (const auto& entry : source.entries) {
        entries.push_back({entry.main_keyphrase, entry.keyphrases, entry.slots, entry.data});
      }
      lexicons_.emplace(source.name, std::make_shared<const lexicon::Lexicon>(
                                         source.name, source.name, std::move(entries)));
    }
  }

  [[nodiscard]] model::Result<FoundFlow> flow(const std::string& name,
                                              std::int64_t) const override {
    const auto found = flows_.find(name);
    if (found == flows_.end()) return model::fail(Errc::not_found, "there is no such Flow");
    return FoundFlow{found->second, 1};
  }
  [[nodiscard]] model::Result<std::shared_ptr<const lexicon::Lexicon>> find_lexicon(
      const std::string& name) const override {
    const auto found = lexicons_.find(name);
    if (found == lexicons_.end()) return model::fail(Errc::not_found, "there is no such lexicon");
    return found->second;
  }

 private:
  std::map<std::string, std::shared_ptr<const Flow>> flows_;
  std::map<std::string, std::shared_ptr<const lexicon::Lexicon>> lexicons_;
};

// The common part of all conversations of a file.
struct Stage {
  const TestFile& file;
  const BundleLibrary& library;
  const Limits& limits;
  std::shared_ptr<const Flow> flow{};
  model::ProjectAssets assets{};
  model::Endpoint endpoint{};
};

class Conversation {
 public:
  Conversation(const Stage& stage, const TestCase& test)
      : stage_(stage), test_(test), now_(stage.file.now) {
    session_.context = test.context;
    session_.started_at = now_;
    // A test with a context tests a conversation that is under way.
    if (!test.context.empty()) session_.last_activity_at = now_;
    profile_.project_id = "project";
    profile_.user_id = "user";
    profile_.data = test.profile;
  }

  std::vector<Failure> run() {
    for (const auto& step : test_.steps) {
      if (step.event) take(step);
      if (failures_.empty() && step.expect) judge(*step.expect);
      if (failures_.empty() && !done_.error.empty() && (!step.expect || !step.expect->error)) {
        fail(step.place, "the Turn failed: " + done_.error);
      }
      if (!failures_.empty()) break;
    }
    return std::move(failures_);
  }

 private:
  void fail(Place place, std::string message) { failures_.push_back({place, std::move(message)}); }

  void take(const TestStep& step) {
    done_ = {};
    if (step.event == model::EventType::timer) return advance(step);
    if (session_.busy()) {
      return fail(step.place, "the session sleeps, and inputs wait; advance the time first");
    }
    auto event = new_event(*step.event);
    event.text = step.text;
    event.data = step.data;
    run_turns(std::move(event), step.place);
  }

  // Timers on the way fire at their times.
  void advance(const TestStep& step) {
    const auto until = now_ + step.time;
    while (failures_.empty() && timer_ && timer_->due_at <= until) {
      const auto timer = *std::exchange(timer_, std::nullopt);
      now_ = std::max(now_, *timer.due_at);
      auto event =
          new_event(timer.is_time_out ? model::EventType::time_out : model::EventType::timer);
      event.claim = model::Claim{model::Claim::Kind::timer, timer.id};
      run_turns(std::move(event), step.place);
    }
    now_ = until;
  }

  model::Event new_event(model::EventType type) {
    model::Event event;
    event.id = "input" + std::to_string(++events_);
    event.type = type;
    event.session = {"project", "endpoint", "user", "session"};
    event.accepted_at = now_;
    event.trace_id = std::string(32, '0');
    return event;
  }

  // A time-out is obsolete when its question no longer waits.
  void take_timers(const model::Effects& effects) {
    if (timer_ && timer_->is_time_out && !waits_for_time_out(session_, timer_->id)) timer_.reset();
    if (effects.time_out) timer_ = effects.time_out;
    if (effects.call && effects.call->due_at) timer_ = effects.call;
  }

  // Runs the event's Turn and the Turns of the calls that it causes.
  void run_turns(model::Event event, Place place) {
    while (true) {
      auto before = session_;
      auto effects = run_turn({.flow = *stage_.flow,
                               .assets = stage_.assets,
                               .endpoint = stage_.endpoint,
                               .session = std::move(session_),
                               .profile = profile_,
                               .event = event,
                               .now = now_,
                               .limits = stage_.limits,
                               .flow_version = 1,
                               .library = &stage_.library});
      if (!effects) {
        done_.error = effects.error().message;
        effects = failure_effects(std::move(before), stage_.endpoint, event, now_);
      }
      session_ = std::move(effects->session);
      if (effects->profile) profile_ = std::move(*effects->profile);
      std::move(effects->outputs.begin(), effects->outputs.end(),
                std::back_inserter(done_.outputs));
      std::move(effects->log.begin(), effects->log.end(), std::back_inserter(done_.log));
      take_timers(*effects);
      if (!effects->call || effects->call->due_at) return;
      auto answer =
          effects->call->http ? ask(*effects->call, place) : search(*effects->call, place);
      if (!answer) return;
      event = std::move(*answer);
    }
  }

  // The first matching stub that has answers left.
  template <typename Stubs, typename Fits>
  auto first_that(const Stubs& of_test, const Stubs& of_file, const Fits& fits) {
    const typename Stubs::value_type* found = nullptr;
    for (const auto* list : {&of_test, &of_file}) {
      for (const auto& stub : *list) {
        if (found == nullptr && (stub.times == 0 || used_[&stub] < stub.times) && fits(stub)) {
          found = &stub;
        }
      }
    }
    if (found != nullptr) ++used_[found];
    return found;
  }

  model::Event result_event(model::CallResult result) {
    auto event = new_event(model::EventType::call_result);
    event.result = std::move(result);
    return event;
  }

  std::optional<model::Event> search(const model::PendingCall& call, Place place) {
    const auto& query = *call.search;
    done_.searches.push_back({{"store", query.store},
                              {"sources", query.sources},
                              {"query", query.text},
                              {"limit", query.limit}});
    const auto* found =
        first_that(test_.searches, stage_.file.searches, [&](const SearchStub& stub) {
          return (stub.store.empty() || stub.store == query.store) &&
                 (stub.query.empty() || text_fits(query.text, stub.query));
        });
    if (found == nullptr) {
      fail(place, "no stub under 'searches' fits '" + query.text + "' in " + query.store);
      return std::nullopt;
    }
    json hits = json::array();
    for (const auto& hit : found->hits) {
      if (hits.size() < query.limit) hits.push_back(hit);
    }
    return result_event({.call_id = call.id,
                         .status = found->error.empty() ? 200 : 0,
                         .body = {{"hits", std::move(hits)}},
                         .error_code = found->error,
                         .error_message = found->error});
  }

  std::optional<model::Event> ask(const model::PendingCall& call, Place place) {
    const auto& http = *call.http;
    json body = json::parse(http.body, nullptr, false);
    if (body.is_discarded()) body = http.body;
    done_.calls.push_back({{"method", http.method}, {"url", http.url}, {"body", body}});
    const auto* found = first_that(test_.stubs, stage_.file.stubs, [&](const Stub& stub) {
      return (stub.method.empty() || stub.method == http.method) &&
             (stub.url.empty() || text_fits(http.url, stub.url)) &&
             (!stub.of_model || http.to_model);
    });
    if (found == nullptr) {
      fail(place, "no stub under 'calls' fits " + http.method + ' ' + http.url);
      return std::nullopt;
    }
    model::CallResult result{.call_id = call.id,
                             .status = found->error.empty() ? found->status : 0,
                             .body = found->body,
                             .error_code = found->error,
                             .error_message = found->error,
                             .model_tokens = http.to_model ? found->tokens : 0};
    if (found->error.empty() && found->status >= 400) {
      result.error_code = "status";
      result.error_message = "the upstream answered with status " + std::to_string(found->status);
    }
    return result_event(std::move(result));
  }

  // The place where the Flow waits. Empty if it has ended.
  [[nodiscard]] std::string waits_at() const {
    const auto places = standings(session_.flow_state, session_.execution);
    return places.empty() ? "" : places.back().at;
  }

  // The values after the step, by their names in the file.
  [[nodiscard]] json values() const {
    json texts = json::array();
    json data = json::array();
    for (const auto& output : done_.outputs) {
      texts.push_back(output.text);
      data.push_back(output.data);
    }
    const std::string* state = find_text(session_.flow_state, "state");
    return {{"text", std::move(texts)},    {"data", std::move(data)},
            {"context", session_.context}, {"profile", profile_.data},
            {"calls", done_.calls},        {"searches", done_.searches},
            {"node", waits_at()},          {"state", state == nullptr ? default_state : *state}};
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

  const Stage& stage_;
  const TestCase& test_;
  model::Timestamp now_;
  model::Session session_;
  model::Profile profile_;
  std::optional<model::PendingCall> timer_;  // the timer that the session or its question waits for
  int events_ = 0;
  std::map<const void*, std::int64_t> used_;  // how often each stub has answered

  struct Done {
    std::vector<model::Output> outputs{};
    json calls = json::array();
    json searches = json::array();
    std::vector<std::string> log{};
    std::string error{};
  };
  Done done_;  // since the beginning of the step
  std::vector<Failure> failures_;
};

// Sets the Endpoint and the Flow that the file names. A problem if the bundle lacks one.
std::optional<std::string> set_stage(Stage& stage, const model::Bundle& bundle) {
  const auto& file = stage.file;
  std::string flow = file.flow;
  for (const auto& endpoint : bundle.endpoints) {
    if (!file.endpoint.empty() && endpoint.name != file.endpoint) continue;
    stage.endpoint.name = endpoint.name;
    stage.endpoint.session_expiry = endpoint.session_expiry;
    stage.endpoint.error_text = endpoint.error_text;
    if (flow.empty()) flow = endpoint.flow;
    break;
  }
  if (!file.endpoint.empty() && stage.endpoint.name.empty()) {
    return "the bundle has no Endpoint '" + file.endpoint + "'";
  }
  if (flow.empty() && bundle.flows.size() == 1) flow = bundle.flows.front().name;
  if (flow.empty()) return "say by 'flow' which Flow to run: the bundle has no Endpoint";
  auto found = stage.library.flow(flow, 0);
  if (!found) return "the bundle has no Flow '" + flow + "'";
  stage.flow = std::move(found->flow);
  stage.endpoint.id = "endpoint";
  stage.endpoint.project_id = "project";
  stage.endpoint.flow_id = flow;
  stage.endpoint.url_token = std::string(64, '0');
  stage.assets.project_id = "project";
  for (const auto& token : bundle.tokens) stage.assets.tokens.emplace(token.label, token.script);
  for (const auto& one : bundle.connections) stage.assets.connection_ids[one.name] = one.name;
  for (const auto& one : bundle.flows) stage.assets.flow_ids[one.name] = one.name;
  return std::nullopt;
}

Checked<std::vector<TestResult>> run_tests(std::string_view text, const std::string& file_name,
                                           const ReadFile& read, const Limits& limits) {
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
  const BundleLibrary library(*bundle);
  Stage stage{.file = *file, .library = library, .limits = limits};
  if (auto wrong = set_stage(stage, *bundle)) return refused(std::move(*wrong));
  std::vector<TestResult> results;
  for (const auto& test : file->tests) {
    const auto began = std::chrono::steady_clock::now();
    TestResult result{.name = test.name, .failures = Conversation(stage, test).run()};
    result.took = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - began);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

bool SuiteResult::passed() const {
  return problems.empty() && std::all_of(tests.begin(), tests.end(), [](const TestResult& test) {
           return test.failures.empty();
         });
}

SuiteResult run_flow_tests(std::string_view text, const std::string& file_name,
                           const ReadFile& read, const Limits& limits) {
  auto tests = run_tests(text, file_name, read, limits);
  if (!tests) return {.file = file_name, .problems = std::move(tests.error())};
  return {.file = file_name, .tests = std::move(*tests)};
}

}  // namespace conversed::flows::tools
