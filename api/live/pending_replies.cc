#include "api/live/pending_replies.h"

#include <algorithm>

#include "store/cluster/notifications.h"
#include "store/runtime/thread_name.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

Result<Answer> stopped_error() {
  return model::fail(Errc::unavailable, "the server is stopping");
}

}  // namespace

Deadlines::Deadlines(std::string name)
    : name_(std::move(name)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

Deadlines::~Deadlines() {
  stop();
}

Deadlines::Token Deadlines::add(TimePoint when, std::function<void()> function) {
  bool first = false;
  Token token;
  {
    const std::lock_guard lock(mutex_);
    token = {when, ++last_number_};
    const auto [place, inserted] = pending_.emplace(token, std::move(function));
    first = place == pending_.begin();
  }
  // The thread has to wake only if this is the new earliest time.
  if (first) changed_.notify_one();
  return token;
}

void Deadlines::cancel(const Token& token) {
  std::function<void()> dropped;  // destroyed outside the lock: its captures may call back in here
  const std::lock_guard lock(mutex_);
  if (const auto place = pending_.find(token); place != pending_.end()) {
    dropped = std::move(place->second);
    pending_.erase(place);
  }
}

void Deadlines::stop() {
  thread_.request_stop();
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
  std::map<Token, std::function<void()>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(pending_);
}

void Deadlines::run(const std::stop_token& stop) {
  model::name_this_thread(name_);
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (pending_.empty()) {
      changed_.wait(lock, stop, [this] { return !pending_.empty(); });
      continue;
    }
    const auto first = pending_.begin()->first;
    if (first.first > std::chrono::steady_clock::now()) {
      // Wakes early when an earlier time is added or the first one is cancelled.
      changed_.wait_until(lock, stop, first.first, [this, &first] {
        return pending_.empty() || pending_.begin()->first < first;
      });
      continue;
    }
    auto function = std::move(pending_.begin()->second);
    pending_.erase(pending_.begin());
    lock.unlock();
    function();
    function = nullptr;
    lock.lock();
  }
}

PendingReplies::~PendingReplies() {
  stop();
}

PendingReplies::Wait* PendingReplies::State::find(Ticket ticket) {
  const auto wait = waits.find(ticket);
  return wait == waits.end() ? nullptr : &wait->second;
}

std::vector<Ticket> PendingReplies::State::all() const {
  std::vector<Ticket> found;
  for (const auto& [ticket, wait] : waits) found.push_back(ticket);
  return found;
}

std::vector<Ticket> PendingReplies::State::named(const std::string& name) const {
  std::vector<Ticket> found;
  for (auto at = names.lower_bound({name, 0}); at != names.end() && at->first == name; ++at) {
    found.push_back(at->second);
  }
  return found;
}

Ticket PendingReplies::wait(std::string input_id, TimePoint deadline, ReplyWait wait) {
  const auto callbacks = std::make_shared<const ReplyWait>(std::move(wait));
  bool refused = false;
  const Ticket ticket = state_.with([&](State& state) -> Ticket {
    const Ticket next = ++state.last;
    refused = state.stopped;
    if (refused) return next;
    // The deadline may fire at once on its own thread, which then waits for this lock.
    const auto token = deadlines_.add(deadline, [this, next] { expire(next, Overdue::deadline); });
    state.names.emplace(input_id, next);
    state.waits.emplace(next, Wait{std::move(input_id), callbacks, deadline, token});
    return next;
  });
  if (refused) callbacks->answered(stopped_error());
  return ticket;
}

bool PendingReplies::move(Ticket ticket, std::string input_id) {
  return state_.with([&](State& state) {
    Wait* wait = state.find(ticket);
    if (wait == nullptr) return false;
    state.names.erase({wait->name, ticket});
    state.names.emplace(input_id, ticket);
    wait->name = std::move(input_id);
    return true;
  });
}

void PendingReplies::hasten(Ticket ticket, TimePoint deadline) {
  state_.with([&](State& state) {
    Wait* wait = state.find(ticket);
    if (wait == nullptr || wait->deadline <= deadline) return;
    deadlines_.cancel(wait->token);
    wait->token = deadlines_.add(deadline, [this, ticket] { expire(ticket, Overdue::deadline); });
    wait->deadline = deadline;
  });
}

std::optional<PendingReplies::Wait> PendingReplies::State::take(Ticket ticket) {
  auto node = waits.extract(ticket);
  if (node.empty()) return std::nullopt;
  names.erase({node.mapped().name, ticket});
  return std::move(node.mapped());
}

std::optional<PendingReplies::Wait> PendingReplies::take(Ticket ticket) {
  auto taken = state_.with([&](State& state) { return state.take(ticket); });
  if (taken) deadlines_.cancel(taken->token);
  return taken;
}

bool PendingReplies::end(Ticket ticket, Result<Answer> outcome) {
  const auto wait = take(ticket);
  if (wait) wait->callbacks->answered(std::move(outcome));
  return wait.has_value();
}

bool PendingReplies::awaited(const std::string& input_id) const {
  return state_.with([&](const State& state) { return !state.named(input_id).empty(); });
}

void PendingReplies::finish(const std::string& input_id, const Result<Answer>& outcome) {
  const auto ended = state_.with([&](State& state) {
    std::vector<Wait> waits;
    for (const Ticket ticket : state.named(input_id)) waits.push_back(*state.take(ticket));
    return waits;
  });
  for (const Wait& wait : ended) {
    deadlines_.cancel(wait.token);
    wait.callbacks->answered(outcome);
  }
}

void PendingReplies::hear(std::string_view input_ids) {
  state_.with([&](State& state) {
    if (input_ids.empty()) {
      for (const Ticket ticket : state.all()) queue_look(state, ticket);
    }
    while (!input_ids.empty() && !state.waits.empty()) {
      const auto id = input_ids.substr(0, input_ids.find(' '));
      for (const Ticket ticket : state.named(std::string(id))) queue_look(state, ticket);
      input_ids.remove_prefix(std::min(input_ids.size(), id.size() + 1));
    }
  });
}

void PendingReplies::look(Ticket ticket) {
  state_.with([&](State& state) { queue_look(state, ticket); });
}

// A queued look sees every commit before it begins, so one is enough.
void PendingReplies::queue_look(State& state, Ticket ticket) {
  Wait* wait = state.find(ticket);
  if (wait == nullptr || std::exchange(wait->looking, true)) return;
  looks_.add(std::chrono::steady_clock::now(), [this, ticket] { tell(ticket); });
}

std::vector<Ticket> PendingReplies::refuse_more() {
  return state_.with([](State& state) {
    state.stopped = true;
    return state.all();
  });
}

void PendingReplies::cut_off() {
  for (const Ticket ticket : refuse_more()) expire(ticket, Overdue::stop);
}

void PendingReplies::stop() {
  const auto tickets = refuse_more();
  looks_.stop();
  deadlines_.stop();
  for (const Ticket ticket : tickets) end(ticket, stopped_error());
}

std::size_t PendingReplies::size() const {
  return state_.with([](const State& state) { return state.waits.size(); });
}

void PendingReplies::expire(Ticket ticket, Overdue why) {
  const auto callbacks = state_.with([&](State& state) -> std::shared_ptr<const ReplyWait> {
    Wait* wait = state.find(ticket);
    return wait == nullptr || std::exchange(wait->overdue, true) ? nullptr : wait->callbacks;
  });
  if (callbacks) callbacks->overdue(ticket, why);
}

void PendingReplies::tell(Ticket ticket) {
  const auto callbacks = state_.with([&](State& state) -> std::shared_ptr<const ReplyWait> {
    Wait* wait = state.find(ticket);
    return wait != nullptr && std::exchange(wait->looking, false) ? wait->callbacks : nullptr;
  });
  if (callbacks) callbacks->heard(ticket);
}

std::string outputs_name(const model::SessionKey& key) {
  return store::short_name(key.encode());
}

Ticket KeyWatch::watch(std::string name, TimePoint deadline, Callback callback) {
  const auto told = std::make_shared<const Callback>(std::move(callback));
  const auto end = [this, told](Ticket ticket, WatchEnd why) {
    if (waits_.drop(ticket)) (*told)(why);
  };
  return waits_.wait(std::move(name), deadline,
                     {.answered = [told](const Result<Answer>&) { (*told)(WatchEnd::stopped); },
                      .overdue = [end](Ticket ticket, Overdue) { end(ticket, WatchEnd::deadline); },
                      .heard = [end](Ticket ticket) { end(ticket, WatchEnd::notified); }});
}

}  // namespace conversed::api
