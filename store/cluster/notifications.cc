#include "store/cluster/notifications.h"

#include <cstdint>
#include <list>
#include <mutex>
#include <utility>

#include "store/sql/sql.h"

namespace conversed::store {

void announce(Connection& connection, std::string_view notification) {
  if (connection.dialect() != Dialect::postgres) return;
  connection.run("SELECT pg_notify('conversed', :notification)", notification);
}

void announce(Connection& connection, std::string_view topic, std::string_view name) {
  std::string text(topic);
  if (text.size() + 1 + name.size() <= max_notification_bytes) {
    (text += ' ') += name;
  }
  announce(connection, text);
}

// FNV-1a, 64 bits.
std::string short_name(std::string_view key) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : key) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211U;
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name(short_name_length, '0');
  for (auto digit = name.rbegin(); digit != name.rend(); ++digit, hash >>= 4U) {
    *digit = digits[hash & 15U];
  }
  return name;
}

struct Notifications::State {
  struct Listener {
    std::string topic;
    Heard heard;
  };
  std::mutex mutex;  // held during calls: the end of a subscription waits for them
  std::list<Listener> listeners;
};

Notifications::Notifications() : state_(std::make_shared<State>()) {}
Notifications::~Notifications() = default;

Notifications::Subscription Notifications::subscribe(std::string topic, Heard heard) {
  const std::lock_guard lock(state_->mutex);
  const auto own =
      state_->listeners.insert(state_->listeners.end(), {std::move(topic), std::move(heard)});
  return Subscription(&*own, [state = state_, own](const void*) {
    const std::lock_guard ending(state->mutex);
    state->listeners.erase(own);
  });
}

void Notifications::tell(std::string_view heard) {
  const auto space = heard.find(' ');
  const auto topic = heard.substr(0, space);
  const auto payload =
      space == std::string_view::npos ? std::string_view() : heard.substr(space + 1);
  const std::lock_guard lock(state_->mutex);
  for (const auto& listener : state_->listeners) {
    if (heard.empty() || listener.topic == topic) listener.heard(payload);
  }
}

}  // namespace conversed::store
