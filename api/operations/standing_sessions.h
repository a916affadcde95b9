#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "api/services.h"
#include "store/model/result.h"

namespace conversed::api {

// How many sessions of a project wait at each Node.
class StandingSessions {
 public:
  // Reads the newest sessions of each shard, as many as a short time allows. Blocks.
  [[nodiscard]] static model::Result<StandingSessions> of(const std::string& project,
                                                          ProjectServices& services);

  struct Place {
    std::string flow;          // its name
    std::int64_t version = 0;  // 0: the newest version at the next input
    std::string at;            // the Node's address

    bool operator<(const Place& other) const {
      return std::tie(flow, version, at) < std::tie(other.flow, other.version, other.at);
    }
  };
  [[nodiscard]] const std::map<Place, std::int64_t>& places() const { return places_; }
  [[nodiscard]] std::int64_t count(const Place& place) const {
    const auto found = places_.find(place);
    return found == places_.end() ? 0 : found->second;
  }
  // False: not all sessions were counted.
  [[nodiscard]] bool is_complete() const { return is_complete_; }

 private:
  std::map<Place, std::int64_t> places_;
  bool is_complete_ = true;
};

}  // namespace conversed::api
