#include "daemon/outbound/http_client.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "daemon/outbound/http_transfer.h"
#include "store/runtime/fault_points.h"
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

// curl.h declares CURLM as void, so that the header needs no curl.h.
static_assert(std::is_same_v<CURLM, void>);

HttpClient::HttpClient(HttpClientSettings settings, Egress egress)
    : settings_(std::move(settings)),
      egress_({std::make_shared<const Egress>(std::move(egress)), std::nullopt}) {}

HttpClient::~HttpClient() {
  stop();
}

model::Result<void> HttpClient::start() {
  if (thread_.joinable()) {
    return model::fail(model::Errc::conflict, settings_.name + " runs already");
  }
  multi_ = curl_ready() ? curl_multi_init() : nullptr;
  if (multi_ == nullptr) {
    return model::fail(model::Errc::unavailable, settings_.name + ": no descriptors or memory");
  }
  const auto kept = std::max(min_kept_connections, 2 * settings_.max_in_flight);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(kept));
  stopping_.store(false);
  thread_ = std::thread([this] { run(); });
  const std::lock_guard lock(mutex_);
  accepting_ = true;
  return {};
}

void HttpClient::stop() {
  {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
  }
  if (!thread_.joinable()) return;
  stopping_.store(true);
  curl_multi_wakeup(multi_);
  thread_.join();
  pool_.clear();
  curl_multi_cleanup(multi_);
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
      // Under the lock, so that `stop` can't end libcurl's handle meanwhile.
      if (inbox_.empty()) curl_multi_wakeup(multi_);
      std::ranges::move(exchanges, std::back_inserter(inbox_));
      return;
    }
  }
  for (auto& exchange : exchanges) exchange.callback(failed(HttpError::aborted));
}

void HttpClient::set_egress(Egress egress) {
  egress_.set({std::make_shared<const Egress>(std::move(egress)), SteadyClock::now()});
}

void HttpClient::run() {
  model::name_this_thread(settings_.name);
  auto heartbeat = model::heartbeat_of(settings_.heartbeats, settings_.name);
  while (!stopping_.load()) {
    heartbeat.beat();
    model::fault_point("http.loop");
    take_inbox();
    begin_waiting();
    int running = 0;
    curl_multi_perform(multi_, &running);
    collect_finished();
    cut_off();
    if (has_room()) continue;
    curl_multi_poll(multi_, nullptr, 0, longest_wait_ms(), nullptr);
  }
  abort_all();
}

void HttpClient::take_inbox() {
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

void HttpClient::begin_waiting() {
  while (has_room()) {
    Exchange exchange = std::move(waiting_.front());
    waiting_.pop_front();
    begin(std::move(exchange));
  }
}

void HttpClient::begin(Exchange exchange) {
  std::unique_ptr<HttpTransfer> transfer;
  if (pool_.empty()) {
    transfer = std::make_unique<HttpTransfer>(settings_.user_agent);
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

void HttpClient::end(HttpTransfer* transfer, HttpOutcome outcome) {
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

void HttpClient::collect_finished() {
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

std::optional<HttpClient::Time> HttpClient::first_cut_off() const {
  std::optional<Time> first;
  for (const HttpTransfer* transfer : active_) {
    const auto due = transfer->cut_off();
    if (due && (!first || *due < *first)) first = due;
  }
  return first;
}

// Ends the exchanges that have their status and whose body is late.
void HttpClient::cut_off() {
  const auto now = SteadyClock::now();
  if (const auto first = first_cut_off(); !first || *first > now) return;
  std::vector<HttpTransfer*> due;
  std::ranges::copy_if(active_, std::back_inserter(due), [&](const HttpTransfer* transfer) {
    const auto end = transfer->cut_off();
    return end && *end <= now;
  });
  for (HttpTransfer* transfer : due) end(transfer, transfer->outcome(CURLE_OK));
}

// libcurl wakes by itself for its sockets and time-outs.
int HttpClient::longest_wait_ms() const {
  const auto most = model::beat_interval;
  const auto end = first_cut_off();
  if (!end) return static_cast<int>(most.count());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - SteadyClock::now());
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), most).count());
}

void HttpClient::abort_all() {
  // Callbacks may call `send`, which refuses: accepting_ is false.
  while (!active_.empty()) end(active_.back(), failed(HttpError::aborted));
  take_inbox();
  auto left = std::exchange(waiting_, {});
  for (auto& exchange : left) exchange.callback(failed(HttpError::aborted));
}

}  // namespace conversed::daemon
