#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "daemon/service/mailbox.h"
#include "store/model/clock.h"

namespace conversed::daemon {

// Asks the thread of a service by its mailbox. `find` runs on that thread. Returns an empty answer
// if the thread does not answer within a second, or has stopped.
template <typename MailboxPtr, typename Find>
[[nodiscard]] auto ask(const MailboxPtr& mailbox, Find find) -> decltype(find()) {
  const auto answer = std::make_shared<std::promise<decltype(find())>>();
  auto found = answer->get_future();
  post(mailbox, [answer, find = std::move(find)] { answer->set_value(find()); });
  if (found.wait_for(std::chrono::seconds(1)) != std::future_status::ready) return {};
  return found.get();
}

// A time that has passed, by the wall clock.
[[nodiscard]] inline model::Timestamp by_wall_clock(const model::Clock& clock,
                                                    std::chrono::steady_clock::time_point at) {
  return clock.now() - std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::chrono::steady_clock::now() - at);
}

}  // namespace conversed::daemon
