#include "daemon/delivery/webhook_targets.h"

#include <utility>

#include "daemon/ops/logging.h"
#include "store/assets/assets.h"

namespace conversed::daemon {

model::Result<const WebhookTarget*> WebhookTargets::of(const std::string& endpoint_id) {
  const auto generation = assets_.generation();
  if (generation != generation_) {
    targets_.clear();
    generation_ = generation;
  }
  const auto known = targets_.find(endpoint_id);
  if (known != targets_.end()) return &known->second;
  auto endpoint = assets_.endpoint(endpoint_id);
  if (!endpoint) return model::fail(endpoint.error());
  const auto unusable = [&](std::string_view what, const model::Error& error) {
    log::error(what, {{"endpointId", endpoint_id}, {"error", error.message}});
    return model::fail(error);
  };
  WebhookTarget target;
  if (*endpoint) {
    target.name = (*endpoint)->name;
    target.organisation_id = (*endpoint)->organisation_id;
  }
  if (*endpoint && !(*endpoint)->webhook_url.empty()) {
    auto secrets = assets_.webhook_secrets(endpoint_id);
    if (!secrets) return unusable("webhook secret can't be read", secrets.error());
    target.url = (*endpoint)->webhook_url;
    for (const auto* secret : {&secrets->current, &secrets->previous}) {
      if (!*secret) break;
      auto key = WebhookKey::of(**secret);
      if (!key) return unusable("webhook secret can't be used", key.error());
      target.keys.push_back(std::move(*key));
    }
    if (target.keys.size() > 1) target.previous_until = secrets->changed_at + secret_overlap_;
  }
  return &targets_.emplace(endpoint_id, std::move(target)).first->second;
}

}  // namespace conversed::daemon
