#include "store/model/job.h"

#include <gtest/gtest.h>

namespace conversed::model {
namespace {

constexpr std::array all{JobState::queued, JobState::active,    JobState::cancelling,
                         JobState::done,   JobState::cancelled, JobState::error};

TEST(JobState, FinalStatesAreNeverLeft) {
  for (const auto from : all) {
    for (const auto to : all) {
      EXPECT_FALSE(is_final(from) && can_become(from, to)) << to_string(from);
      EXPECT_FALSE(from == to && can_become(from, to));
    }
  }
}

TEST(JobState, EveryStateThatIsNotFinalCanEnd) {
  for (const auto from : all) {
    if (is_final(from)) continue;
    EXPECT_TRUE(can_become(from, JobState::cancelled) || can_become(from, JobState::cancelling));
    EXPECT_TRUE(can_become(from, JobState::error));
  }
}

TEST(JobState, RankNeverFalls) {
  // queued < active < cancelling < final. A job only goes up.
  const auto rank = [](JobState state) { return is_final(state) ? 3 : static_cast<int>(state); };
  for (const auto& [from, to] : job_transitions) EXPECT_LT(rank(from), rank(to));
}

TEST(JobState, NamesRoundTrip) {
  for (const auto state : all) EXPECT_EQ(job_state_from(to_string(state)), state);
  EXPECT_FALSE(job_state_from("Done"));
}

}  // namespace
}  // namespace conversed::model
