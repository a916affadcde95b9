#include "daemon/outbound/http_client.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/outbound/answer_reader.h"
#include "daemon/outbound/http_connection.h"
#include "daemon/outbound/http_transfer.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"

namespace conversed::daemon {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t min_kept_connections = 64;
constexpr std::chrono::seconds max_idle_time{118};  // of a kept connection, as libcurl has it
constexpr std::size_t max_pooled = 256;             // transfers that are kept for the next exchange
constexpr std::size_t read_bytes = std::size_t{16} * 1024;  // a whole record of TLS
constexpr int max_reads = 16;  // of a connection, before others have their turn
constexpr std::size_t max_events = 128;
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
    case HttpError::too_large:
      return "sent more than 64 KiB of headers";
    default:
      return "could not be reached";
  }
}

HttpClient::HttpClient(HttpClientSettings settings, Egress egress)
    : settings_(std::move(settings)), egress_(std::make_shared<const Egress>(std::move(egress))) {}

HttpClient::~HttpClient() {
  stop();
}

model::Result<void> HttpClient::start() {
  if (setup_) return model::fail(model::Errc::conflict, settings_.name + " runs already");
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  setup_ = std::make_unique<HttpConnectionSetup>();
  setup_->authorities = settings_.authorities;
  setup_->close_socket = &HttpClient::on_close;
  setup_->close_data = this;
  if (curl_ready()) {
    setup_->multi = curl_multi_init();
    setup_->sessions = curl_share_init();
  }
  if (epoll_ < 0 || wake_ < 0 || setup_->multi == nullptr || setup_->sessions == nullptr) {
    close_all();
    return model::fail(model::Errc::unavailable, settings_.name + ": no descriptors or memory");
  }
  curl_share_setopt(setup_->sessions, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  curl_multi_setopt(setup_->multi, CURLMOPT_SOCKETFUNCTION, &HttpClient::on_socket);
  curl_multi_setopt(setup_->multi, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(setup_->multi, CURLMOPT_TIMERFUNCTION, &HttpClient::on_timer);
  curl_multi_setopt(setup_->multi, CURLMOPT_TIMERDATA, this);
  max_idle_ = std::max(min_kept_connections, 2 * settings_.connections);
  received_.resize(read_bytes);
  events_.resize(max_events);
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
  if (!setup_) return;
  stopping_.store(true);
  wake();
  if (thread_.joinable()) thread_.join();
  abort_all();
  close_all();
}

void HttpClient::close_all() {
  pool_.clear();
  idle_.clear();
  curl_multi_cleanup(setup_->multi);
  curl_share_cleanup(setup_->sessions);
  setup_ = nullptr;
  if (epoll_ >= 0) close(epoll_);
  if (wake_ >= 0) close(wake_);
  epoll_ = wake_ = -1;
  sockets_.clear();
  timer_.reset();
  first_due_ = Time::max();
}

void HttpClient::set_egress(Egress egress) {
  egress_.set(std::make_shared<const Egress>(std::move(egress)));
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
  auto exchanges = take_inbox();
  // Idle connections that have ended, or have bytes that nobody asked for, serve none of them.
  const bool has_news = !exchanges.empty() && !idle_.empty() && look_once();
  const auto expected = active_.size() + exchanges.size();
  for (auto& exchange : exchanges) begin(std::move(exchange));
  // One of the events may have been a `wake`, and callbacks give the caller work.
  const auto count = wait_for_events(has_news || active_.size() < expected ? Time::min() : until);
  returning_ = true;
  handle_events(count);
  take_over_connections();
  // After the events, so that an answer that arrived while the thread was busy does not time out.
  run_due_timer();
  take_over_connections();
  end_due();
  drop_old_connections();
  returning_ = false;
}

// Handles the events that have come, without a wait. Returns whether there were any; then
// `run_once` does not wait.
bool HttpClient::look_once() {
  auto left = active_.size() + idle_.size() + 1;  // descriptors, and `wake_`
  bool found = false;
  for (;;) {
    const auto count = wait_for_events(Time::min());
    found = found || count > 0;
    returning_ = found;
    handle_events(count);
    if (count < events_.size() || left <= count) return found;
    left -= count;
  }
}

void HttpClient::wake() {
  if (!returning_) eventfd_write(wake_, 1);
}

std::vector<HttpClient::Exchange> HttpClient::take_inbox() {
  const std::lock_guard lock(mutex_);
  return std::exchange(inbox_, {});
}

void HttpClient::begin(Exchange exchange) {
  if (pool_.empty()) pool_.push_back(std::make_unique<HttpTransfer>());
  active_.push_back(std::move(pool_.back()));
  pool_.pop_back();
  in_flight_.store(active_.size(), std::memory_order_relaxed);
  HttpTransfer& transfer = *active_.back();
  if (!transfer.prepare(std::move(exchange))) return end(transfer, failed(HttpError::invalid));
  first_due_ = std::min(first_due_, transfer.due());
  auto kept = take_idle(transfer.origin());
  if (!kept) return connect(transfer);
  transfer.use(std::move(kept), true);
  start_sending(transfer);
}

void HttpClient::connect(HttpTransfer& transfer) {
  transfer.use(
      std::make_unique<HttpConnection>(*setup_, std::string(transfer.origin()), egress_.get()),
      false);
  if (!transfer.connection()->connect(transfer.timeout())) end(transfer, HttpError::invalid);
}

// The youngest idle connection to this origin by the current policy; or null.
std::unique_ptr<HttpConnection> HttpClient::take_idle(std::string_view origin) {
  const auto policy = egress_.get();
  for (auto i = idle_.size(); i > 0; --i) {
    if (!idle_[i - 1]->serves(origin, policy)) continue;
    auto found = std::move(idle_[i - 1]);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    return found;
  }
  return nullptr;
}

void HttpClient::drop_idle(const HttpConnection& connection) {
  std::erase_if(idle_, [&](const auto& idle) { return idle.get() == &connection; });
}

void HttpClient::drop_old_connections() {
  while (!idle_.empty() &&
         (idle_.size() > max_idle_ || woken_ - idle_.front()->idle_since > max_idle_time)) {
    idle_.erase(idle_.begin());
  }
}

// Takes the connections that libcurl has made, or could not make.
void HttpClient::take_over_connections() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(setup_->multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    void* self = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    auto& connection = *static_cast<HttpConnection*>(self);
    HttpTransfer& transfer = *connection.user;
    if (code != CURLE_OK) {
      end(transfer, connection.error_of(code));
    } else if (!connection.take_over()) {
      end(transfer, HttpError::refused);
    } else {
      watch(connection.socket(), EPOLLIN);
      socket_of(connection.socket()).connection = &connection;
      start_sending(transfer);
    }
  }
}

void HttpClient::start_sending(HttpTransfer& transfer) {
  transfer.write_request();
  send_rest(transfer);
}

void HttpClient::send_rest(HttpTransfer& transfer) {
  const HttpConnection& connection = *transfer.connection();
  const auto sent = connection.send(transfer.unsent());
  watch(connection.socket(), sent == HttpConnection::Io::blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
  if (sent != HttpConnection::Io::broken) return;
  transfer.stop_sending();
  receive(transfer);
}

// Reads the answer as far as it has come.
void HttpClient::receive(HttpTransfer& transfer) {
  using Io = HttpConnection::Io;
  using Progress = AnswerReader::Progress;
  const HttpConnection& connection = *transfer.connection();
  AnswerReader& reader = transfer.reader();
  transfer.has_unread = false;
  for (int reads = 0; reads < max_reads; ++reads) {
    std::size_t count = 0;
    const auto received = connection.receive(received_, count);
    // A connection that takes no more of the request serves the answer that has come, and no other.
    if (received == Io::broken || (received == Io::blocked && transfer.has_stopped_sending())) {
      return break_off(transfer);
    }
    if (received == Io::blocked) return;
    const auto progress = count == 0 ? reader.close() : reader.feed({received_.data(), count});
    transfer.note_headers(woken_);
    first_due_ = std::min(first_due_, transfer.due());
    switch (progress) {
      case Progress::complete:
        return finish(transfer);
      case Progress::too_large:
        return end(transfer, HttpError::too_large);
      case Progress::malformed:
        return end(transfer, HttpError::refused);
      case Progress::need_more:
        if (count == 0) return break_off(transfer);
    }
    // A socket that had less than fits is empty. epoll tells when more has come.
    const bool is_empty = count < received_.size() && !connection.is_tls();
    if (is_empty && !transfer.has_stopped_sending()) return;
  }
  transfer.has_unread = true;
}

// The connection has ended before the answer.
void HttpClient::break_off(HttpTransfer& transfer) {
  if (transfer.may_repeat()) return connect(transfer);
  end(transfer, HttpError::refused);
}

// Ends an exchange whose answer is complete.
void HttpClient::finish(HttpTransfer& transfer) {
  const bool is_kept = transfer.reader().keeps_connection() && transfer.unsent().empty() &&
                       !transfer.has_stopped_sending();
  if (is_kept) {
    idle_.push_back(transfer.take_connection());
    idle_.back()->idle_since = woken_;
  }
  end(transfer, HttpError::none);
}

void HttpClient::end(HttpTransfer& transfer, HttpError error) {
  auto outcome = transfer.outcome(error, SteadyClock::now());
  if (outcome.error == HttpError::timeout && stood_still(transfer)) {
    outcome.error = HttpError::aborted;
  }
  end(transfer, std::move(outcome));
}

void HttpClient::end(HttpTransfer& transfer, HttpOutcome outcome) {
  const auto place =
      std::ranges::find_if(active_, [&](const auto& each) { return each.get() == &transfer; });
  auto owned = std::exchange(*place, std::move(active_.back()));
  active_.pop_back();
  in_flight_.store(active_.size(), std::memory_order_relaxed);
  const Callback callback = owned->release();
  if (pool_.size() < max_pooled) pool_.push_back(std::move(owned));
  callback(std::move(outcome));
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

// Ends the exchanges whose time has passed, and those that have a status and whose body is late.
void HttpClient::end_due() {
  const auto now = SteadyClock::now();
  if (now < first_due_) return;
  first_due_ = Time::max();
  std::vector<HttpTransfer*> late;
  for (const auto& transfer : active_) {
    // An answer that has come gets one more turn.
    if (transfer->due() <= now && !std::exchange(transfer->has_unread, false)) {
      late.push_back(transfer.get());
    } else {
      first_due_ = std::min(first_due_, transfer->due());
    }
  }
  for (HttpTransfer* transfer : late) end(*transfer, HttpError::timeout);
}

void HttpClient::run_due_timer() {
  if (!timer_ || *timer_ > SteadyClock::now()) return;
  timer_.reset();
  int running = 0;
  curl_multi_socket_action(setup_->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

// Returns how many events have come.
std::size_t HttpClient::wait_for_events(Time until) {
  const auto now = SteadyClock::now();
  until = std::min({until, now + model::beat_interval, first_due_, timer_.value_or(Time::max())});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(until, now) - now);
  const auto timeout_ms = static_cast<int>(left.count());
  const int count =
      epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), timeout_ms);
  const auto due =
      std::exchange(woken_, SteadyClock::now()) + std::chrono::milliseconds(timeout_ms);
  if (woken_ - due > least_standstill) standstill_ = {due, woken_};
  return static_cast<std::size_t>(std::max(count, 0));
}

void HttpClient::handle_events(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) handle(events_[i].data.fd, events_[i].events);
}

void HttpClient::handle(int fd, std::uint32_t events) {
  if (fd == wake_) {
    eventfd_t ignored = 0;
    eventfd_read(wake_, &ignored);
    return;
  }
  const Watched& socket = socket_of(fd);
  if (socket.events == 0) return;  // an earlier event of this round closed it
  if (socket.connection == nullptr) {
    int mask = 0;
    if (events & EPOLLIN) mask |= CURL_CSELECT_IN;
    if (events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
    if (events & (EPOLLERR | EPOLLHUP)) mask |= CURL_CSELECT_ERR;
    int running = 0;
    curl_multi_socket_action(setup_->multi, fd, mask, &running);
    return;
  }
  HttpTransfer* const transfer = socket.connection->user;
  // An idle connection has nothing to tell but its end.
  if (transfer == nullptr) return drop_idle(*socket.connection);
  if (events & ~std::uint32_t{EPOLLOUT}) return receive(*transfer);
  send_rest(*transfer);
}

void HttpClient::abort_all() {
  // Callbacks may call `send`, which refuses: accepting_ is false.
  while (!active_.empty()) end(*active_.back(), failed(HttpError::aborted));
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
  if (socket.events == events) return;
  const int action = events == 0          ? EPOLL_CTL_DEL
                     : socket.events == 0 ? EPOLL_CTL_ADD
                                          : EPOLL_CTL_MOD;
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll_, action, fd, &event);
  socket.events = events;
}

int HttpClient::on_socket(void* /*easy*/, int fd, int what, void* self, void* /*unused*/) {
  std::uint32_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
  auto& client = *static_cast<HttpClient*>(self);
  // libcurl forgets a connection's socket when the connection ends. `on_close` follows.
  if (client.socket_of(fd).connection == nullptr) client.watch(fd, events);
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
