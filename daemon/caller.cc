#include "daemon/caller.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "api/blocking_pool.h"
#include "daemon/call_queue.h"
#include "daemon/call_request.h"
#include "daemon/logging.h"
#include "daemon/metrics.h"
#include "daemon/ownership.h"
#include "daemon/recent.h"
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
constexpr std::size_t noted_at_once = 64;
// One that runs and one that comes next: so projects take turns.
constexpr std::size_t searches_at_once = 2;
// Ids of calls that were answered lately: their rows are in the store until a Turn takes them.
constexpr std::size_t max_answered = 65'536;

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
  bool ownership_changed = false;
  bool wake = false;
  bool stop = false;
  [[nodiscard]] bool empty() const {
    return offers.empty() && completions.empty() && searches.empty() && appends.empty() &&
           !ownership_changed && !wake && !stop;
  }
};

}  // namespace

class Caller::Engine {
 public:
  Engine(CallerSettings settings, store::Store& store, HttpClient& http, AppendEvent append,
         const model::Clock& clock, Metrics& metrics, const Ownership& ownership)
      : settings_(settings),
        store_(store),
        http_(http),
        append_(std::move(append)),
        clock_(clock),
        timer_clock_(settings_.timer_clock == nullptr ? clock : *settings_.timer_clock),
        metrics_(metrics),
        ownership_(ownership),
        calls_({.calls = std::max<std::size_t>(1, settings.max_calls),
                .bytes = settings.max_bytes,
                .per_upstream = settings.max_per_upstream,
                .per_project = settings.max_per_project}),
        searches_(1, searches_at_once) {}
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
  using Call = CallQueue::Call;

  void run();
  void read_letters();
  [[nodiscard]] SteadyClock::time_point next_look();
  void load();
  void load_noted();
  // Null: no such call, or it can't be made. False: the store fails, and is asked again later.
  [[nodiscard]] bool find(const std::string& id, std::optional<model::PendingCall>& call);
  [[nodiscard]] bool is_wanted(const std::string& id, const model::SessionKey& session) const;
  void take(model::PendingCall call);
  void not_read(const model::Error& error);
  void ownership_changed();
  [[nodiscard]] std::size_t at_once(const model::PendingCall& call) const;
  void wake_due();
  void send_ready();
  // False: nothing is under way.
  [[nodiscard]] bool send(Call& call);
  [[nodiscard]] model::Result<bool> quota_left(const std::string& project_id) const;
  [[nodiscard]] bool search(const Call& call);
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
  const model::Clock& timer_clock_;
  Metrics& metrics_;
  const Ownership& ownership_;

  // The thread's own.
  CallQueue calls_;
  std::set<std::pair<Timestamp, std::string>> waiting_;
  Recent answered_{max_answered};
  std::set<std::string> unappended_;  // results that the log refused at the last try
  std::vector<HttpClient::Exchange> batch_;
  std::mt19937_64 random_{std::random_device{}()};
  bool scanning_ = true;  // the store may have calls that are not known here
  std::string scanned_;   // calls up to this id have been looked at
  SteadyClock::time_point next_scan_{};
  SteadyClock::time_point next_look_{};  // among what others may have left
  bool stop_ = false;
  ServiceThread<Letters> thread_;  // it uses all others
  api::BlockingPool searches_;     // uses the store, and the thread's mailbox
};

void Caller::Engine::run() {
  while (!stop_) {
    wake_due();
    load_noted();
    load();
    send_ready();
    thread_.mailbox()->set_quiet(calls_.empty() && !scanning_ && !calls_.wants_scan());
    read_letters();
  }
}

SteadyClock::time_point Caller::Engine::next_look() {
  const auto now = SteadyClock::now();
  auto until = now + max_sleep;
  if (ownership_.is_shared() && !scanning_) until = std::min(until, std::max(now, next_look_));
  if (calls_.wanted() != nullptr || (calls_.has_room() && (scanning_ || calls_.wants_scan()))) {
    until = std::max(now, next_scan_);
  }
  if (!waiting_.empty()) {
    const auto left = std::clamp<milliseconds>(waiting_.begin()->first - timer_clock_.now(),
                                               milliseconds(0), max_sleep);
    until = std::min(until, now + left);
  }
  return until;
}

void Caller::Engine::read_letters() {
  auto letters = thread_.take(next_look());
  stop_ = stop_ || letters.stop;
  if (stop_) return;
  if (letters.ownership_changed) ownership_changed();
  for (auto& append : letters.appends) appended(std::move(append));
  for (const auto& completion : letters.completions) finish(completion);
  for (const auto& searched : letters.searches) finish(searched);
  for (auto& offer : letters.offers) take(std::move(offer));
}

// What is under way, or waits for another try, stays until then: its session may be ours again.
void Caller::Engine::ownership_changed() {
  calls_.drop_ready([this](const auto& call) { return !ownership_.owns(call.session); });
  scanned_.clear();
  scanning_ = true;
}

// What the store has not told is asked for again later.
void Caller::Engine::not_read(const model::Error& error) {
  log::warn("unfinished calls can't be read", {{"error", error.message}});
  next_scan_ = SteadyClock::now() + store_retry;
}

bool Caller::Engine::find(const std::string& id, std::optional<model::PendingCall>& call) {
  auto found = store_.calls().find(id);
  if (!found && found.error().code != Errc::internal) {
    not_read(found.error());
    return false;
  }
  call.reset();
  // Else its session was reset, or it is damaged.
  if (found && *found && ((*found)->http || (*found)->search)) call = std::move(*found);
  return true;
}

// Those that were offered, or found in the store, when there was no room for them.
void Caller::Engine::load_noted() {
  if (SteadyClock::now() < next_scan_) return;
  for (std::size_t i = 0; i < noted_at_once; ++i) {
    const auto* wanted = calls_.wanted();
    if (wanted == nullptr) return;
    const std::string id = *wanted;
    std::optional<model::PendingCall> call;
    if (!find(id, call)) return;
    calls_.unnote(id);
    if (!call || !ownership_.owns(call->session)) continue;
    const auto upstream = upstream_of(*call, store_.assets());
    const auto most = at_once(*call);
    calls_.take_noted(std::move(*call), upstream, most);
  }
}

// Reads the next page while there is room.
void Caller::Engine::load() {
  const auto now = SteadyClock::now();
  const bool looks = ownership_.is_shared() && now >= next_look_;
  if (!scanning_ && (looks || calls_.wants_scan())) {
    calls_.scan_begins();
    scanning_ = true;
  }
  if (!scanning_ || !calls_.has_room() || now < next_scan_) return;
  auto page = store_.calls().unfinished(scanned_, calls_a_page);
  if (!page) return not_read(page.error());
  for (auto& each : *page) {
    if (is_wanted(each.id, each.session)) {
      std::optional<model::PendingCall> call;
      if (!find(each.id, call)) return;
      if (call) take(std::move(*call));
    }
    scanned_ = std::move(each.id);
  }
  if (!page->empty()) return;
  scanned_.clear();
  scanning_ = false;
  next_look_ = now + settings_.look_interval;
}

bool Caller::Engine::is_wanted(const std::string& id, const model::SessionKey& session) const {
  return !calls_.knows(id) && !answered_.contains(id) && ownership_.owns(session);
}

void Caller::Engine::take(model::PendingCall call) {
  if ((!call.http && !call.search) || !is_wanted(call.id, call.session)) return;
  const auto upstream = upstream_of(call, store_.assets());
  const auto most = at_once(call);
  calls_.take(std::move(call), upstream, most);
}

std::size_t Caller::Engine::at_once(const model::PendingCall& call) const {
  return call.search ? searches_at_once : settings_.max_per_upstream;
}

void Caller::Engine::wait(const std::string& id, milliseconds time) {
  waiting_.emplace(timer_clock_.now() + time, id);
}

void Caller::Engine::wake_due() {
  const Timestamp now = timer_clock_.now();
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const std::string id = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    auto& call = calls_.at(id);
    if (call.result) {
      append(call);
    } else if (!ownership_.owns(call.pending.session)) {
      calls_.forget(id);  // whoever has its session now makes it
    } else {
      calls_.make_ready(call);
    }
  }
}

void Caller::Engine::send_ready() {
  // While the log takes no results, making more of them helps nobody.
  if (!unappended_.empty()) return;
  while (Call* call = calls_.next()) {
    if (!send(*call)) calls_.landed(*call);
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
bool Caller::Engine::search(const Call& call) {
  const std::string id = call.pending.id;
  const bool posted = searches_.post(
      [&store = store_, mailbox = thread_.mailbox(), id, most = settings_.search_timeout,
       project = call.pending.session.project_id, query = *call.pending.search] {
        const auto begun = SteadyClock::now();
        auto hits = store.knowledge().search(project, query, most);
        const auto took = SteadyClock::now() - begun;
        mailbox->put([&](Letters& letters) {
          letters.searches.push_back({id, std::move(hits), took});
        });
      });
  if (!posted) wait(id, store_retry);
  return posted;
}

void Caller::Engine::finish(const Searched& searched) {
  auto& call = calls_.at(searched.id);
  calls_.landed(call);
  metrics_.search_seconds.observe(searched.took.count());
  if (searched.hits) {
    return settle(call, search_result(searched.id, *searched.hits, settings_.max_response_bytes));
  }
  if (auto failure = search_failure(searched.id, searched.hits.error().code)) {
    return settle(call, std::move(*failure));
  }
  if (++call.attempts >= settings_.max_search_tries) {
    log::warn("a search in knowledge is given up", {{"sessionId", call.pending.session.session_id},
                                                    {"traceId", call.pending.trace_id},
                                                    {"tries", call.attempts},
                                                    {"error", searched.hits.error().message}});
    return settle(call, failed_call(searched.id, "search_failed", "knowledge can't be searched"));
  }
  wait(searched.id, backoff(settings_.backoff, call.attempts, std::nullopt, random_()));
}

bool Caller::Engine::send(Call& call) {
  if (call.pending.search) return search(call);
  const auto& http = *call.pending.http;
  const std::string& id = call.pending.id;
  std::optional<store::ConnectionSecrets> connection;
  if (!http.connection_id.empty()) {
    auto found = store_.assets().connection_secrets(http.connection_id);
    if (!found && found.error().code != Errc::not_found && found.error().code != Errc::internal) {
      wait(id, store_retry);
      return false;
    }
    if (!found || found->project_id != call.pending.session.project_id) {
      settle(call, failed_call(id, "connection_deleted", "the Connection does not exist any more"));
      return false;
    }
    connection = std::move(*found);
  }
  if (http.to_model) {
    const auto left = quota_left(call.pending.session.project_id);
    if (!left) {
      wait(id, store_retry);
      return false;
    }
    if (!*left) {
      settle(call, failed_call(id, "quota_exhausted",
                               "the plan's quota of language models' tokens is used up for this "
                               "month"));
      return false;
    }
  }
  auto request =
      call_request(call.pending, connection ? &*connection : nullptr, settings_.max_response_bytes);
  if (!request) {
    settle(call, std::move(request.error()));
    return false;
  }
  batch_.push_back({std::move(*request), [mailbox = thread_.mailbox(), id](HttpOutcome outcome) {
                      mailbox->put([&](Letters& letters) {
                        letters.completions.push_back({id, std::move(outcome)});
                      });
                    }});
  return true;
}

void Caller::Engine::finish(const Completion& completion) {
  auto& call = calls_.at(completion.id);
  const auto& outcome = completion.outcome;
  calls_.landed(call);
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
  call.result = result_event(call.pending, std::move(result), clock_.now());
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
  calls_.forget(append.id);
  answered_.note(append.id);
}

Caller::Caller(CallerSettings settings, store::Store& store, HttpClient& http, AppendEvent append,
               const model::Clock& clock, Metrics& metrics, const Ownership& ownership)
    : engine_(std::make_unique<Engine>(settings, store, http, std::move(append), clock, metrics,
                                       ownership)) {}

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

void Caller::ownership_changed() {
  engine_->mailbox().put([](Letters& letters) { letters.ownership_changed = true; });
}

void Caller::wake() {
  engine_->mailbox().put([](Letters& letters) { letters.wake = true; });
}

bool Caller::idle() const {
  return engine_->mailbox().quiet();
}

}  // namespace conversed::daemon
