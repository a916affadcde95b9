#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace conversed::store {

// Topics. `outputs`: short names of sessions with new outputs. `jobs`: the id of a changed job.
// `answers`: ids of inputs with news for their waiting clients. `timers`: the due time of the first
// new or moved timer, in ms of Unix time by the clock of timers; none: any timer may be due.
// `touch`, `deliver` and `retry` name a session by its encoded key: its owner runs its lane once
// more, looks for its pending outputs, or tries to deliver them now. An erasure of the session
// sends `deliver`, too. `resume`: the id of an Endpoint whose pause an operator has ended.
// `members`: the name of a daemon that gave up its roles. `erased`: a user's data is erased;
// daemons drop what they keep of sessions in memory. `layout`: a partition of the log begins to
// move to another server, or has moved; in the first server only (store/shards/layout.h).
inline constexpr std::string_view outputs_topic = "outputs";
inline constexpr std::string_view jobs_topic = "jobs";
inline constexpr std::string_view answers_topic = "answers";
inline constexpr std::string_view timers_topic = "timers";
inline constexpr std::string_view touch_topic = "touch";
inline constexpr std::string_view deliver_topic = "deliver";
inline constexpr std::string_view retry_topic = "retry";
inline constexpr std::string_view resume_topic = "resume";
inline constexpr std::string_view members_topic = "members";
inline constexpr std::string_view erased_topic = "erased";
inline constexpr std::string_view layout_topic = "layout";

inline constexpr std::size_t max_notification_bytes = 7'000;  // of one announcement, with its topic

// A name of 16 characters for a key of any length. All daemons of all versions compute the same
// name. Two keys may share a name.
inline constexpr std::size_t short_name_length = 16;
[[nodiscard]] std::string short_name(std::string_view key);

class Connection;

// Sends a notification to all daemons on the store, this one included, once the connection's
// transaction is durable: a topic, or a topic, a space and a payload; at most 7,000 bytes, no NUL.
// Does nothing in SQLite, which has one daemon. Throws SqlError.
void announce(Connection& connection, std::string_view notification);
// The same for a topic, with a session or an Endpoint. If its name is too long for a notification,
// all daemons are told that a notification may have been lost.
void announce(Connection& connection, std::string_view topic, std::string_view name);

// Passes on the notifications that daemons on one store send by `announce`: "TOPIC" or "TOPIC
// PAYLOAD". They arrive in the order of the commits, at every daemon, the sender included. While
// the connection is down, notifications may be lost. Afterwards each listener is called with an
// empty payload and has to read the store. Thread-safe.
// Kept by: Notifications.AllSubscribersHearOfAPossibleLoss.
class Notifications {
 public:
  // Called on the watch's thread, one call at a time. It must not block or end a subscription.
  using Heard = std::function<void(std::string_view payload)>;

  // The destruction of the last copy ends the subscription. It waits for a call in progress.
  using Subscription = std::shared_ptr<const void>;

  Notifications();
  ~Notifications();
  Notifications(const Notifications&) = delete;
  Notifications& operator=(const Notifications&) = delete;

  [[nodiscard]] Subscription subscribe(std::string topic, Heard heard);

  // For the watch. `heard` is the notification; empty if notifications may have been lost.
  void tell(std::string_view heard);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace conversed::store
