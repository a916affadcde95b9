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
#include <string_view>
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
  // The records behind `waiting`, which are only in the log. A list, so that the removal of its
  // first item takes constant time.
  std::list<Position> parked;
  std::vector<InHand> in_hand;
  std::size_t given_up = 0;  // of those in hand: their partition was revoked, so nobody counts them
  Share* share = nullptr;

  [[nodiscard]] bool has_nothing_to_do() const {
    return waiting.empty() && parked.empty() && !touched;
  }
};
using LaneNode = std::pair<const std::string, Lane>;  // in the map; its address identifies the lane

// The lanes of one name, such as an organisation's, and how many workers run some of them.
struct Share {
  std::deque<LaneNode*> ready;  // oldest first
  std::size_t lanes = 0;        // ready and others
  std::size_t records = 0;      // taken in and not finished
  std::size_t workers = 0;      // that run its lanes
  std::chrono::steady_clock::time_point slow_until{};
};

// Divides the workers among shares, so that no share keeps the others waiting:
//
// - Shares take turns, the oldest lane of each first.
// - No share has all workers, if there are at least two. So a new share finds one that is free or
//   soon will be.
// - A run that holds its worker for longer than `slow_run` makes its share slow, for `slow_factor`
//   times as long as it took. Slow shares together have at most all workers but one. So quick
//   shares find one worker free, or in a short run.
//
// So a ready lane of a quick share waits for quick runs only, for any number of lanes in other
// shares. With one worker it waits for one slow run at most. Without `fair` there is one share,
// which has all workers. A share with a long backlog can fill `in_flight_limit`. Then records of
// other shares are parked (lanes.h), and run in their turn. Without parking they stay in the log.
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

  // The share of a new lane, valid until `leave`.
  Share& join(const std::string& name);
  void leave(Share& share);

  // The records of the share with this name.
  [[nodiscard]] std::size_t records_of(std::string_view name) const;

  void push(LaneNode& lane);
  void clear();
  [[nodiscard]] std::size_t ready() const { return ready_; }

  // Whether `take` has lanes for one more worker, and whether the share may have one more worker.
  [[nodiscard]] bool may_take() const;
  [[nodiscard]] bool may_take(const Share& share) const;

  // A worker's hold on a share, between `take` and `give_back`.
  struct Hold {
    Share* share = nullptr;
    bool slow = false;
    std::vector<LaneNode*> lanes;
  };
  // The next lanes for one worker: at most `most`, all of one share, and a single lane if other
  // shares wait.
  [[nodiscard]] std::optional<Hold> take(std::size_t most);
  // The worker has run them. `longest`: the time of the longest run.
  void give_back(const Hold& hold, Clock::duration longest);
  [[nodiscard]] Clock::time_point now() const { return now_(); }
  [[nodiscard]] std::size_t size() const { return shares_.size(); }

 private:
  using Named = std::map<std::string, Share, std::less<>>;

  [[nodiscard]] bool is_slow(const Share& share) const;
  void forget_idle();

  const std::size_t workers_;
  const std::size_t most_workers_;  // of one share, and of all slow shares together
  const Now now_;
  Named shares_;
  std::deque<Share*> turns_;  // shares with ready lanes
  std::size_t ready_ = 0;
  std::size_t slow_workers_ = 0;  // that took their lanes from a slow share
};

}  // namespace conversed::queue
