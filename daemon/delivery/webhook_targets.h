#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/delivery/webhook.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::store {
class Assets;
}

namespace conversed::daemon {

struct WebhookTarget {
  std::string name;                   // of the Endpoint
  std::string organisation_id;        // its owner; empty: the Endpoint does not exist
  std::string url;                    // empty: the Endpoint has no webhook
  std::vector<WebhookKey> keys;       // empty, the secret, or the secret and its predecessor
  model::Timestamp previous_until{};  // from then on only the first key signs

  [[nodiscard]] std::span<const WebhookKey> keys_at(model::Timestamp now) const {
    return std::span(keys).first(now < previous_until ? keys.size()
                                                      : std::min<std::size_t>(keys.size(), 1));
  }
};

// The targets of Endpoints, kept until assets change. One thread.
class WebhookTargets {
 public:
  // `secret_overlap`: how long a secret that was replaced signs beside the new one. `assets` must
  // outlive it.
  WebhookTargets(store::Assets& assets, std::chrono::milliseconds secret_overlap)
      : assets_(assets), secret_overlap_(secret_overlap) {}

  // Valid until the next call. Errors: those of the store.
  [[nodiscard]] model::Result<const WebhookTarget*> of(const std::string& endpoint_id);

 private:
  store::Assets& assets_;
  const std::chrono::milliseconds secret_overlap_;
  std::unordered_map<std::string, WebhookTarget> targets_;
  std::uint64_t generation_ = 0;
};

}  // namespace conversed::daemon
