// conversectl inject, chat, sessions, deadletters.
#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"
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

bool is_for_later(const Values& values) {
  return !values.text("--at").empty() || !values.text("--in").empty() ||
         !values.text("--cron").empty();
}

model::Result<void> prepare_inject(const Values& values, Request& request) {
  if (const auto& text = values.text("--data"); !text.empty()) {
    auto data = model::parse_json(text);
    if (!data) return model::fail(data.error().code, "--data: " + data.error().message);
    request.body["data"] = std::move(*data);
  }
  if (is_for_later(values)) return {};
  if (values.flag("--preview")) {
    return model::fail(model::Errc::invalid_argument, "--preview needs --at, --in or --cron");
  }
  request.path = "/management/inject";
  request.body.erase("timezone");
  return {};
}

Command inject() {
  auto options = session_options(true);
  options.push_back(Option{"--text", "The text"}.in_field("text"));
  options.push_back(Option{"--data", "The data, as JSON"});
  options.push_back(preview_option());
  return Command{"inject",
                 {"Put a message into a running conversation, now or later",
                  "--endpoint web --user ann --session s1 --text \"Your parcel is here\"",
                  "`sessions show` shows the Flow's answer; `schedules list` shows messages "
                  "for later."},
                 with_times(std::move(options)),
                 "POST /management/schedules",
                 [](const Fields& made, const Values& values) {
                   if (is_for_later(values)) return show_times(made, values);
                   say("Accepted as " + made.text("_id"));
                 }}
      .prepared_by(prepare_inject);
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

Group dead_letters() {
  const Option id = Option{"ID", "The dead letter's id, as `deadletters list` shows it"}.require();
  return {"deadletters",
          "Events and outputs that the daemon gave up, with the reasons",
          {Command{"deadletters list",
                   {"List dead letters, oldest first", "--state new",
                    "`deadletters show` shows one in full; mend the cause and use "
                    "`deadletters replay`."},
                   {project_option(),
                    Option{"--state", "new, replayed, discarded or all"}.with_preset("new").one_of(
                        {"new", "replayed", "discarded", "all"}),
                    limit_option(50)},
                   "GET /management/deadletters",
                   rows({column("ID", "_id"), column("CREATED", "createdAt", time_cell),
                         column("STATE", "state"), column("TYPE", "type"), column("USER", "userId"),
                         column("SESSION", "sessionId"), column("REASON", "reason")},
                        "No dead letters.")}
               .prepared_by([](const Values& values, Request& request) {
                 const auto& state = values.text("--state");
                 if (state != "all") request.query += "&state=" + state;
                 return model::Result<void>();
               }),
           Command{"deadletters show",
                   {"Show a dead letter in full", some_id},
                   {id},
                   "GET /management/deadletters/{ID}"},
           Command{"deadletters replay",
                   {"Process a dead letter again, behind its session's newer events", some_id},
                   {id},
                   "POST /management/deadletters/{ID}/replay",
                   says({"Appended again. It runs behind its session's newer events."})},
           Command{"deadletters discard",
                   {"Mark a dead letter as discarded; `--state discarded` lists it", some_id},
                   {id},
                   "POST /management/deadletters/{ID}/discard",
                   says({"Discarded."})}}};
}

}  // namespace

std::vector<Group> conversation_commands() {
  constexpr const char* example = "--endpoint web --user ann --session s1";
  return {{"",
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
           {Command{"sessions list",
                    {"List the newest sessions", "--project Shop --limit 10",
                     "`sessions show` shows one in full."},
                    {project_option(), limit_option(50)},
                    "GET /management/sessions",
                    rows({column("ENDPOINT", "endpoint"), column("USER", "userId"),
                          column("SESSION", "sessionId"), column("STATE", "state"),
                          column("INBOX", "inboxSize"), column("OUTPUTS", "outputs"),
                          column("LAST ACTIVITY", "lastActivityAt", time_cell)},
                         "No sessions.")},
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
