#include "flows/tools/flow_test_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "flows/bundle/loader.h"
#include "flows/error_codes.h"
#include "flows/fields.h"
#include "flows/node_types.h"
#include "flows/tools/match.h"

namespace conversed::flows::tools {
namespace {

using model::EventType;
using nlohmann::json;
using std::chrono::milliseconds;

// Expected texts, at any depth, may be regular expressions.
void check_patterns(const View& view) {
  const Located& value = view.value();
  if (value.is_text()) {
    if (auto wrong = wrong_pattern(value.text())) view.problem(std::move(*wrong));
  }
  for (const View& item : view.items()) check_patterns(item);
  for (const auto& member : value.members()) check_patterns(view.member(member));
}

json value_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found ? found->value().to_json() : json();
}

json object_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found && found->expect_mapping() ? found->value().to_json() : json::object();
}

std::optional<std::string> text_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found ? found->text() : std::nullopt;
}

// The answer of a model's server: a text, or a list of tools that the model asks for.
json model_answer(const View& view) {
  json message = {{"role", "assistant"}, {"content", nullptr}};
  if (!view.value().is_array()) {
    message["content"] = view.text().value_or("");
  } else {
    json calls = json::array();
    for (std::size_t i = 0; i < view.value().items().size(); ++i) {
      const Fields fields(view.item(i), tool_call_keys);
      json arguments = value_of(fields, "arguments");
      if (arguments.is_null()) arguments = json::object();
      // A text may be any arguments, also ones that are not JSON.
      const std::string text =
          arguments.is_string() ? arguments.get<std::string>() : arguments.dump();
      calls.push_back({{"id", "call_" + std::to_string(i + 1)},
                       {"type", "function"},
                       {"function", {{"name", fields.text("tool")}, {"arguments", text}}}});
    }
    message["tool_calls"] = std::move(calls);
  }
  return {{"choices", {{{"index", 0}, {"message", std::move(message)}}}}};
}

// A code that no call fails with. A branch that the code chooses would never run.
std::string error_of(const Fields& fields) {
  auto code = fields.optional_text("error");
  if (!code.empty() && std::ranges::find(call_error_codes, code) == call_error_codes.end()) {
    fields.find("error")->problem("no call fails with the code '" + code + "'" +
                                  known_words(code, call_error_codes));
  }
  return code;
}

SearchStub read_search_stub(const View& view) {
  const Fields fields(view, search_stub_keys);
  SearchStub stub;
  stub.store = fields.optional_text("store");
  stub.query = fields.optional_text("query");
  fields.each("hits", [&](const View& item) {
    json hit = {{"id", "chunk" + std::to_string(stub.hits.size() + 1)},
                {"source", ""},
                {"text", ""},
                {"data", nullptr},
                {"score", 0.5}};
    if (item.value().is_text()) {
      hit["text"] = item.value().text();
    } else {
      const Fields parts(item, hit_keys);
      if (item.value().is_object()) hit.update(item.value().to_json());
    }
    stub.hits.push_back(std::move(hit));
  });
  stub.error = error_of(fields);
  stub.times = fields.integer("times").value_or(0);
  return stub;
}

Stub read_stub(const View& view) {
  const Fields fields(view, call_stub_keys);
  Stub stub;
  stub.method = fields.optional_text("method");
  stub.url = fields.optional_text("url");
  if (const auto url = fields.find("url")) check_patterns(*url);
  stub.status = static_cast<int>(fields.integer("status").value_or(stub.status));
  stub.body = value_of(fields, "body");
  if (const auto llm = fields.find("llm")) {
    if (fields.find("body")) llm->problem("a stub has `body` or `llm`; remove one");
    stub.of_model = true;
    stub.body = model_answer(*llm);
  }
  stub.error = error_of(fields);
  stub.tokens = fields.integer("tokens").value_or(0);
  stub.times = fields.integer("times").value_or(0);
  return stub;
}

void read_stubs(const Fields& fields, StubList& into) {
  fields.each("calls", [&](const View& item) { into.calls.push_back(read_stub(item)); });
  fields.each("searches",
              [&](const View& item) { into.searches.push_back(read_search_stub(item)); });
}

Expectation read_expectation(const View& view) {
  const Fields fields(view, expectation_keys);
  Expectation expected;
  expected.place = view.value().place();
  for (const auto* name :
       {"text", "data", "context", "profile", "calls", "searches", "node", "state"}) {
    const auto found = fields.find(name);
    if (!found) continue;
    check_patterns(*found);
    expected.values.emplace_back(name, found->value().to_json());
  }
  for (const auto* name : {"context", "profile"}) {
    if (const auto found = fields.find(name)) (void)found->expect_mapping();
  }
  for (const auto* name : {"node", "state"}) (void)text_of(fields, name);
  if (const auto text = fields.find("text")) {
    if (!text->value().is_array()) (void)text->text();
    for (const View& item : text->items()) (void)item.text();
    json& texts = expected.values.front().second;
    if (!texts.is_array()) texts = json::array({texts});
  }
  expected.error = text_of(fields, "error");
  expected.log = text_of(fields, "log");
  if (const auto log = fields.find("log")) check_patterns(*log);
  return expected;
}

// An input: a text, a mapping of `text` and `data`, or, for an inject, the data itself.
void read_input(const View& view, TestStep& step) {
  const auto& value = view.value();
  if (value.is_text()) {
    step.text = value.text();
    return;
  }
  const bool both = value.is_object() && !value.members().empty() &&
                    std::all_of(value.members().begin(), value.members().end(),
                                [](const auto& m) { return m.name == "text" || m.name == "data"; });
  if (!both && step.event != EventType::user_message && value.is_object()) {
    step.data = value.to_json();
    return;
  }
  if (!value.is_object()) return view.problem("expected a text in quotes, or a mapping");
  const Fields fields(view, input_keys);
  step.text = text_of(fields, "text");
  step.data = value_of(fields, "data");
}

TestStep read_step(const View& view) {
  constexpr std::array<std::pair<std::string_view, EventType>, 4> events{
      {{"user", EventType::user_message},
       {"inject", EventType::inject},
       {"followUp", EventType::follow_up},
       {"advance", EventType::timer}}};
  const Fields fields(view, step_keys);
  TestStep step;
  step.place = view.value().place();
  for (const auto& [name, event] : events) {
    const auto found = fields.find(name);
    if (!found) continue;
    if (step.event) found->problem("a step does one thing; write another step");
    step.event = event;
    if (event == EventType::timer) {
      step.time = fields.duration(name).value_or(milliseconds(0));
    } else {
      read_input(*found, step);
    }
  }
  if (const auto expect = fields.find("expect")) {
    step.expect = read_expectation(*expect);
  } else if (!step.event) {
    view.problem("a step needs one of user, inject, followUp, advance and expect");
  }
  return step;
}

std::vector<SplitChoice> read_choices(const Fields& fields) {
  std::vector<SplitChoice> choices;
  const auto found = fields.find("splits");
  if (!found || !found->expect_mapping()) return choices;
  for (const auto& member : found->value().members()) {
    const View view = found->member(member);
    if (auto branch = view.text()) {
      choices.push_back({member.name, std::move(*branch), view.value().place()});
    }
  }
  return choices;
}

TestCase read_case(const View& view) {
  const Fields fields(view, test_keys);
  TestCase test;
  test.name = fields.name("name");
  test.context = object_of(fields, "context");
  test.profile = object_of(fields, "profile");
  read_stubs(fields, test.stubs);
  test.splits = read_choices(fields);
  fields.each("steps", [&](const View& item) { test.steps.push_back(read_step(item)); });
  return test;
}

}  // namespace

SetBranches branches_of(const TestFile& file, const TestCase* test) {
  SetBranches branches;
  for (const auto& choice : file.splits) branches[choice.node] = choice.branch;
  if (test == nullptr) return branches;
  for (const auto& choice : test->splits) branches[choice.node] = choice.branch;
  return branches;
}

Problems unknown_choices(const TestFile& file, const std::string& file_name,
                         const std::vector<std::shared_ptr<const Flow>>& flows) {
  std::map<std::string, Names, std::less<>> known;  // branches of splits
  Names addresses;
  for (const auto& flow : flows) {
    for (const auto& slot : flow->slots()) {
      if (slot.type->name != "split") continue;
      Names names;
      for (const auto& way : slot.outline.ways) names.insert(way.name);
      // A choice holds for the splits of all Flows with that address.
      const auto [found, is_first] = known.emplace(slot.address, names);
      if (!is_first)
        std::erase_if(found->second, [&](const auto& name) { return !names.contains(name); });
      addresses.insert(slot.address);
    }
  }
  Problems problems;
  const auto check = [&](const std::vector<SplitChoice>& choices) {
    for (const auto& [node, branch, place] : choices) {
      const auto found = known.find(node);
      if (found == known.end()) {
        problems.push_back({file_name, place, "splits",
                            "no split has the id '" + node + "'" +
                                (known.empty() ? "" : known_words(node, addresses))});
      } else if (!found->second.contains(branch)) {
        problems.push_back({file_name, place, "splits",
                            std::string("the split '")
                                .append(node)
                                .append("' has no branch '")
                                .append(branch)
                                .append("'")
                                .append(known_words(branch, found->second))});
      }
    }
  };
  check(file.splits);
  for (const auto& test : file.tests) check(test.splits);
  return problems;
}

Checked<model::CallResult> read_answer(std::string_view text, const model::PendingCall& call) {
  const auto located = read_source(text, "", {});
  if (!located) return tl::unexpected<Problems>(located.error());
  Report report{""};
  const View view(*located, report);
  const bool is_of_model = call.http && call.http->to_model;
  if (!call.search && !is_of_model && located->find("llm") != nullptr) {
    view.problem("this call asks no language model; give `status` and `body`");
  }
  auto answer =
      call.search ? answer_of(read_search_stub(view), call) : answer_of(read_stub(view), call);
  if (report.size() > 0) return tl::unexpected<Problems>(report.take());
  return answer;
}

Checked<TestFile> read_test_file(std::string_view text, const std::string& file_name) {
  auto located = read_source(text, file_name, {});
  if (!located) return tl::unexpected<Problems>(std::move(located.error()));
  Report report{file_name};
  const View root(*located, report);
  const Fields fields(root, test_file_keys);
  TestFile file;
  file.bundle = fields.text("bundle");
  file.endpoint = fields.optional_text("endpoint");
  file.flow = fields.optional_text("flow");
  file.now = model::from_unix_ms(fields.integer("now").value_or(default_now));
  if (const auto environment = fields.find("environment")) {
    for (const auto& member : environment->value().members()) {
      if (auto value = environment->member(member).text()) {
        file.environment.emplace(member.name, std::move(*value));
      }
    }
  }
  read_stubs(fields, file.stubs);
  file.splits = read_choices(fields);
  const auto tests = fields.find("tests");
  if (tests && tests->value().is_array() && tests->value().items().empty()) {
    tests->problem("there are no tests; write one");
  }
  fields.each("tests", [&](const View& item) { file.tests.push_back(read_case(item)); });
  if (report.size() > 0) return tl::unexpected<Problems>(report.take());
  return file;
}

}  // namespace conversed::flows::tools
