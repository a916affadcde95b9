#pragma once

#include <chrono>
#include <cstddef>

#include "daemon/service/backoff.h"
#include "daemon/telemetry/spans.h"
#include "store/runtime/heartbeat.h"

namespace conversed::daemon {

struct DelivererSettings {
  std::chrono::milliseconds timeout{10'000};           // of one POST
  std::chrono::milliseconds retry_for{24 * 3600'000};  // from an output's creation
  std::chrono::milliseconds pause_after{3600'000};     // of failures; 0: never (WebhookHealth)
  std::size_t connections = 32;                        // POSTs at once
  // How long a replaced secret signs beside the new one.
  std::chrono::milliseconds secret_overlap{24 * 3600'000};
  BackoffSettings backoff{};
  std::chrono::milliseconds drain_timeout{5'000};  // how long `stop` waits for POSTs in flight
  // Outputs without a commit's notification, such as outputs from before the start or of a daemon
  // that is gone, are found within this time. After a change of owners they are found earlier
  // (OwnersLook).
  std::chrono::milliseconds look_interval{10'000};
  bool keeps_receipts = true;
  Spans* spans = nullptr;                   // must outlive it. Null: no spans are made
  model::Heartbeats* heartbeats = nullptr;  // of its thread; must outlive it. Null: none
};

}  // namespace conversed::daemon
