#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/conversation/receipts.h"
#include "store/model/clock.h"

namespace conversed::api {

// A step of an event's processing. Waits fill the gaps between the other steps, so that each gap
// has a cause.
struct ReceiptStep {
  enum class What : std::uint8_t { accepted, waited, turn, ran, call, delivery };
  // Of a wait.
  enum class Cause : std::uint8_t {
    none,
    queue,       // in the log and for a worker
    recovery,    // for a worker, alone after a crash
    session,     // for the session, while it had other events
    commit,      // for the store
    call,        // for a connection to the upstream
    sleep,       // for a timer
    collect,     // for more events
    retry,       // for the next try of a call or delivery
    connection,  // for a connection to the webhook
    output,      // for the session's earlier output
  };
  What what = What::waited;
  Cause cause = Cause::none;
  model::Timestamp from{};
  std::optional<std::chrono::microseconds> took{};  // none: it goes on
  nlohmann::json details = nlohmann::json::object();
};
[[nodiscard]] std::string_view to_string(ReceiptStep::What what);
[[nodiscard]] std::string_view to_string(ReceiptStep::Cause cause);

// The steps of an event, ordered by their begin. `is_kept`: a `collect` still has the event. Pure.
[[nodiscard]] std::vector<ReceiptStep> steps_of(const store::Receipt& receipt,
                                                bool is_kept = false);

}  // namespace conversed::api
