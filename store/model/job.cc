#include "store/model/job.h"

#include "store/model/names.h"

namespace conversed::model {
namespace {

constexpr Names<JobState, 6> states{{{
    {JobState::queued, "queued"},
    {JobState::active, "active"},
    {JobState::cancelling, "cancelling"},
    {JobState::done, "done"},
    {JobState::cancelled, "cancelled"},
    {JobState::error, "error"},
}}};

}  // namespace

std::string_view to_string(JobState state) {
  return states.name_of(state);
}

std::optional<JobState> job_state_from(std::string_view text) {
  return states.value_of(text);
}

std::string_view step_name(const Job& job) {
  if (is_final(job.state) || job.type != proactive_setup || job.current_step < 1) return {};
  if (job.state == JobState::cancelling) return "Undo";
  const auto step = static_cast<std::size_t>(job.current_step);
  return step <= proactive_setup_steps.size() ? proactive_setup_steps[step - 1] : "";
}

}  // namespace conversed::model
