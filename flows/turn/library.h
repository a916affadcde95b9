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

// Finds other Flows and lexicons of a Turn's project by name: compiled, immutable and shared. The
// daemon's implementation reads a cache, so a miss can block on the disk. Store failures are
// `unavailable` or `timed_out`. Thread-safe.
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
  // The Flow of that name; version 0 is the newest. `not_found` if there is none.
  [[nodiscard]] virtual model::Result<FoundFlow> flow(const std::string& name,
                                                      std::int64_t version) const = 0;
  // The newest lexicon of that name. `not_found` if there is none.
  [[nodiscard]] virtual model::Result<std::shared_ptr<const lexicon::Lexicon>> find_lexicon(
      const std::string& name) const = 0;
};

}  // namespace conversed::flows
