#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flows/tools/replay.h"
#include "store/model/bundle.h"

namespace conversed::ctl {

// The bundle of a text; `${NAME}` takes the value of the environment's variable, if it has one.
[[nodiscard]] model::Result<model::Bundle> replayed_bundle(const std::string& text,
                                                           const std::string& path);

// Replays recordings on a bundle, and keeps the outcome. One thread.
class FlowReplay {
 public:
  // `on`: the bundle for people, such as `version 4` or a file.
  FlowReplay(model::Bundle bundle, std::string flow, std::string on);

  // Replays the items of a page of recordings, until `most` were replayed in all.
  // `invalid_argument` for a page of another shape.
  [[nodiscard]] model::Result<void> take(const nlohmann::json& page, std::size_t most);

  [[nodiscard]] std::size_t sessions() const { return sessions_; }
  [[nodiscard]] bool has_differences() const { return !differences_.empty(); }
  [[nodiscard]] nlohmann::json to_json() const;
  // Prints the numbers, and the dialogues of at most `most` sessions that differ, from the first
  // difference on.
  void print(std::size_t most) const;

 private:
  struct Difference {
    model::SessionKey key;
    std::string endpoint;
    flows::tools::Replay replay;
  };

  [[nodiscard]] model::Result<flows::tools::Stage> stage_for(const flows::tools::Recording& of);
  void replay(const flows::tools::Recording& recording, model::Timestamp until);

  model::Bundle bundle_;
  std::string flow_;
  std::string on_;
  std::map<std::string, model::Result<flows::tools::Stage>> stages_;  // by the Endpoint's name
  std::size_t sessions_ = 0;
  std::size_t same_ = 0;
  std::map<std::string, std::size_t> reasons_;  // sessions that can't be compared
  std::vector<Difference> differences_;
};

}  // namespace conversed::ctl
