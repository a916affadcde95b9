// conversectl jobs.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"
#include "store/text/terminal.h"
#include "store/text/utf8.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* jobs_path = "/management/tasks";
constexpr int wait_seconds = 20;  // of one poll; the client gives up after a minute

struct Arguments {
  std::string id;
  std::string status;
  std::string project;
  int limit = 25;
};

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

// How long the rest takes if it goes on as it has since `begin`, when there were `first` percent.
std::string time_left(int first, int progress, SteadyClock::duration since_begin) {
  if (progress <= first) return {};
  const auto left = since_begin * (100 - progress) / (progress - first);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  if (seconds < 60) return std::to_string(seconds) + " s left";
  return std::to_string((seconds + 59) / 60) + " min left";
}

// Shows a job that goes on: one line that changes in a terminal, else a line for each change.
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
    // A line wider than the terminal would leave a copy of itself at each change.
    if (!is_over(job)) line = text::cut(line, columns());
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
  static std::size_t columns() {
    winsize size{};
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col - 1U : 79U;
  }

  const bool terminal_;
  const SteadyClock::time_point begin_;
  std::optional<int> first_;
  std::string last_;
};

int list(Client& client, const Arguments& args) {
  auto query =
      project_query(client, args.project,
                    parameters({{"limit", std::to_string(args.limit)}, {"status", args.status}}));
  if (!query) return failed(query.error());
  return print(client, client.manage("GET", jobs_path + *query), [](const Fields& page) {
    Table table({"ID", "STATUS", "PERCENT", "NAME", "STEP OR REASON"});
    for (const Fields& job : page.items()) {
      table.add({job.text("_id"), job.text("status"), job.number("progress"), job.text("name"),
                 job.text_if_any(job.has("failReason") ? "failReason" : "stepName")});
    }
    table.print("No jobs.");
  });
}

std::string path_of(const Arguments& args) {
  return jobs_path + ("/" + encode(args.id));
}

int show(Client& client, const Arguments& args) {
  return print_document(client, client.manage("GET", path_of(args)));
}

// 0: the job came to its aim.
int watch(Client& client, const Arguments& args) {
  ProgressView view;
  auto job = client.manage("GET", path_of(args));
  while (job && !is_over(Fields(*job))) {
    view.show(Fields(*job));
    job = client.manage("GET", path_of(args) + "?wait=" + std::to_string(wait_seconds));
  }
  if (!job) return failed(job.error());
  const Fields ended(*job);
  view.show(ended);
  if (client.options().json) say_json(*job);
  return ended.text("status") == "done" ? 0 : 1;
}

int cancel(Client& client, const Arguments& args) {
  return print(client, client.manage("POST", path_of(args) + "/cancel"), [&](const Fields& job) {
    say(is_over(job)
            ? "Cancelled."
            : "Its changes are being undone. Follow it by: conversectl jobs watch " + args.id);
  });
}

}  // namespace

void add_job_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> jobs(
      add_group(app, "jobs", "Long work, such as the set-up of proactive follow-up"), action);
  auto& args = jobs.arguments();
  auto& listing = jobs.add("list",
                           {"List jobs, newest first", "--status active",
                            "`jobs show` tells all about one, `jobs cancel` undoes it."},
                           list);
  listing.add_option("--status", args.status, "Only jobs of this status")
      ->check(CLI::IsMember({"queued", "active", "done", "cancelling", "cancelled", "error"}));
  listing.add_option("--project", args.project, "Name or id; default: all that you may see");
  add_limit_option(listing, args.limit, 100);

  const auto add = [&](const char* name, const char* summary,
                       int (*run)(Client&, const Arguments&)) {
    jobs.add(name, {summary, "6f9619ff8b86d011b42d00c0"}, run)
        .add_option("ID", args.id, "The job's id, as `jobs list` shows it")
        ->required();
  };
  add("show", "Show all about a job", show);
  add("watch", "Follow a job until it has ended; the exit code is 0 only if it is done", watch);
  add("cancel", "Cancel the job and undo its changes", cancel);
}

}  // namespace conversed::ctl
