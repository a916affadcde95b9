#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace conversed::daemon {

// Items that wait for their next try. The items that are due belong to shares, such as
// organisations. The shares take turns, and the item that was due first goes first within its
// share. So an item waits for one item of each other share, and not for all of their items.
// Kept by: RetryQueue.ManyItemsOfOneShareDelayAnotherShareByOneItem.
//
// One thread at a time.
template <typename Item>
class RetryQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void put(std::string share, Item item, Time due) {
    waiting_.emplace(due, Waiting{std::move(share), std::move(item)});
  }

  // The next item that is due. None: no item is due.
  [[nodiscard]] std::optional<Item> take(Time now) {
    while (!waiting_.empty() && waiting_.begin()->first <= now) {
      make_ready(std::move(waiting_.extract(waiting_.begin()).mapped()));
    }
    if (turns_.empty()) return std::nullopt;
    const auto share = turns_.front();
    turns_.pop_front();
    auto& items = share->second;
    Item item = std::move(items.front());
    items.pop_front();
    if (items.empty()) {
      ready_.erase(share);
    } else {
      turns_.push_back(share);
    }
    return item;
  }

  // The time from which `take` has an item. None: the queue is empty.
  [[nodiscard]] std::optional<Time> next_due() const {
    if (!turns_.empty()) return Time::min();
    if (waiting_.empty()) return std::nullopt;
    return waiting_.begin()->first;
  }

 private:
  struct Waiting {
    std::string share;
    Item item;
  };
  using Ready = std::map<std::string, std::deque<Item>>;  // by share; no deque is empty

  void make_ready(Waiting&& waited) {
    const auto [share, is_new] = ready_.try_emplace(std::move(waited.share));
    share->second.push_back(std::move(waited.item));
    if (is_new) turns_.push_back(share);
  }

  std::multimap<Time, Waiting> waiting_;  // by due time
  Ready ready_;
  std::deque<typename Ready::iterator> turns_;  // each share of `ready_`, in its turn
};

}  // namespace conversed::daemon
