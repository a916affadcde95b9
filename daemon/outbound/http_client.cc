#include "daemon/outbound/http_client.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "daemon/outbound/http_transfer.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/live.h"
#include "store/runtime/thread_name.h"

namespace conversed::daemon {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t min_kept_connections = 64;
constexpr std::size_t max_pooled = 256;  // transfers that are kept for the next exchange

HttpOutcome failed(HttpError error) {
  HttpOutcome outcome;
  outcome.error = error;
  return outcome;
}

// libcurl's set-up is per process; this makes it thread-safe.
bool curl_ready() {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return ready;
}

}  // namespace

std::string describe(const HttpOutcome& outcome) {
  if (outcome.status != 0) return "answered " + std::to_string(outcome.status);
  switch (outcome.error) {
    case HttpError::timeout:
      return "did not answer in time";
    case HttpError::egress_refused:
      return "is at an address that egress.allow does not open";
    case HttpError::invalid:
      return "has a URL that can't be used";
    default:
      return "could not be reached";
  }
}

// The client's thread: libcurl says which sockets it waits for, epoll waits for them. Everything
// below `inbox` belongs to that thread.
class HttpClient::Loop {
 public:
  Loop(HttpClientSettings settings, Egress egress)
      : settings_(std::move(settings)),
        egress_({std::make_shared<const Egress>(std::move(egress)), std::nullopt}) {}
  ~Loop() { stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] model::Result<void> start();
  void stop();
  void send(std::vector<Exchange> exchanges);
  void set_egress(Egress egress) {
    egress_.set({std::make_shared<const Egress>(std::move(egress)), SteadyClock::now()});
  }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  static int on_socket(CURL*, curl_socket_t fd, int what, void* self, void*);
  static int on_timer(CURLM*, long timeout_ms, void* self);
  static int on_close(void* self, curl_socket_t fd);

  void close_all();
  void run();
  void take_inbox();
  void begin_waiting();
  void begin(Exchange exchange);
  void wait_for_events();
  void run_due_timer();
  void collect_finished();
  [[nodiscard]] std::optional<SteadyClock::time_point> first_cut_off() const;
  void cut_off();
  void end(HttpTransfer* transfer, HttpOutcome outcome);
  void abort_all();
  void want(int fd, std::uint32_t events);
  void watch(int fd, std::uint32_t events);

  const HttpClientSettings settings_;
  const model::Live<EgressInForce> egress_;

  std::mutex mutex_;
  std::vector<Exchange> inbox_;  // under the mutex, like the next one
  bool accepting_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> in_flight_{0};
  std::thread thread_;

  int epoll_ = -1;
  int wake_ = -1;
  CURLM* multi_ = nullptr;
  std::deque<Exchange> waiting_;
  std::vector<HttpTransfer*> active_;  // owned; libcurl has them meanwhile
  std::vector<std::unique_ptr<HttpTransfer>> pool_;
  std::optional<SteadyClock::time_point> timer_;

  // By descriptor. A socket that libcurl is not interested in stays in epoll while it is quiet,
  // which spares system calls between two exchanges of a kept connection.
  struct Watched {
    std::uint32_t wanted = 0;      // by libcurl
    std::uint32_t registered = 0;  // with epoll
  };
  std::vector<Watched> sockets_;
};

model::Result<void> HttpClient::Loop::start() {
  if (thread_.joinable()) {
    return model::fail(model::Errc::conflict, settings_.name + " runs already");
  }
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  multi_ = curl_ready() ? curl_multi_init() : nullptr;
  if (epoll_ < 0 || wake_ < 0 || multi_ == nullptr) {
    close_all();
    return model::fail(model::Errc::unavailable, settings_.name + ": no descriptors or memory");
  }
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Loop::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Loop::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  const auto kept = std::max(min_kept_connections, 2 * settings_.max_in_flight);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(kept));
  watch(wake_, EPOLLIN);
  stopping_.store(false);
  thread_ = std::thread([this] { run(); });
  const std::lock_guard lock(mutex_);
  accepting_ = true;
  return {};
}

void HttpClient::Loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
  }
  if (!thread_.joinable()) return;
  stopping_.store(true);
  eventfd_write(wake_, 1);
  thread_.join();
  close_all();
}

void HttpClient::Loop::close_all() {
  pool_.clear();
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
  multi_ = nullptr;
  if (epoll_ >= 0) close(epoll_);
  if (wake_ >= 0) close(wake_);
  epoll_ = wake_ = -1;
  sockets_.clear();
  timer_.reset();
}

void HttpClient::Loop::send(std::vector<Exchange> exchanges) {
  if (exchanges.empty()) return;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (accepting_) {
      wake = inbox_.empty();
      inbox_.insert(inbox_.end(), std::make_move_iterator(exchanges.begin()),
                    std::make_move_iterator(exchanges.end()));
      exchanges.clear();
      // Under the lock, so that `stop` can't close the descriptor meanwhile.
      if (wake) eventfd_write(wake_, 1);
    }
  }
  for (auto& exchange : exchanges) exchange.callback(failed(HttpError::aborted));
}

void HttpClient::Loop::run() {
  model::name_this_thread(settings_.name);
  auto heartbeat = model::heartbeat_of(settings_.heartbeats, settings_.name);
  while (!stopping_.load()) {
    heartbeat.beat();
    model::fault_point("http.loop");
    take_inbox();
    begin_waiting();
    run_due_timer();
    collect_finished();
    cut_off();
    wait_for_events();
    collect_finished();
  }
  abort_all();
}

void HttpClient::Loop::take_inbox() {
  std::vector<Exchange> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(inbox_);
  }
  for (auto& exchange : taken) {
    if (waiting_.size() < settings_.max_waiting) {
      waiting_.push_back(std::move(exchange));
    } else {
      exchange.callback(failed(HttpError::overloaded));
    }
  }
}

void HttpClient::Loop::begin_waiting() {
  while (!waiting_.empty() && active_.size() < settings_.max_in_flight) {
    Exchange exchange = std::move(waiting_.front());
    waiting_.pop_front();
    begin(std::move(exchange));
  }
}

void HttpClient::Loop::begin(Exchange exchange) {
  std::unique_ptr<HttpTransfer> transfer;
  if (pool_.empty()) {
    transfer = std::make_unique<HttpTransfer>(settings_.user_agent, &Loop::on_close, this);
  } else {
    transfer = std::move(pool_.back());
    pool_.pop_back();
  }
  HttpTransfer* const raw = transfer.release();
  active_.push_back(raw);
  in_flight_.store(active_.size(), std::memory_order_relaxed);
  if (!raw->prepare(std::move(exchange), egress_.get()) ||
      curl_multi_add_handle(multi_, raw->easy()) != CURLM_OK) {
    end(raw, failed(HttpError::invalid));
  }
}

void HttpClient::Loop::end(HttpTransfer* transfer, HttpOutcome outcome) {
  curl_multi_remove_handle(multi_, transfer->easy());
  std::unique_ptr<HttpTransfer> owned(transfer);
  const auto place = std::find(active_.begin(), active_.end(), transfer);
  *place = active_.back();
  active_.pop_back();
  in_flight_.store(active_.size(), std::memory_order_relaxed);
  const Callback callback = owned->release();
  if (pool_.size() < max_pooled) pool_.push_back(std::move(owned));
  callback(std::move(outcome));
}

void HttpClient::Loop::collect_finished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    void* self = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    auto* transfer = static_cast<HttpTransfer*>(self);
    end(transfer, transfer->outcome(code));
  }
}

std::optional<SteadyClock::time_point> HttpClient::Loop::first_cut_off() const {
  std::optional<SteadyClock::time_point> first;
  for (const HttpTransfer* transfer : active_) {
    const auto due = transfer->cut_off();
    if (due && (!first || *due < *first)) first = due;
  }
  return first;
}

// Ends the exchanges that have their status and whose body is late.
void HttpClient::Loop::cut_off() {
  const auto now = SteadyClock::now();
  if (const auto first = first_cut_off(); !first || *first > now) return;
  std::vector<HttpTransfer*> due;
  std::ranges::copy_if(active_, std::back_inserter(due), [&](const HttpTransfer* transfer) {
    const auto end = transfer->cut_off();
    return end && *end <= now;
  });
  for (HttpTransfer* transfer : due) end(transfer, transfer->outcome(CURLE_OK));
}

void HttpClient::Loop::run_due_timer() {
  if (!timer_ || *timer_ > SteadyClock::now()) return;
  timer_.reset();
  int running = 0;
  curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
}

void HttpClient::Loop::wait_for_events() {
  auto timeout_ms = static_cast<int>(model::beat_interval.count());
  if (!waiting_.empty() && active_.size() < settings_.max_in_flight) {
    timeout_ms = 0;
  } else {
    for (const auto& until : {timer_, first_cut_off()}) {
      if (!until) continue;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - SteadyClock::now());
      timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, timeout_ms));
    }
  }
  std::array<epoll_event, 128> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    const std::uint32_t happened = events[static_cast<std::size_t>(i)].events;
    if (fd == wake_) {
      eventfd_t ignored = 0;
      eventfd_read(wake_, &ignored);
      continue;
    }
    auto& socket = sockets_.at(static_cast<std::size_t>(fd));
    if (socket.registered == 0) continue;  // closed by what an earlier event led to
    if (socket.wanted == 0) {
      // An idle connection is readable: mostly its end. libcurl finds out at the next use.
      watch(fd, 0);
      continue;
    }
    int mask = 0;
    if (happened & EPOLLIN) mask |= CURL_CSELECT_IN;
    if (happened & EPOLLOUT) mask |= CURL_CSELECT_OUT;
    if (happened & (EPOLLERR | EPOLLHUP)) mask |= CURL_CSELECT_ERR;
    int running = 0;
    curl_multi_socket_action(multi_, fd, mask, &running);
  }
}

void HttpClient::Loop::abort_all() {
  // Callbacks may call `send`, which refuses: accepting_ is false.
  while (!active_.empty()) end(active_.back(), failed(HttpError::aborted));
  take_inbox();
  auto left = std::exchange(waiting_, {});
  for (auto& exchange : left) exchange.callback(failed(HttpError::aborted));
}

// Tells epoll what to watch a descriptor for; 0 removes it.
void HttpClient::Loop::watch(int fd, std::uint32_t events) {
  const auto index = static_cast<std::size_t>(fd);
  if (sockets_.size() <= index) sockets_.resize(index + 64);
  auto& socket = sockets_[index];
  if (socket.registered == events) return;
  const int action = events == 0              ? EPOLL_CTL_DEL
                     : socket.registered == 0 ? EPOLL_CTL_ADD
                                              : EPOLL_CTL_MOD;
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll_, action, fd, &event);
  socket.registered = events;
}

void HttpClient::Loop::want(int fd, std::uint32_t events) {
  const auto index = static_cast<std::size_t>(fd);
  if (sockets_.size() <= index) sockets_.resize(index + 64);
  sockets_[index].wanted = events;
  // A descriptor that is always writable can't stay in epoll.
  if (events != 0 || (sockets_[index].registered & EPOLLOUT) != 0) watch(fd, events);
}

int HttpClient::Loop::on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) {
  std::uint32_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
  static_cast<Loop*>(self)->want(fd, events);
  return 0;
}

int HttpClient::Loop::on_timer(CURLM*, long timeout_ms, void* self) {
  auto& timer = static_cast<Loop*>(self)->timer_;
  if (timeout_ms < 0) {
    timer.reset();
  } else {
    timer = SteadyClock::now() + std::chrono::milliseconds(timeout_ms);
  }
  return 0;
}

int HttpClient::Loop::on_close(void* self, curl_socket_t fd) {
  auto& sockets = static_cast<Loop*>(self)->sockets_;
  const auto index = static_cast<std::size_t>(fd);
  if (index < sockets.size()) sockets[index] = {};
  return close(fd);  // which takes it out of epoll, too
}

HttpClient::HttpClient(HttpClientSettings settings, Egress egress)
    : loop_(std::make_unique<Loop>(std::move(settings), std::move(egress))) {}

HttpClient::~HttpClient() = default;

model::Result<void> HttpClient::start() {
  return loop_->start();
}

void HttpClient::stop() {
  loop_->stop();
}

void HttpClient::send(HttpRequest request, Callback callback) {
  std::vector<Exchange> one;
  one.push_back({std::move(request), std::move(callback)});
  loop_->send(std::move(one));
}

void HttpClient::send(std::vector<Exchange> exchanges) {
  loop_->send(std::move(exchanges));
}

void HttpClient::set_egress(Egress egress) {
  loop_->set_egress(std::move(egress));
}

std::size_t HttpClient::in_flight() const {
  return loop_->in_flight();
}

}  // namespace conversed::daemon
