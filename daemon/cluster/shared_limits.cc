#include "daemon/cluster/shared_limits.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/live/busy_sessions.h"
#include "api/live/inject_quota.h"
#include "api/live/rate_limiter.h"
#include "store/model/json.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using nlohmann::json;

constexpr std::string_view spent_topic = "spent";
constexpr std::string_view full_topic = "full-inboxes";
// Bytes of one announcement; PostgreSQL takes 7,999.
constexpr std::size_t max_items_bytes = 6'000;
constexpr std::size_t spenders_a_time = 1'024;
// Marks of 16 characters, which fit into one announcement.
constexpr std::size_t full_inboxes = 300;

std::string announcement(std::string_view topic, const std::string& daemon, const json& items) {
  const json payload{{"by", daemon}, {"items", items}};
  return std::string(topic) + ' ' + model::json_text(payload);
}

void add_spent(std::vector<std::string>& notifications, const std::string& daemon,
               const std::vector<api::RateLimiter::Spent>& all) {
  json items = json::array();
  std::size_t bytes = 0;
  for (const auto& spent : all) {
    constexpr std::size_t around_it = 16;
    const std::size_t size = spent.name.size() + around_it;
    if (size > max_items_bytes) continue;
    if (bytes + size > max_items_bytes) {
      notifications.push_back(
          announcement(spent_topic, daemon, std::exchange(items, json::array())));
      bytes = 0;
    }
    items.push_back({spent.name, spent.tokens});
    bytes += size;
  }
  if (!items.empty()) notifications.push_back(announcement(spent_topic, daemon, items));
}

// Calls `heard` with the items of the announcement and the name of the daemon that sent them.
// Ignores this daemon's own announcements and unreadable ones.
template <typename Items>
void hear(std::string_view payload, const std::string& own,
          const std::function<void(const std::string& by, Items)>& heard) {
  try {
    const auto said = json::parse(payload);
    const auto by = said.at("by").get<std::string>();
    if (by != own) heard(by, said.at("items").get<Items>());
  } catch (const json::exception&) {  // an empty text: announcements may have been lost
  }
}

}  // namespace

SharedLimits::SharedLimits(SharedLimitsSettings settings, store::Store& store,
                           api::RateLimiter& limiter, api::RateLimiter& public_limiter,
                           api::BusySessions& busy, api::InjectQuota& quota)
    : settings_(std::move(settings)),
      store_(store),
      limiter_(limiter),
      public_limiter_(public_limiter),
      busy_(busy),
      quota_(quota),
      spent_(store.first().notifications().subscribe(
          std::string(spent_topic), [this](std::string_view payload) { hear_spent(payload); })),
      full_(store.first().notifications().subscribe(
          std::string(full_topic), [this](std::string_view payload) { hear_full(payload); })),
      deliver_(store.subscribe(store::deliver_topic,
                               [this](std::string_view session) { hear_deliver(session); })) {}

void SharedLimits::tell() {
  const auto spent = limiter_.take_spent(spenders_a_time);
  const auto spent_by_strangers = public_limiter_.take_spent(spenders_a_time);
  // Counts of an outage are not sent later, since the limits have refilled meanwhile.
  if (!store_.committer().healthy()) return;
  count_accepted();
  std::vector<std::string> notifications;
  add_spent(notifications, settings_.daemon, spent);
  add_spent(notifications, settings_.daemon, spent_by_strangers);
  const auto full = busy_.full(settings_.inbox_limit, full_inboxes);
  if (!full.empty() || told_full_) {
    notifications.push_back(announcement(full_topic, settings_.daemon, full));
  }
  told_full_ = !full.empty();
  if (notifications.empty()) return;
  const auto work = [notifications =
                         std::move(notifications)](store::Writer& writer) -> model::Result<void> {
    for (const auto& each : notifications) store::announce(writer.connection(), each);
    return {};
  };
  store_.committer().write(work, [](const model::Result<void>&) {});
}

void SharedLimits::count_accepted() {
  auto accepted = quota_.take_accepted();
  if (accepted.empty()) return;
  const auto work = [accepted = std::move(accepted)](store::Writer& writer) -> model::Result<void> {
    for (const auto& each : accepted) {
      store::Usage::add(writer,
                        {each.organisation_id, store::accepted_injects_counter, each.injects});
    }
    return {};
  };
  store_.committer().write(work, [](const model::Result<void>&) {});
}

void SharedLimits::hear_spent(std::string_view payload) {
  using Spent = std::vector<std::pair<std::string, std::uint32_t>>;
  hear<Spent>(payload, settings_.daemon, [this](const std::string&, const Spent& items) {
    const auto now = settings_.steady_now();
    for (const auto& [name, tokens] : items) {
      auto& limiter = name.starts_with(api::address_prefix) ? public_limiter_ : limiter_;
      limiter.spent_elsewhere({name, tokens}, now);
    }
  });
}

void SharedLimits::hear_full(std::string_view payload) {
  using Marks = std::vector<std::string>;
  hear<Marks>(payload, settings_.daemon, [this](const std::string& by, Marks marks) {
    busy_.full_elsewhere(by, std::move(marks), settings_.steady_now());
  });
}

// Without a session, announcements may have been lost, so any session may be erased.
void SharedLimits::hear_deliver(std::string_view session) {
  if (session.empty()) {
    busy_.forget([](const std::string&) { return true; });
  } else if (const auto key = model::SessionKey::decode(session)) {
    busy_.set(*key, 0);
  }
}

}  // namespace conversed::daemon
