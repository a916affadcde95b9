// conversectl jobs, and the commands that begin jobs.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"
#include "store/model/job.h"
#include "store/text/joined.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

using model::fail;
using model::Result;
using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

constexpr int wait_seconds = 20;  // of one poll, below the client's time-out of a minute

bool is_over(const Fields& job) {
  const auto status = job.text("status");
  return status == "done" || status == "cancelled" || status == "error";
}

// "step 3 of 4: Generate the follow-up Flow"
std::string step_of(const Fields& job) {
  const auto name = job.text_if_any("stepName");
  if (name.empty()) return job.text("status");
  return "step " + std::to_string(job.number("currentStep")) + " of " +
         std::to_string(job.number("totalStep")) + ": " + name;
}

std::string outcome_of(const Fields& job) {
  const auto reason = job.text_if_any("failReason");
  return reason.empty() ? job.text("status") : job.text("status") + ": " + reason;
}

// The time left at the present speed: the job was at `first` percent when `since_begin` started.
std::string time_left(int first, int progress, SteadyClock::duration since_begin) {
  if (progress <= first) return {};
  const auto left = since_begin * (100 - progress) / (progress - first);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  if (seconds < 60) return std::to_string(seconds) + " s left";
  return std::to_string((seconds + 59) / 60) + " min left";
}

// Shows a running job: in a terminal one line that changes, else one line per change.
class ProgressView {
 public:
  ProgressView() : terminal_(isatty(STDERR_FILENO) != 0), begin_(SteadyClock::now()) {}

  void show(const Fields& job) {
    const int progress = static_cast<int>(std::clamp<std::int64_t>(job.number("progress"), 0, 100));
    if (!first_) first_ = progress;
    const std::string what =
        text::shown(is_over(job) ? outcome_of(job) : step_of(job), text::Lines::one);
    if (!terminal_) {
      std::ostringstream line;
      line << std::setw(3) << progress << "%  " << what;
      if (line.str() == last_) return;
      last_ = line.str();
      std::cerr << last_ << std::endl;
      return;
    }
    std::string line = bar(progress) + ' ' + std::to_string(progress) + "%  " + what;
    const auto left = time_left(*first_, progress, SteadyClock::now() - begin_);
    if (!is_over(job) && !left.empty()) line += "  (" + left + ")";
    // A line wider than the terminal would leave a copy behind at each change.
    if (!is_over(job)) line = text::shortened(line, columns_of(STDERR_FILENO) - 1);
    std::cerr << "\r\x1b[K" << line << std::flush;
    if (is_over(job)) std::cerr << std::endl;
  }

 private:
  static std::string bar(int progress) {
    constexpr int width = 30;
    const int full = progress * width / 100;
    return '[' + std::string(static_cast<std::size_t>(full), '#') +
           std::string(static_cast<std::size_t>(width - full), '.') + ']';
  }

  const bool terminal_;
  const SteadyClock::time_point begin_;
  std::optional<int> first_;
  std::string last_;
};

// Prints the counts of a bulk job: "12 changed, 1 skipped", and why rows were skipped.
void say_counts(const Fields& job) {
  const auto& data = job.any("data");
  if (!data.is_object() || !data.contains("changed")) return;
  const Fields counts(data);
  say(std::to_string(counts.number("changed")) + " changed, " +
      std::to_string(counts.number("skipped")) + " skipped");
  const auto reasons = data.value("reasons", nlohmann::json::object());
  for (const auto& [reason, count] : reasons.items()) {
    say("  " + count.dump() + ": " + reason);
  }
}

Cell step_or_reason_cell(const Fields& job, const char* step) {
  return job.text_if_any(job.has("failReason") ? "failReason" : step);
}

Command list_jobs() {
  Option project = project_option();
  project.help = "Name or id; default: all projects that you may see";
  return Command{
      "jobs list",
      {"List jobs, newest first", "--status active",
       "`jobs show` shows one in full, `jobs cancel` ends it."},
      {Option{"--status", "Only jobs of this status"}.in_query("status").one_of(
           {"queued", "active", "done", "cancelling", "cancelled", "error"}),
       std::move(project), reason_option(model::Listed::jobs), limit_option(25),
       after_option().in_query("next")},
      "GET /management/tasks",
      rows({column("ID", "_id"), column("STATUS", "status"), column("PERCENT", "progress"),
            column("NAME", "name"), column("STEP OR REASON", "stepName", step_or_reason_cell),
            column("WAITS FOR", "waits", reason_cell)},
           "No jobs.")};
}

constexpr const char* all_option = "--all";
constexpr const char* background_option = "--background";

// Either an ID, or options that choose.
std::string check_chosen(const Values& values, const std::vector<Option>& filter) {
  if (auto wrong = check_row_filter(values); !wrong.empty()) return wrong;
  const bool is_chosen =
      values.flag(all_option) || std::ranges::any_of(filter, [&](const Option& option) {
        return option.name != "--project" && !values.text(option.name).empty();
      });
  const bool has_id = !values.text("ID").empty();
  if (has_id && is_chosen) return "give an ID, or options that choose such as --all, not both";
  if (has_id || is_chosen) return {};
  return "name one by its ID, choose some by options such as --endpoint or --older-than, or give "
         "--all";
}

// The query of the options that choose.
Result<std::string> query_of(Client& client, const Values& values,
                             const std::vector<Option>& filter) {
  std::string query;
  for (const Option& option : filter) {
    std::string text = values.text(option.name);
    if (text.empty()) continue;
    if (option.find != nullptr) {
      auto id = option.find(client, values, text);
      if (!id) return fail(id.error());
      text = std::move(*id);
    }
    query += (query.empty() ? "?" : "&") + option.query + '=' + encode(text);
  }
  return query;
}

int change_one(Client& client, const Values& values, const Bulk& bulk) {
  const auto path = bulk.path + '/' + encode(values.text("ID")) + '/' + bulk.verb;
  return print(client, client.manage("POST", path),
               [&](const Fields& answer) { say(filled(bulk.done, answer, values)); });
}

int change_chosen(Client& client, const Values& values, const Bulk& bulk) {
  const auto query = query_of(client, values, bulk.filter);
  if (!query) return failed(query.error());
  const auto job = client.manage("POST", bulk.path + '/' + bulk.verb + *query);
  if (!job) return failed(job.error());
  const auto id = Fields(*job).text("_id");
  if (!values.flag(background_option)) {
    const int code = watch_job(client, id);
    if (code == 0 && !bulk.note.empty() && !client.options().json) say(bulk.note);
    return code;
  }
  return print(client, job,
               [&](const Fields&) { say("Begun. Follow it by: conversectl jobs watch " + id); });
}

}  // namespace

int watch_job(Client& client, const std::string& id) {
  const std::string path = "/management/tasks/" + encode(id);
  ProgressView view;
  auto job = client.manage("GET", path);
  while (job && !is_over(Fields(*job))) {
    view.show(Fields(*job));
    job = client.manage("GET", path + "?wait=" + std::to_string(wait_seconds));
  }
  if (!job) return failed(job.error());
  const Fields ended(*job);
  view.show(ended);
  client.options().json ? void(say_json(*job)) : say_counts(ended);
  return ended.text("status") == "done" ? 0 : 1;
}

std::vector<Option> row_filter_options(std::vector<Option> more) {
  std::vector<Option> options{
      project_option(),
      Option{"--endpoint", "Only this Endpoint's: its name, id or URLToken"}
          .in_query("URLToken")
          .found_by(find_endpoint),
      Option{"--user", "Only a session's, with --endpoint and --session"}.in_query("userId"),
      Option{"--session", "Only a session's, with --endpoint and --user"}.in_query("sessionId"),
      Option{"--older-than", "Only older ones, such as 20m or 2h"}
          .in_query("olderThan")
          .checked_by(check_duration),
      Option{"--newer-than", "Only newer ones, such as 20m or 2h"}
          .in_query("newerThan")
          .checked_by(check_duration)};
  std::ranges::move(more, std::back_inserter(options));
  // An empty text, such as that of an unset variable, would choose the rows of all.
  for (Option& option : options) {
    if (!option.check && option.name != "--project") option.check = not_empty;
  }
  return options;
}

std::string check_row_filter(const Values& values) {
  std::vector<std::string> given;
  std::vector<std::string> missing;
  for (const char* name : {"--endpoint", "--user", "--session"}) {
    (values.text(name).empty() ? missing : given).emplace_back(name);
  }
  const bool is_endpoint_alone = given.size() == 1 && given.front() == "--endpoint";
  if (given.empty() || missing.empty() || is_endpoint_alone) return {};
  std::erase(given, "--endpoint");
  return text::joined(given, " and ") + (given.size() == 1 ? " needs " : " need ") +
         text::joined(missing, " and ");
}

Command bulk_command(std::string name, Help help, Option id, const Bulk& bulk) {
  std::vector<Option> options{std::move(id)};
  options.insert(options.end(), bulk.filter.begin(), bulk.filter.end());
  options.push_back({all_option, "All of the project", Option::Kind::flag});
  options.push_back(
      {background_option, "Begin the job and do not wait for its end", Option::Kind::flag});
  return Command{std::move(name), std::move(help), std::move(options)}
      .checked_by(
          [filter = bulk.filter](const Values& values) { return check_chosen(values, filter); })
      .runs([bulk](Client& client, const Values& values) {
        return values.text("ID").empty() ? change_chosen(client, values, bulk)
                                         : change_one(client, values, bulk);
      });
}

std::vector<Group> job_commands() {
  const Option id = Option{"ID", "The job's id, as `jobs list` shows it"}.require();
  return {
      {"jobs",
       "Long work: set-ups of proactive follow-up, and changes of many rows",
       {list_jobs(),
        Command{"jobs show", {"Show a job in full", some_id}, {id}, "GET /management/tasks/{ID}"},
        Command{
            "jobs watch",
            {"Show a job's progress until it ends; the exit code is 0 only if it is done", some_id},
            {id}}
            .runs([](Client& client, const Values& values) {
              return watch_job(client, values.text("ID"));
            }),
        Command{"jobs cancel",
                {"Cancel the job: a set-up is undone, a change of many rows stops", some_id},
                {id},
                "POST /management/tasks/{ID}/cancel",
                [](const Fields& job, const Values& values) {
                  if (is_over(job)) return say("Cancelled.");
                  const bool is_set_up = job.text("type") == model::proactive_setup;
                  say((is_set_up ? "Its changes are being undone."
                                 : "It stops; what it has done stays.") +
                      std::string(" Follow it by: conversectl jobs watch ") + values.text("ID"));
                }}}}};
}

}  // namespace conversed::ctl
