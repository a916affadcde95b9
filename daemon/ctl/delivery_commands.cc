// conversectl deliveries, endpoints.
#include <utility>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"

namespace conversed::ctl {
namespace {

// The options that choose deliveries.
std::vector<Option> delivery_filter() {
  return row_filter_options(
      {Option{"--state", "due, waiting, behind or paused"}.in_query("state").one_of(
          {"due", "waiting", "behind", "paused"})});
}

std::vector<Option> list_options() {
  auto options = delivery_filter();
  options.push_back(reason_option(model::Listed::deliveries));
  options.push_back(after_option());
  options.push_back(limit_option(50, 10'000));
  return options;
}

Bulk bulk_of(std::string verb, std::string done, std::string note = {}) {
  return {"/management/deliveries", std::move(verb), std::move(done), delivery_filter(),
          std::move(note)};
}

Group endpoint_commands() {
  const std::vector<Option> endpoint{
      Option{"ENDPOINT", "Name or id"}.require().found_by(find_endpoint_id), scope_option()};
  return {
      "endpoints",
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
       Command{
           "endpoints resume",
           {"End the pause of an Endpoint whose webhook failed for long", "web"},
           endpoint,
           "POST /management/endpoints/{ENDPOINT}/resume",
           says({"Resumed. One of its outputs is tried now; the others follow when it succeeds."})},
       delete_command("endpoints", "Endpoint", find_endpoint_id)}};
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
                list_options(),
                "GET /management/deliveries",
                rows({column("ID", "_id"), column("STATE", "state"), column("ENDPOINT", "endpoint"),
                      column("USER", "userId"), column("SESSION", "sessionId"),
                      column("TRIES", "attempts"), column("CREATED", "createdAt", time_cell),
                      column("NEXT TRY", "waits", expected_cell),
                      column("WAITS FOR", "waits", reason_cell)},
                     "No deliveries.")}
            .in_pages()
            .checked_by(check_row_filter),
        Command{"deliveries show",
                {"Show a delivery with its output", std::string(some_id) + "-1"},
                {Option(id).require()},
                "GET /management/deliveries/{ID}"},
        bulk_command("deliveries retry",
                     {"Send outputs now: one, or all that the options choose, as a job",
                      "--endpoint web --state waiting",
                      "a session's outputs keep their order, so its first output is sent first. "
                      "While its webhook fails, one output of an Endpoint is tried now, and the "
                      "others follow when it succeeds."},
                     id,
                     bulk_of("retry", "Retried {ID}",
                             "While a webhook fails, one output of its Endpoint is tried now; the "
                             "others follow when it succeeds.")),
        bulk_command(
            "deliveries drop",
            {"Give outputs up: one, or all that the options choose, as a job",
             "--endpoint web --older-than 2h", "`deadletters list --state discarded` lists them."},
            id, bulk_of("drop", "Dropped {ID}"))}},
      endpoint_commands()};
}

}  // namespace conversed::ctl
