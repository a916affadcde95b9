#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/jobs/job_worker.h"

namespace conversed::daemon {

// Starts work of other threads for a step of a job, and waits for `count` answers. `begin` gets a
// function that takes one answer: it is copyable, thread-safe and never blocks. Returns the answers
// in the order in which they came. `unavailable`: the job must stop. The work goes on then, and its
// answers are dropped.
// Kept by: AwaitAnswersTest.GathersAllAnswers, AwaitAnswersTest.AnswersAfterAStopAreDropped.
template <typename Answer, typename Begin>
[[nodiscard]] model::Result<std::vector<Answer>> await_answers(JobHold& hold, std::size_t count,
                                                               const Begin& begin) {
  struct Awaited {
    std::mutex mutex;
    JobHold* hold = nullptr;  // null: nothing waits any more
    std::vector<Answer> answers;
  };
  const auto awaited = std::make_shared<Awaited>();
  awaited->hold = &hold;
  begin([awaited, count](Answer answer) {
    const std::lock_guard lock(awaited->mutex);
    if (awaited->hold == nullptr) return;
    awaited->answers.push_back(std::move(answer));
    if (awaited->answers.size() == count) awaited->hold->notify();
  });
  for (;;) {
    {
      const std::lock_guard lock(awaited->mutex);
      if (awaited->answers.size() >= count) {
        awaited->hold = nullptr;
        return std::move(awaited->answers);
      }
    }
    if (hold.wait(JobHold::longest_wait)) continue;
    const std::lock_guard lock(awaited->mutex);
    awaited->hold = nullptr;
    return model::fail(model::Errc::unavailable, "the worker stops");
  }
}

}  // namespace conversed::daemon
