// conversectl inject, chat, sessions, deadletters.
#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"
#include "daemon/ctl/output/output.h"
#include "flows/tools/trace.h"
#include "store/model/ids.h"
#include "store/model/json.h"

namespace conversed::ctl {
namespace {

// The options that name a session. They are sent in the body or in the query.
std::vector<Option> session_options(bool in_body) {
  std::vector<Option> options;
  const auto add = [&](const char* name, const char* help, const char* sent_as) {
    options.push_back(Option{name, help}
                          .in_query(in_body ? "" : sent_as)
                          .in_field(in_body ? sent_as : "")
                          .require());
  };
  add("--endpoint", "The Endpoint's name, id or URLToken", "URLToken");
  options.back().find = find_endpoint;
  add("--user", "The session's userId", "userId");
  add("--session", "The session's sessionId", "sessionId");
  options.push_back(scope_option());
  return options;
}

std::string check_inject(const Values& values) {
  if (values.text("--text").empty() && values.text("--data").empty()) {
    return "name the message by --text or --data";
  }
  if (values.flag("--preview") && !has_time(values)) return "--preview needs --at, --in or --cron";
  return check_times(values);
}

model::Result<void> prepare_inject(const Values& values, Request& request) {
  if (const auto& text = values.text("--data"); !text.empty()) {
    auto data = model::parse_json(text);
    if (!data) return model::fail(data.error().code, "--data: " + data.error().message);
    request.body["data"] = std::move(*data);
  }
  if (has_time(values)) return {};
  request.path = "/management/inject";
  request.body.erase("timezone");
  return {};
}

Command inject() {
  auto options = session_options(true);
  options.push_back(Option{"--text", "The text"}.in_field("text"));
  options.push_back(Option{"--data", "The data, as JSON"});
  options.push_back(preview_option());
  options.push_back(key_option());
  return Command{"inject",
                 {"Put a message into a running conversation, now or later",
                  "--endpoint web --user ann --session s1 --text \"Your parcel is here\"",
                  "`sessions show` shows the Flow's answer; `schedules list` shows messages "
                  "for later."},
                 with_times(std::move(options)),
                 "POST /management/schedules",
                 [](const Fields& made, const Values& values) {
                   if (has_time(values)) return show_times(made, values);
                   say("Accepted as " + made.text("_id"));
                 }}
      .prepared_by(prepare_inject)
      .checked_by(check_inject);
}

int talk(Client& client, const Values& values) {
  const auto or_new = [&](const char* name) {
    const auto& given = values.text(name);
    return given.empty() ? model::new_id() : given;
  };
  const auto token = find_endpoint(client, values, values.text("ENDPOINT"));
  if (!token) return failed(token.error());
  return chat(client, *token, or_new("--user"), or_new("--session"));
}

// The options that choose dead letters.
std::vector<Option> letter_filter() {
  return row_filter_options(
      {Option{"--reason", "Only those with this reason"}.in_query("reason"),
       Option{"--flow", "Only events that failed in the Flow of this name"}.in_query("flow"),
       Option{"--flow-version", "Only events that failed in this version", Option::Kind::number}
           .in_query("flowVersion"),
       Option{"--node", "Only events that failed at the Node with this address"}.in_query("node")});
}

std::vector<Option> letter_list_options() {
  auto options = letter_filter();
  options.push_back(Option{"--state", "new, replayed, discarded or all"}.with_preset("new").one_of(
      {"new", "replayed", "discarded", "all"}));
  options.push_back(limit_option(50));
  options.push_back(number_after_option());
  return options;
}

Cell flow_cell(const Fields& group, const char* field) {
  const auto flow = group.text_if_any(field);
  if (flow.empty()) return cell_of(field, nullptr);
  return cell_of(field, flow + ' ' + std::to_string(group.number("flowVersion")));
}

model::Result<void> prepare_try(const Values& values, Request& request) {
  request.body = nlohmann::json::object();
  if (const auto& version = values.text("--flow-version"); !version.empty()) {
    request.body["flowVersion"] = std::stoll(version);
  }
  if (const auto& text = values.text("--answers"); !text.empty()) {
    auto answers = model::parse_json(text);
    if (!answers) return model::fail(answers.error().code, "--answers: " + answers.error().message);
    request.body["answers"] = std::move(*answers);
  }
  return {};
}

flows::tools::TracedNode traced_node(const Fields& node) {
  flows::tools::TracedNode made{.flow = node.text("flow"),
                                .address = node.text("node"),
                                .type = node.text("type"),
                                .label = node.text("label")};
  for (const auto& each : node.objects("evaluations")) {
    made.evaluations.push_back({each.text("source"), each.any("value"), each.text_if_any("error")});
  }
  for (const auto& each : node.objects("changes")) {
    made.changes.push_back({each.text("path"), each.any("before"), each.any("after")});
  }
  if (node.has("call")) made.call = node.any("call");
  if (node.has("answer")) made.answer = node.any("answer");
  return made;
}

// The Nodes as `flow chat --trace` shows them, what they said, and the end.
void show_trial(const Fields& trial, const Values& /*values*/) {
  say("Flow " + trial.text("flow") + ", version " + std::to_string(trial.number("flowVersion")));
  for (const auto& node : trial.objects("nodes")) {
    for (const auto& line : flows::tools::lines_of(traced_node(node))) say(line);
  }
  for (const auto& output : trial.objects("outputs")) {
    say("< " + output.text("text"));
    if (output.has("data")) say("  data: " + output.any("data").dump());
  }
  for (const auto& line : trial.texts("log")) say("# log: " + line);
  if (trial.has("error")) {
    say((trial.has("failedAt") ? "! fails at " + trial.text("failedAt") + ": " : "! ") +
        trial.text("error"));
  } else if (trial.has("waitsAt")) {
    say("? waits at " + trial.text("waitsAt"));
  } else {
    say("The Flow has ended.");
  }
}

Command list_letters() {
  return Command{"deadletters list",
                 {"List dead letters, oldest first", "--state new --flow Orders",
                  "mend the cause, then `deadletters replay`; `discard` for a callResult, timer or "
                  "timeOut, which nothing waits for any more."},
                 letter_list_options(),
                 "GET /management/deadletters",
                 rows({column("ID", "_id"), column("CREATED", "createdAt", time_cell),
                       column("STATE", "state"), column("TYPE", "type"), column("USER", "userId"),
                       column("SESSION", "sessionId"), column("REASON", "reason")},
                      "No dead letters.")}
      .prepared_by([](const Values& values, Request& request) {
        const auto& state = values.text("--state");
        if (state == "all") return model::Result<void>();
        request.query += (request.query.empty() ? "state=" : "&state=") + state;
        return model::Result<void>();
      })
      .in_pages()
      .checked_by(check_row_filter);
}

Group dead_letters() {
  const Option any = {"ID", "The dead letter's id, as `deadletters list` shows it"};
  const Option id = any.require();
  const auto bulk = [](const char* verb, const char* done) {
    return Bulk{"/management/deadletters", verb, done, letter_filter()};
  };
  return {
      "deadletters",
      "Events and outputs that the daemon gave up, with the reasons",
      {Command{"deadletters groups",
               {"Count dead letters by reason, Flow and Node, the largest group first",
                "--project Shop",
                "`deadletters list --reason ...` lists those of a group, `deadletters try` tries "
                "one. The groups count the project's newest 20,000 dead letters."},
               {project_option(), Option{"--state", "new, replayed or discarded"}
                                      .in_query("state")
                                      .with_preset("new")
                                      .one_of({"new", "replayed", "discarded"})},
               "GET /management/deadletters/groups",
               rows({column("COUNT", "count"), column("WHAT", "kind"),
                     column("FLOW", "flow", flow_cell), column("NODE", "node"),
                     column("FIRST", "first", time_cell), column("LAST", "last", time_cell),
                     column("REASON", "reason")},
                    "No dead letters.")},
       list_letters(),
       Command{"deadletters show",
               {"Show a dead letter in full", some_id},
               {id},
               "GET /management/deadletters/{ID}"},
       Command{
           "deadletters try",
           {"Run an event on a version of its Flow without any effect",
            std::string(some_id) + " --flow-version 3",
            "`deadletters replay` runs it on the newest version."},
           {id, Option{"--flow-version", "The version; default: the newest", Option::Kind::number},
            Option{"--answers",
                   "Answers of the Flow's calls in order, as JSON: [{\"status\": 200, "
                   "\"body\": {}}]; other calls are refused"}},
           "POST /management/deadletters/{ID}/try",
           show_trial}
           .prepared_by(prepare_try),
       bulk_command("deadletters replay",
                    {"Process dead letters again, behind their sessions' newer events: one, or all "
                     "that the options choose, as a job",
                     "--flow Orders --node main/3 --newer-than 1d",
                     "`deadletters groups` shows those that failed again."},
                    any,
                    bulk("replay", "Appended again. It runs behind its session's newer events.")),
       bulk_command(
           "deadletters discard",
           {"Mark dead letters as discarded: one, or all that the options choose, as a job",
            "--older-than 30d", "`deadletters list --state discarded` lists them."},
           any, bulk("discard", "Discarded."))}};
}

}  // namespace

std::vector<Group> conversation_commands() {
  constexpr const char* example = "--endpoint web --user ann --session s1";
  return {
      {"",
       "",
       {inject(),
        Command{"chat",
                {"Talk to an Endpoint until the input ends (Ctrl-D)", "web --user ann",
                 "`sessions show` shows the session, `deadletters list` what could not be "
                 "processed."},
                {Option{"ENDPOINT", "The Endpoint's name, id or URLToken"}.require().found_by(
                     find_endpoint),
                 scope_option(), Option{"--user", "userId; default: a new one"},
                 Option{"--session", "sessionId; default: a new one"}}}
            .runs(talk)}},
      {"sessions",
       "Conversations and their state",
       {Command{
            "sessions list",
            {"List the newest sessions", "--project Shop --state busy",
             "`sessions show` shows one in full."},
            {project_option(),
             Option{"--endpoint", "Only this Endpoint's: its name, id or URLToken"}
                 .in_query("URLToken")
                 .found_by(find_endpoint),
             Option{"--user", "Only this user's"}.in_query("userId"),
             Option{"--state", "busy or idle"}.in_query("state").one_of({"busy", "idle"}),
             Option{"--text", "Only those with an output that contains this text"}.in_query("text"),
             reason_option(model::Listed::sessions), limit_option(50), number_after_option()},
            "GET /management/sessions",
            rows({column("ENDPOINT", "endpoint"), column("USER", "userId"),
                  column("SESSION", "sessionId"), column("STATE", "state"),
                  column("INBOX", "inboxSize"), column("OUTPUTS", "outputs"),
                  column("LAST ACTIVITY", "lastActivityAt", time_cell),
                  column("WAITS FOR", "waits", reason_cell)},
                 "No sessions.")}
            .in_pages(),
        Command{"sessions show",
                {"Show a session: state, context, inbox, last outputs", example},
                session_options(false),
                "GET /management/sessions/show"},
        Command{"sessions reset",
                {"End a session's execution and begin it anew; pending calls have no effect",
                 example, "the messages in its inbox run at once."},
                session_options(true),
                "POST /management/sessions/reset",
                says({"Reset. The events in its inbox run now."})}}},
      dead_letters()};
}

}  // namespace conversed::ctl
