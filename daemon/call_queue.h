#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "store/model/effects.h"

namespace conversed::daemon {

struct CallQueueLimits {
  std::size_t calls = 16'384;                 // in memory; a project holds a quarter at most
  std::size_t bytes = std::size_t{64} << 20;  // of their requests; an upstream's are an eighth
  std::size_t per_upstream = 16;              // under way at once; twice as many of one project
                                              // are in memory, of all projects four times
  std::size_t per_project = 24;               // under way at once
  std::size_t ids = 65'536;                   // of calls that have no room
  std::size_t ids_per_lane = 1024;            // likewise
};

// The calls that are to be made, in lanes: those of one project to one upstream, each in the order
// in which they came, lanes in turn. No upstream and no project takes the room of others: of calls
// beyond its share only the ids are noted, and beyond those it is only known that there are more.
// Both are in the store. One thread.
class CallQueue {
 public:
  struct Lane;

  struct Call {
    model::PendingCall pending;
    int attempts = 0;
    std::optional<model::Event> result;  // made; to be appended
    int appends = 0;                     // tries that failed

    // Of the queue.
    Lane* lane = nullptr;
    std::size_t bytes = 0;
    bool under_way = false;
  };

  explicit CallQueue(const CallQueueLimits& limits) : limits_(limits) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Whether the call is in memory, or its id is noted.
  [[nodiscard]] bool knows(const std::string& id) const;
  // Takes a call that it does not know: it is ready, or noted, or passed over. `at_once`: how many
  // calls to the upstream may be under way.
  void take(model::PendingCall call, const std::string& upstream, std::size_t at_once);

  // The id of a call that was noted and has room now; null: none. It is noted until `unnote`, and
  // `take_noted` takes it then.
  [[nodiscard]] const std::string* wanted();
  void unnote(const std::string& id);
  void take_noted(model::PendingCall call, const std::string& upstream, std::size_t at_once);

  // Calls were passed over for which there may be room now: who looks through the store for them
  // says so first.
  [[nodiscard]] bool wants_scan() const;
  void scan_begins();
  // Half of all room is free.
  [[nodiscard]] bool has_room() const;

  [[nodiscard]] Call& at(const std::string& id) { return calls_.at(id); }
  void make_ready(Call& call);
  // The next call that may be made, which is under way from now on; null: none.
  [[nodiscard]] Call* next();
  void landed(Call& call);
  void forget(const std::string& id);
  // Forgets the ready ones of which this is true.
  void drop_ready(const std::function<bool(const model::PendingCall&)>& is_lost);
  [[nodiscard]] bool empty() const { return calls_.empty() && noted_.empty(); }

  // The calls to one upstream, and those of one project.
  struct Share {
    std::size_t lanes = 0;
    std::size_t calls = 0;
    std::size_t bytes = 0;
    std::size_t under_way = 0;
    std::size_t at_once = 0;
  };
  using Key = std::pair<std::string, std::string>;  // upstream and project
  struct Lane {
    Key key;
    Share* upstream = nullptr;
    Share* project = nullptr;
    std::deque<std::string> ready;
    std::size_t calls = 0;
    struct Noted {
      std::string id;
      std::size_t bytes = 0;
    };
    std::deque<Noted> noted;
    bool has_more = false;  // that were passed over
    bool in_turn = false;   // in `ready_`
    bool waits = false;     // in `waiting_`
  };

 private:
  Lane& lane_of(const Key& key, std::size_t at_once);
  [[nodiscard]] bool fits(const Lane& lane, std::size_t bytes) const;
  void hold(Lane& lane, model::PendingCall call, std::size_t bytes);
  void note(Lane& lane, std::string id, std::size_t bytes);
  void drop_if_empty(Lane& lane);

  const CallQueueLimits limits_;
  std::unordered_map<std::string, Call> calls_;   // by id
  std::unordered_map<std::string, Lane*> noted_;  // by id
  std::map<Key, Lane> lanes_;                     // those with calls or notes
  std::unordered_map<std::string, Share> upstreams_;
  std::unordered_map<std::string, Share> projects_;
  std::deque<Lane*> ready_;    // those that may have ready calls, the next one first
  std::deque<Lane*> waiting_;  // those that may have notes, likewise
  std::size_t bytes_ = 0;
  bool hungry_ = false;    // a lane has nothing noted any more, but was passed over
  bool squeezed_ = false;  // calls were passed over because there was no room for any
};

}  // namespace conversed::daemon
