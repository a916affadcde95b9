#include "daemon/reload.h"

#include <utility>

#include "api/live/inject_quota.h"
#include "api/live/rate_limiter.h"
#include "daemon/ops/joined.h"
#include "daemon/ops/logging.h"
#include "daemon/outbound/egress.h"
#include "daemon/outbound/http_client.h"
#include "daemon/part_settings.h"

namespace conversed::daemon {

std::string reload_parts(const config::Settings& settings, const config::Reloaded& reloaded,
                         const ReloadableParts& parts) {
  log::open(settings.log);
  parts.rate_limiter.set_limits(rate_limits(settings.limits));
  parts.public_limiter.set_limits(public_rate_limits(settings.limits));
  parts.injects.set_limits({.injects_per_month = settings.quota.injects_per_month});
  parts.quota.set(settings.quota);
  // The loader has checked each entry already; one that it let pass keeps the policy as it is.
  if (auto egress = Egress::create(settings.egress.allow)) {
    parts.webhooks.set_egress(*egress);
    parts.upstreams.set_egress(std::move(*egress));
  } else {
    log::error("egress.allow can't be used", {{"error", egress.error().message}});
  }
  log::info("settings reloaded", {{"applied", joined(reloaded.applied)}});
  if (reloaded.need_restart.empty()) return "Settings reloaded";
  const std::string waiting = joined(reloaded.need_restart);
  log::warn("some settings need a restart", {{"keys", waiting}});
  return "Settings reloaded; these need a restart: " + waiting;
}

}  // namespace conversed::daemon
