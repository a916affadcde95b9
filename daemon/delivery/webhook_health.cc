#include "daemon/delivery/webhook_health.h"

#include <algorithm>
#include <utility>

namespace conversed::daemon {

using model::Timestamp;

namespace {

constexpr std::size_t rows_a_page = 1'000;

// Another daemon may probe the Endpoint at the same time.
void end_pause(store::EndpointFailure& failure, Timestamp now) {
  failure.failing_since.reset();
  failure.failures = 0;
  if (failure.paused()) failure.resumed_at = now;
}

}  // namespace

model::Result<void> WebhookHealth::read() {
  std::map<std::string, store::EndpointFailure> found;
  for (std::string after;;) {
    auto page = rows_.list(after, rows_a_page);
    if (!page) return model::fail(page.error());
    for (auto& each : *page) {
      after = each.endpoint_id;
      found.insert_or_assign(after, std::move(each));
    }
    if (page->size() < rows_a_page) break;
  }
  failures_ = std::move(found);
  return {};
}

model::Result<std::vector<std::string>> WebhookHealth::forget(Timestamp now) {
  if (failures_.empty()) return std::vector<std::string>();
  auto gone = rows_.forget(now - retry_for_);
  if (!gone) return gone;
  for (const auto& endpoint_id : *gone) failures_.erase(endpoint_id);
  return gone;
}

std::optional<Timestamp> WebhookHealth::next_probe(const std::string& endpoint_id) const {
  const auto known = failures_.find(endpoint_id);
  if (known == failures_.end() || !known->second.paused()) return std::nullopt;
  return known->second.next_probe;
}

WebhookHealth::Failed WebhookHealth::failed(const std::string& endpoint_id, int status,
                                            std::string error, Timestamp now) {
  auto& failure = failures_[endpoint_id];
  failure.endpoint_id = endpoint_id;
  if (!failure.failing_since) failure.failing_since = now;
  ++failure.failures;
  failure.last_status = status;
  failure.last_error = std::move(error);
  failure.last_at = now;
  const bool begins =
      !failure.paused() && pause_after_.count() > 0 && now - *failure.failing_since >= pause_after_;
  if (begins) {
    // Outputs from before an earlier pause keep the time of that pause.
    const auto earlier = failure.paused_since ? *failure.resumed_at - *failure.paused_since
                                              : std::chrono::milliseconds(0);
    failure.paused_since = now - earlier;
    failure.resumed_at.reset();
  }
  if (failure.paused()) failure.next_probe = now + probe_interval;
  rows_.failed(failure);
  return {failure.paused(), begins, *failure.failing_since};
}

bool WebhookHealth::works(const std::string& endpoint_id, Timestamp now) {
  const auto known = failures_.find(endpoint_id);
  if (known == failures_.end() || !known->second.failing_since) return false;
  const bool was_paused = known->second.paused();
  rows_.works(endpoint_id, now);
  if (known->second.paused_since) {
    end_pause(known->second, now);
  } else {
    failures_.erase(known);
  }
  return was_paused;
}

void WebhookHealth::resumed(const std::string& endpoint_id, Timestamp now) {
  const auto known = failures_.find(endpoint_id);
  if (known != failures_.end()) end_pause(known->second, now);
}

Timestamp WebhookHealth::too_old_at(const std::string& endpoint_id, Timestamp created,
                                    Timestamp now) const {
  const auto usual = created + retry_for_;
  const auto known = failures_.find(endpoint_id);
  if (known == failures_.end() || !known->second.paused_since) return usual;
  const auto& failure = known->second;
  const auto until = failure.resumed_at.value_or(now);
  const auto since = std::max(*failure.paused_since, created);
  // An output that was too old before the pause stays too old.
  if (until <= since || usual <= since) return usual;
  return usual + (until - since);
}

}  // namespace conversed::daemon
