#include "daemon/caller.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "api/blocking_pool.h"
#include "daemon/call_request.h"
#include "daemon/logging.h"
#include "daemon/metrics.h"
#include "daemon/service_thread.h"
#include "store/model/fault_points.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using model::Errc;
using model::Timestamp;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// The clock is looked at again at least so often, in case it jumped.
constexpr milliseconds max_sleep{5'000};
constexpr milliseconds store_retry{1'000};
constexpr std::size_t calls_a_page = 256;
// Ids of calls that were answered lately: their rows are in the store until a Turn takes them.
constexpr std::size_t max_answered = 8192;

struct Completion {
  std::string id;
  HttpOutcome outcome;
};
struct Searched {
  std::string id;
  model::Result<std::vector<store::KnowledgeHit>> hits;
  std::chrono::duration<double> took{};
};
struct Letters {
  std::vector<model::PendingCall> offers;
  std::vector<Completion> completions;
  std::vector<Searched> searches;
  std::vector<AppendEnd> appends;
  bool wake = false;
  bool stop = false;
  [[nodiscard]] bool empty() const {
    return offers.empty() && completions.empty() && searches.empty() && appends.empty() && !wake &&
           !stop;
  }
};

// Whom a call goes to, as far as calls to one of them hold each other up. No host begins with a
// blank.
std::string upstream_of(const model::PendingCall& call) {
  if (call.search) return " knowledge";
  if (call.http->to_model) return " model " + call.http->connection_id;
  return authority_of(call.http->url);
}

}  // namespace

class Caller::Engine {
 public:
  Engine(CallerSettings settings, store::Store& store, HttpClient& http, AppendEvent append,
         const model::Clock& clock, Metrics& metrics)
      : settings_(settings),
        store_(store),
        http_(http),
        append_(std::move(append)),
        clock_(clock),
        metrics_(metrics),
        searches_(1, settings.max_per_upstream) {}
  ~Engine() { stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  model::Result<void> start() {
    return thread_.start("caller", settings_.heartbeats, [this] { run(); });
  }
  void stop() {
    thread_.stop();
    searches_.stop();
  }

  [[nodiscard]] Mailbox<Letters>& mailbox() { return *thread_.mailbox(); }

 private:
  // The calls to one host and port.
  struct Upstream {
    std::deque<std::string> ready;  // ids
    std::size_t in_flight = 0;
    std::size_t calls = 0;
  };
  struct Call {
    model::PendingCall pending;
    Upstream* upstream = nullptr;
    int attempts = 0;
    std::optional<model::Event> result;  // made; to be appended
    int appends = 0;                     // tries that failed
  };

  void run();
  void read_letters();
  [[nodiscard]] SteadyClock::time_point next_look() const;
  void load();
  void take(model::PendingCall call);
  void wake_due();
  void make_ready(Call& call);
  void forget(const std::string& id);
  void send_ready();
  void send(Call& call);
  [[nodiscard]] model::Result<bool> quota_left(const std::string& project_id) const;
  void search(Call& call);
  void finish(const Completion& completion);
  void finish(const Searched& searched);
  void settle(Call& call, model::CallResult result);
  void append(Call& call);
  void appended(AppendEnd append);
  void wait(const std::string& id, milliseconds time);

  const CallerSettings settings_;
  store::Store& store_;
  HttpClient& http_;
  const AppendEvent append_;
  const model::Clock& clock_;
  Metrics& metrics_;

  // The thread's own.
  std::unordered_map<std::string, Call> calls_;          // by id
  std::unordered_map<std::string, Upstream> upstreams_;  // those with calls
  std::unordered_set<Upstream*> with_ready_;
  std::set<std::pair<Timestamp, std::string>> waiting_;
  std::unordered_set<std::string> answered_;
  std::deque<std::string> answered_order_;
  std::set<std::string> unappended_;  // results that the log refused at the last try
  std::vector<HttpClient::Exchange> batch_;
  std::mt19937_64 random_{std::random_device{}()};
  bool scanning_ = true;     // the store may have calls that are not known here
  bool scan_again_ = false;  // an offer found no room
  std::string scanned_;      // calls up to this id have been looked at
  SteadyClock::time_point next_scan_{};
  bool stop_ = false;
  ServiceThread<Letters> thread_;  // it uses all others
  api::BlockingPool searches_;     // uses the store, and the thread's mailbox
};

void Caller::Engine::run() {
  while (!stop_) {
    wake_due();
    load();
    send_ready();
    thread_.mailbox()->set_quiet(calls_.empty() && !scanning_);
    read_letters();
  }
}

SteadyClock::time_point Caller::Engine::next_look() const {
  const auto now = SteadyClock::now();
  auto until = now + max_sleep;
  if (scanning_ && calls_.size() < settings_.max_calls / 2) until = std::max(now, next_scan_);
  if (!waiting_.empty()) {
    const auto left = std::clamp<milliseconds>(waiting_.begin()->first - clock_.now(),
                                               milliseconds(0), max_sleep);
    until = std::min(until, now + left);
  }
  return until;
}

void Caller::Engine::read_letters() {
  auto letters = thread_.take(next_look());
  stop_ = stop_ || letters.stop;
  if (stop_) return;
  for (auto& append : letters.appends) appended(std::move(append));
  for (const auto& completion : letters.completions) finish(completion);
  for (const auto& searched : letters.searches) finish(searched);
  for (auto& offer : letters.offers) take(std::move(offer));
}

// Reads the next page of unfinished calls while there is room.
void Caller::Engine::load() {
  if (!scanning_ || calls_.size() >= std::max<std::size_t>(1, settings_.max_calls / 2) ||
      SteadyClock::now() < next_scan_) {
    return;
  }
  auto page = store_.calls().unfinished(scanned_, calls_a_page);
  if (!page) {
    log::warn("unfinished calls can't be read", {{"error", page.error().message}});
    next_scan_ = SteadyClock::now() + store_retry;
    return;
  }
  for (auto& call : *page) {
    if (calls_.size() >= settings_.max_calls) return;  // goes on behind the last one taken
    scanned_ = call.id;
    take(std::move(call));
  }
  if (!page->empty()) return;
  scanned_.clear();
  scanning_ = std::exchange(scan_again_, false);
}

void Caller::Engine::take(model::PendingCall call) {
  if ((!call.http && !call.search) || calls_.contains(call.id) || answered_.contains(call.id))
    return;
  if (calls_.size() >= settings_.max_calls) {
    // A scan that goes on may have passed it.
    (scanning_ ? scan_again_ : scanning_) = true;
    return;
  }
  auto id = call.id;
  auto& known = calls_[id];
  known.pending = std::move(call);
  known.upstream = &upstreams_[upstream_of(known.pending)];
  ++known.upstream->calls;
  make_ready(known);
}

void Caller::Engine::make_ready(Call& call) {
  call.upstream->ready.push_back(call.pending.id);
  with_ready_.insert(call.upstream);
}

void Caller::Engine::forget(const std::string& id) {
  const auto call = calls_.find(id);
  if (--call->second.upstream->calls == 0) {
    with_ready_.erase(call->second.upstream);
    upstreams_.erase(upstream_of(call->second.pending));
  }
  calls_.erase(call);
}

void Caller::Engine::wait(const std::string& id, milliseconds time) {
  waiting_.emplace(clock_.now() + time, id);
}

void Caller::Engine::wake_due() {
  const Timestamp now = clock_.now();
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const std::string id = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    auto& call = calls_.at(id);
    if (call.result) {
      append(call);
    } else {
      make_ready(call);
    }
  }
}

void Caller::Engine::send_ready() {
  // While the log takes no results, making more of them helps nobody.
  if (!unappended_.empty()) return;
  for (auto place = with_ready_.begin(); place != with_ready_.end();) {
    Upstream& upstream = **place;
    while (!upstream.ready.empty() && upstream.in_flight < settings_.max_per_upstream) {
      const std::string id = std::move(upstream.ready.front());
      upstream.ready.pop_front();
      send(calls_.at(id));
    }
    place = upstream.ready.empty() ? with_ready_.erase(place) : std::next(place);
  }
  http_.send(std::exchange(batch_, {}));
}

// Whether the organisation may ask language models at all.
model::Result<bool> Caller::Engine::quota_left(const std::string& project_id) const {
  if (settings_.model_tokens_per_month == 0) return true;
  auto project = store_.assets().project(project_id);
  if (!project) return model::fail(project.error());
  auto used = store_.usage().used(project->organisation_id, store::model_tokens_counter,
                                  store::month_of(clock_.now()));
  if (!used) return model::fail(used.error());
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*used, 0)) <
         settings_.model_tokens_per_month;
}

// Goes to the other thread, which reads the store and nothing else of this.
void Caller::Engine::search(Call& call) {
  const std::string id = call.pending.id;
  const bool posted =
      searches_.post([&store = store_, mailbox = thread_.mailbox(), id,
                      project = call.pending.session.project_id, query = *call.pending.search] {
        const auto begun = SteadyClock::now();
        auto hits = store.knowledge().search(project, query);
        const auto took = SteadyClock::now() - begun;
        mailbox->put([&](Letters& letters) {
          letters.searches.push_back({id, std::move(hits), took});
        });
      });
  if (posted) {
    ++call.upstream->in_flight;
  } else {
    wait(id, store_retry);
  }
}

void Caller::Engine::finish(const Searched& searched) {
  auto& call = calls_.at(searched.id);
  --call.upstream->in_flight;
  metrics_.search_seconds.observe(searched.took.count());
  if (searched.hits) {
    return settle(call, search_result(searched.id, *searched.hits, settings_.max_response_bytes));
  }
  switch (searched.hits.error().code) {
    case Errc::not_found:
      return settle(call, failed_call(searched.id, "knowledge_deleted",
                                      "the knowledge store does not exist any more"));
    case Errc::internal:
      return settle(
          call, failed_call(searched.id, "knowledge_damaged", "the knowledge store can't be read"));
    default:
      return wait(searched.id, store_retry);
  }
}

void Caller::Engine::send(Call& call) {
  if (call.pending.search) return search(call);
  const auto& http = *call.pending.http;
  const std::string& id = call.pending.id;
  std::optional<store::ConnectionSecrets> connection;
  if (!http.connection_id.empty()) {
    auto found = store_.assets().connection_secrets(http.connection_id);
    if (!found && found.error().code != Errc::not_found && found.error().code != Errc::internal) {
      wait(id, store_retry);
      return;
    }
    if (!found || found->project_id != call.pending.session.project_id) {
      settle(call, failed_call(id, "connection_deleted", "the Connection does not exist any more"));
      return;
    }
    connection = std::move(*found);
  }
  if (http.to_model) {
    const auto left = quota_left(call.pending.session.project_id);
    if (!left) return wait(id, store_retry);
    if (!*left) {
      return settle(call, failed_call(id, "quota_exhausted",
                                      "the plan's quota of language models' tokens is used up for "
                                      "this month"));
    }
  }
  auto request =
      call_request(call.pending, connection ? &*connection : nullptr, settings_.max_response_bytes);
  if (!request) {
    settle(call, failed_call(id, "connection_deleted", request.error().message));
    return;
  }
  ++call.upstream->in_flight;
  batch_.push_back({std::move(*request), [mailbox = thread_.mailbox(), id](HttpOutcome outcome) {
                      mailbox->put([&](Letters& letters) {
                        letters.completions.push_back({id, std::move(outcome)});
                      });
                    }});
}

void Caller::Engine::finish(const Completion& completion) {
  auto& call = calls_.at(completion.id);
  const auto& outcome = completion.outcome;
  --call.upstream->in_flight;
  if (outcome.error == HttpError::aborted) {
    wait(completion.id, store_retry);  // the client stopped before us: nothing is known
    return;
  }
  model::fault_point("call.after_response");
  metrics_.call_seconds.observe(std::chrono::duration<double>(outcome.took).count());
  ++call.attempts;
  const int retries = std::clamp(call.pending.http->retries, 0, settings_.max_retries);
  if (worth_retrying(outcome) && call.attempts <= retries) {
    metrics_.calls(CallOutcome::retried).add();
    wait(completion.id, backoff(settings_.backoff, call.attempts, outcome.retry_after, random_()));
    return;
  }
  auto result = call_result(completion.id, outcome);
  if (call.pending.http->to_model) {
    const auto used = model_usage(result.body);
    result.model_tokens = used.prompt + used.completion;
    metrics_.model_prompt_tokens.add(static_cast<std::uint64_t>(used.prompt));
    metrics_.model_completion_tokens.add(static_cast<std::uint64_t>(used.completion));
  }
  settle(call, std::move(result));
}

void Caller::Engine::settle(Call& call, model::CallResult result) {
  metrics_.calls(result.error_code.empty() ? CallOutcome::answered : CallOutcome::failed).add();
  log::debug("call ended", {{"sessionId", call.pending.session.session_id},
                            {"traceId", call.pending.trace_id},
                            {"status", result.status},
                            {"error", result.error_code}});
  model::Event event;
  event.id = call.pending.id + "-r";
  event.type = model::EventType::call_result;
  event.session = call.pending.session;
  event.accepted_at = clock_.now();
  event.trace_id = call.pending.trace_id;
  event.claim = model::Claim{model::Claim::Kind::pending_call, call.pending.id};
  event.result = std::move(result);
  call.result = std::move(event);
  append(call);
}

// What nobody waits for any more is not appended: it would keep the name, and what was said, of a
// user who was erased meanwhile. The claim decides in any case.
void Caller::Engine::append(Call& call) {
  const auto waits = store_.calls().waits(call.pending.id);
  if (waits && !*waits) {
    thread_.mailbox()->put([id = call.pending.id](Letters& letters) {
      letters.appends.push_back({id, std::nullopt});
    });
    return;
  }
  append_(*call.result, letter_at_end(thread_.mailbox(), call.pending.id));
}

void Caller::Engine::appended(AppendEnd append) {
  auto& call = calls_.at(append.id);
  if (append.error) {
    if (append.error->code == Errc::too_large && call.result->result->error_code != "too_large") {
      auto failed = failed_call(append.id, "too_large", "the upstream's answer is too large");
      failed.model_tokens = call.result->result->model_tokens;
      call.result->result = std::move(failed);
      this->append(call);
      return;
    }
    ++call.appends;
    if (unappended_.empty()) {
      log::warn("call results can't be appended", {{"error", append.error->message}});
    }
    unappended_.insert(append.id);
    wait(append.id, backoff(settings_.append_backoff, call.appends, std::nullopt, random_()));
    return;
  }
  unappended_.erase(append.id);
  forget(append.id);
  if (answered_.insert(append.id).second) answered_order_.push_back(append.id);
  if (answered_order_.size() > max_answered) {
    answered_.erase(answered_order_.front());
    answered_order_.pop_front();
  }
}

Caller::Caller(CallerSettings settings, store::Store& store, HttpClient& http, AppendEvent append,
               const model::Clock& clock, Metrics& metrics)
    : engine_(std::make_unique<Engine>(settings, store, http, std::move(append), clock, metrics)) {}

Caller::~Caller() = default;

model::Result<void> Caller::start() {
  return engine_->start();
}

void Caller::stop() {
  engine_->stop();
}

std::string_view Caller::name() const {
  return "caller";
}

void Caller::offer(model::PendingCall call) {
  engine_->mailbox().put([&](Letters& letters) { letters.offers.push_back(std::move(call)); });
}

void Caller::wake() {
  engine_->mailbox().put([](Letters& letters) { letters.wake = true; });
}

bool Caller::idle() const {
  return engine_->mailbox().quiet();
}

}  // namespace conversed::daemon
