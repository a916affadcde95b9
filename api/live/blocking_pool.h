#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace conversed::api {

// Threads for work that takes too long for a thread of the HTTP server: password hashes and the
// management operations. Thread-safe. The queue is bounded, because it holds requests with their
// bodies.
//
// Work is posted under a name. The names take turns in the order in which they came. Each name has
// a limited number of places.
// Kept by: BlockingPool.TurnsGoRoundTheNames, BlockingPool.NoNameOvertakesOneThatWaits,
// BlockingPool.OneNameHoldsAFewPlacesOnly.
class BlockingPool {
 public:
  struct Limits {
    std::size_t threads = 1;
    std::size_t waiting = 64;                                              // in each line
    std::size_t waiting_of_one = std::numeric_limits<std::size_t>::max();  // of one name in a line
  };
  // Two queues, each with its own limit. They are served alternately.
  // Kept by: BlockingPool.TheKnownDoNotWaitBehindAllOthers.
  enum class Line : std::uint8_t { known, others };

  explicit BlockingPool(const Limits& limits);
  BlockingPool(std::size_t threads, std::size_t max_waiting)
      : BlockingPool(Limits{.threads = threads, .waiting = max_waiting}) {}
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // False, and the work is dropped, if no place is free or the pool stopped. Must not throw.
  [[nodiscard]] bool post(std::function<void()> work) {
    return post({}, Line::others, std::move(work));
  }
  [[nodiscard]] bool post(std::string_view name, Line line, std::function<void()> work);

  // Refuses new work at once, runs the queued work, then joins. Tolerates being called twice.
  void stop();

 private:
  using Work = std::function<void()>;
  struct Waiting {
    std::map<std::string, std::deque<Work>, std::less<>> by_name;  // none is empty
    std::deque<std::string> order;  // each name once; the first is served next
    std::size_t count = 0;
  };

  void run();
  [[nodiscard]] bool idle() const { return lines_[0].count == 0 && lines_[1].count == 0; }
  [[nodiscard]] Work take_next();

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Waiting, 2> lines_;
  std::size_t turn_ = 0;  // the line that is served next
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace conversed::api
