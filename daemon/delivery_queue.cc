#include "daemon/delivery_queue.h"

#include <algorithm>
#include <iterator>

namespace conversed::daemon {

using model::Output;
using model::SessionKey;
using model::Timestamp;

DeliveryQueue::Session* DeliveryQueue::find(const std::string& key) {
  const auto found = sessions_.find(key);
  return found == sessions_.end() ? nullptr : &found->second;
}

DeliveryQueue::Session* DeliveryQueue::add(std::string encoded, const SessionKey& key) {
  if (sessions_.size() >= limits_.max_sessions && !evict()) return nullptr;
  Session& session = sessions_[std::move(encoded)];
  session.key = key;
  session.term = term_of(key);
  session.lane = &lanes_[key.endpoint_id];
  return &session;
}

// Makes room by forgetting the session whose next try is the furthest away: a sweep finds it.
bool DeliveryQueue::evict() {
  if (waiting_.empty() || in_sweep_) return false;
  Session& last = *waiting_.rbegin()->second;
  waiting_.erase(std::prev(waiting_.end()));
  backlog_ = true;
  drop_outputs(last);
  sessions_.erase(last.key.encode());
  return true;
}

void DeliveryQueue::offer(const SessionKey& key, std::vector<Output> outputs,
                          std::int64_t pending_up_to) {
  const auto term = term_of(key);
  if (outputs.empty() || term == 0) return;
  std::string encoded = key.encode();
  if (Session* session = find(encoded)) {
    if (session->term != term) return;  // what has come since is read once that is known here
    if (session->state == State::wanting) {
      session->seen = true;  // for the end of a sweep that has passed its place
      return;
    }
    if (session->more) return;  // what is here comes first, whatever there is behind it
    if (pending_up_to > session->last_seq) return offer_from_store(key);
    std::erase_if(outputs, [&](const Output& output) { return output.seq <= session->last_seq; });
    if (outputs.empty()) return;
    take(*session, std::move(outputs));
    if (session->state != State::idle) return;
    session->outputs.empty() ? make_wanting(*session) : make_ready(*session);
    return;
  }
  const bool is_oldest = !backlog_ && pending_up_to <= delivered_.find(encoded).value_or(0);
  Session* session = add(std::move(encoded), key);
  if (session == nullptr) {
    backlog_ = missed_offer_ = true;
    return;
  }
  if (is_oldest) take(*session, std::move(outputs));
  session->outputs.empty() ? make_wanting(*session) : make_ready(*session);
}

void DeliveryQueue::offer_from_store(const SessionKey& key) {
  if (term_of(key) == 0) return;
  std::string encoded = key.encode();
  Session* session = find(encoded);
  if (session == nullptr) {
    session = add(std::move(encoded), key);
    if (session == nullptr) {
      backlog_ = missed_offer_ = true;
      return;
    }
  }
  // What is new may come before what is here: all but the one in flight is read again.
  switch (session->state) {
    case State::in_flight:
      outputs_ -= session->outputs.size() - 1;
      session->outputs.erase(session->outputs.begin() + 1, session->outputs.end());
      session->more = true;
      break;
    case State::waiting:
      drop_outputs(*session);
      session->more = true;
      break;
    case State::ready: {
      auto& ready = session->lane->ready;
      ready.erase(std::find(ready.begin(), ready.end(), session));
      --ready_;
      drop_outputs(*session);
      make_wanting(*session);
      break;
    }
    case State::idle:
      make_wanting(*session);
      break;
    case State::wanting:
      if (session->loadable) {  // the sweep that goes on may have passed it
        session->loadable = false;
        wanting_.push_back(session);
      }
      break;
  }
}

void DeliveryQueue::terms_changed() {
  for (auto& [key, session] : sessions_) {
    if (session.term == term_of(session.key)) continue;
    if (session.state == State::in_flight) {
      outputs_ -= session.outputs.size() - 1;
      session.outputs.erase(session.outputs.begin() + 1, session.outputs.end());
      session.more = true;
      continue;
    }
    if (session.state == State::waiting) waiting_.erase({session.due, &session});
    drop_outputs(session);
    session.term = 0;
  }
  const auto is_lost = [](const Session* session) { return session->term == 0; };
  for (auto& [endpoint, lane] : lanes_) ready_ -= std::erase_if(lane.ready, is_lost);
  std::erase_if(wanting_, is_lost);
  std::erase_if(sweeping_, is_lost);
  std::erase_if(sessions_, [&](const auto& entry) { return is_lost(&entry.second); });
  backlog_ = missed_offer_ = true;
}

// For one that is in flight no more. True: its term is over, and it has been dealt with.
bool DeliveryQueue::settle_lost(Session& session) {
  const auto term = term_of(session.key);
  if (session.term == term) return false;
  drop_outputs(session);
  // A sweep may have begun with it.
  std::erase(sweeping_, &session);
  std::erase(wanting_, &session);
  if (term == 0) {
    sessions_.erase(session.key.encode());
  } else {
    session.term = term;
    make_wanting(session);
  }
  return true;
}

// Appends as many as there is room for, and remembers whether that were all.
void DeliveryQueue::take(Session& session, std::vector<Output> outputs) {
  for (auto& output : outputs) {
    if (outputs_ >= limits_.max_outputs || session.outputs.size() >= limits_.max_outputs_each) {
      session.more = true;
      return;
    }
    session.last_seq = std::max(session.last_seq, output.seq);
    session.outputs.push_back(std::move(output));
    ++outputs_;
  }
}

void DeliveryQueue::drop_outputs(Session& session) {
  outputs_ -= session.outputs.size();
  session.outputs.clear();
}

void DeliveryQueue::make_ready(Session& session) {
  session.state = State::ready;
  ++ready_;
  session.lane->ready.push_back(&session);
  if (!session.lane->listed) {
    session.lane->listed = true;
    turns_.push_back(session.lane);
  }
}

void DeliveryQueue::make_wanting(Session& session) {
  session.state = State::wanting;
  session.more = true;
  session.loadable = false;
  session.seen = false;
  wanting_.push_back(&session);
}

void DeliveryQueue::make_waiting(Session& session, Timestamp due) {
  session.state = State::waiting;
  session.due = due;
  waiting_.emplace(due, &session);
}

std::size_t DeliveryQueue::lane_limit(const Lane& lane) const {
  const std::size_t share =
      lane.failing ? limits_.connections / 8 : limits_.connections - limits_.connections / 4;
  return std::max<std::size_t>(1, share);
}

DeliveryQueue::Session* DeliveryQueue::next() {
  if (in_flight_ >= limits_.connections) return nullptr;
  for (std::size_t tried = turns_.size(); tried > 0; --tried) {
    Lane& lane = *turns_.front();
    turns_.pop_front();
    if (lane.ready.empty()) {
      lane.listed = false;
      continue;
    }
    turns_.push_back(&lane);
    if (lane.in_flight >= lane_limit(lane)) continue;
    Session& session = *lane.ready.front();
    lane.ready.pop_front();
    --ready_;
    session.state = State::in_flight;
    ++lane.in_flight;
    ++in_flight_;
    return &session;
  }
  return nullptr;
}

void DeliveryQueue::done(Session& session) {
  --session.lane->in_flight;
  --in_flight_;
  session.outputs.pop_front();
  --outputs_;
  session.attempts = 0;
  if (settle_lost(session)) return;
  go_on(session);
}

void DeliveryQueue::retry(Session& session, Timestamp due) {
  --session.lane->in_flight;
  --in_flight_;
  if (settle_lost(session)) return;
  if (outputs_ > limits_.max_outputs / 2) {
    // Memory is for those that can be sent.
    drop_outputs(session);
    session.more = true;
  }
  make_waiting(session, due);
}

void DeliveryQueue::go_on(Session& session) {
  if (!session.outputs.empty()) {
    make_ready(session);
  } else if (session.more) {
    make_wanting(session);
  } else if (in_sweep_) {
    session.state = State::idle;
    idle_.push_back(session.key.encode());
  } else {
    forget_delivered(session);
  }
}

// The marks of its deliveries may not be in the store yet: they are not to be taken for outputs
// that somebody else has left there.
void DeliveryQueue::forget_delivered(Session& session) {
  if (term_of_) delivered_.note(session.key.encode(), session.last_seq);
  forget(session);
}

void DeliveryQueue::forget(Session& session) {
  drop_outputs(session);
  sessions_.erase(session.key.encode());
}

void DeliveryQueue::wake_due(Timestamp now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    Session& session = *waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    session.outputs.empty() ? make_wanting(session) : make_ready(session);
  }
}

std::optional<Timestamp> DeliveryQueue::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

bool DeliveryQueue::wants_sweep() const {
  if (in_sweep_ || outputs_ > limits_.max_outputs / 4 * 3) return false;
  return !wanting_.empty() || (missed_offer_ && sessions_.size() < limits_.max_sessions);
}

void DeliveryQueue::begin_sweep() {
  in_sweep_ = true;
  missed_offer_ = false;
  sweeping_ = std::exchange(wanting_, {});
  for (Session* session : sweeping_) session->loadable = true;
}

bool DeliveryQueue::load(store::DueDelivery due, std::size_t outputs_each, Timestamp now) {
  if (due.outputs.empty() || term_of(due.key) == 0) return true;
  std::string encoded = due.key.encode();
  Session* session = find(encoded);
  if (session == nullptr) {
    if (sessions_.size() >= limits_.max_sessions && !displace()) return false;
    session = add(std::move(encoded), due.key);
    session->attempts = due.attempts;
    session->more = true;
    if (due.due_at > now) {
      make_waiting(*session, due.due_at);
      return true;
    }
  } else if (session->state != State::wanting || !session->loadable) {
    return true;  // what is here is at least as new
  } else {
    session->seen = true;
    if (due.due_at > now) {
      session->attempts = due.attempts;
      make_waiting(*session, due.due_at);
      return true;
    }
  }
  if (outputs_ >= limits_.max_outputs) {
    if (session->state != State::wanting) make_wanting(*session);
    return true;  // read again when there is room
  }
  session->attempts = due.attempts;
  session->more = due.outputs.size() >= outputs_each;
  take(*session, std::move(due.outputs));
  make_ready(*session);
  return true;
}

// Makes room for a session that has been due for longer, by forgetting one that this sweep has not
// come to yet. Were those that are known kept instead, the ones before them would never get in.
bool DeliveryQueue::displace() {
  for (; !sweeping_.empty(); sweeping_.pop_back()) {
    Session& last = *sweeping_.back();
    if (last.state != State::wanting || !last.loadable) continue;
    if (last.seen) {
      make_wanting(last);
      continue;
    }
    backlog_ = true;
    sweeping_.pop_back();
    forget(last);
    return true;
  }
  return false;
}

void DeliveryQueue::end_sweep(bool complete, bool all) {
  in_sweep_ = false;
  for (Session* session : std::exchange(sweeping_, {})) {
    if (session->state != State::wanting || !session->loadable) continue;  // `wanting_` has it
    if (!complete || session->seen) {
      make_wanting(*session);
      continue;
    }
    // Not due, against what is known here: nothing is pending any more, or the clock was set back.
    if (!all) backlog_ = true;
    forget(*session);
  }
  for (const auto& key : std::exchange(idle_, {})) {
    Session* session = find(key);
    if (session != nullptr && session->state == State::idle) forget_delivered(*session);
  }
  if (complete && all && !missed_offer_) backlog_ = false;
}

bool DeliveryQueue::quiet() const {
  return in_flight_ == 0 && ready_ == 0 && wanting_.empty() && !in_sweep_;
}

}  // namespace conversed::daemon
