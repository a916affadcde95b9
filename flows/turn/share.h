#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "store/model/assets.h"
#include "store/model/event.h"

// Divides sessions by shares: the branches of a `split`, and a Flow's version in a ramp. Pure.
// Thread-safe.
namespace conversed::flows {

inline constexpr std::uint64_t hash_begin = 0xcbf29ce484222325;

// FNV-1a. Continues from `hash`. It never changes: sessions keep their branch and version.
[[nodiscard]] std::uint64_t hash_of(std::string_view text, std::uint64_t hash = hash_begin);

// An even draw from [0, 1), the same for the same session and names.
[[nodiscard]] double fixed_draw(const model::SessionKey& session,
                                std::initializer_list<std::string_view> names);

// The version of the Flow that an execution of the session begins in. 0: the Flow's own, because no
// ramp runs or the session is not in its share. A larger share keeps the sessions of a smaller one.
// Kept by: FlowShares.ALargerShareOnlyAddsSessions.
[[nodiscard]] std::int64_t version_for(const model::ProjectAssets& assets, std::string_view flow_id,
                                       const model::SessionKey& session);

}  // namespace conversed::flows
