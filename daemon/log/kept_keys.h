#pragma once

#include <memory>

#include "queue/file/kept_keys.h"
#include "store/idempotency/append_keys.h"
#include "store/model/clock.h"

namespace conversed::daemon {

// The keys that the embedded log hands over are rows of the store. `rows` and `clock` must outlive
// the result.
[[nodiscard]] std::unique_ptr<queue::KeptKeys> keys_in_store(store::AppendKeys& rows,
                                                             const model::Clock& clock);

}  // namespace conversed::daemon
