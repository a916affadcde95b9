#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/clock.h"

namespace conversed::model {

// Why something has not happened yet. The value is the exit code of `conversectl why`.
enum class Reason : std::uint8_t {
  behind_events = 10,
  call,
  asleep,
  question,
  inbox_full,
  partition_without_owner,
  partition_recovering,
  share_used_up,
  quota,
  delivery_failing,
  behind_output,
  endpoint_paused,
  quiet_hours,
  store_down,
  log_down,
  dead_letter,
  not_due,
  sending,
  behind_jobs,
  event,
};

struct ReasonInfo {
  Reason reason;
  std::string_view name;     // in the API
  std::string_view meaning;  // for help texts
  std::string_view remedy;   // what an operator can do
};

// Of the dead letter of an event that nothing waits for any more.
inline constexpr std::string_view remedy_without_replay =
    "It can't be replayed. Mend the cause, then `conversectl deadletters discard`: the user's next "
    "message runs as usual.";

// All reasons, by their values.
[[nodiscard]] std::span<const ReasonInfo> all_reasons();
[[nodiscard]] const ReasonInfo& info_of(Reason reason);

// The reasons that the entries of a list can have.
enum class Listed : std::uint8_t { sessions, deliveries, timers, jobs };
[[nodiscard]] std::span<const Reason> reasons_of(Listed list);

// One reason with its subject. Times are by the wall clock.
struct Wait {
  Reason reason = Reason::not_due;
  std::string subject{};  // one sentence in plain words
  std::optional<Timestamp> since{};
  std::optional<Timestamp> expected_at{};  // none: not known
  std::string_view remedy{};               // empty: that of the reason
};
// The thing's own reason first, then the reason of its subject, and so on. Empty: nothing waits.
using Waits = std::vector<Wait>;

}  // namespace conversed::model
