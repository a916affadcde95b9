#include "api/live/pending_replies.h"

#include <optional>
#include <utility>
#include <vector>

#include "store/cluster/notifications.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

Result<Answer> stopped_error() {
  return model::fail(Errc::unavailable, "the server is stopping");
}

}  // namespace

PendingReplies::~PendingReplies() {
  stop();
}

Ticket PendingReplies::wait(std::string input_id, TimePoint deadline, ReplyWait wait) {
  const auto callbacks = std::make_shared<const ReplyWait>(std::move(wait));
  bool refused = false;
  const Ticket ticket = state_.with([&](State& state) -> Ticket {
    const Ticket next = state.waits.next();
    refused = state.stopped;
    if (refused) return next;
    // The deadline may fire at once, on its thread: there it waits for this lock.
    const auto token = deadlines_.add(deadline, [this, next] { expire(next, Overdue::deadline); });
    state.waits.add(next, std::move(input_id), {callbacks, deadline, token});
    return next;
  });
  if (refused) callbacks->answered(stopped_error());
  return ticket;
}

bool PendingReplies::move(Ticket ticket, std::string input_id) {
  return state_.with([&](State& state) { return state.waits.rename(ticket, std::move(input_id)); });
}

void PendingReplies::hasten(Ticket ticket, TimePoint deadline) {
  state_.with([&](State& state) {
    Wait* wait = state.waits.find(ticket);
    if (wait == nullptr || wait->deadline <= deadline) return;
    deadlines_.cancel(wait->token);
    wait->token = deadlines_.add(deadline, [this, ticket] { expire(ticket, Overdue::deadline); });
    wait->deadline = deadline;
  });
}

bool PendingReplies::end(Ticket ticket, Result<Answer> outcome) {
  const auto wait = state_.with([&](State& state) { return state.waits.take(ticket); });
  if (!wait) return false;
  deadlines_.cancel(wait->token);
  wait->callbacks->answered(std::move(outcome));
  return true;
}

bool PendingReplies::awaited(const std::string& input_id) const {
  return state_.with([&](const State& state) { return !state.waits.named(input_id).empty(); });
}

void PendingReplies::finish(const std::string& input_id, const Result<Answer>& outcome) {
  const auto ended =
      state_.with([&](State& state) { return state.waits.take_all(state.waits.named(input_id)); });
  for (const Wait& wait : ended) {
    deadlines_.cancel(wait.token);
    wait.callbacks->answered(outcome);
  }
}

void PendingReplies::hear(std::string_view input_ids) {
  state_.with([&](State& state) {
    const auto tickets = input_ids.empty() ? state.waits.all() : state.waits.heard(input_ids);
    for (const Ticket ticket : tickets) queue_look(state, ticket);
  });
}

void PendingReplies::look(Ticket ticket) {
  state_.with([&](State& state) { queue_look(state, ticket); });
}

// One that is queued sees all that was committed before it begins.
void PendingReplies::queue_look(State& state, Ticket ticket) {
  Wait* wait = state.waits.find(ticket);
  if (wait == nullptr || std::exchange(wait->looking, true)) return;
  looks_.add(std::chrono::steady_clock::now(), [this, ticket] { tell(ticket); });
}

void PendingReplies::cut_off() {
  const auto tickets = state_.with([](State& state) {
    state.stopped = true;
    return state.waits.all();
  });
  for (const Ticket ticket : tickets) expire(ticket, Overdue::stop);
}

void PendingReplies::stop() {
  const auto tickets = state_.with([](State& state) {
    state.stopped = true;
    return state.waits.all();
  });
  looks_.stop();
  deadlines_.stop();
  for (const Ticket ticket : tickets) end(ticket, stopped_error());
}

std::size_t PendingReplies::size() const {
  return state_.with([](const State& state) { return state.waits.size(); });
}

void PendingReplies::expire(Ticket ticket, Overdue why) {
  const auto callbacks = state_.with([&](State& state) -> std::shared_ptr<const ReplyWait> {
    Wait* wait = state.waits.find(ticket);
    if (wait == nullptr || std::exchange(wait->overdue, true)) return nullptr;
    return wait->callbacks;
  });
  if (callbacks) callbacks->overdue(ticket, why);
}

void PendingReplies::tell(Ticket ticket) {
  const auto callbacks = state_.with([&](State& state) -> std::shared_ptr<const ReplyWait> {
    Wait* wait = state.waits.find(ticket);
    if (wait == nullptr) return nullptr;
    wait->looking = false;
    return wait->callbacks;
  });
  if (callbacks) callbacks->heard(ticket);
}

std::string outputs_name(const model::SessionKey& key) {
  return store::short_name(key.encode());
}

KeyWatch::~KeyWatch() {
  stop();
}

Ticket KeyWatch::watch(std::string name, TimePoint deadline, Callback callback) {
  bool refused = false;
  const Ticket ticket = state_.with([&](State& state) -> Ticket {
    const Ticket next = state.watches.next();
    refused = state.stopped;
    if (refused) return next;
    const auto token = deadlines_.add(deadline, [this, next] { expire(next, WatchEnd::deadline); });
    state.watches.add(next, std::move(name), {std::move(callback), token});
    return next;
  });
  if (refused) callback(WatchEnd::stopped);
  return ticket;
}

bool KeyWatch::cancel(Ticket ticket) {
  // The callback is destroyed outside the lock: it may own anything.
  const auto watch = state_.with([&](State& state) { return state.watches.take(ticket); });
  if (watch) deadlines_.cancel(watch->token);
  return watch.has_value();
}

void KeyWatch::notify(std::string_view names) {
  state_.with([&](State& state) {
    const auto tickets = names.empty() ? state.watches.all() : state.watches.heard(names);
    for (const Ticket ticket : tickets) {
      Watch& watch = *state.watches.find(ticket);
      deadlines_.cancel(watch.token);
      watch.token =
          deadlines_.add(TimePoint::min(), [this, ticket] { expire(ticket, WatchEnd::notified); });
    }
  });
}

void KeyWatch::stop() {
  const auto tickets = state_.with([](State& state) {
    state.stopped = true;
    return state.watches.all();
  });
  deadlines_.stop();
  for (const Ticket ticket : tickets) expire(ticket, WatchEnd::stopped);
}

std::size_t KeyWatch::size() const {
  return state_.with([](const State& state) { return state.watches.size(); });
}

void KeyWatch::expire(Ticket ticket, WatchEnd why) {
  const auto watch = state_.with([&](State& state) { return state.watches.take(ticket); });
  if (watch) watch->callback(why);
}

}  // namespace conversed::api
