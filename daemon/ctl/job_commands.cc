// conversectl jobs.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "daemon/ctl/commands.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

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

// Returns the exit code: 0 only if the job is done.
int watch(Client& client, const Values& values) {
  const std::string path = "/management/tasks/" + encode(values.text("ID"));
  ProgressView view;
  auto job = client.manage("GET", path);
  while (job && !is_over(Fields(*job))) {
    view.show(Fields(*job));
    job = client.manage("GET", path + "?wait=" + std::to_string(wait_seconds));
  }
  if (!job) return failed(job.error());
  const Fields ended(*job);
  view.show(ended);
  if (client.options().json) say_json(*job);
  return ended.text("status") == "done" ? 0 : 1;
}

Cell reason_cell(const Fields& job, const char* step) {
  return job.text_if_any(job.has("failReason") ? "failReason" : step);
}

Command list_jobs() {
  Option project = project_option();
  project.help = "Name or id; default: all projects that you may see";
  return Command{
      "jobs list",
      {"List jobs, newest first", "--status active",
       "`jobs show` shows one in full, `jobs cancel` undoes it."},
      {Option{"--status", "Only jobs of this status"}.in_query("status").one_of(
           {"queued", "active", "done", "cancelling", "cancelled", "error"}),
       std::move(project), limit_option(25)},
      "GET /management/tasks",
      rows({column("ID", "_id"), column("STATUS", "status"), column("PERCENT", "progress"),
            column("NAME", "name"), column("STEP OR REASON", "stepName", reason_cell)},
           "No jobs.")};
}

}  // namespace

std::vector<Group> job_commands() {
  const Option id = Option{"ID", "The job's id, as `jobs list` shows it"}.require();
  return {
      {"jobs",
       "Long work, such as the set-up of proactive follow-up",
       {list_jobs(),
        Command{"jobs show", {"Show a job in full", some_id}, {id}, "GET /management/tasks/{ID}"},
        Command{
            "jobs watch",
            {"Show a job's progress until it ends; the exit code is 0 only if it is done", some_id},
            {id}}
            .runs(watch),
        Command{"jobs cancel",
                {"Cancel the job and undo its changes", some_id},
                {id},
                "POST /management/tasks/{ID}/cancel",
                [](const Fields& job, const Values& values) {
                  say(is_over(job) ? "Cancelled."
                                   : "Its changes are being undone. Follow it by: conversectl jobs "
                                     "watch " +
                                         values.text("ID"));
                }}}}};
}

}  // namespace conversed::ctl
