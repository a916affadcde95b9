#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace conversed::store {

class Connection;

// What any daemon may ask of the one that has a session, on the topic `sessions`; all hear it.
struct SessionNotification {
  enum class Kind : std::uint8_t {
    touch,    // to have its lane run once more
    deliver,  // that outputs of it are pending in the store, or gone from it
  };
  Kind kind = Kind::touch;
  std::string session;  // an encoded key

  bool operator==(const SessionNotification&) const = default;
};
[[nodiscard]] std::optional<SessionNotification> session_notification_from(
    std::string_view payload);

// All daemons hear it once the connection's transaction is durable. Of a session whose key is too
// long they hear only that something may have been missed. Throws SqlError.
void announce(Connection& connection, const SessionNotification& notification);

}  // namespace conversed::store
