#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "store/model/clock.h"
#include "store/model/event.h"

namespace conversed::model {

// A scheduled inject, once or recurring. It waits in the store.
struct Schedule {
  std::string id;
  SessionKey session{};
  std::optional<std::string> text{};  // one of `text` and `data` is there
  nlohmann::json data{};              // null when there is none
  std::string cron;                   // when it recurs; empty: once
  std::string timezone;               // that `cron` goes by
  Timestamp due_at{};                 // the next time
  std::int64_t run = 1;               // counts the times that it was due or put off
  std::int64_t fired = 0;             // times that it came
  Timestamp created_at{};
  std::string created_by{};  // a user's id

  // The claim of the next event. It changes when the event has come and when the schedule changes.
  [[nodiscard]] std::string claim() const { return id + '-' + std::to_string(run); }
};

// A schedule's event has come; for the transaction of its effects.
struct ScheduleFired {
  std::string claim;
  std::optional<Timestamp> next;  // none: the schedule ends
};

}  // namespace conversed::model
