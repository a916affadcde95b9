#include "store/model/job.h"

#include <utility>

namespace conversed::model {
namespace {

constexpr std::array<std::pair<JobState, std::string_view>, 6> names{{
    {JobState::queued, "queued"},
    {JobState::active, "active"},
    {JobState::cancelling, "cancelling"},
    {JobState::done, "done"},
    {JobState::cancelled, "cancelled"},
    {JobState::error, "error"},
}};

}  // namespace

std::string_view to_string(JobState state) {
  for (const auto& [known, name] : names) {
    if (known == state) return name;
  }
  return "unknown";
}

std::optional<JobState> job_state_from(std::string_view text) {
  for (const auto& [state, name] : names) {
    if (name == text) return state;
  }
  return std::nullopt;
}

}  // namespace conversed::model
