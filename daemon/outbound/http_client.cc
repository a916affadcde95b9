#include "daemon/outbound/http_client.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "daemon/outbound/http_transfer.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"

namespace conversed::daemon {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t min_kept_connections = 64;
constexpr std::size_t max_pooled = 256;  // transfers that are kept for the next exchange
constexpr std::chrono::seconds least_standstill{1};

HttpOutcome failed(HttpError error) {
  HttpOutcome outcome;
  outcome.error = error;
  return outcome;
}

// libcurl's set-up is per process. The static makes it thread-safe.
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
    case HttpError::aborted:
      return "has an unknown answer, since the daemon stood still";
    case HttpError::egress_refused:
      return "is at an address that egress.allow does not open";
    case HttpError::invalid:
      return "has a URL that can't be used";
    default:
      return "could not be reached";
  }
}

HttpClient::HttpClient(HttpClientSettings settings, Egress egress)
    : settings_(std::move(settings)),
      egress_({std::make_shared<const Egress>(std::move(egress)), std::nullopt}) {}

HttpClient::~HttpClient() {
  stop();
}

model::Result<void> HttpClient::start() {
  if (multi_ != nullptr) {
    return model::fail(model::Errc::conflict, settings_.name + " runs already");
  }
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  multi_ = curl_ready() ? curl_multi_init() : nullptr;
  if (epoll_ < 0 || wake_ < 0 || multi_ == nullptr) {
    close_all();
    return model::fail(model::Errc::unavailable, settings_.name + ": no descriptors or memory");
  }
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &HttpClient::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &HttpClient::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  const auto kept = std::max(min_kept_connections, 2 * settings_.connections);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(kept));
  watch(wake_, EPOLLIN);
  stopping_.store(false);
  woken_ = SteadyClock::now();
  if (settings_.own_thread) thread_ = std::thread([this] { run(); });
  const std::lock_guard lock(mutex_);
  accepting_ = true;
  return {};
}

void HttpClient::stop() {
  {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
  }
  if (multi_ == nullptr) return;
  stopping_.store(true);
  wake();
  if (thread_.joinable()) thread_.join();
  abort_all();
  close_all();
}

void HttpClient::close_all() {
  pool_.clear();
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
  multi_ = nullptr;
  if (epoll_ >= 0) close(epoll_);
  if (wake_ >= 0) close(wake_);
  epoll_ = wake_ = -1;
  sockets_.clear();
  timer_.reset();
}

void HttpClient::set_egress(Egress egress) {
  egress_.set({std::make_shared<const Egress>(std::move(egress)), SteadyClock::now()});
}

void HttpClient::send(HttpRequest request, Callback callback) {
  std::vector<Exchange> one;
  one.push_back({std::move(request), std::move(callback)});
  send(std::move(one));
}

void HttpClient::send(std::vector<Exchange> exchanges) {
  if (exchanges.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (accepting_) {
      const bool first = inbox_.empty();
      inbox_.insert(inbox_.end(), std::make_move_iterator(exchanges.begin()),
                    std::make_move_iterator(exchanges.end()));
      exchanges.clear();
      // Under the lock, so that `stop` can't close the descriptor meanwhile.
      if (first && settings_.own_thread) wake();
    }
  }
  for (auto& exchange : exchanges) exchange.callback(failed(HttpError::aborted));
}

void HttpClient::run() {
  model::name_this_thread(settings_.name);
  auto heartbeat = model::heartbeat_of(settings_.heartbeats, settings_.name);
  while (!stopping_.load()) {
    heartbeat.beat();
    model::fault_point("http.loop");
    run_once(Time::max());
  }
}

void HttpClient::run_once(Time until) {
  for (auto& exchange : take_inbox()) begin(std::move(exchange));
  wait_for_events(until);
  returning_ = true;
  collect_finished();
  // After the events, so that an answer that arrived while the thread was busy does not time out.
  run_due_timer();
  cut_off();
  collect_finished();
  returning_ = false;
}

void HttpClient::wake() {
  if (!returning_) eventfd_write(wake_, 1);
}

std::vector<HttpClient::Exchange> HttpClient::take_inbox() {
  const std::lock_guard lock(mutex_);
  return std::exchange(inbox_, {});
}

void HttpClient::begin(Exchange exchange) {
  if (pool_.empty()) {
    pool_.push_back(std::make_unique<HttpTransfer>(&HttpClient::on_close, this));
  }
  active_.push_back(std::move(pool_.back()));
  pool_.pop_back();
  in_flight_.store(active_.size(), std::memory_order_relaxed);
  HttpTransfer& transfer = *active_.back();
  if (!transfer.prepare(std::move(exchange), egress_.get()) ||
      curl_multi_add_handle(multi_, transfer.easy()) != CURLM_OK) {
    end(&transfer, failed(HttpError::invalid));
  }
}

void HttpClient::end(HttpTransfer* transfer, HttpOutcome outcome) {
  curl_multi_remove_handle(multi_, transfer->easy());
  const auto place =
      std::ranges::find_if(active_, [&](const auto& each) { return each.get() == transfer; });
  auto owned = std::exchange(*place, std::move(active_.back()));
  active_.pop_back();
  in_flight_.store(active_.size(), std::memory_order_relaxed);
  const Callback callback = owned->release();
  if (pool_.size() < max_pooled) pool_.push_back(std::move(owned));
  callback(std::move(outcome));
}

void HttpClient::collect_finished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    void* self = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    auto* transfer = static_cast<HttpTransfer*>(self);
    auto outcome = transfer->outcome(code);
    if (outcome.error == HttpError::timeout && stood_still(*transfer)) {
      outcome.error = HttpError::aborted;
    }
    end(transfer, std::move(outcome));
  }
}

// Whether the thread stood still for more than a second and half of the exchange's time. It may
// stand still outside of a wait, too.
bool HttpClient::stood_still(const HttpTransfer& transfer) const {
  const auto within = [&](const Standstill& standstill) {
    return standstill.end - std::max(standstill.begin, transfer.begun());
  };
  const auto longest = std::max(within(standstill_), within({woken_, SteadyClock::now()}));
  return longest > std::max<SteadyClock::duration>(transfer.timeout() / 2, least_standstill);
}

std::optional<SteadyClock::time_point> HttpClient::first_cut_off() const {
  std::optional<SteadyClock::time_point> first;
  for (const auto& transfer : active_) {
    const auto due = transfer->cut_off();
    if (due && (!first || *due < *first)) first = due;
  }
  return first;
}

// Ends the exchanges that have a status and whose body is late.
void HttpClient::cut_off() {
  const auto now = SteadyClock::now();
  if (const auto first = first_cut_off(); !first || *first > now) return;
  std::vector<HttpTransfer*> due;
  for (const auto& transfer : active_) {
    const auto late = transfer->cut_off();
    if (late && *late <= now) due.push_back(transfer.get());
  }
  for (HttpTransfer* transfer : due) end(transfer, transfer->outcome(CURLE_OK));
}

void HttpClient::run_due_timer() {
  if (!timer_ || *timer_ > SteadyClock::now()) return;
  timer_.reset();
  int running = 0;
  curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
}

void HttpClient::wait_for_events(Time until) {
  const auto now = SteadyClock::now();
  until = std::min(until, now + model::beat_interval);
  for (const auto& earlier : {timer_, first_cut_off()}) {
    until = std::min(until, earlier.value_or(until));
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(until, now) - now);
  const auto timeout_ms = static_cast<int>(left.count());
  std::array<epoll_event, 128> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
  const auto due =
      std::exchange(woken_, SteadyClock::now()) + std::chrono::milliseconds(timeout_ms);
  if (woken_ - due > least_standstill) standstill_ = {due, woken_};
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    const std::uint32_t happened = events[static_cast<std::size_t>(i)].events;
    if (fd == wake_) {
      eventfd_t ignored = 0;
      eventfd_read(wake_, &ignored);
      continue;
    }
    auto& socket = socket_of(fd);
    if (socket.registered == 0) continue;  // an earlier event of this round closed it
    if (socket.wanted == 0) {
      // An idle connection is readable, mostly because the other end closed it. libcurl finds out
      // at the next use.
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

void HttpClient::abort_all() {
  // Callbacks may call `send`, which refuses: accepting_ is false.
  while (!active_.empty()) end(active_.back().get(), failed(HttpError::aborted));
  for (auto& exchange : take_inbox()) exchange.callback(failed(HttpError::aborted));
}

HttpClient::Watched& HttpClient::socket_of(int fd) {
  const auto index = static_cast<std::size_t>(fd);
  if (sockets_.size() <= index) sockets_.resize(index + 64);
  return sockets_[index];
}

// Tells epoll what to watch a descriptor for; 0 removes it.
void HttpClient::watch(int fd, std::uint32_t events) {
  auto& socket = socket_of(fd);
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

int HttpClient::on_socket(void* /*easy*/, int fd, int what, void* self, void* /*unused*/) {
  auto& client = *static_cast<HttpClient*>(self);
  std::uint32_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
  auto& socket = client.socket_of(fd);
  socket.wanted = events;
  // A descriptor that is always writable can't stay in epoll.
  if (events != 0 || (socket.registered & EPOLLOUT) != 0) client.watch(fd, events);
  return 0;
}

int HttpClient::on_timer(void* /*multi*/, long timeout_ms, void* self) {
  auto& timer = static_cast<HttpClient*>(self)->timer_;
  if (timeout_ms < 0) {
    timer.reset();
  } else {
    timer = SteadyClock::now() + std::chrono::milliseconds(timeout_ms);
  }
  return 0;
}

int HttpClient::on_close(void* self, int fd) {
  static_cast<HttpClient*>(self)->socket_of(fd) = {};
  return close(fd);  // which takes it out of epoll, too
}

}  // namespace conversed::daemon
