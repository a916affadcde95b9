#include "daemon/ctl/files/flow_chat.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "daemon/ctl/files/code_runs.h"
#include "daemon/ctl/files/text_file.h"
#include "daemon/ctl/output/output.h"
#include "flows/bundle/loader.h"
#include "flows/tools/flow_test_file.h"
#include "flows/tools/rehearsal.h"
#include "flows/tools/stubs.h"
#include "flows/tools/trace.h"
#include "flows/turn/standing.h"
#include "store/model/clock.h"
#include "store/text/quantity.h"

namespace conversed::ctl {
namespace {

using flows::tools::Rehearsal;
using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

constexpr std::chrono::milliseconds longest_wait = std::chrono::hours(24 * 366);

// The parts of a conversation that its file decides.
struct Script {
  flows::tools::Stage stage{};
  flows::tools::StubList stubs{};
  flows::SetBranches branches{};
  model::Timestamp now{};
};

Result<Script> script_of(const FlowChatOptions& options) {
  const auto& path = options.file;
  auto text = read_file(path);
  if (!text) return fail(text.error());
  std::string bundle_path = path;
  flows::tools::TestFile file;
  file.now = model::SystemClock().now();
  const auto refuse = [](const flows::Problems& problems) {
    return fail(Errc::invalid_argument, flows::to_string(problems));
  };
  const auto source = flows::read_source(*text, path, {});
  if (!source) return refuse(source.error());
  if (source->find("bundle") != nullptr) {
    auto read = flows::tools::read_test_file(*text, path);
    if (!read) return refuse(read.error());
    file = std::move(*read);
    bundle_path = std::filesystem::path(path).parent_path() / file.bundle;
    text = read_file(bundle_path);
    if (!text) return fail(text.error());
  }
  const auto value_of = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = file.environment.find(name);
    if (found == file.environment.end()) return std::nullopt;
    return found->second;
  };
  const auto bundle = flows::load_bundle(*text, bundle_path, value_of,
                                         {.variables = flows::Variables::may_be_missing});
  if (!bundle) return refuse(bundle.error());
  auto stage =
      flows::tools::stage_of(*bundle, options.endpoint.empty() ? file.endpoint : options.endpoint,
                             options.flow.empty() ? file.flow : options.flow);
  if (!stage) return fail(stage.error().code, bundle_path + ": " + stage.error().message);
  const auto unknown = unknown_choices(file, path, flows_of(*bundle, *stage));
  if (!unknown.empty()) return refuse(unknown);
  return Script{std::move(*stage), std::move(file.stubs), branches_of(file, nullptr), file.now};
}

// One YAML value on a command's line.
Result<json> value_in(const std::string& text) {
  const auto read = flows::read_source(text, "", {});
  if (!read) return fail(Errc::invalid_argument, flows::to_string(read.error()));
  return read->to_json();
}

std::string without_blanks(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Runs the lines of the input. One thread.
class FlowChat {
 public:
  FlowChat(const Script& script, const FlowChatOptions& options)
      : json_(options.json),
        stubs_(script.stubs, none_),
        rehearsal_(
            script.stage, script.now,
            [this](const model::PendingCall& call) {
              auto answer = call.code ? run_script(call) : stubs_.answer(call);
              trace_.calls(flows::tools::request_of(call), answer);
              return answer;
            },
            options.trace ? &trace_ : nullptr) {
    rehearsal_.choose(script.branches);
    trace_.set_locale(script.stage.assets.locales.front());
  }

  void take(const std::string& line) {
    if (!line.starts_with('/') || line.starts_with("//")) {
      report(rehearsal_.take(model::EventType::user_message,
                             line.substr(line.starts_with("//") ? 1 : 0), nullptr));
      return show();
    }
    const auto end = std::min(line.find(' '), line.size());
    const auto command = std::ranges::find(commands, line.substr(0, end), &ChatCommand::name);
    if (command == commands.end()) {
      return report(fail(Errc::invalid_argument,
                         "there is no command " + line.substr(0, end) + "; /help lists them"));
    }
    report((this->*command->run)(without_blanks(line.substr(end))));
  }

  [[nodiscard]] bool ended() const { return ended_; }
  // Whether no line was refused.
  [[nodiscard]] bool good() const { return good_; }

 private:
  struct ChatCommand {
    std::string_view name;
    std::string_view arguments;
    std::string_view help;
    Result<void> (FlowChat::*run)(const std::string& arguments);
  };
  static const std::array<ChatCommand, 6> commands;

  Result<void> wait(const std::string& arguments) {
    const auto time = text::parse_duration(arguments);
    if (!time || *time > longest_wait) {
      return fail(Errc::invalid_argument, "write a time of at most a year, such as /wait 2h");
    }
    auto advanced = rehearsal_.advance(*time);
    show();
    return advanced;
  }

  // `[EVENT] {member: value}`: EVENT is the member `event` of the data.
  Result<void> inject(const std::string& arguments) {
    const auto brace = arguments.find('{');
    json data = json::object();
    if (brace != std::string::npos) {
      auto read = value_in(arguments.substr(brace));
      if (!read) return fail(read.error());
      data = std::move(*read);
    }
    if (const auto event = without_blanks(arguments.substr(0, brace)); !event.empty()) {
      data["event"] = event;
    }
    auto taken = rehearsal_.take(model::EventType::inject, std::nullopt, std::move(data));
    show();
    return taken;
  }

  // A stub, as test files have them.
  Result<void> answer(const std::string& arguments) {
    const auto call = rehearsal_.open_call();
    if (!call) return fail(Errc::conflict, "no call waits for an answer");
    auto result = flows::tools::read_answer(arguments, *call);
    if (!result) return fail(Errc::invalid_argument, flows::to_string(result.error()));
    rehearsal_.answer(std::move(*result));
    show();
    return {};
  }

  Result<void> context(const std::string&) {
    json state = {{"context", rehearsal_.session().context},
                  {"profile", rehearsal_.profile().data},
                  {"waitsAt", rehearsal_.waits_at()}};
    if (const auto due = rehearsal_.next_due()) {
      state["nextTimerIn"] = text::duration_text(*due - rehearsal_.now());
    }
    if (json_) {
      say_json(state);
    } else {
      say_lines(state.dump(2));
    }
    return {};
  }

  Result<void> help(const std::string&) {
    for (const auto& command : commands) {
      std::string line(command.name);
      if (!command.arguments.empty()) line.append(" ").append(command.arguments);
      line.resize(std::max<std::size_t>(line.size() + 2, 26), ' ');
      say(line.append(command.help));
    }
    say("//TEXT                    Say a text that begins with a slash");
    return {};
  }

  Result<void> quit(const std::string&) {
    ended_ = true;
    return {};
  }

  void report(const Result<void>& done) {
    if (done) return;
    good_ = false;
    note("! " + done.error().message);
  }

  // Shows what the Turns have done, and what the session waits for.
  void show() {
    const auto done = rehearsal_.take_done();
    for (const auto& node : trace_.take(rehearsal_, done)) {
      if (json_) {
        say_json(to_json(node));
      } else {
        for (const auto& line : lines_of(node)) say(line);
      }
    }
    for (const auto& output : done.outputs) {
      if (json_) {
        say_json({{"text", output.text}, {"data", output.data}});
        continue;
      }
      say("< " + output.text);
      if (!output.data.is_null()) say("  data: " + output.data.dump());
    }
    for (const auto& line : done.log) tell("log", "# log: ", line);
    if (!done.error.empty()) tell("error", "! the Turn failed: ", done.error);
    if (const auto& call = rehearsal_.open_call()) {
      const std::string hint = call->search           ? "/answer {hits: [a text]}"
                               : call->http->to_model ? "/answer {llm: a text}"
                                                      : "/answer {status: 200, body: {}}";
      tell("waitsFor", "? waits for ", flows::tools::to_string(*call) + "; give it with " + hint);
    } else if (rehearsal_.session().busy()) {
      const auto left = *rehearsal_.next_due() - rehearsal_.now();
      tell("waitsFor", "? sleeps; advance the time with ", "/wait " + text::duration_text(left));
    } else if (const auto burst = flows::collects_until(rehearsal_.session().flow_state)) {
      tell("waitsFor", "? collects events; advance the time with ",
           "/wait " + text::duration_text(*burst - rehearsal_.now()));
    } else if (flows::waits_for_event_until(rehearsal_.session().flow_state)) {
      tell("waitsFor", "? waits for an event; give it with ", "/inject EVENT {id: 7}");
    }
    std::cout.flush();
  }

  void tell(const char* member, const char* mark, const std::string& text) const {
    if (json_) {
      say_json({{member, text}});
    } else {
      say(mark + text);
    }
  }

  const bool json_;
  const flows::tools::StubList none_;
  flows::tools::Stubs stubs_;
  flows::tools::Trace trace_;  // empty without --trace
  Rehearsal rehearsal_;
  bool good_ = true;
  bool ended_ = false;
};

const std::array<FlowChat::ChatCommand, 6> FlowChat::commands{
    {{"/wait", "2h", "Advance the time; sleeps, time-outs and follow-ups run", &FlowChat::wait},
     {"/inject", "EVENT {id: 7}", "Inject data; EVENT is its member `event`", &FlowChat::inject},
     {"/answer", "{status: 200}", "Answer a call by a stub of test files", &FlowChat::answer},
     {"/context", "", "Show context, profile and the Node that waits", &FlowChat::context},
     {"/help", "", "List these commands", &FlowChat::help},
     {"/quit", "", "End the conversation; so does Ctrl-D", &FlowChat::quit}}};

}  // namespace

int flow_chat(const FlowChatOptions& options) {
  const auto script = script_of(options);
  if (!script) return failed(script.error());
  FlowChat chat(*script, options);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) {
    note("The Flow '" + script->stage.flow->name() + "' listens. /help lists commands.");
  }
  std::string line;
  while (!chat.ended() && std::getline(std::cin, line)) {
    line = without_blanks(line);
    if (line.empty()) continue;
    if (!terminal && !options.json) say("> " + line);
    chat.take(line);
  }
  return chat.good() || terminal ? 0 : 1;
}

}  // namespace conversed::ctl
