#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/model/assets.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/session.h"

// When silent users are followed up, and when not. Pure but for the rules of time zones, which ICU
// has; thread-safe.
namespace conversed::flows {

// `time`, or, within quiet hours, their end. A time zone that ICU does not know has none.
[[nodiscard]] model::Timestamp past_quiet_hours(const std::optional<model::QuietHours>& quiet,
                                                model::Timestamp time);

// The day of `time`, counted from the Unix epoch, where the quiet hours are; in UTC without them.
[[nodiscard]] std::int64_t day_of(const std::optional<model::QuietHours>& quiet,
                                  model::Timestamp time);

// The journey's follow-ups that a session has had; part of its Flow state.
struct FollowUpCounts {
  std::int64_t session = 0;
  std::int64_t day = 0;    // as `day_of` counts
  std::int64_t today = 0;  // on that day

  // Whether the journey allows one more at `time`.
  [[nodiscard]] bool allow(const model::Journey& journey, model::Timestamp time) const;
  void count(const model::Journey& journey, model::Timestamp time);
};

// What becomes of a follow-up whose event has come.
enum class FollowUpFate : std::uint8_t {
  runs,
  too_late,    // it has expired
  too_many,    // the journey allows no more, or is not there any more
  quiet_time,  // it waits for the end of the quiet hours
};
// `journey`: the project's, if it has one; quiet hours hold for what Nodes asked for, too. Stored
// counts that can't be read are a failure of the Turn, later: here they allow everything.
[[nodiscard]] FollowUpFate fate_of(const model::Event& follow_up, const model::Session& session,
                                   const std::optional<model::Journey>& journey,
                                   model::Timestamp now);

// The same follow-up, waiting for the end of the quiet hours.
[[nodiscard]] model::FollowUp postponed(const model::Event& follow_up,
                                        const model::QuietHours& quiet, model::Timestamp now);

// What a session comes to when a follow-up without a Flow is said. No Flow runs: one that waits for
// the user waits on.
[[nodiscard]] model::Effects follow_up_effects(model::Session session, const model::Event& event,
                                               model::Timestamp now);

// The name of the Flow of a follow-up that goes on in this session: it waits, so that the next
// input is its, or has an execution. Empty: it is the Endpoint's Flow that goes on.
[[nodiscard]] std::string follow_up_flow_of(const model::Session& session);

// The counts in a session's Flow state; nothing: they have another shape than they should.
[[nodiscard]] std::optional<FollowUpCounts> counts_from(const nlohmann::json& flow_state);
[[nodiscard]] nlohmann::json to_json(const FollowUpCounts& counts);

}  // namespace conversed::flows
