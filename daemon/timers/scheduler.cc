#include "daemon/timers/scheduler.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "daemon/ops/logging.h"
#include "flows/time/schedule_times.h"
#include "store/model/ids.h"
#include "store/model/trace.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {
namespace {

using model::Claim;
using model::Errc;
using model::FollowUp;
using model::Result;
using model::Schedule;
using model::Timestamp;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t timers_a_page = 512;
constexpr std::size_t others_a_page = 128;
// Pages read between two looks at the letters.
constexpr int pages_at_once = 32;
constexpr std::size_t schedules_a_page = 512;
constexpr std::size_t fired_behind_a_backlog = 16;
constexpr milliseconds unhealthy_sleep{100};

model::Event event_of(model::EventType type, Claim claim, model::SessionKey session) {
  model::Event event;
  event.type = type;
  event.session = std::move(session);
  event.claim = std::move(claim);
  return event;
}

// The event to append, and its due time, by the clock of the row.
struct Found {
  model::Event event;
  Timestamp due{};
};

Found found_of(store::Calls::Found timer) {
  auto& call = timer.call;
  const auto type = call.is_time_out ? model::EventType::time_out : model::EventType::timer;
  auto event = event_of(type, {Claim::Kind::timer, call.id}, std::move(call.session));
  event.trace_id = std::move(call.trace_id);
  event.tracestate = std::move(call.tracestate);
  return {std::move(event), call.due_at.value_or(Timestamp{})};
}

Found found_of(FollowUp follow_up) {
  auto event = event_of(model::EventType::follow_up, {Claim::Kind::follow_up, follow_up.id},
                        std::move(follow_up.session));
  event.trace_id = std::move(follow_up.trace_id);
  event.tracestate = std::move(follow_up.tracestate);
  event.text = std::move(follow_up.text);
  event.data = std::move(follow_up.data);
  event.follow_up = std::move(follow_up.plan);
  return {std::move(event), follow_up.due_at};
}

// A schedule that was put off has another claim. So this claim is due now.
Found found_of(Schedule schedule) {
  auto event = event_of(model::EventType::inject, {Claim::Kind::schedule, schedule.claim()},
                        std::move(schedule.session));
  event.trace_id = model::new_trace_id();
  event.text = std::move(schedule.text);
  event.data = std::move(schedule.data);
  return {std::move(event), Timestamp::min()};
}

// Nullopt: the timer was cancelled, or its session erased. `internal`: its row can't be read.
Result<std::optional<Found>> read_event(store::Shard& shard, const Claim& claim) {
  const auto made = [](auto read) -> Result<std::optional<Found>> {
    if (!read) return model::fail(read.error());
    if (!*read) return std::nullopt;
    return found_of(**std::move(read));
  };
  if (claim.kind == Claim::Kind::follow_up) return made(shard.timers().follow_up(claim.id));
  if (claim.kind == Claim::Kind::schedule) return made(shard.schedules().by_claim(claim.id));
  return made(shard.calls().find(claim.id));
}

}  // namespace

Scheduler::Scheduler(SchedulerSettings settings, store::Shard& shard, AppendEvent append,
                     const model::Clock& clock, Metrics& metrics)
    : settings_(std::move(settings)),
      shard_(shard),
      append_(std::move(append)),
      clock_(clock),
      metrics_(metrics) {}

model::Result<void> Scheduler::start() {
  if (auto set = set_clock(); !set) return set;
  if (settings_.mine) {
    heard_ = shard_.notifications().subscribe(
        std::string(store::timers_topic), [this](std::string_view payload) {
          std::int64_t due = 0;  // without a payload any timer may be due
          std::from_chars(payload.data(), payload.data() + payload.size(), due);
          offer(model::from_unix_ms(due));
        });
  }
  return thread_.start("scheduler", settings_.heartbeats, [this] { run(); });
}

void Scheduler::offer(Timestamp due) {
  thread_.mailbox()->put(
      [&](Letters& letters) { letters.due = std::min(letters.due.value_or(due), due); });
}

void Scheduler::offer(const Schedule& schedule) {
  const bool has_offset = settings_.timer_clock != nullptr && !settings_.mine;
  offer(has_offset ? schedule.due_at + settings_.timer_clock->offset() : schedule.due_at);
}

model::Result<void> Scheduler::set_clock() {
  if (settings_.timer_clock == nullptr) return {};
  if (!settings_.mine) {
    auto kept = shard_.timers().offset();
    if (!kept) return model::fail(kept.error());
    kept_offset_ = *kept;
  }
  offset_ = settings_.timer_clock->offset();
  return {};
}

void Scheduler::run() {
  while (!stop_) {
    model::fault_point("scheduler.loop");
    look_at_clocks();
    check_schedules();
    fire_due();
    mark();
    thread_.mailbox()->set_quiet(in_hand_.empty() && !is_due() && !checked_);
    read_letters();
  }
}

void Scheduler::wait_for(Timestamp due) {
  due_ = std::min(due_.value_or(due), due);
  if (read_up_to_ && due <= read_up_to_->at) read_up_to_.reset();
}

void Scheduler::read_again() {
  wait_for(Timestamp::min());
}

// A jump of the wall clock moves the due times of schedules by the clock of timers.
void Scheduler::look_at_clocks() {
  looked_at_ = clock_.now();
  if (settings_.timer_clock == nullptr) return;
  const auto [wall, offset] = settings_.timer_clock->read();
  looked_at_ = wall + offset;
  if (offset != offset_) {
    log::warn("the clock was set; timers are not affected", {{"byMs", (offset_ - offset).count()}});
    offset_ = offset;
    next_check_ = {};
    read_again();
  }
  if (kept_offset_ == offset_ || settings_.mine) return;
  // Without the stored offset a restart would time waits by the wall clock. Each look tries again.
  if (shard_.timers().keep_offset(offset_)) kept_offset_ = offset_;
}

// Moves recurring schedules to the next time of their rule. Else a schedule that fired while the
// wall clock was ahead would not fire until the clock reaches that time again.
void Scheduler::check_schedules() {
  const auto now = SteadyClock::now();
  if (now >= next_check_) {
    checked_ = 0;
    next_check_ = now + settings_.check_interval;
  }
  if (!checked_) return;
  auto page = shard_.schedules().recurring(*checked_, schedules_a_page);
  std::vector<store::Schedules::Sooner> sooner;
  for (const auto& row : page ? *page : std::vector<store::Schedules::Row>()) {
    const auto next = flows::time_after(row.schedule, looked_at_ - ahead_of_schedules());
    if (next && *next < row.schedule.due_at) sooner.push_back({row.schedule, *next});
  }
  const auto moved = sooner.empty() ? Result<void>() : shard_.schedules().bring_forward(sooner);
  if (!page || !moved) {
    log::warn("schedules can't be checked against the clock; trying again",
              {{"error", (page ? moved.error() : page.error()).message}});
    checked_.reset();
    next_check_ = now + settings_.retry;
    return;
  }
  for (const auto& [schedule, due_at] : sooner) wait_for(due_at + ahead_of_schedules());
  checked_ = page->empty() ? std::nullopt : std::optional(page->back().n);
}

SteadyClock::time_point Scheduler::next_look() const {
  const auto steady = SteadyClock::now();
  if (checked_) return steady;
  auto until = std::min(steady + settings_.max_sleep, std::max(steady, next_check_));
  until = std::min(until, std::max(steady, next_look_));
  if (!shard_.committer().healthy()) return std::min(until, steady + unhealthy_sleep);
  // The ends of appends and marks arrive as letters.
  const bool has_slot = appending_ < (failing_ ? 1 : settings_.max_appending) &&
                        in_hand_.size() < settings_.max_in_hand;
  if (!due_ || !has_slot) return until;
  const auto left = *due_ <= looked_at_ ? milliseconds(0)
                                        : std::clamp<milliseconds>(*due_ - now(), milliseconds(0),
                                                                   settings_.max_sleep);
  return std::min(until, std::max(steady + left, not_before_));
}

void Scheduler::read_letters() {
  auto letters = thread_.take(next_look());
  stop_ = letters.stop;
  if (stop_) return;
  if (letters.wake) not_before_ = {};
  if (letters.look_again) read_again();
  for (const auto& timer : letters.marked) in_hand_.erase(timer.claim.id);
  for (const auto& append : letters.appends) appended(append);
  if (letters.due) wait_for(*letters.due);
}

std::size_t Scheduler::may_fire() {
  const auto now = SteadyClock::now();
  if (now < not_before_ || !shard_.committer().healthy()) return 0;
  if (in_hand_.size() >= settings_.max_in_hand || appending_ >= settings_.max_appending) return 0;
  if (failing_) return appending_ == 0 ? 1 : 0;
  const auto free =
      std::min(settings_.max_in_hand - in_hand_.size(), settings_.max_appending - appending_);
  if (!settings_.backlog || settings_.backlog() < settings_.max_backlog) return free;
  not_before_ = now + settings_.backlog_pause;
  return std::min(free, fired_behind_a_backlog);
}

// Reads due timers, page by page, while there are free slots.
void Scheduler::fire_due() {
  const auto steady = SteadyClock::now();
  if (steady >= next_look_) {
    next_look_ = steady + settings_.look_interval;
    if (!read_up_to_) read_again();
  }
  if (!is_due()) return;
  auto left = may_fire();
  for (int pages = 0; left > 0 && pages < pages_at_once; ++pages) {
    if (!fire_page(left)) return;
  }
}

bool Scheduler::fire_page(std::size_t& left) {
  // The page also has timers in hand and timers of other daemons.
  const auto limit =
      std::min(timers_a_page, left + in_hand_.size() + (settings_.mine ? others_a_page : 0));
  auto page = shard_.timers().due(looked_at_, ahead_of_schedules(), limit,
                                  read_up_to_ ? &*read_up_to_ : nullptr);
  if (!page) {
    failed("timers can't be read", page.error());
    return false;
  }
  for (auto& timer : page->timers) {
    if (left == 0) return false;
    const bool is_mine = !settings_.mine || settings_.mine(timer.claim.id);
    if (is_mine && !in_hand_.contains(timer.claim.id)) {
      if (!fire(timer)) return false;
      --left;
    }
    read_up_to_ = std::move(timer);
  }
  if (page->timers.size() == limit) return true;
  read_up_to_.reset();
  due_ = page->next;
  return false;
}

bool Scheduler::fire(const Due& timer) {
  auto found = read_event(shard_, timer.claim);
  if (!found && found.error().code != Errc::internal) {
    failed("timers can't be read", found.error());
    return false;
  }
  if (!found) {
    log::error("a timer can't be read and does not fire",
               {{"id", timer.claim.id}, {"error", found.error().message}});
    in_hand_.emplace(timer.claim.id, timer);
    to_mark_.push_back(timer);
    return true;
  }
  // Only an optimization: such an event would find no claim and have no effect.
  if (!*found || (*found)->due > timer.at) return true;
  model::fault_point("timer.before_append");
  auto& event = (*found)->event;
  event.accepted_at = clock_.now();
  // The claim of a wait or follow-up begins with the id of the event that caused it.
  event.id = model::new_event_id(event.accepted_at,
                                 timer.claim.kind == Claim::Kind::schedule
                                     ? model::in_sample(event.trace_id, settings_.sample)
                                     : model::is_sampled(timer.claim.id));
  in_hand_.emplace(timer.claim.id, timer);
  ++appending_;
  append_(std::move(event), letter_at_end(thread_.mailbox(), timer.claim.id));
  return true;
}

void Scheduler::appended(const AppendEnd& append) {
  const auto timer = in_hand_.find(append.id);
  --appending_;
  if (append.error) {
    // Append again with the same claim: the failed append may have reached the log.
    wait_for(timer->second.at);
    in_hand_.erase(timer);
    return failed("timers can't be appended", *append.error);
  }
  model::fault_point("timer.after_append");
  metrics_.timers_fired.add();
  failing_ = false;
  to_mark_.push_back(timer->second);
}

void Scheduler::mark() {
  if (to_mark_.empty()) return;
  auto timers = std::exchange(to_mark_, {});
  shard_.timers().appended(timers, [mailbox = thread_.mailbox(), timers] {
    mailbox->put([&](Letters& letters) {
      letters.marked.insert(letters.marked.end(), timers.begin(), timers.end());
    });
  });
  if (in_hand_.size() >= settings_.max_in_hand) shard_.committer().hurry();
}

void Scheduler::failed(std::string_view message, const model::Error& error) {
  if (!std::exchange(failing_, true)) log::warn(message, {{"error", error.message}});
  not_before_ = SteadyClock::now() + settings_.retry;
}

}  // namespace conversed::daemon
