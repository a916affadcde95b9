#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/model/assets.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/session.h"

// The times of follow-ups. Pure except for ICU's rules of time zones; thread-safe.
namespace conversed::flows {

// `time`, or the end of the quiet hours around it. An unknown time zone has no quiet hours.
[[nodiscard]] model::Timestamp past_quiet_hours(const std::optional<model::QuietHours>& quiet,
                                                model::Timestamp time);

// The day of `time` in the time zone of the quiet hours, counted from the Unix epoch. Without quiet
// hours UTC applies.
[[nodiscard]] std::int64_t day_of(const std::optional<model::QuietHours>& quiet,
                                  model::Timestamp time);

// The counts of the journey's follow-ups in a session. Part of its Flow state.
struct FollowUpCounts {
  std::int64_t session = 0;
  std::int64_t day = 0;    // counted like `day_of`
  std::int64_t today = 0;  // on that day

  // Whether the journey allows another one at `time`.
  [[nodiscard]] bool allow(const model::Journey& journey, model::Timestamp time) const;
  void count(const model::Journey& journey, model::Timestamp time);
};

// The decision about a follow-up whose event has come.
enum class FollowUpFate : std::uint8_t {
  runs,
  too_late,    // it has expired
  too_many,    // the journey allows no more, or was removed
  quiet_time,  // it waits for the end of the quiet hours
};
// `journey` is the project's, if it has one. Its quiet hours apply to follow-ups of Nodes, too.
// Counts of a wrong shape allow everything here and fail the Turn later.
[[nodiscard]] FollowUpFate fate_of(const model::Event& follow_up, const model::Session& session,
                                   const std::optional<model::Journey>& journey,
                                   model::Timestamp now);

// The same follow-up, postponed to the end of the quiet hours.
[[nodiscard]] model::FollowUp postponed(const model::Event& follow_up,
                                        const model::QuietHours& quiet, model::Timestamp now);

// The Effects of a follow-up without a Flow. A Flow that waits for the user keeps waiting.
[[nodiscard]] model::Effects follow_up_effects(model::Session session, const model::Event& event,
                                               model::Timestamp now);

// The name of the follow-up's Flow that waits or runs in this session. Empty if the Endpoint's Flow
// gets the next input.
[[nodiscard]] std::string follow_up_flow_of(const model::Session& session);

// The follow-up's Flow that continues with the input. Empty: the Endpoint's Flow continues or
// starts. An inject may be for the Endpoint's Flow nevertheless (see `takes_inject`).
[[nodiscard]] std::string waiting_flow(const model::Session& session, const model::Event& event,
                                       const model::Endpoint& endpoint);
// The id of the Flow that an input runs: the follow-up's, or the Endpoint's.
[[nodiscard]] std::string flow_of_input(const model::Session& session, const model::Event& event,
                                        const model::Endpoint& endpoint,
                                        const model::ProjectAssets& assets);

// The counts in a session's Flow state. Nothing if they have a wrong shape.
[[nodiscard]] std::optional<FollowUpCounts> counts_from(const nlohmann::json& flow_state);
[[nodiscard]] nlohmann::json to_json(const FollowUpCounts& counts);

}  // namespace conversed::flows
