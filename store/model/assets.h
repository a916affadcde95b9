#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/model/result.h"

// The parts of a project that conversations read. Immutable snapshots.
namespace conversed::model {

struct Endpoint {
  std::string id;
  std::string project_id;
  std::string organisation_id;
  std::string name;
  std::string flow_id;
  std::string url_token;
  std::chrono::milliseconds session_expiry{};
  bool active_only = false;
  std::string error_text;
  std::string webhook_url;          // empty: none. Only the deliverer reads the secret.
  std::string follow_up_flow_id{};  // follows up silent users; empty: none
  std::string error_flow_id{};      // runs when a Turn fails; empty: none
};

struct FlowVersion {
  std::string flow_id{};
  std::string project_id;
  std::string name;
  std::int64_t version = 0;  // from 1
  std::string definition;    // JSON text for Flow::compile
};

// A version of a Flow that a share of the sessions runs. The others run the Flow's own version.
struct Ramp {
  std::string id;  // of this ramp: an ended one with the same version had another
  std::int64_t version = 0;
  std::int64_t stable_version = 0;  // the Flow's own
  std::int64_t share = 0;           // of the sessions, in percent

  bool operator==(const Ramp&) const = default;
};

// Hours without follow-ups, in minutes from midnight of a time zone: from `from` up to, but
// without, `to`. They may pass midnight and are never equal.
struct QuietHours {
  int from = 0;
  int to = 0;
  std::string timezone;  // a name of the time-zone database

  bool operator==(const QuietHours&) const = default;
};

// The rules for following up a project's silent users.
struct Journey {
  std::chrono::milliseconds after{};  // silence, from the last Turn of a user's message
  std::optional<std::chrono::milliseconds> expires_after;  // from the same moment
  std::optional<QuietHours> quiet_hours;
  int max_per_session = 1;
  int max_per_day = 0;                    // of a session; 0: no limit
  std::int64_t follow_ups_per_month = 0;  // of the project's tenant; 0: no limit

  bool operator==(const Journey&) const = default;
};

// From the definition that a set-up has stored. `internal`: it can't be read.
[[nodiscard]] Result<Journey> journey_from(const nlohmann::json& definition);

// Names that a Flow's Nodes refer to, as they are now; a deleted Connection is missing here.
struct ProjectAssets {
  std::string project_id;
  std::map<std::string, std::string, std::less<>> connection_ids;  // name → id
  std::map<std::string, std::string, std::less<>> tokens;          // label → script
  std::map<std::string, std::string, std::less<>> flow_ids;        // name → id
  std::optional<Journey> journey{};                                // if it is switched on
  std::vector<std::string> locales{};                // names; the first is the primary one
  std::map<std::string, Ramp, std::less<>> ramps{};  // the running ones, by the ids of their Flows
};

}  // namespace conversed::model
