#include "daemon/scheduler.h"

#include <algorithm>
#include <atomic>
#include <compare>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/logging.h"
#include "daemon/metrics.h"
#include "daemon/recent.h"
#include "daemon/service_thread.h"
#include "daemon/timer_clock.h"
#include "flows/schedule_times.h"
#include "store/model/fault_points.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using model::Claim;
using model::Errc;
using model::FollowUp;
using model::PendingCall;
using model::Result;
using model::Schedule;
using model::Timestamp;
using std::chrono::milliseconds;
using Due = store::Timers::Due;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t timers_a_page = 512;
constexpr std::size_t max_fired_known = 65'536;
constexpr std::size_t fired_behind_a_backlog = 16;
constexpr Timestamp begin_of_time = model::from_unix_ms(std::numeric_limits<std::int64_t>::min());

// The order in which timers fall due; the store's order, too.
struct Place {
  Timestamp due{};
  std::string id;
  auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Waiting {
  Place place;
  Claim::Kind kind;
};

model::Event event_of(model::EventType type, Claim claim, model::SessionKey session) {
  model::Event event;
  event.id = claim.id + std::string(model::due_event_suffix);
  event.type = type;
  event.session = std::move(session);
  event.claim = std::move(claim);
  return event;
}

model::Event event_of(PendingCall call) {
  const auto type = call.is_time_out ? model::EventType::time_out : model::EventType::timer;
  auto event = event_of(type, {Claim::Kind::timer, call.id}, std::move(call.session));
  event.trace_id = std::move(call.trace_id);
  return event;
}
model::Event event_of(FollowUp follow_up) {
  auto event = event_of(model::EventType::follow_up, {Claim::Kind::follow_up, follow_up.id},
                        std::move(follow_up.session));
  event.trace_id = std::move(follow_up.trace_id);
  event.text = std::move(follow_up.text);
  event.data = std::move(follow_up.data);
  event.follow_up = std::move(follow_up.plan);
  return event;
}
model::Event event_of(Schedule schedule) {
  auto event = event_of(model::EventType::inject, {Claim::Kind::schedule, schedule.claim()},
                        std::move(schedule.session));
  event.trace_id = model::new_trace_id();
  event.text = std::move(schedule.text);
  event.data = std::move(schedule.data);
  return event;
}

// By the clock that its row goes by.
Timestamp due_of(const PendingCall& call) {
  return call.due_at.value_or(Timestamp{});
}
Timestamp due_of(const FollowUp& follow_up) {
  return follow_up.due_at;
}
// Put off it has another claim, so that what this one was due for has come.
Timestamp due_of(const Schedule&) {
  return begin_of_time;
}

// What is to be appended, and when at the earliest.
struct Found {
  model::Event event;
  Timestamp due{};
};
// Nothing: it was cancelled, or its session erased. `internal`: its row can't be read.
Result<std::optional<Found>> read_event(store::Store& store, const Claim& claim) {
  const auto made = [](auto read) -> Result<std::optional<Found>> {
    if (!read) return model::fail(read.error());
    if (!*read) return std::nullopt;
    const auto due = due_of(**read);
    return Found{event_of(std::move(**read)), due};
  };
  if (claim.kind == Claim::Kind::follow_up) return made(store.follow_ups().find(claim.id));
  if (claim.kind == Claim::Kind::schedule) return made(store.schedules().by_claim(claim.id));
  return made(store.calls().find(claim.id));
}

struct Letters {
  std::vector<Due> offers;
  std::vector<AppendEnd> appends;
  bool wake = false;
  bool look_again = false;
  bool stop = false;
  [[nodiscard]] bool empty() const {
    return offers.empty() && appends.empty() && !wake && !look_again && !stop;
  }
};

}  // namespace

class Scheduler::Engine {
 public:
  Engine(SchedulerSettings settings, store::Store& store, AppendEvent append,
         const model::Clock& clock, Metrics& metrics)
      : settings_(std::move(settings)),
        store_(store),
        append_(std::move(append)),
        clock_(clock),
        metrics_(metrics) {}
  ~Engine() { stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  model::Result<void> start() {
    if (auto set = set_clock(); !set) return set;
    // Before anything is read: what is committed later is heard of.
    if (settings_.mine) {
      heard_ = store_.news().subscribe(std::string(store::Timers::topic),
                                       [this](std::string_view payload) { hear(payload); });
    }
    return thread_.start("scheduler", settings_.heartbeats, [this] { run(); });
  }
  void stop() {
    heard_ = {};
    thread_.stop();
  }

  // What others may take as well has been announced to all: that way it comes here, too, once.
  void offer(Timestamp due_at, Claim claim) {
    if (settings_.mine) return;
    thread_.mailbox()->put([&](Letters& letters) {
      letters.offers.push_back({due_at, std::move(claim)});
    });
  }
  void look_again() {
    thread_.mailbox()->put([](Letters& letters) { letters.look_again = true; });
  }
  void wake() {
    thread_.mailbox()->put([](Letters& letters) { letters.wake = true; });
  }
  [[nodiscard]] std::size_t waiting() const { return count_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] model::Result<void> set_clock();
  void hear(std::string_view payload);
  void run();
  void forget_all();
  void look_at_clocks();
  void check_schedules();
  void read_letters();
  // By the clock of timers.
  [[nodiscard]] Timestamp now() const { return clock_.now() + offset_; }
  [[nodiscard]] SteadyClock::time_point next_look() const;
  [[nodiscard]] bool has_room() const {
    return !all_known_ && timers_.size() <= settings_.max_timers / 2;
  }
  void load();
  void take(Waiting timer);
  [[nodiscard]] std::size_t may_fire();
  void fire_due();
  void fire(Waiting timer);
  void appended(const AppendEnd& append);
  void failed(Waiting timer, const model::Error& error);

  const SchedulerSettings settings_;
  store::Store& store_;
  const AppendEvent append_;
  const model::Clock& clock_;
  Metrics& metrics_;
  std::atomic<std::size_t> count_{0};

  // The thread's own. `timers_` holds every timer of the store up to `known_`, but for those that
  // are being appended or have been. `all_known_`: there are none behind it.
  std::map<Place, Claim::Kind> timers_;
  std::unordered_map<std::string, Waiting> appending_;
  Recent fired_{max_fired_known};  // of those that may be read again, until when they were due
  // All places are by the clock of timers.
  milliseconds offset_{0};
  milliseconds kept_offset_{0};
  Timestamp looked_at_{};
  Place known_{begin_of_time, {}};
  bool all_known_ = false;
  SteadyClock::time_point next_load_{};
  // Where the check of schedules has come to, by their numbers; nothing: it is over.
  std::optional<std::int64_t> checked_;
  SteadyClock::time_point next_check_{};
  // What failed is in `timers_` again. While it fails, one at a time is tried.
  bool failing_ = false;
  SteadyClock::time_point not_before_{};
  bool stop_ = false;
  store::News::Subscription heard_;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

model::Result<void> Scheduler::Engine::set_clock() {
  if (settings_.timer_clock == nullptr) return {};
  if (settings_.mine) {
    offset_ = settings_.timer_clock->offset();
    return {};
  }
  auto kept = store_.timers().offset();
  if (!kept) return model::fail(kept.error());
  kept_offset_ = *kept;
  offset_ = settings_.timer_clock->offset();
  return {};
}

// On the watch's thread.
void Scheduler::Engine::hear(std::string_view payload) {
  auto timers = store::Timers::announced(payload);
  if (!timers) return look_again();
  thread_.mailbox()->put(
      [&](Letters& letters) { std::ranges::move(*timers, std::back_inserter(letters.offers)); });
}

void Scheduler::Engine::run() {
  while (!stop_) {
    model::fault_point("scheduler.loop");
    look_at_clocks();
    check_schedules();
    load();
    fire_due();
    count_.store(timers_.size() + appending_.size(), std::memory_order_relaxed);
    read_letters();
  }
}

// They are read from the store again.
void Scheduler::Engine::forget_all() {
  timers_.clear();
  known_ = {begin_of_time, {}};
  all_known_ = false;
  next_load_ = {};
}

// After a jump of the wall clock schedules have other places among the timers, which have their
// own still: all are read again.
void Scheduler::Engine::look_at_clocks() {
  looked_at_ = clock_.now();
  if (settings_.timer_clock == nullptr) return;
  const auto [wall, offset] = settings_.timer_clock->read();
  looked_at_ = wall + offset;
  if (offset != offset_) {
    log::warn("the clock was set: what waits for a while goes on as if it had not been",
              {{"byMs", (offset_ - offset).count()}});
    offset_ = offset;
    next_check_ = {};
    forget_all();
  }
  if (kept_offset_ == offset_ || settings_.mine) return;
  // Else a restart would take the wall clock's word for what waits now; tried at each look.
  if (store_.timers().keep_offset(offset_)) kept_offset_ = offset_;
}

// What recurs waits for the next time of its rule, and no longer: one that came while the wall
// clock was ahead, and was to go on from there, would be silent until that time comes again.
void Scheduler::Engine::check_schedules() {
  const auto now = SteadyClock::now();
  if (now >= next_check_) {
    checked_ = 0;
    next_check_ = now + settings_.check_interval;
  }
  if (!checked_) return;
  auto page = store_.schedules().recurring(*checked_, timers_a_page);
  // Several daemons agree on one clock only: their server's, which that of timers follows.
  const auto wall = settings_.mine ? looked_at_ : looked_at_ - offset_;
  std::vector<store::Schedules::Sooner> sooner;
  for (const auto& row : page ? *page : std::vector<store::Schedules::Row>()) {
    const auto next = flows::time_after(row.schedule, wall);
    if (next && *next < row.schedule.due_at) sooner.push_back({row.schedule, *next});
  }
  const auto moved = sooner.empty() ? Result<void>() : store_.schedules().bring_forward(sooner);
  if (!page || !moved) {
    log::warn("schedules can't be checked against the clock; trying again",
              {{"error", (page ? moved.error() : page.error()).message}});
    checked_.reset();
    next_check_ = now + settings_.retry;
    return;
  }
  for (const auto& [schedule, due_at] : sooner) {
    take({{due_at + offset_, schedule.claim()}, Claim::Kind::schedule});
  }
  checked_ = page->empty() ? std::nullopt : std::optional(page->back().n);
}

SteadyClock::time_point Scheduler::Engine::next_look() const {
  const auto now = SteadyClock::now();
  if (checked_) return now;
  auto until = std::min(now + settings_.max_sleep, std::max(now, next_check_));
  if (has_room()) until = std::max(now, std::min(until, next_load_));
  // The end of an append is a letter.
  if (appending_.size() >= (failing_ ? 1 : settings_.max_appending) || timers_.empty()) {
    return until;
  }
  const Timestamp now_of_timers = this->now();
  const auto left = std::clamp<milliseconds>(timers_.begin()->first.due - now_of_timers,
                                             milliseconds(0), settings_.max_sleep);
  return std::min(until, std::max(now + left, not_before_));
}

void Scheduler::Engine::read_letters() {
  auto letters = thread_.take(next_look());
  stop_ = letters.stop;
  if (stop_) return;
  if (letters.wake) not_before_ = {};
  if (letters.look_again) forget_all();
  for (const auto& append : letters.appends) appended(append);
  for (auto& offer : letters.offers) {
    if (offer.claim.kind == Claim::Kind::schedule) offer.at += offset_;
    take({{offer.at, std::move(offer.claim.id)}, offer.claim.kind});
  }
}

// Reads the next page of timers while there is room.
void Scheduler::Engine::load() {
  if (!has_room() || SteadyClock::now() < next_load_) return;
  auto page = store_.timers().by_due(known_.due, known_.id, timers_a_page, offset_);
  if (!page) {
    log::warn("timers can't be read", {{"error", page.error().message}});
    next_load_ = SteadyClock::now() + settings_.retry;
    return;
  }
  all_known_ = page->empty();
  for (auto& due : *page) {
    known_ = {due.at, due.claim.id};
    take({{due.at, std::move(due.claim.id)}, due.claim.kind});
  }
}

void Scheduler::Engine::take(Waiting timer) {
  if (settings_.mine && !settings_.mine(timer.place.id)) return;
  if (!all_known_ && known_ < timer.place) return;  // read when its time comes nearer
  if (appending_.contains(timer.place.id)) return;
  // In the log, though its Turn has not come yet; unless it was put off since.
  const auto fired = fired_.find(timer.place.id);
  if (fired && model::to_unix_ms(timer.place.due) <= *fired) return;
  timers_.try_emplace(std::move(timer.place), timer.kind);
  if (timers_.size() <= std::max<std::size_t>(1, settings_.max_timers)) return;
  // The furthest one stays in the store alone.
  timers_.erase(std::prev(timers_.end()));
  known_ = timers_.rbegin()->first;
  all_known_ = false;
}

// How many timers may be appended now.
std::size_t Scheduler::Engine::may_fire() {
  const auto now = SteadyClock::now();
  if (now < not_before_) return 0;
  if (failing_) return appending_.empty() ? 1 : 0;
  if (!settings_.backlog || settings_.backlog() < settings_.max_backlog) return timers_.size();
  not_before_ = now + settings_.backlog_pause;
  return fired_behind_a_backlog;
}

void Scheduler::Engine::fire_due() {
  const Timestamp latest = looked_at_;
  const auto is_due = [&] { return !timers_.empty() && timers_.begin()->first.due <= latest; };
  if (!is_due()) return;
  const bool failed_before = failing_;
  for (auto left = may_fire(); left > 0 && is_due(); --left) {
    if (appending_.size() >= settings_.max_appending || failing_ != failed_before) return;
    auto node = timers_.extract(timers_.begin());
    fire({std::move(node.key()), node.mapped()});
  }
}

void Scheduler::Engine::fire(Waiting timer) {
  auto found = read_event(store_, {timer.kind, timer.place.id});
  if (!found && found.error().code != Errc::internal) {
    return failed(std::move(timer), found.error());
  }
  if (!found) {  // it stays as it is, and holds nothing up
    log::error("a timer can't be read and does not fire",
               {{"id", timer.place.id}, {"error", found.error().message}});
    return;
  }
  if (!*found) return;  // spares the log an event without effect; the claim decides in any case
  if ((*found)->due > timer.place.due) {
    timer.place.due = (*found)->due;
    return take(std::move(timer));
  }
  model::fault_point("timer.before_append");
  (*found)->event.accepted_at = clock_.now();
  const std::string id = timer.place.id;
  appending_.insert_or_assign(id, std::move(timer));
  append_(std::move((*found)->event), letter_at_end(thread_.mailbox(), id));
}

void Scheduler::Engine::appended(const AppendEnd& append) {
  auto timer = appending_.extract(append.id);
  if (timer.empty()) return;
  // Its id, and so its claim, stay the same, should the append have taken effect after all.
  if (append.error) return failed(std::move(timer.mapped()), *append.error);
  metrics_.timers_fired.add();
  fired_.note(append.id, model::to_unix_ms(timer.mapped().place.due));
  failing_ = false;
}

void Scheduler::Engine::failed(Waiting timer, const model::Error& error) {
  if (!std::exchange(failing_, true)) {
    log::warn("timers can't be appended", {{"error", error.message}});
  }
  not_before_ = SteadyClock::now() + settings_.retry;
  take(std::move(timer));
}

Scheduler::Scheduler(SchedulerSettings settings, store::Store& store, AppendEvent append,
                     const model::Clock& clock, Metrics& metrics)
    : engine_(std::make_unique<Engine>(std::move(settings), store, std::move(append), clock,
                                       metrics)) {}

Scheduler::~Scheduler() = default;

model::Result<void> Scheduler::start() {
  return engine_->start();
}

void Scheduler::stop() {
  engine_->stop();
}

std::string_view Scheduler::name() const {
  return "scheduler";
}

void Scheduler::offer(const PendingCall& timer) {
  if (timer.due_at) engine_->offer(*timer.due_at, {Claim::Kind::timer, timer.id});
}

void Scheduler::offer(const FollowUp& follow_up) {
  engine_->offer(follow_up.due_at, {Claim::Kind::follow_up, follow_up.id});
}

void Scheduler::offer(const Schedule& schedule) {
  engine_->offer(schedule.due_at, {Claim::Kind::schedule, schedule.claim()});
}

void Scheduler::look_again() {
  engine_->look_again();
}

void Scheduler::offer(const Claim& claim, Timestamp due) {
  engine_->offer(due, claim);
}

void Scheduler::wake() {
  engine_->wake();
}

std::size_t Scheduler::waiting() const {
  return engine_->waiting();
}

}  // namespace conversed::daemon
