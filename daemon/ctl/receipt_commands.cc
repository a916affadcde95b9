// conversectl receipt.
#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <utility>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/output/screen.h"
#include "daemon/ctl/output/sheet.h"
#include "store/text/joined.h"
#include "store/text/quantity.h"

namespace conversed::ctl {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using text::counted;

// Columns of the bars. A narrow window leaves the texts more room.
std::int64_t bar_width() {
  const auto shown = screen();
  return shown.is_terminal && shown.columns < 100 ? 10 : 24;
}

std::string with_tenth(std::int64_t tenths, const char* unit) {
  const auto rest = tenths % 10;
  return std::to_string(tenths / 10) + (rest == 0 ? "" : "." + std::to_string(rest)) + ' ' + unit;
}

// Such as `0.8 ms`, `3.2 s` or `2.5 h`.
std::string duration(microseconds time) {
  struct Unit {
    std::int64_t micros;
    const char* name;
  };
  static constexpr std::array units{Unit{86'400'000'000, "d"}, Unit{3'600'000'000, "h"},
                                    Unit{60'000'000, "min"}, Unit{1'000'000, "s"}};
  for (const auto& [micros, name] : units) {
    if (time.count() >= micros) return with_tenth(time.count() * 10 / micros, name);
  }
  return with_tenth(time.count() / 100, "ms");
}

std::string next_try(const Fields& step) {
  return step.has("next") ? "; the next is due " + exact_time(step.number("next"), screen()) : "";
}

std::string why_it_waited(const Fields& step) {
  const auto cause = step.text("cause");
  if (cause == "queue") return "waited in the log and for a worker";
  if (cause == "recovery") return "waited to run alone, since a daemon went down with it";
  if (cause == "commit") return "waited for the store";
  if (cause == "connection") return "waited for a connection to the webhook";
  if (cause == "output") return "waited for the session's output before";
  if (cause == "call") return "waited for " + step.object("waitsFor").text("to");
  if (cause == "collect") return "waited in a collect for more events";
  if (cause == "sleep")
    return "slept until " + exact_time(step.object("waitsFor").number("until"), screen());
  if (cause == "retry") return "waited for the next try" + next_try(step);
  std::string text =
      "waited behind " +
      counted(step.has("behind") ? std::max<std::int64_t>(1, step.number("behind")) : 1, "event") +
      " of its session";
  if (step.has("blockedBy")) text += ", which waited for " + step.text("blockedBy");
  return text;
}

std::string answered(const Fields& step) {
  std::string text;
  if (step.has("status") && step.number("status") > 0) {
    text = "answered " + std::to_string(step.number("status"));
  }
  if (step.has("error")) text += (text.empty() ? "" : "; ") + step.text("error");
  if (step.has("answer")) text += " \"" + step.text("answer") + '"';
  if (step.has("ended")) text += (text.empty() ? "" : "; ") + step.text("ended");
  if (step.has("deadLetter")) text += "; dead letter " + step.text("deadLetter");
  return text + next_try(step);
}

// The end of an output by an operator: "output 1 dropped by ann@example.com; dead letter ID"
std::string settled(const Fields& step) {
  std::string text = "output " + std::to_string(step.number("seq")) + ' ' + step.text("done");
  if (step.has("by")) text += " by " + step.text(step.has("sender") ? "sender" : "by");
  return text + "; dead letter " + step.text("deadLetter");
}

std::string numbered_try(const Fields& step) {
  if (!step.has("try")) return "";
  const auto last = step.number("try");
  if (!step.has("tries")) return ", try " + std::to_string(last);
  return ", tries " + std::to_string(last - step.number("tries") + 1) + " to " +
         std::to_string(last);
}

std::string turn(const Fields& step) {
  std::vector<std::string> parts;
  if (step.has("flow")) {
    parts.push_back("Flow " + step.text("flow") + ", version " +
                    std::to_string(step.number("version")));
    if (step.has("nodes")) parts.push_back(text::joined(step.texts("nodes"), " > "));
    if (step.has("branches")) parts.push_back(text::joined(step.texts("branches")));
  }
  if (step.has("collected")) parts.emplace_back("collected the event");
  if (step.has("eventsRun")) {
    parts.push_back("ran " + counted(step.number("eventsRun"), "collected event") + ": " +
                    text::joined(step.texts("events"), ", "));
  }
  if (step.has("changes")) {
    std::vector<std::string> paths;
    for (const auto& change : step.objects("changes")) paths.push_back(change.text("path"));
    auto changed = "changed " + text::joined(paths, ", ");
    if (step.has("changesLeftOut")) {
      changed += " and " + std::to_string(step.number("changesLeftOut")) + " more";
    }
    parts.push_back(std::move(changed));
  }
  if (step.has("outputs")) {
    std::vector<std::string> numbers;
    for (const auto& output : step.objects("outputs")) {
      numbers.push_back(std::to_string(output.number("seq")));
    }
    if (!numbers.empty()) parts.push_back("output " + text::joined(numbers, ", "));
  }
  if (step.has("waitsFor")) parts.push_back("waits for " + step.object("waitsFor").text("id"));
  if (step.has("deadLetter")) {
    parts.push_back("dead letter " + step.text("deadLetter") + ": " + step.text("reason"));
  }
  if (step.has("ended")) parts.push_back(step.text("ended"));
  return "Turn: " + (parts.empty() ? "no Flow" : text::joined(parts, "; "));
}

std::string words(const Fields& step) {
  const auto what = step.text("what");
  if (what == "waited") return why_it_waited(step);
  if (what == "turn") return turn(step);
  if (what == "ran") return "ran with other events in the Turn of " + step.text("turnOf");
  if (what == "accepted") {
    std::string text = "accepted: " + step.text("type");
    if (step.has("text")) text += " \"" + step.text("text") + '"';
    if (step.has("by")) text += ", by " + step.text(step.has("sender") ? "sender" : "by");
    return step.has("daemon") ? text + ", on " + step.text("daemon") : text;
  }
  if (step.has("done")) return settled(step);
  const bool is_call = what == "call";
  const auto subject = is_call ? "call of " + step.text("to")
                               : "delivery of output " + std::to_string(step.number("seq"));
  return subject + numbered_try(step) + ": " + answered(step);
}

// Shows the reasons of the open steps. All outputs behind the first open one wait for it.
void show_open_steps(const std::vector<Fields>& steps) {
  bool is_output_told = false;
  for (const auto& step : steps) {
    if (!step.has("waits")) continue;
    const bool is_output = step.has("seq");
    if (is_output && std::exchange(is_output_told, true)) continue;
    const auto waits = step.objects("waits");
    if (waits.empty()) continue;
    say(is_output ? "Output " + std::to_string(step.number("seq")) + " waits:"
                  : std::string("The event waits:"));
    for (const auto& wait : waits) std::cout << wait_of(wait, screen());
  }
}

void show_receipt(const Fields& receipt, const Values& /*values*/) {
  const auto steps = receipt.objects("steps");
  say("Event " + receipt.text("_id") + " of " + receipt.text("userId") + ", session " +
      receipt.text("sessionId") + ", trace " + receipt.text("traceId"));
  if (const auto others = receipt.number("othersWaiting"); others > 0) {
    say(counted(others, "other event") + " of its session " + (others == 1 ? "waits" : "wait") +
        " for it.");
  }
  if (steps.empty()) return;
  const auto begin = steps.front().number("fromMs");
  std::int64_t length = 1;
  const auto length_of = [](const Fields& step) {
    return step.has("micros") ? step.number("micros") / 1000 : 0;
  };
  for (const auto& step : steps) {
    length = std::max(length, step.number("fromMs") - begin + length_of(step));
  }
  say("Begins " + exact_time(begin, screen()) + '.');
  const auto width = bar_width();
  Table table({"AT", "TOOK", "WHEN", "STEP"});
  table.wrap_last();
  for (const auto& step : steps) {
    const auto from = step.number("fromMs") - begin;
    const auto at = std::min(from * width / length, width - 1);
    const auto cells = std::clamp<std::int64_t>(length_of(step) * width / length, 1, width - at);
    const bool waits = step.text("what") == "waited";
    std::string bar(static_cast<std::size_t>(at), ' ');
    bar.append(static_cast<std::size_t>(cells), waits ? '.' : '#');
    table.add({'+' + duration(milliseconds(from)),
               step.has("micros") ? duration(microseconds(step.number("micros"))) : "goes on", bar,
               words(step)});
  }
  table.print("");
  show_open_steps(steps);
}

}  // namespace

std::vector<Group> receipt_commands() {
  return {{"",
           "",
           {Command{"receipt",
                    {"Show what happened to an event, step by step, and why it waited", some_id,
                     "`deadletters show` shows a dead letter that it names."},
                    {Option{"ID", "The X-Inject-Id, a webhook-id, a trace id or an Idempotency-Key"}
                         .require()},
                    "GET /management/receipts/{ID}",
                    show_receipt}}}};
}

}  // namespace conversed::ctl
