#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace conversed::store {

// Topics. `outputs`: short names of sessions with new outputs; `jobs`: the id of a changed job;
// `answers`: ids of inputs whose waiting clients have something to read; `sessions`:
// store/cluster/session_notifications.h.
inline constexpr std::string_view outputs_topic = "outputs";
inline constexpr std::string_view jobs_topic = "jobs";
inline constexpr std::string_view answers_topic = "answers";
inline constexpr std::string_view sessions_topic = "sessions";

inline constexpr std::size_t max_notification_bytes = 7'000;  // of one announcement, with its topic

// A name of 16 characters for a key of any length. Every daemon of every version computes the same.
// Two keys may share a name.
inline constexpr std::size_t short_name_length = 16;
[[nodiscard]] std::string short_name(std::string_view key);

class Connection;

// Sends the notification to all daemons on the store once the connection's transaction is durable:
// see Writer::announce. Throws SqlError.
void announce(Connection& connection, std::string_view notification);

// Hands out the notifications that daemons on one store send by `announce`: "TOPIC" or
// "TOPIC PAYLOAD". They arrive in the order of the commits, at every daemon, the sender included.
// While the connection is down, notifications may be lost: afterwards each listener is called with
// an empty payload and has to read the store. Thread-safe.
// Kept by: Notifications.WhatMayHaveBeenMissedIsToldToAll.
class Notifications {
 public:
  // Called on the watch's thread, one call at a time. It must not block or end a subscription.
  using Heard = std::function<void(std::string_view payload)>;

  // Its destructor ends the subscription and waits for a call in progress.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(Subscription&&) noexcept = default;
    Subscription& operator=(Subscription&& other) noexcept;
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    ~Subscription();

   private:
    friend class Notifications;
    struct Entry;
    explicit Subscription(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
    std::shared_ptr<Entry> entry_;
  };

  Notifications();
  ~Notifications();
  Notifications(const Notifications&) = delete;
  Notifications& operator=(const Notifications&) = delete;

  [[nodiscard]] Subscription subscribe(std::string topic, Heard heard);

  // For the watch: the notification; empty if some may have been lost.
  void tell(std::string_view heard);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace conversed::store
