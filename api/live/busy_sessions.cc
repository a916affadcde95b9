#include "api/live/busy_sessions.h"

#include <algorithm>
#include <span>

#include "api/live/digest.h"
#include "store/model/hex.h"

namespace conversed::api {
namespace {

// A short name, the same in each daemon. It has 64 bits: if two sessions share a name, a client of
// the wrong one is told to try again later.
std::string mark_of(std::string_view encoded_key) {
  const Digest all = digest({"full inbox", encoded_key});
  return model::hex(std::span(all).first(8));
}

}  // namespace

bool BusySessions::is_full(const std::string& encoded_key, std::int64_t bound,
                           TimePoint now) const {
  if (inbox_size(encoded_key) >= bound) return true;
  if (!told_any_.load(std::memory_order_relaxed)) return false;
  const std::string mark = mark_of(encoded_key);
  return told_.with([&](const auto& told) {
    return std::ranges::any_of(told, [&](const auto& daemon) {
      return now - daemon.second.at <= believed_for && daemon.second.marks.contains(mark);
    });
  });
}

std::vector<std::string> BusySessions::full(std::int64_t bound, std::size_t at_most) const {
  std::vector<std::string> marks;
  for (const auto& guarded : shards_) {
    guarded.with([&](const Shard& sizes) {
      for (const auto& [key, size] : sizes) {
        if (size >= bound && marks.size() < at_most) marks.push_back(mark_of(key));
      }
    });
  }
  return marks;
}

void BusySessions::full_elsewhere(const std::string& daemon, std::vector<std::string> marks,
                                  TimePoint now) {
  told_.with([&](auto& told) {
    std::erase_if(told, [&](const auto& each) { return now - each.second.at > believed_for; });
    if (marks.empty()) {
      told.erase(daemon);
    } else {
      told[daemon] = {{marks.begin(), marks.end()}, now};
    }
    told_any_ = !told.empty();
  });
}

}  // namespace conversed::api
