// conversectl deliveries, endpoints.
#include <set>
#include <tuple>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"
#include "daemon/ctl/output/output.h"

namespace conversed::ctl {
namespace {

using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

constexpr const char* path = "/management/deliveries";

// The options that choose deliveries, besides `--project`.
std::vector<Option> filter_options() {
  return {project_option(),
          Option{"--endpoint", "Only this Endpoint's: its name, id or URLToken"}
              .in_query("URLToken")
              .found_by(find_endpoint),
          Option{"--user", "Only a session's, with --endpoint and --session"}.in_query("userId"),
          Option{"--session", "Only a session's, with --endpoint and --user"}.in_query("sessionId"),
          Option{"--state", "due, waiting, behind or paused"}.in_query("state").one_of(
              {"due", "waiting", "behind", "paused"}),
          Option{"--older-than", "Only older outputs, such as 20m or 2h"}.in_query("olderThan")};
}

std::vector<Option> with_filter(std::vector<Option> options, Option limit) {
  for (Option& option : filter_options()) options.push_back(std::move(option));
  options.push_back(std::move(limit));
  return options;
}

// The deliveries that the options choose.
Result<json> fetch_chosen(Client& client, const Values& values) {
  std::string query;
  bool chosen = false;
  for (const Option& option : filter_options()) {
    std::string text = values.text(option.name);
    if (text.empty()) continue;
    chosen = chosen || option.name != "--project";
    if (option.find != nullptr) {
      auto id = option.find(client, values, text);
      if (!id) return fail(id.error());
      text = std::move(*id);
    }
    query += (query.empty() ? "?" : "&") + option.query + '=' + encode(text);
  }
  if (!chosen) {
    return fail(Errc::invalid_argument,
                "name a delivery, or choose some by --endpoint, --state or --older-than");
  }
  return fetch_pages(client, path + query, std::stoul(values.text("--limit")));
}

// Whether the delivery still waited. One that is delivered meanwhile is no error.
Result<bool> change(Client& client, const std::string& id, const std::string& verb) {
  auto answer =
      client.request("POST", path + ("/" + encode(id)) + "/" + verb, nullptr, Credentials::basic);
  if (!answer) return fail(answer.error());
  if (answer->status == 404) return false;
  if (answer->status >= 300) return fail(error_of(*answer));
  return true;
}

// Changes one delivery, or all that the options choose. `is_needed`: whether to change this one.
template <typename IsNeeded>
int change_chosen(Client& client, const Values& values, const std::string& verb, const char* done,
                  IsNeeded is_needed) {
  if (const auto& id = values.text("ID"); !id.empty()) {
    return print(client, client.manage("POST", path + ("/" + encode(id)) + "/" + verb),
                 [&](const Fields&) { say(std::string(done) + " " + id); });
  }
  const auto chosen = fetch_chosen(client, values);
  if (!chosen) return failed(chosen.error());
  std::int64_t changed = 0;
  for (const Fields& item : Fields(*chosen).items()) {
    if (!is_needed(item)) continue;
    const auto waited = change(client, item.text("_id"), verb);
    if (!waited) return failed(waited.error());
    if (*waited) ++changed;
  }
  return print(client, json{{"changed", changed}},
               [&](const Fields&) { say(std::string(done) + " " + std::to_string(changed)); });
}

// A retry concerns a whole session, so one of its deliveries is enough.
int retry(Client& client, const Values& values) {
  std::set<std::tuple<std::string, std::string, std::string>> sessions;
  return change_chosen(client, values, "retry", "Retried", [&](const Fields& item) {
    return sessions.emplace(item.text("endpointId"), item.text("userId"), item.text("sessionId"))
        .second;
  });
}

int drop(Client& client, const Values& values) {
  return change_chosen(client, values, "drop", "Dropped", [](const Fields&) { return true; });
}

Group endpoints() {
  const std::vector<Option> endpoint{
      Option{"ENDPOINT", "Name or id"}.require().found_by(find_endpoint_id), scope_option()};
  return {"endpoints",
          "Endpoints of a project, and their webhooks",
          {Command{"endpoints list",
                   {"List Endpoints with their URLTokens", "--project Shop",
                    "`chat` talks to one, `endpoints health` shows how its webhook does."},
                   {project_option()},
                   "GET /management/endpoints",
                   rows({column("ID", "_id"), column("NAME", "name"), column("FLOW", "flow"),
                         column("WEBHOOK", "hasWebhook"), column("HEALTH", "webhookState"),
                         column("URLTOKEN", "URLToken")},
                        "No Endpoints.")},
           Command{"endpoints health",
                   {"Show how an Endpoint's webhook does", "web",
                    "`endpoints resume` ends the pause of a webhook that works again."},
                   endpoint,
                   "GET /management/endpoints/{ENDPOINT}/health"},
           Command{"endpoints resume",
                   {"End the pause of an Endpoint whose webhook failed for long", "web"},
                   endpoint,
                   "POST /management/endpoints/{ENDPOINT}/resume",
                   says({"Resumed. Its outputs are sent now."})}}};
}

}  // namespace

std::vector<Group> delivery_commands() {
  const Option id = {"ID", "The output's id, as `deliveries list` shows it"};
  return {
      {"deliveries",
       "Outputs that wait for their webhook",
       {Command{"deliveries list",
                {"List outputs that wait for their webhook", "--state waiting",
                 "`deliveries show` shows one in full, `deliveries retry` sends it now."},
                with_filter({after_option()}, limit_option(50, 10'000)),
                "GET /management/deliveries",
                rows({column("ID", "_id"), column("STATE", "state"), column("ENDPOINT", "endpoint"),
                      column("USER", "userId"), column("SESSION", "sessionId"),
                      column("TRIES", "attempts"), column("CREATED", "createdAt", time_cell),
                      column("NEXT TRY", "dueAt", time_cell)},
                     "No deliveries.")}
            .in_pages(),
        Command{"deliveries show",
                {"Show a delivery with its output", std::string(some_id) + "-1"},
                {Option(id).require()},
                "GET /management/deliveries/{ID}"},
        Command{"deliveries retry",
                {"Send outputs now: one, or all that the options choose",
                 "--endpoint web --state waiting",
                 "a session's outputs keep their order, so its first output is sent first."},
                with_filter({id}, limit_option(1'000, 100'000))}
            .runs(retry),
        Command{
            "deliveries drop",
            {"Give outputs up: one, or all that the options choose",
             "--endpoint web --older-than 2h", "`deadletters list --state discarded` lists them."},
            with_filter({id}, limit_option(1'000, 100'000))}
            .runs(drop)}},
      endpoints()};
}

}  // namespace conversed::ctl
