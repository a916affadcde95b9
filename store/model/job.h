#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/model/clock.h"

namespace conversed::model {

// The life of a job. `done`, `cancelled` and `error` are final.
enum class JobState : std::uint8_t { queued, active, cancelling, done, cancelled, error };

[[nodiscard]] std::string_view to_string(JobState state);
[[nodiscard]] std::optional<JobState> job_state_from(std::string_view text);

struct JobTransition {
  JobState from;
  JobState to;
};

// All transitions. The store's conditional update and its tests follow this table.
inline constexpr std::array<JobTransition, 9> job_transitions{{
    {JobState::queued, JobState::active},
    {JobState::queued, JobState::cancelled},
    {JobState::queued, JobState::error},
    {JobState::active, JobState::done},
    {JobState::active, JobState::error},
    {JobState::active, JobState::cancelling},
    {JobState::cancelling, JobState::cancelled},
    {JobState::cancelling, JobState::error},
    {JobState::cancelling, JobState::done},
}};

[[nodiscard]] constexpr bool can_become(JobState from, JobState to) {
  for (const auto& transition : job_transitions) {
    if (transition.from == from && transition.to == to) return true;
  }
  return false;
}

[[nodiscard]] constexpr bool is_final(JobState state) {
  return state == JobState::done || state == JobState::cancelled || state == JobState::error;
}

// The type of the job that sets proactive follow-up up, and its steps in order.
inline constexpr std::string_view proactive_setup = "proactiveSetup";
inline constexpr std::array<std::string_view, 4> proactive_setup_steps{
    "Provision the tenant", "Create the journey", "Generate the follow-up Flow", "Switch on"};

// The types of the jobs that change all dead letters or deliveries that fit a filter.
inline constexpr std::string_view replay_dead_letters = "replayDeadLetters";
inline constexpr std::string_view discard_dead_letters = "discardDeadLetters";
inline constexpr std::string_view retry_deliveries = "retryDeliveries";
inline constexpr std::string_view drop_deliveries = "dropDeliveries";

// Long work that an operator can watch. The row decides; notifications only wake a worker.
struct Job {
  std::string id;
  std::string project_id;
  std::string type;
  std::string name;
  JobState state = JobState::queued;
  int progress = 0;      // 0 to 100, never falls
  int current_step = 0;  // 0 to total_steps
  int total_steps = 0;
  std::string fail_reason{};  // empty unless `error`
  nlohmann::json data{};      // results of the steps
  Timestamp created_at{};
  Timestamp changed_at{};
  std::int64_t fencing_token = 0;  // of the lease; a write with an older one is refused
  Timestamp lease_until{};
};

// The name of the present step; empty before the first step and after the end.
[[nodiscard]] std::string_view step_name(const Job& job);

}  // namespace conversed::model
