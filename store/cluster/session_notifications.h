#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace conversed::store {

class Connection;

// A request of any daemon to the owner of a session, on the topic `sessions`. All daemons hear it.
struct SessionNotification {
  enum class Kind : std::uint8_t {
    touch,    // run the session's lane once more
    deliver,  // its pending outputs in the store have changed
  };
  Kind kind = Kind::touch;
  std::string session;  // an encoded key

  bool operator==(const SessionNotification&) const = default;
};
[[nodiscard]] std::optional<SessionNotification> session_notification_from(
    std::string_view payload);

// Sends it to all daemons once the connection's transaction is durable. If the session's key is too
// long, they hear that a notification may have been lost. Throws SqlError.
void announce(Connection& connection, const SessionNotification& notification);

}  // namespace conversed::store
