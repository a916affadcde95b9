#include "api/http/keeper.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/http/client_address.h"
#include "store/runtime/thread_name.h"

namespace conversed::api {
namespace {

constexpr std::uint64_t wake_tag = 0;  // ids of Gates begin at 1
// Connections beyond the limit that get 503. Connections beyond these are closed without an answer.
constexpr std::size_t max_turned_away = 256;
constexpr std::size_t max_turned_away_of_one = 16;

// A quarter of the shortest time-out, within bounds. A time-out is noticed at most that late.
std::chrono::milliseconds round_for(const HttpSettings& settings) {
  const auto shortest =
      std::min({settings.header_timeout, settings.body_timeout, settings.idle_timeout,
                settings.write_timeout, settings.linger_timeout});
  return std::clamp(shortest / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(250));
}

HttpSettings with_clock(HttpSettings settings) {
  static const model::SystemClock system_clock;
  if (settings.clock == nullptr) settings.clock = &system_clock;
  return settings;
}

}  // namespace

model::Result<std::shared_ptr<Keeper>> Keeper::open(HttpSettings settings, Handler handler) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = wake_tag;
  if (epoll < 0 || wake < 0 || ::epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event) != 0) {
    if (epoll >= 0) ::close(epoll);
    if (wake >= 0) ::close(wake);
    return model::fail(model::Errc::internal, "no descriptor is left for the HTTP server");
  }
  return std::shared_ptr<Keeper>(
      new Keeper(with_clock(std::move(settings)), std::move(handler), epoll, wake));
}

Keeper::Keeper(HttpSettings settings, Handler handler, int epoll, int wake)
    : settings_(std::move(settings)),
      handler_(std::move(handler)),
      round_(round_for(settings_)),
      epoll_(epoll),
      wake_(wake),
      large_bodies_(std::make_shared<BodyBudget>(settings_.max_large_bodies)) {}

Keeper::~Keeper() {
  stop();
  ::close(epoll_);
  ::close(wake_);
}

void Keeper::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Keeper::stop() {
  thread_.request_stop();
  wake_up();
  if (thread_.joinable()) thread_.join();
  abort_all();
  const auto dropped = resumable_.with([](Resumable& resumable) {
    resumable.closed = true;
    return std::exchange(resumable.gates, {});
  });
  Gates forgotten;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  forgotten.swap(gates_);
}

void Keeper::begin_drain() {
  draining_.store(true, std::memory_order_relaxed);
  wake_up();
}

bool Keeper::wait_until_empty(Time deadline) {
  std::unique_lock lock(mutex_);
  return emptied_.wait_until(lock, deadline, [&] { return gates_.empty(); });
}

void Keeper::abort_all() {
  for (const auto& gate : all()) gate->abort();
}

std::shared_ptr<Gate> Keeper::admit(int descriptor, std::string peer) {
  const bool counted = !is_trusted(peer, settings_.trusted_proxies);
  std::string address = counted ? counted_address(peer) : std::string();
  std::shared_ptr<Gate> gate;
  std::size_t count = 0;
  std::size_t of_address = 0;
  {
    const std::lock_guard lock(mutex_);
    gate = std::make_shared<Gate>(shared_from_this(), ++last_id_, descriptor, std::move(peer),
                                  std::move(address));
    gates_.emplace(last_id_, gate);
    count = gates_.size();
    if (counted) of_address = ++by_address_[gate->address()];
  }
  const auto beyond = [](std::size_t number, std::size_t limit) {
    return number > limit ? number - limit : 0;
  };
  const std::size_t beyond_all = beyond(count, settings_.max_connections);
  const std::size_t beyond_one = beyond(of_address, settings_.max_connections_per_address);
  if (beyond_all > max_turned_away || beyond_one > max_turned_away_of_one) {
    gate->abort();
  } else if (beyond_all > 0) {
    gate->turn_away(503, "This server has no room for another connection.");
  } else if (beyond_one > 0) {
    gate->turn_away(429, "Too many connections are open from this address; close some.");
  } else if (draining()) {
    gate->turn_away(503, "This server is about to stop.");
  }
  return gate;
}

std::size_t Keeper::connections() const {
  const std::lock_guard lock(mutex_);
  return gates_.size();
}

void Keeper::gone(std::uint64_t id) {
  Gates::node_type dropped;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  dropped = gates_.extract(id);
  if (!dropped.empty()) {
    const auto count = by_address_.find(dropped.mapped()->address());
    if (count != by_address_.end() && --count->second == 0) by_address_.erase(count);
  }
  if (gates_.empty()) emptied_.notify_all();
}

void Keeper::resume_later(std::shared_ptr<Gate> gate) {
  const bool first = resumable_.with([&](Resumable& resumable) {
    if (resumable.closed) return false;
    resumable.gates.push_back(std::move(gate));
    return resumable.gates.size() == 1;
  });
  if (first) wake_up();
}

model::Heartbeat Keeper::new_heartbeat() {
  return model::heartbeat_of(settings_.heartbeats,
                             settings_.name + " " + std::to_string(reactors_.fetch_add(1) + 1));
}

void Keeper::count_answer(int status) {
  if (status < 100 || status > 599) status = 500;
  answers_[static_cast<std::size_t>(status - 100)].fetch_add(1, std::memory_order_relaxed);
}

AnswerCounts Keeper::answer_counts() const {
  AnswerCounts counts;
  for (std::size_t at = 0; at < answers_.size(); ++at) {
    const std::uint64_t count = answers_[at].load(std::memory_order_relaxed);
    if (count != 0) counts.emplace_back(static_cast<int>(at) + 100, count);
  }
  return counts;
}

void Keeper::watch(int descriptor, std::uint64_t id, bool again) {
  epoll_event event{};
  event.events = EPOLLOUT | EPOLLONESHOT;
  event.data.u64 = id;
  // If the kernel has no memory for this, the write time-out ends the connection.
  ::epoll_ctl(epoll_, again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event);
}

void Keeper::unwatch(int descriptor) {
  epoll_event event{};
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, &event);
}

void Keeper::defect(std::string_view message, std::string_view trace_id) const noexcept try {
  if (!settings_.on_defect) return;
  settings_.on_defect(std::string(message) + " (trace " + std::string(trace_id) + ")");
} catch (...) {
  // A log that throws must not end a connection.
}

void Keeper::wake_up() const {
  const std::uint64_t one = 1;
  // The write fails only when the counter is full. The thread is being woken then anyway.
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

std::vector<std::shared_ptr<Gate>> Keeper::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Gate>> gates;
  gates.reserve(gates_.size());
  for (const auto& [id, gate] : gates_) gates.push_back(gate);
  return gates;
}

void Keeper::run(const std::stop_token& stop) {
  model::name_this_thread(settings_.name + " keeper");
  std::array<epoll_event, 64> events{};
  auto next_round = std::chrono::steady_clock::now() + round_;
  auto heartbeat = model::heartbeat_of(settings_.heartbeats, settings_.name + " keeper");
  while (!stop.stop_requested()) {
    heartbeat.beat();
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next_round - std::chrono::steady_clock::now());
    const int timeout = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    const int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout);
    bool woken = false;
    for (int i = 0; i < ready; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == wake_tag) {
        std::uint64_t count = 0;
        woken = ::read(wake_, &count, sizeof count) > 0;
        continue;
      }
      std::shared_ptr<Gate> gate;
      {
        const std::lock_guard lock(mutex_);
        if (const auto at = gates_.find(id); at != gates_.end()) gate = at->second;
      }
      if (gate) gate->writable();
    }
    if (woken) resume_due();
    if (std::chrono::steady_clock::now() >= next_round || (woken && draining())) {
      make_round();
      next_round = std::chrono::steady_clock::now() + round_;
    }
  }
}

void Keeper::resume_due() {
  const auto due =
      resumable_.with([](Resumable& resumable) { return std::exchange(resumable.gates, {}); });
  for (const auto& gate : due) gate->resume();
}

void Keeper::make_round() {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& gate : all()) gate->tick(now);
}

}  // namespace conversed::api
