#include "api/live/waiters.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::Result;

Error stopped_error() {
  return {Errc::unavailable, "the server is stopping"};
}

Error timed_out_error() {
  return {Errc::timed_out, "the conversation did not answer in time; its answer will be an output"};
}

void forget(std::vector<std::uint64_t>& tickets, std::uint64_t ticket) {
  tickets.erase(std::remove(tickets.begin(), tickets.end(), ticket), tickets.end());
}

}  // namespace

AnswerWaiters::~AnswerWaiters() {
  stop();
}

AnswerWaiters::Ticket AnswerWaiters::wait(std::string input_id, TimePoint deadline,
                                          Callback callback, Left left) {
  Callback refused;
  const Ticket ticket = state_.with([&](State& state) -> Ticket {
    const Ticket next = ++state.last_ticket;
    if (state.stopped) {
      refused = std::move(callback);
      return next;
    }
    // The deadline may fire at once, on its thread: there it waits for this lock.
    const auto token =
        deadlines_.add(deadline, [this, next] { expire(next, Patience::claim_holds); });
    state.inputs[input_id].tickets.push_back(next);
    state.waiters.emplace(
        next, Waiter{std::move(input_id), std::move(callback), std::move(left), deadline, token});
    return next;
  });
  if (refused) refused(model::fail(stopped_error()));
  return ticket;
}

bool AnswerWaiters::move(Ticket ticket, std::string input_id) {
  return state_.with([&](State& state) {
    const auto waiter = state.waiters.find(ticket);
    if (waiter == state.waiters.end()) return false;
    const auto from = state.inputs.find(waiter->second.input_id);
    forget(from->second.tickets, ticket);
    if (from->second.tickets.empty()) state.inputs.erase(from);
    state.inputs[input_id].tickets.push_back(ticket);
    waiter->second.input_id = std::move(input_id);
    return true;
  });
}

bool AnswerWaiters::end(Ticket ticket, Result<Answer> outcome) {
  Deadlines::Token token;
  Callback callback = state_.with([&](State& state) {
    if (const auto waiter = state.waiters.find(ticket); waiter != state.waiters.end()) {
      token = waiter->second.token;
    }
    return take(state, ticket);
  });
  if (!callback) return false;
  deadlines_.cancel(token);
  callback(std::move(outcome));
  return true;
}

bool AnswerWaiters::awaited(std::string_view input_id) const {
  return state_.with([&](const State& state) { return state.inputs.contains(input_id); });
}

bool AnswerWaiters::claim(std::string_view input_id) {
  return state_.with([&](State& state) {
    const auto input = state.inputs.find(input_id);
    if (input == state.inputs.end()) return false;
    input->second.claimed = true;
    return true;
  });
}

bool AnswerWaiters::finish(std::string_view input_id, const Answer& answer) {
  return end_all(input_id, answer);
}

void AnswerWaiters::fail(std::string_view input_id, const Error& error) {
  end_all(input_id, model::fail(error));
}

void AnswerWaiters::release(std::string_view input_id) {
  const auto expired = state_.with([&](State& state) -> std::vector<Callback> {
    const auto input = state.inputs.find(input_id);
    if (input == state.inputs.end()) return {};
    input->second.claimed = false;
    return take_overdue(state, input->second);
  });
  for (const Callback& callback : expired) callback(model::fail(timed_out_error()));
}

bool AnswerWaiters::keep_waiting(std::string_view input_id) {
  bool goes_on = false;
  const auto expired = state_.with([&](State& state) -> std::vector<Callback> {
    const auto input = state.inputs.find(input_id);
    if (input == state.inputs.end()) return {};
    auto overdue = take_overdue(state, input->second);
    goes_on = state.inputs.contains(input_id);
    return overdue;
  });
  for (const Callback& callback : expired) callback(model::fail(timed_out_error()));
  return goes_on;
}

void AnswerWaiters::stop() {
  std::unordered_map<Ticket, Waiter> waiters;
  state_.with([&](State& state) {
    state.stopped = true;
    waiters.swap(state.waiters);
    state.inputs.clear();
  });
  deadlines_.stop();
  for (const auto& [ticket, waiter] : waiters) waiter.callback(model::fail(stopped_error()));
}

std::size_t AnswerWaiters::size() const {
  return state_.with([](const State& state) { return state.waiters.size(); });
}

std::vector<std::string> AnswerWaiters::inputs() const {
  return state_.with([](const State& state) {
    std::vector<std::string> ids;
    ids.reserve(state.inputs.size());
    for (const auto& [id, input] : state.inputs) ids.push_back(id);
    return ids;
  });
}

AnswerWaiters::Callback AnswerWaiters::take(State& state, Ticket ticket) {
  const auto waiter = state.waiters.find(ticket);
  if (waiter == state.waiters.end()) return nullptr;
  Callback callback = std::move(waiter->second.callback);
  const auto input = state.inputs.find(waiter->second.input_id);
  forget(input->second.tickets, ticket);
  if (input->second.tickets.empty()) state.inputs.erase(input);
  state.waiters.erase(waiter);
  return callback;
}

// Those whose time-outs fired during the claim and were held back by it. Taking the last one erases
// the input, so its tickets are copied first.
std::vector<AnswerWaiters::Callback> AnswerWaiters::take_overdue(State& state, const Input& input) {
  std::vector<Callback> overdue;
  const auto now = std::chrono::steady_clock::now();
  const auto tickets = input.tickets;
  for (const Ticket ticket : tickets) {
    if (state.waiters.at(ticket).deadline <= now) overdue.push_back(take(state, ticket));
  }
  return overdue;
}

void AnswerWaiters::expire(Ticket ticket, Patience patience) {
  Left left;
  std::string input_id;
  const Callback callback = state_.with([&](State& state) -> Callback {
    const auto waiter = state.waiters.find(ticket);
    if (waiter == state.waiters.end()) return nullptr;
    // A claimed answer is on its way: it is given, if late, or `release` comes back to this.
    if (patience == Patience::claim_holds && state.inputs.at(waiter->second.input_id).claimed) {
      waiter->second.token = deadlines_.add(std::chrono::steady_clock::now() + claim_grace_,
                                            [this, ticket] { expire(ticket, Patience::none); });
      return nullptr;
    }
    if (state.inputs.at(waiter->second.input_id).tickets.size() == 1) {
      left = std::move(waiter->second.left);
      input_id = waiter->second.input_id;
    }
    return take(state, ticket);
  });
  if (callback) callback(model::fail(timed_out_error()));
  if (left) left(input_id);
}

bool AnswerWaiters::end_all(std::string_view input_id, const Result<Answer>& outcome) {
  std::vector<Waiter> ended;
  state_.with([&](State& state) {
    const auto input = state.inputs.find(input_id);
    if (input == state.inputs.end()) return;
    for (const Ticket ticket : input->second.tickets) {
      const auto waiter = state.waiters.find(ticket);
      ended.push_back(std::move(waiter->second));
      state.waiters.erase(waiter);
    }
    state.inputs.erase(input);
  });
  for (const Waiter& waiter : ended) {
    deadlines_.cancel(waiter.token);
    waiter.callback(outcome);
  }
  return !ended.empty();
}

KeyWatch::~KeyWatch() {
  stop();
}

KeyWatch::Ticket KeyWatch::watch(std::string key, TimePoint deadline, Callback callback) {
  Callback refused;
  const Ticket ticket = state_.with([&](State& state) -> Ticket {
    const Ticket next = ++state.last_ticket;
    if (state.stopped) {
      refused = std::move(callback);
      return next;
    }
    const auto token = deadlines_.add(deadline, [this, next] { expire(next, WatchEnd::deadline); });
    Watcher watcher{std::move(key), std::move(callback), token};
    state.keys[watcher.key].push_back(next);
    state.watchers.emplace(next, std::move(watcher));
    return next;
  });
  if (refused) refused(WatchEnd::stopped);
  return ticket;
}

bool KeyWatch::cancel(Ticket ticket) {
  Deadlines::Token token;
  // The callback is destroyed outside the lock: it may own anything.
  const Callback dropped = state_.with([&](State& state) {
    if (const auto watcher = state.watchers.find(ticket); watcher != state.watchers.end()) {
      token = watcher->second.token;
    }
    return take(state, ticket);
  });
  if (!dropped) return false;
  deadlines_.cancel(token);
  return true;
}

void KeyWatch::notify(const std::string& key) {
  state_.with([&](State& state) {
    if (state.keys.empty()) return;
    const auto place = state.keys.find(key);
    if (place == state.keys.end()) return;
    wake(state, place->second);
    state.keys.erase(place);  // a second notify has nothing to add
  });
}

void KeyWatch::notify_all() {
  state_.with([&](State& state) {
    for (const auto& [key, tickets] : state.keys) wake(state, tickets);
    state.keys.clear();
  });
}

void KeyWatch::stop() {
  std::unordered_map<Ticket, Watcher> watchers;
  state_.with([&](State& state) {
    state.stopped = true;
    watchers.swap(state.watchers);
    state.keys.clear();
  });
  deadlines_.stop();
  for (const auto& [ticket, watcher] : watchers) watcher.callback(WatchEnd::stopped);
}

std::size_t KeyWatch::size() const {
  return state_.with([](const State& state) { return state.watchers.size(); });
}

KeyWatch::Callback KeyWatch::take(State& state, Ticket ticket) {
  const auto watcher = state.watchers.find(ticket);
  if (watcher == state.watchers.end()) return nullptr;
  Callback callback = std::move(watcher->second.callback);
  if (const auto key = state.keys.find(watcher->second.key); key != state.keys.end()) {
    forget(key->second, ticket);
    if (key->second.empty()) state.keys.erase(key);
  }
  state.watchers.erase(watcher);
  return callback;
}

void OutputWatch::heard(std::string_view short_names) {
  if (short_names.empty()) return watch_.notify_all();
  if (watch_.size() == 0) return;
  while (!short_names.empty()) {
    const auto end = short_names.find(' ');
    watch_.notify(std::string(short_names.substr(0, end)));
    if (end == std::string_view::npos) return;
    short_names.remove_prefix(end + 1);
  }
}

void KeyWatch::wake(State& state, const std::vector<Ticket>& tickets) {
  for (const Ticket ticket : tickets) {
    Watcher& watcher = state.watchers.at(ticket);
    deadlines_.cancel(watcher.token);
    watcher.token =
        deadlines_.add(TimePoint::min(), [this, ticket] { expire(ticket, WatchEnd::notified); });
  }
}

void KeyWatch::expire(Ticket ticket, WatchEnd why) {
  const Callback callback = state_.with([&](State& state) { return take(state, ticket); });
  if (callback) callback(why);
}

}  // namespace conversed::api
