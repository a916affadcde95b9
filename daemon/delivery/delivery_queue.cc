#include "daemon/delivery/delivery_queue.h"

#include <algorithm>
#include <iterator>

namespace conversed::daemon {

using model::Timestamp;
using std::chrono::milliseconds;

namespace {

constexpr int weight_of_average = 4;  // the newest answer counts for a quarter

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

DeliveryQueue::Lane* DeliveryQueue::next(Timestamp now, Steady steady) {
  turns_.wake_due(now);
  if (in_flight_ >= limits_.connections) return nullptr;
  return turns_.next(now, [&](const Lane& lane) { return room(lane, steady) > 0; });
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
  auto room = std::min({room_left(limits_.connections, all.all), room_left(share(6), own.all),
                        room_left(share_of(lane, kind), lane.begun.size()),
                        room_left(limits_.sessions, sessions_.size())});
  if (kind == Kind::answers) return room;
  room = std::min({room, room_left(share(6), all.doubtful), room_left(share(5), own.doubtful)});
  if (kind == Kind::untried) {
    return std::min({room, room_left(share(2), all.untried), room_left(share(1), own.untried)});
  }
  return std::min({room, room_left(share(4), all.bad), room_left(share(3), own.bad)});
}

std::size_t DeliveryQueue::room_to_read(const Lane& lane, Steady steady) const {
  const auto now = room(lane, steady);
  if (now == 0 || kind_of(lane, steady) != Kind::answers) return now;
  return std::min(now + room_left(limits_.waiting, waiting_),
                  room_left(limits_.sessions, sessions_.size()));
}

bool DeliveryQueue::goes_on(const Session& session, Steady steady) const {
  const Lane& lane = *session.lane;
  if (lane.begun.size() > share_of(lane, kind_of(lane, steady))) return false;
  const bool others_wait = turns_.in_turn() > (lane.in_turn ? 1U : 0U);
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
  session.taken = session.outputs.size();
  session.last_seq = session.outputs.empty() ? 0 : session.outputs.back().seq;
  session.attempts = due.attempts;
  session.generation = generation;
  session.key = std::move(due.key);
  ++lane.in_hand;
  return session;
}

bool DeliveryQueue::takes_newest(const Lane& lane, Steady unseen_until, Steady steady) const {
  return !lane.must_read && !lane.unreadable && unseen_until > lane.read_at &&
         may_wait(lane, steady);
}

// Whether one more session of the Endpoint may wait for a connection.
bool DeliveryQueue::may_wait(const Lane& lane, Steady steady) const {
  return waiting_ < limits_.waiting && waiting_bytes_ < limits_.waiting_bytes &&
         kind_of(lane, steady) == Kind::answers;
}

template <typename Outputs>
void DeliveryQueue::count_waiting(Session& session, const Outputs& outputs) {
  for (const auto& output : outputs) {
    const auto bytes = model::size_of(output);
    session.waiting_bytes += bytes;
    waiting_bytes_ += bytes;
  }
}

void DeliveryQueue::add(Session& session, std::vector<model::Output> newest, Timestamp now,
                        Steady steady) {
  const bool awaits_marks = session.outputs.empty();
  // While the store may have sessions that are not in hand, their turn must come.
  if (awaits_marks && !session.lane->must_read) session.taken = 0;
  session.taken += newest.size();
  session.more = session.more || newest.empty() || session.last_seq >= newest.front().seq ||
                 session.taken > limits_.outputs_a_session ||
                 (awaits_marks && !may_wait(*session.lane, steady)) ||
                 (session.waiting_bytes > 0 && waiting_bytes_ >= limits_.waiting_bytes);
  if (session.more) return;
  session.last_seq = newest.back().seq;
  if (session.waiting_bytes > 0) count_waiting(session, newest);
  std::ranges::move(newest, std::back_inserter(session.outputs));
  if (awaits_marks) wait(session, now);
}

void DeliveryQueue::wait(Session& session, Timestamp now) {
  Lane& lane = *session.lane;
  lane.waiting.push_back(&session);
  ++waiting_;
  count_waiting(session, session.outputs);
  if (!lane.in_turn) turns_.wake(lane, now);
}

DeliveryQueue::Session* DeliveryQueue::next_waiting(Lane& lane) {
  if (lane.waiting.empty()) return nullptr;
  Session* next = lane.waiting.front();
  lane.waiting.pop_front();
  --waiting_;
  waiting_bytes_ -= std::exchange(next->waiting_bytes, 0);
  return next;
}

void DeliveryQueue::put_off(Lane& lane, Timestamp until) {
  while (Session* session = next_waiting(lane)) leave(*session, until);
  turns_.put_off(lane, until);
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
  session.lane->paused = false;
}

void DeliveryQueue::failed(Session& session, Steady steady) {
  tried(session, steady);
  Lane& lane = *session.lane;
  // Repeated failures of one session say nothing about the other sessions.
  if (lane.failures == 0 || lane.failed_last != session.key) ++lane.failures;
  lane.failed_last = session.key;
}

void DeliveryQueue::tried(const Session& session, Steady steady) {
  const auto took = std::chrono::ceil<milliseconds>(steady - *session.begun);
  session.lane->takes += (took - session.lane->takes) / weight_of_average;
}

void DeliveryQueue::leave(Session& session, Timestamp now) {
  Lane& lane = *session.lane;
  if (session.waiting_bytes > 0) waiting_ -= std::erase(lane.waiting, &session);
  waiting_bytes_ -= std::exchange(session.waiting_bytes, 0);
  session.more = session.more || !session.outputs.empty();
  session.outputs.clear();
  land(session);
  release_if_done(session, now);
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
  if (turns_.in_turn() == 0) return next;
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
