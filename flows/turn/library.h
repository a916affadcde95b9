#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "store/model/result.h"

namespace conversed::flows {

class Flow;
namespace lexicon {
class Lexicon;
}

// What a Turn finds in its project by name when it comes to it: other Flows, and lexicons. Compiled
// already, immutable and shared. The daemon's reads its cache, so a look can miss and block on the
// disk; it tells store failures apart from names that are not there, by `unavailable` and
// `timed_out`. Thread-safe.
class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  struct FoundFlow {
    std::shared_ptr<const Flow> flow;  // never null
    std::int64_t version = 0;
  };
  // The Flow of that name; version 0 is the newest. `not_found`: there is none.
  [[nodiscard]] virtual model::Result<FoundFlow> flow(const std::string& name,
                                                      std::int64_t version) const = 0;
  // The lexicon of that name as it is now. `not_found`: there is none.
  [[nodiscard]] virtual model::Result<std::shared_ptr<const lexicon::Lexicon>> find_lexicon(
      const std::string& name) const = 0;
};

}  // namespace conversed::flows
