#include "api/live/pending_replies.h"

#include <algorithm>
#include <utility>

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::Result;

Error stopped_error() {
  return {Errc::unavailable, "the server is stopping"};
}

void forget(std::vector<std::uint64_t>& tickets, std::uint64_t ticket) {
  tickets.erase(std::remove(tickets.begin(), tickets.end(), ticket), tickets.end());
}

}  // namespace

PendingReplies::~PendingReplies() {
  stop();
}

PendingReplies::Ticket PendingReplies::wait(std::string input_id, TimePoint deadline,
                                            ReplyWait wait) {
  const auto shared = std::make_shared<const ReplyWait>(std::move(wait));
  bool refused = false;
  const Ticket ticket = state_.with([&](State& state) -> Ticket {
    const Ticket next = ++state.last_ticket;
    refused = state.stopped;
    if (refused) return next;
    // The deadline may fire at once, on its thread: there it waits for this lock.
    const auto token = deadlines_.add(deadline, [this, next] { expire(next); });
    state.inputs[input_id].push_back(next);
    state.waits.emplace(next, Entry{std::move(input_id), shared, deadline, token});
    return next;
  });
  if (refused) shared->answered(model::fail(stopped_error()));
  return ticket;
}

bool PendingReplies::move(Ticket ticket, std::string input_id) {
  return state_.with([&](State& state) {
    const auto entry = state.waits.find(ticket);
    if (entry == state.waits.end()) return false;
    leave(state, entry->second.input_id, ticket);
    state.inputs[input_id].push_back(ticket);
    entry->second.input_id = std::move(input_id);
    return true;
  });
}

void PendingReplies::hasten(Ticket ticket, TimePoint deadline) {
  Deadlines::Token earlier;
  state_.with([&](State& state) {
    const auto entry = state.waits.find(ticket);
    if (entry == state.waits.end() || entry->second.deadline <= deadline) return;
    earlier = std::exchange(entry->second.token,
                            deadlines_.add(deadline, [this, ticket] { expire(ticket); }));
    entry->second.deadline = deadline;
  });
  deadlines_.cancel(earlier);
}

bool PendingReplies::end(Ticket ticket, Result<Answer> outcome) {
  Deadlines::Token token;
  const WaitPtr wait = state_.with([&](State& state) {
    if (const auto entry = state.waits.find(ticket); entry != state.waits.end()) {
      token = entry->second.token;
    }
    return take(state, ticket);
  });
  if (!wait) return false;
  deadlines_.cancel(token);
  wait->answered(std::move(outcome));
  return true;
}

bool PendingReplies::awaited(std::string_view input_id) const {
  return state_.with([&](const State& state) { return state.inputs.contains(input_id); });
}

void PendingReplies::finish(std::string_view input_id, const Answer& answer) {
  end_all(input_id, answer);
}

void PendingReplies::fail(std::string_view input_id, const Error& error) {
  end_all(input_id, model::fail(error));
}

void PendingReplies::hear(std::string_view input_id) {
  state_.with([&](State& state) {
    const auto input = state.inputs.find(input_id);
    if (input == state.inputs.end()) return;
    for (const Ticket ticket : input->second) queue_look(state, ticket);
  });
}

void PendingReplies::heard(std::string_view input_ids) {
  if (input_ids.empty()) {
    state_.with([&](State& state) {
      for (const auto& [ticket, entry] : state.waits) queue_look(state, ticket);
    });
    return;
  }
  for (auto left = input_ids; !left.empty();) {
    const auto space = left.find(' ');
    hear(left.substr(0, space));
    left.remove_prefix(space == std::string_view::npos ? left.size() : space + 1);
  }
}

void PendingReplies::look(Ticket ticket) {
  state_.with([&](State& state) { queue_look(state, ticket); });
}

// One that is queued sees all that was committed before it begins.
void PendingReplies::queue_look(State& state, Ticket ticket) {
  const auto entry = state.waits.find(ticket);
  if (entry == state.waits.end() || std::exchange(entry->second.looking, true)) return;
  looks_.add(std::chrono::steady_clock::now(), [this, ticket] { tell(ticket); });
}

void PendingReplies::cut_off() {
  std::vector<std::pair<Ticket, WaitPtr>> waits;
  state_.with([&](State& state) {
    state.stopped = true;
    for (auto& [ticket, entry] : state.waits) {
      if (!std::exchange(entry.overdue, true)) waits.emplace_back(ticket, entry.wait);
    }
  });
  for (const auto& [ticket, wait] : waits) wait->overdue(ticket, Overdue::stop);
}

void PendingReplies::stop() {
  std::unordered_map<Ticket, Entry> waits;
  state_.with([&](State& state) {
    state.stopped = true;
    waits.swap(state.waits);
    state.inputs.clear();
  });
  looks_.stop();
  deadlines_.stop();
  for (const auto& [ticket, entry] : waits) {
    entry.wait->answered(model::fail(stopped_error()));
  }
}

std::size_t PendingReplies::size() const {
  return state_.with([](const State& state) { return state.waits.size(); });
}

PendingReplies::WaitPtr PendingReplies::take(State& state, Ticket ticket) {
  const auto entry = state.waits.find(ticket);
  if (entry == state.waits.end()) return nullptr;
  WaitPtr wait = std::move(entry->second.wait);
  leave(state, entry->second.input_id, ticket);
  state.waits.erase(entry);
  return wait;
}

void PendingReplies::leave(State& state, const std::string& input_id, Ticket ticket) {
  const auto input = state.inputs.find(input_id);
  forget(input->second, ticket);
  if (input->second.empty()) state.inputs.erase(input);
}

void PendingReplies::expire(Ticket ticket) {
  const WaitPtr wait = state_.with([&](State& state) -> WaitPtr {
    const auto entry = state.waits.find(ticket);
    if (entry == state.waits.end() || std::exchange(entry->second.overdue, true)) return nullptr;
    return entry->second.wait;
  });
  if (wait) wait->overdue(ticket, Overdue::deadline);
}

void PendingReplies::tell(Ticket ticket) {
  const WaitPtr wait = state_.with([&](State& state) -> WaitPtr {
    const auto entry = state.waits.find(ticket);
    if (entry == state.waits.end()) return nullptr;
    entry->second.looking = false;
    return entry->second.wait;
  });
  if (wait) wait->heard(ticket);
}

void PendingReplies::end_all(std::string_view input_id, const Result<Answer>& outcome) {
  std::vector<Entry> ended;
  state_.with([&](State& state) {
    const auto input = state.inputs.find(input_id);
    if (input == state.inputs.end()) return;
    for (const Ticket ticket : input->second) {
      const auto entry = state.waits.find(ticket);
      ended.push_back(std::move(entry->second));
      state.waits.erase(entry);
    }
    state.inputs.erase(input);
  });
  for (const auto& entry : ended) {
    deadlines_.cancel(entry.token);
    entry.wait->answered(outcome);
  }
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
