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
#include "daemon/service_thread.h"
#include "store/model/fault_points.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using model::Claim;
using model::FollowUp;
using model::PendingCall;
using model::Schedule;
using model::Timestamp;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds store_retry{1'000};
constexpr std::size_t timers_a_page = 512;
constexpr Timestamp begin_of_time = model::from_unix_ms(std::numeric_limits<std::int64_t>::min());
constexpr Timestamp end_of_time = model::from_unix_ms(std::numeric_limits<std::int64_t>::max());

// The order in which timers fall due; the store's order, too.
struct Place {
  Timestamp due{};
  std::string id;
  auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
};

// What is appended when its time has come; its claim is the timer's id.
struct Timer {
  Timestamp due{};
  model::Event event;

  [[nodiscard]] const std::string& id() const { return event.claim->id; }
};

model::Event event_of(model::EventType type, Claim claim, model::SessionKey session) {
  model::Event event;
  event.id = claim.id + "-t";
  event.type = type;
  event.session = std::move(session);
  event.claim = std::move(claim);
  return event;
}

Timer timer_of(PendingCall call) {
  Timer timer{*call.due_at, event_of(model::EventType::timer, {Claim::Kind::timer, call.id},
                                     std::move(call.session))};
  timer.event.trace_id = std::move(call.trace_id);
  return timer;
}
Timer timer_of(FollowUp follow_up) {
  Timer timer{follow_up.due_at,
              event_of(model::EventType::follow_up, {Claim::Kind::follow_up, follow_up.id},
                       std::move(follow_up.session))};
  timer.event.trace_id = std::move(follow_up.trace_id);
  timer.event.text = std::move(follow_up.text);
  timer.event.data = std::move(follow_up.data);
  timer.event.follow_up = std::move(follow_up.plan);
  return timer;
}
Timer timer_of(Schedule schedule) {
  Timer timer{schedule.due_at,
              event_of(model::EventType::inject, {Claim::Kind::schedule, schedule.claim()},
                       std::move(schedule.session))};
  timer.event.trace_id = model::new_trace_id();
  timer.event.text = std::move(schedule.text);
  timer.event.data = std::move(schedule.data);
  return timer;
}

struct Letters {
  std::vector<Timer> offers;
  std::vector<AppendEnd> appends;
  bool wake = false;
  bool stop = false;
  [[nodiscard]] bool empty() const { return offers.empty() && appends.empty() && !wake && !stop; }
};

}  // namespace

class Scheduler::Engine {
 public:
  Engine(SchedulerSettings settings, store::Store& store, AppendEvent append,
         const model::Clock& clock, Metrics& metrics)
      : settings_(settings),
        store_(store),
        append_(std::move(append)),
        clock_(clock),
        metrics_(metrics) {}
  ~Engine() { stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  model::Result<void> start() {
    return thread_.start("scheduler", settings_.heartbeats, [this] { run(); });
  }
  void stop() { thread_.stop(); }

  [[nodiscard]] Mailbox<Letters>& mailbox() { return *thread_.mailbox(); }
  [[nodiscard]] std::size_t waiting() const { return count_.load(std::memory_order_relaxed); }

 private:
  void run();
  void read_letters();
  [[nodiscard]] SteadyClock::time_point next_look() const;
  void load();
  void take(Timer timer);
  [[nodiscard]] bool read_page(std::vector<Timer>& page);
  [[nodiscard]] bool was_cancelled(const Timer& timer) const;
  void fire_due();
  void append(Timer& timer);
  void appended(const AppendEnd& append);

  const SchedulerSettings settings_;
  store::Store& store_;
  const AppendEvent append_;
  const model::Clock& clock_;
  Metrics& metrics_;
  std::atomic<std::size_t> count_{0};

  // The thread's own. `timers_` holds every timer of the store up to `known_`, but for those that
  // are being appended or have been. `all_known_`: there are none behind it.
  std::map<Place, Timer> timers_;
  std::map<Place, Timer> retries_;  // by the time of their next append
  std::unordered_map<std::string, Timer> appending_;
  Place known_{begin_of_time, {}};
  bool all_known_ = false;
  SteadyClock::time_point next_load_{};
  bool failing_ = false;
  bool stop_ = false;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

void Scheduler::Engine::run() {
  while (!stop_) {
    model::fault_point("scheduler.loop");
    load();
    fire_due();
    count_.store(timers_.size() + retries_.size() + appending_.size(), std::memory_order_relaxed);
    read_letters();
  }
}

SteadyClock::time_point Scheduler::Engine::next_look() const {
  const auto now = SteadyClock::now();
  auto until = now + settings_.max_sleep;
  if (!all_known_ && timers_.size() <= settings_.max_timers / 2) {
    until = std::max(now, std::min(until, next_load_));
  }
  if (appending_.size() >= settings_.max_appending) return until;
  for (const auto* waiting : {&timers_, &retries_}) {
    if (waiting->empty()) continue;
    const auto left = std::clamp<milliseconds>(waiting->begin()->first.due - clock_.now(),
                                               milliseconds(0), settings_.max_sleep);
    until = std::min(until, now + left);
  }
  return until;
}

void Scheduler::Engine::read_letters() {
  auto letters = thread_.take(next_look());
  stop_ = letters.stop;
  if (stop_) return;
  for (const auto& append : letters.appends) appended(append);
  for (auto& offer : letters.offers) take(std::move(offer));
}

// Reads the next page of timers while there is room.
void Scheduler::Engine::load() {
  if (all_known_ || timers_.size() > settings_.max_timers / 2 || SteadyClock::now() < next_load_) {
    return;
  }
  std::vector<Timer> page;
  if (!read_page(page)) {
    next_load_ = SteadyClock::now() + store_retry;
    return;
  }
  all_known_ = page.empty();
  for (auto& timer : page) {
    known_ = {timer.due, timer.id()};
    take(std::move(timer));
  }
}

// The timers of all kinds that come next, in their common order.
bool Scheduler::Engine::read_page(std::vector<Timer>& page) {
  const auto add = [&page](auto&& read) {
    if (!read) {
      log::warn("timers can't be read", {{"error", read.error().message}});
      return false;
    }
    for (auto& waits : *read) page.push_back(timer_of(std::move(waits)));
    return true;
  };
  if (!add(store_.calls().due(end_of_time, known_.due, known_.id, timers_a_page)) ||
      !add(store_.follow_ups().by_due(known_.due, known_.id, timers_a_page)) ||
      !add(store_.schedules().by_due(known_.due, known_.id, timers_a_page))) {
    return false;
  }
  std::ranges::sort(page, {}, [](const Timer& timer) { return Place{timer.due, timer.id()}; });
  // What is behind a full page of its kind is unread, so nothing of another kind may be known.
  if (page.size() > timers_a_page) page.resize(timers_a_page);
  return true;
}

void Scheduler::Engine::take(Timer timer) {
  Place place{timer.due, timer.id()};
  if (!all_known_ && known_ < place) return;  // read when its time comes nearer
  if (appending_.contains(timer.id())) return;
  timers_.try_emplace(std::move(place), std::move(timer));
  if (timers_.size() <= std::max<std::size_t>(1, settings_.max_timers)) return;
  // The furthest one stays in the store alone.
  timers_.erase(std::prev(timers_.end()));
  known_ = timers_.rbegin()->first;
  all_known_ = false;
}

void Scheduler::Engine::fire_due() {
  const Timestamp now = clock_.now();
  for (auto* waiting : {&retries_, &timers_}) {
    while (!waiting->empty() && waiting->begin()->first.due <= now &&
           appending_.size() < settings_.max_appending) {
      auto node = waiting->extract(waiting->begin());
      if (was_cancelled(node.mapped())) continue;
      const auto placed =
          appending_.insert_or_assign(node.key().id, std::move(node.mapped())).first;
      append(placed->second);
    }
  }
}

// Spares the log an event without effect; the claim decides in any case.
bool Scheduler::Engine::was_cancelled(const Timer& timer) const {
  model::Result<bool> waits = true;
  const auto kind = timer.event.claim->kind;
  if (kind == Claim::Kind::follow_up) waits = store_.follow_ups().waits(timer.id());
  if (kind == Claim::Kind::schedule) waits = store_.schedules().waits(timer.id());
  return waits && !*waits;
}

void Scheduler::Engine::append(Timer& timer) {
  model::fault_point("timer.before_append");
  timer.event.accepted_at = clock_.now();
  append_(timer.event, letter_at_end(thread_.mailbox(), timer.id()));
}

void Scheduler::Engine::appended(const AppendEnd& append) {
  auto timer = appending_.extract(append.id);
  if (!append.error) {
    metrics_.timers_fired.add();
    failing_ = false;
    return;
  }
  if (!std::exchange(failing_, true)) {
    log::warn("timers can't be appended", {{"error", append.error->message}});
  }
  // Its id, and so its claim, stay the same, should the append have taken effect after all.
  retries_.try_emplace(Place{clock_.now() + settings_.append_retry, append.id},
                       std::move(timer.mapped()));
}

Scheduler::Scheduler(SchedulerSettings settings, store::Store& store, AppendEvent append,
                     const model::Clock& clock, Metrics& metrics)
    : engine_(std::make_unique<Engine>(settings, store, std::move(append), clock, metrics)) {}

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

void Scheduler::offer(PendingCall timer) {
  if (!timer.due_at) return;
  engine_->mailbox().put(
      [&](Letters& letters) { letters.offers.push_back(timer_of(std::move(timer))); });
}

void Scheduler::offer(FollowUp follow_up) {
  engine_->mailbox().put(
      [&](Letters& letters) { letters.offers.push_back(timer_of(std::move(follow_up))); });
}

void Scheduler::offer(Schedule schedule) {
  engine_->mailbox().put(
      [&](Letters& letters) { letters.offers.push_back(timer_of(std::move(schedule))); });
}

void Scheduler::wake() {
  engine_->mailbox().put([](Letters& letters) { letters.wake = true; });
}

std::size_t Scheduler::waiting() const {
  return engine_->waiting();
}

}  // namespace conversed::daemon
