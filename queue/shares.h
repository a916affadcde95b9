#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "queue/log.h"

namespace conversed::queue {

// A record of a run in hand, for the run's Finish.
struct InHand {
  std::int32_t partition;
  std::uint64_t generation;
  std::int64_t offset;
};

struct Share;

// The records of one key, for Lanes only.
struct Lane {
  enum class State : std::uint8_t { idle, ready, in_hand };
  State state = State::idle;
  bool touched = false;            // a run is due even without records
  std::vector<LogRecord> waiting;  // in order
  // The records behind `waiting`, which are in the log only. A list: taking from its front takes
  // constant time an item, however many there are.
  std::list<Position> parked;
  std::vector<InHand> in_hand;
  Share* share = nullptr;

  [[nodiscard]] bool has_nothing_to_do() const {
    return waiting.empty() && parked.empty() && !touched;
  }
};
using LaneNode = std::pair<const std::string, Lane>;  // in the map; its address is the lane's name

// The lanes of one name, such as an organisation's, and how many workers run some of them.
struct Share {
  std::deque<LaneNode*> ready;  // oldest first
  std::size_t lanes = 0;        // ready or not
  std::size_t workers = 0;      // that run some of them
  std::chrono::steady_clock::time_point slow_until{};
};

// Divides the workers among shares, so that none keeps the others waiting:
//
// - Shares take turns, the oldest lane of each first.
// - No share has all workers, where there are two or more of them and of shares.
// - A run that holds its worker for longer than `slow_run` makes its share slow, for `slow_factor`
//   times as long as it took. Slow shares together have all workers but one, which the quick ones
//   therefore find free, or in a short run.
//
// So a ready lane of a quick share waits for quick runs only, however many lanes other shares have.
// With one worker it waits for one slow run at most. Without `fair` there is one share, which has
// all workers. A share with a long backlog can fill `in_flight_limit`. The records of others are
// then parked (lanes.h), and run in their turn. Without parking they stay in the log.
//
// One thread at a time.
class Shares {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  static constexpr std::chrono::milliseconds slow_run{25};
  static constexpr int slow_factor = 60;
  static constexpr std::size_t max_taken = 8;  // lanes that a worker takes at once

  Shares(std::size_t workers, bool fair, Now now);

  // For a new lane; its `share` from here on, until `leave`.
  Share& join(const std::string& name);
  void leave(Share& share);

  void push(LaneNode& lane);
  void clear();
  [[nodiscard]] std::size_t ready() const { return ready_; }

  // Whether `take` has something for one worker more.
  [[nodiscard]] bool may_take() const;

  // A worker's hold on a share, between `take` and `give_back`.
  struct Hold {
    Share* share = nullptr;
    bool slow = false;
    std::vector<LaneNode*> lanes;
  };
  // The next lanes that one worker is to run: no more than `most`, all of one share, and a single
  // one where other shares wait.
  [[nodiscard]] std::optional<Hold> take(std::size_t most);
  // The worker has run them; the longest run took that long.
  void give_back(const Hold& hold, Clock::duration longest);
  [[nodiscard]] Clock::time_point now() const { return now_(); }
  [[nodiscard]] std::size_t size() const { return shares_.size(); }

 private:
  using Named = std::map<std::string, Share, std::less<>>;

  [[nodiscard]] bool is_slow(const Share& share) const;
  [[nodiscard]] bool may_take(const Share& share) const;
  void forget_idle();

  const std::size_t workers_;
  const std::size_t most_workers_;  // of a share, and of all slow ones together
  const Now now_;
  Named shares_;
  std::deque<Share*> turns_;  // those with ready lanes
  std::size_t ready_ = 0;
  std::size_t slow_workers_ = 0;  // that took their lanes from a share that was slow
};

}  // namespace conversed::queue
