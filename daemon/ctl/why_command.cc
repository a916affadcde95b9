// conversectl why.
#include <iostream>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"
#include "daemon/ctl/output/output.h"
#include "daemon/ctl/output/screen.h"
#include "daemon/ctl/output/sheet.h"
#include "store/model/reason.h"

namespace conversed::ctl {
namespace {

// "10 behindEvents: earlier events of its session run first"
std::string codes() {
  std::string lines =
      "a script reads the exit code, the first reason's; 0: nothing waits, or only a "
      "question without a time-out.";
  for (const auto& each : model::all_reasons()) {
    lines += "\n  " + std::to_string(static_cast<int>(each.reason)) + " " + std::string(each.name) +
             ": " + std::string(each.meaning);
  }
  return lines;
}

model::Result<std::string> path_of(Client& client, const Values& values) {
  const std::string path = "/management/why";
  if (const auto& id = values.text("ID"); !id.empty()) return path + "/" + encode(id);
  auto token = find_endpoint(client, values, values.text("--endpoint"));
  if (!token) return token;
  return path + "?URLToken=" + encode(*token) + "&userId=" + encode(values.text("--user")) +
         "&sessionId=" + encode(values.text("--session"));
}

std::string check_subject(const Values& values) {
  const bool has_id = !values.text("ID").empty();
  const bool has_session = !values.text("--endpoint").empty();
  if (has_id && has_session) return "give an ID or a session, not both";
  return has_id || has_session ? ""
                               : "name an ID, or a session by --endpoint, --user and --session";
}

// A session that waits for an answer without a time-out is not stuck: its next input runs.
bool only_asks(const Fields& wait) {
  return wait.number("code") == static_cast<int>(model::Reason::question) &&
         !wait.has("expectedAt");
}

// "the output was dropped by ann@example.com; dead letter ID."
std::string ending_of(const Fields& ending) {
  const auto done = ending.text("done");
  std::string text = "the output was " + (done == "givenUp" ? std::string("given up") : done);
  if (ending.has("by")) text += " by " + ending.text("by");
  return text + "; dead letter " + ending.text("deadLetter") + '.';
}

std::string nothing_waits(const Fields& found) {
  if (found.has("ending")) return "Nothing waits: " + ending_of(found.object("ending"));
  if (const auto delivered = found.time("deliveredAt")) {
    return "Nothing waits: it was delivered at " + full_time(*delivered, screen()) + ".";
  }
  if (found.text("kind") != "session") return "Nothing waits.";
  return "Nothing waits: the session's next input runs at once.";
}

int why(Client& client, const Values& values) {
  const auto path = path_of(client, values);
  if (!path) return failed(path.error());
  const auto answer = client.manage("GET", *path);
  if (!answer) return failed(answer.error());
  const auto waits = Fields(*answer).objects("waits");
  print(client, answer, [&](const Fields& found) {
    if (waits.empty() || only_asks(waits.front())) say(nothing_waits(found));
    for (const Fields& wait : waits) std::cout << wait_of(wait, screen());
  });
  if (waits.empty() || only_asks(waits.front())) return 0;
  return static_cast<int>(waits.front().number("code"));
}

}  // namespace

std::vector<Group> why_command() {
  constexpr auto all = Option::Among::all_or_none;
  return {{"",
           "",
           {Command{
               "why",
               {"Tell why an event, output, session, job or timer waits", some_id, codes()},
               {Option{"ID", "The id of an inject, output, timer, call, job or dead letter"},
                Option{"--endpoint", "A session's Endpoint: its name, id or URLToken"}.grouped(all),
                Option{"--user", "The session's userId"}.grouped(all),
                Option{"--session", "The session's sessionId"}.grouped(all), scope_option()}}
                .checked_by(check_subject)
                .runs(why)
                .watched()}}};
}

}  // namespace conversed::ctl
