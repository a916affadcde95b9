#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace conversed::store {

// Topics. `outputs`: short names of sessions that have said something; `jobs`: the id of one that
// has changed; `answers`: ids of inputs of which clients may wait to hear; `sessions`:
// store/cluster/session_notifications.h.
inline constexpr std::string_view outputs_topic = "outputs";
inline constexpr std::string_view jobs_topic = "jobs";
inline constexpr std::string_view answers_topic = "answers";
inline constexpr std::string_view sessions_topic = "sessions";

inline constexpr std::size_t max_notification_bytes = 7'000;  // of one announcement, with its topic

// A name of 16 characters for a key of any length, the same in every daemon of every version; two
// keys may share one.
inline constexpr std::size_t short_name_length = 16;
[[nodiscard]] std::string short_name(std::string_view key);

class Connection;

// All daemons on the store hear it once the connection's transaction is durable: see
// Writer::announce. Throws SqlError.
void announce(Connection& connection, std::string_view notification);

// What daemons on one store tell each other by `announce`: "TOPIC" or "TOPIC PAYLOAD". It
// comes in the order of the commits, to all of them, the one that said it included. While the
// connection is down some of it may be lost: afterwards each listener is called with an empty
// payload, and has to look at the store. Thread-safe.
class Notifications {
 public:
  // Called on the watch's thread, one at a time: must not block, nor end a subscription.
  using Heard = std::function<void(std::string_view payload)>;

  // Ends when it is destroyed, which waits for a call that goes on.
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

  // For the watch: what came; empty if it may have been anything.
  void tell(std::string_view heard);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace conversed::store
