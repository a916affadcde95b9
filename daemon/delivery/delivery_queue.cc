#include "daemon/delivery/delivery_queue.h"

#include <algorithm>

namespace conversed::daemon {

using model::Timestamp;
using std::chrono::milliseconds;

namespace {

constexpr int weight_of_average = 4;  // the last answer counts a quarter

std::size_t left(std::size_t all, std::size_t taken) {
  return all > taken ? all - taken : 0;
}

}  // namespace

DeliveryQueue::Lane& DeliveryQueue::lane(const std::string& endpoint_id,
                                         const std::string& project_id) {
  const auto [found, is_new] = lanes_.try_emplace(endpoint_id);
  if (is_new) {
    found->second.endpoint_id = endpoint_id;
    found->second.project_id = project_id;
  }
  return found->second;
}

void DeliveryQueue::wait(Lane& lane) {
  lane.in_turn = false;
  if (!lane.due) return;
  lane.place = {std::max(*lane.due, lane.not_before), ++waits_};
  waiting_.emplace(lane.place, &lane);
}

void DeliveryQueue::wake(Lane& lane, Timestamp due) {
  if (lane.read_up_to) lane.read_again = true;
  if (lane.in_turn || (lane.due && *lane.due <= due)) return;
  waiting_.erase(lane.place);
  lane.due = due;
  wait(lane);
}

void DeliveryQueue::put_off(Lane& lane, Timestamp until) {
  lane.not_before = until;
  if (lane.in_turn || !lane.due) return;  // found out when its turn comes
  waiting_.erase(lane.place);
  wait(lane);
}

void DeliveryQueue::wake_due(Timestamp now) {
  while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
    Lane& lane = *waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    lane.in_turn = true;
    turns_.push_back(&lane);
  }
}

std::optional<Timestamp> DeliveryQueue::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first.first;
}

DeliveryQueue::Lane* DeliveryQueue::next(Timestamp now, Steady steady) {
  wake_due(now);
  if (in_flight_ >= limits_.connections) return nullptr;
  for (std::size_t tried = turns_.size(); tried > 0; --tried) {
    Lane& lane = *turns_.front();
    turns_.pop_front();
    if (lane.not_before > now) {
      wait(lane);
      continue;
    }
    turns_.push_back(&lane);
    if (room(lane, steady) > 0) return &lane;
  }
  return nullptr;
}

void DeliveryQueue::read_all(Lane& lane, std::optional<Timestamp> next_due) {
  lane.read_up_to.reset();
  if (std::exchange(lane.read_again, false)) return;
  std::erase(turns_, &lane);
  lane.due = next_due;
  wait(lane);
}

std::size_t DeliveryQueue::share(std::size_t eighths) const {
  return std::max<std::size_t>(1, limits_.connections * eighths / 8);
}

DeliveryQueue::Kind DeliveryQueue::kind_of(const Lane& lane, Steady steady) const {
  if (fails(lane)) return Kind::fails;
  const bool waited_for = !lane.begun.empty() && steady - *lane.begun.begin() > limits_.slow_after;
  if (waited_for || lane.takes > limits_.slow_after) return Kind::slow;
  return lane.has_answered ? Kind::answers : Kind::untried;
}

DeliveryQueue::Taken DeliveryQueue::taken(const std::string* project_id, Steady steady) const {
  Taken taken;
  for (const Lane* lane : busy_) {
    if (project_id != nullptr && lane->project_id != *project_id) continue;
    const auto connections = lane->begun.size();
    const auto kind = kind_of(*lane, steady);
    taken.all += connections;
    if (kind == Kind::answers) continue;
    taken.doubtful += connections;
    (kind == Kind::untried ? taken.untried : taken.bad) += connections;
  }
  return taken;
}

std::size_t DeliveryQueue::share_of(const Lane& lane, Kind kind) const {
  if (kind == Kind::answers) return share(6);
  return kind == Kind::slow && lane.has_answered ? share(2) : 1;
}

std::size_t DeliveryQueue::room(const Lane& lane, Steady steady) const {
  const auto kind = kind_of(lane, steady);
  const auto all = taken(nullptr, steady);
  const auto own = taken(&lane.project_id, steady);
  auto room = std::min({left(limits_.connections, all.all), left(share(6), own.all),
                        left(share_of(lane, kind), lane.begun.size()),
                        left(limits_.sessions, sessions_.size())});
  if (kind == Kind::answers) return room;
  room = std::min({room, left(share(6), all.doubtful), left(share(5), own.doubtful)});
  if (kind == Kind::untried) {
    return std::min({room, left(share(2), all.untried), left(share(1), own.untried)});
  }
  return std::min({room, left(share(4), all.bad), left(share(3), own.bad)});
}

bool DeliveryQueue::goes_on(const Session& session, Steady steady) const {
  const Lane& lane = *session.lane;
  if (lane.begun.size() > share_of(lane, kind_of(lane, steady))) return false;
  const bool others_wait = turns_.size() > (lane.in_turn ? 1U : 0U);
  return in_flight_ < limits_.connections || !others_wait;
}

DeliveryQueue::Session* DeliveryQueue::find(const model::SessionKey& key) {
  const auto found = sessions_.find(key.encode());
  return found == sessions_.end() ? nullptr : &found->second;
}

DeliveryQueue::Session& DeliveryQueue::take(Lane& lane, store::DueDelivery due,
                                            std::uint64_t generation) {
  Session& session = sessions_[due.key.encode()];
  session.lane = &lane;
  session.outputs.assign(std::make_move_iterator(due.outputs.begin()),
                         std::make_move_iterator(due.outputs.end()));
  session.attempts = due.attempts;
  session.generation = generation;
  session.key = std::move(due.key);
  ++lane.in_hand;
  return session;
}

void DeliveryQueue::begin(Session& session, Steady steady) {
  land(session);
  Lane& lane = *session.lane;
  if (lane.begun.empty()) busy_.push_back(&lane);
  lane.begun.insert(steady);
  session.begun = steady;
  ++in_flight_;
}

void DeliveryQueue::land(Session& session) {
  if (!session.begun) return;
  Lane& lane = *session.lane;
  lane.begun.erase(lane.begun.find(*session.begun));
  session.begun.reset();
  if (lane.begun.empty()) std::erase(busy_, &lane);
  --in_flight_;
}

void DeliveryQueue::delivered(Session& session, Steady steady) {
  tried(session, steady);
  session.lane->has_answered = true;
  session.lane->failures = 0;
}

void DeliveryQueue::failed(Session& session, Steady steady) {
  tried(session, steady);
  Lane& lane = *session.lane;
  // What it refuses of one session again and again says nothing about the others.
  if (lane.failures == 0 || lane.failed_last != session.key) ++lane.failures;
  lane.failed_last = session.key;
}

void DeliveryQueue::tried(const Session& session, Steady steady) {
  const auto took = std::chrono::ceil<milliseconds>(steady - *session.begun);
  session.lane->takes += (took - session.lane->takes) / weight_of_average;
}

void DeliveryQueue::release_if_done(Session& session, Timestamp now) {
  if (session.begun || session.marks > 0 || !session.outputs.empty()) return;
  Lane& lane = *session.lane;
  --lane.in_hand;
  if (session.more) wake(lane, now);
  sessions_.erase(session.key.encode());
}

std::optional<DeliveryQueue::Steady> DeliveryQueue::next_slow(Steady steady) const {
  std::optional<Steady> next;
  if (turns_.empty()) return next;
  for (const Lane* lane : busy_) {
    const auto slow = *lane->begun.begin() + limits_.slow_after;
    if (slow > steady && (!next || slow < *next)) next = slow;
  }
  return next;
}

void DeliveryQueue::forget_idle() {
  if (lanes_.size() <= limits_.endpoints) return;
  std::erase_if(lanes_, [](const auto& entry) {
    return !entry.second.due && !entry.second.in_turn && entry.second.in_hand == 0;
  });
}

}  // namespace conversed::daemon
