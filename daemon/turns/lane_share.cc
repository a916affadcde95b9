#include "daemon/turns/lane_share.h"

#include "api/live/assets_cache.h"
#include "store/model/session.h"

namespace conversed::daemon {

std::string share_of(const api::AssetsCache& assets, const std::string& lane_key) {
  const auto key = model::SessionKey::decode(lane_key);
  if (!key) return {};
  const auto endpoint = assets.known_endpoint(key->endpoint_id);
  return endpoint ? endpoint->organisation_id : key->project_id;
}

}  // namespace conversed::daemon
