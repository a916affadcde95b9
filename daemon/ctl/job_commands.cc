// conversectl jobs.
#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/subcommand.h"

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

std::string text_of(const json& job, const char* name) {
  const auto found = job.find(name);
  return found != job.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_over(const json& job) {
  const auto status = text_of(job, "status");
  return status == "done" || status == "cancelled" || status == "error";
}

// 0: it came to what was asked for.
int exit_code(const json& job) {
  return text_of(job, "status") == "done" ? 0 : 1;
}

// "step 3 of 4: Generate the follow-up Flow"
std::string step_of(const json& job) {
  const auto name = text_of(job, "stepName");
  if (name.empty()) return text_of(job, "status");
  return "step " + std::to_string(job.value("currentStep", 0)) + " of " +
         std::to_string(job.value("totalStep", 0)) + ": " + name;
}

std::string outcome_of(const json& job) {
  const auto reason = text_of(job, "failReason");
  return reason.empty() ? text_of(job, "status") : text_of(job, "status") + ": " + reason;
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

  void show(const json& job) {
    const int progress = std::clamp(job.value("progress", 0), 0, 100);
    if (!first_) first_ = progress;
    const std::string what = is_over(job) ? outcome_of(job) : step_of(job);
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
    // What is wider than the terminal would leave a line behind at each change.
    if (!is_over(job)) line = line.substr(0, cut_at(line, columns()));
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
  // Not within a character.
  static std::size_t cut_at(const std::string& line, std::size_t most) {
    if (line.size() <= most) return line.size();
    while (most > 0 && (static_cast<unsigned char>(line[most]) & 0xC0) == 0x80) --most;
    return most;
  }

  const bool terminal_;
  const SteadyClock::time_point begin_;
  std::optional<int> first_;
  std::string last_;
};

int list(Client& client, const Arguments& args) {
  std::string path = std::string(jobs_path) + "?limit=" + std::to_string(args.limit);
  if (!args.status.empty()) path += "&status=" + encode(args.status);
  if (!args.project.empty()) path += "&projectId=" + encode(args.project);
  auto page = client.manage("GET", path);
  if (!page) return failed(page.error());
  if (client.options().json) {
    std::cout << page->dump() << "\n";
    return 0;
  }
  for (const auto& job : page->at("items")) {
    std::cout << text_of(job, "_id") << "  " << std::left << std::setw(10) << text_of(job, "status")
              << std::right << std::setw(4) << job.value("progress", 0) << "%  "
              << text_of(job, "name") << "  " << text_of(job, "stepName")
              << text_of(job, "failReason") << "\n";
  }
  if (page->at("items").empty()) std::cout << "No jobs.\n";
  return 0;
}

int show(Client& client, const Arguments& args) {
  auto job = client.manage("GET", std::string(jobs_path) + "/" + encode(args.id));
  if (!job) return failed(job.error());
  std::cout << job->dump(client.options().json ? -1 : 2) << "\n";
  return 0;
}

int watch(Client& client, const Arguments& args) {
  const std::string path = std::string(jobs_path) + "/" + encode(args.id);
  ProgressView view;
  auto job = client.manage("GET", path);
  while (job && !is_over(*job)) {
    view.show(*job);
    job = client.manage("GET", path + "?wait=" + std::to_string(wait_seconds));
  }
  if (!job) return failed(job.error());
  view.show(*job);
  if (client.options().json) std::cout << job->dump() << "\n";
  return exit_code(*job);
}

int cancel(Client& client, const Arguments& args) {
  auto job = client.manage("POST", std::string(jobs_path) + "/" + encode(args.id) + "/cancel");
  if (!job) return failed(job.error());
  if (client.options().json) {
    std::cout << job->dump() << "\n";
  } else if (is_over(*job)) {
    std::cout << "Cancelled.\n";
  } else {
    std::cout << "What it has made is being undone: conversectl jobs watch " << args.id << "\n";
  }
  return 0;
}

}  // namespace

void add_job_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* jobs = app.add_subcommand("jobs", "Long work, such as the set-up of proactive follow-up")
                   ->require_subcommand(1);
  auto* list_command = add_subcommand(*jobs, "list", "The newest first", action, args, list);
  list_command->add_option("--status", args->status, "Only those of this status")
      ->check(CLI::IsMember({"queued", "active", "done", "cancelling", "cancelled", "error"}));
  list_command->add_option("--project", args->project, "Only those of this project's id");
  list_command->add_option("--limit", args->limit, "How many")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();

  const auto add = [&](const char* name, const char* what, int (*run)(Client&, const Arguments&)) {
    auto* command = add_subcommand(*jobs, name, what, action, args, run);
    command->add_option("ID", args->id, "Its id")->required();
  };
  add("show", "One, whole", show);
  add("watch", "One, until it is over; the exit code is 0 only if it is done", watch);
  add("cancel", "Has it undone", cancel);
}

}  // namespace conversed::ctl
