#pragma once

#include <string>

namespace conversed::model {

// The keys of sessions, as `SessionKey::encode` writes them, from `from` up to, but without, `to`.
struct KeyRange {
  std::string from;
  std::string to;
};

}  // namespace conversed::model
