#pragma once

#include <string>

namespace conversed::api {
class AssetsCache;
}

namespace conversed::daemon {

// Whose workers a lane takes (queue/shares.h): its organisation's, or its project's as long as no
// Turn has looked up the Endpoint. Reads nothing from the store. Thread-safe.
// Kept by: Shares.OneShareNeverHasAllWorkers.
[[nodiscard]] std::string share_of(const api::AssetsCache& assets, const std::string& lane_key);

}  // namespace conversed::daemon
