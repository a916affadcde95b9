#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/service/mailbox.h"
#include "store/model/clock.h"

namespace conversed::daemon {

// When work began that the thread of a service has under way.
using Began = std::optional<std::chrono::steady_clock::time_point>;

// Asks the thread of a service by its mailbox. `find` runs on that thread. Returns the time by the
// wall clock, and nothing if the thread does not answer within a second, or has stopped.
template <typename MailboxPtr, typename Find>
[[nodiscard]] std::optional<model::Timestamp> ask_began(const MailboxPtr& mailbox,
                                                        const model::Clock& clock, Find find) {
  const auto answer = std::make_shared<std::promise<Began>>();
  auto began = answer->get_future();
  post(mailbox, [answer, find = std::move(find)] { answer->set_value(find()); });
  if (began.wait_for(std::chrono::seconds(1)) != std::future_status::ready) return std::nullopt;
  const auto at = began.get();
  if (!at) return std::nullopt;
  return clock.now() - std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::chrono::steady_clock::now() - *at);
}

}  // namespace conversed::daemon
