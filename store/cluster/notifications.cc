#include "store/cluster/notifications.h"

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "store/sql/sql.h"

namespace conversed::store {

void announce(Connection& connection, std::string_view notification) {
  if (connection.dialect() != Dialect::postgres) return;
  connection.run("SELECT pg_notify('conversed', :notification)", notification);
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
  std::mutex mutex;  // held during calls, so that the end of a subscription waits for them
  std::vector<Subscription::Entry*> entries;
};

struct Notifications::Subscription::Entry {
  std::shared_ptr<State> state;
  std::string topic;
  Heard heard;
};

Notifications::Subscription& Notifications::Subscription::operator=(Subscription&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

Notifications::Subscription::~Subscription() {
  if (!entry_) return;
  const std::lock_guard lock(entry_->state->mutex);
  std::erase(entry_->state->entries, entry_.get());
}

Notifications::Notifications() : state_(std::make_shared<State>()) {}
Notifications::~Notifications() = default;

Notifications::Subscription Notifications::subscribe(std::string topic, Heard heard) {
  auto entry = std::make_shared<Subscription::Entry>(
      Subscription::Entry{state_, std::move(topic), std::move(heard)});
  const std::lock_guard lock(state_->mutex);
  state_->entries.push_back(entry.get());
  return Subscription(std::move(entry));
}

void Notifications::tell(std::string_view heard) {
  const auto space = heard.find(' ');
  const auto topic = heard.substr(0, space);
  const auto payload =
      space == std::string_view::npos ? std::string_view() : heard.substr(space + 1);
  const std::lock_guard lock(state_->mutex);
  for (Subscription::Entry* entry : state_->entries) {
    if (heard.empty() || entry->topic == topic) entry->heard(payload);
  }
}

}  // namespace conversed::store
