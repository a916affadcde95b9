#include "api/live/inject_quota.h"

#include <algorithm>
#include <utility>

#include "store/commit/usage.h"

namespace conversed::api {

using model::Errc;
using model::Result;

constexpr std::chrono::seconds max_age{1};

InjectQuota::InjectQuota(const QuotaLimits& limits, store::Usage& usage, const model::Clock& clock)
    : injects_per_month_(limits.injects_per_month),
      shared_(limits.shared),
      usage_(usage),
      clock_(clock) {}

void InjectQuota::set_limits(const QuotaLimits& limits) {
  if (injects_per_month_.exchange(limits.injects_per_month) == limits.injects_per_month) return;
  // Without a quota nothing was counted, so the counts start anew.
  counts_.with([](auto& counts) { counts.clear(); });
}

Result<void> InjectQuota::take(const std::string& organisation_id, TimePoint now) {
  const auto limit = static_cast<std::int64_t>(injects_per_month_.load());
  if (limit == 0) return {};
  const std::string month = store::month_of(clock_.now());
  // Two rounds: an old reading, and one that says that no inject is left, are read again.
  for (const bool last_try : {false, true}) {
    enum class Answer : std::uint8_t { taken, ask_store, none_left };
    const Answer answer = counts_.with([&](auto& counts) {
      Count& count = counts[organisation_id];
      const bool fresh = count.known && count.month == month && now - count.read_at < max_age;
      if (!fresh && !last_try) return Answer::ask_store;
      const std::int64_t since = count.committed - count.committed_before;
      if (count.stored + since + count.in_flight >= limit) {
        return last_try ? Answer::none_left : Answer::ask_store;
      }
      ++count.in_flight;
      return Answer::taken;
    });
    if (answer == Answer::taken) return {};
    if (answer == Answer::none_left) break;
    if (auto read = refresh(organisation_id, month, now); !read) return read;
  }
  return model::fail(Errc::quota_exhausted,
                     "the plan's quota of injects is used up for this month");
}

void InjectQuota::give_back(const std::string& organisation_id) {
  if (injects_per_month_.load() == 0) return;
  counts_.with([&](auto& counts) {
    Count& count = counts[organisation_id];
    // If the counts were shared already, the next report subtracts this inject.
    count.in_flight = std::max<std::int64_t>(shared_ ? count.in_flight : 1, count.in_flight) - 1;
  });
}

std::vector<InjectQuota::Accepted> InjectQuota::take_accepted() {
  if (injects_per_month_.load() == 0 || !shared_) return {};
  return counts_.with([](auto& counts) {
    std::vector<Accepted> accepted;
    for (auto& [organisation, count] : counts) {
      if (count.in_flight == 0) continue;
      accepted.push_back({organisation, std::exchange(count.in_flight, 0)});
    }
    return accepted;
  });
}

void InjectQuota::committed(const std::string& organisation_id, std::int64_t injects) {
  if (injects_per_month_.load() == 0 || shared_) return;
  counts_.with([&](auto& counts) {
    Count& count = counts[organisation_id];
    // Injects accepted before a restart are not in `in_flight` and must not make it negative.
    count.in_flight = std::max<std::int64_t>(0, count.in_flight - injects);
    count.committed += injects;
  });
}

Result<void> InjectQuota::refresh(const std::string& organisation_id, const std::string& month,
                                  TimePoint now) {
  // Commits during the read may be counted twice, until the next reading.
  const std::int64_t committed_before =
      counts_.with([&](auto& counts) { return counts[organisation_id].committed; });
  auto used = usage_.used(organisation_id, store::injects_counter, month);
  if (used && shared_) {
    // Commits also count injects that other programs wrote to the log. No daemon accepted those.
    const auto accepted = usage_.used(organisation_id, store::accepted_injects_counter, month);
    used = accepted ? std::max(*used, *accepted) : accepted;
  }
  if (!used) return model::fail(used.error().code, "the quota can't be read; try again later");
  counts_.with([&](auto& counts) {
    Count& count = counts[organisation_id];
    count.stored = *used;
    count.committed_before = committed_before;
    count.month = month;
    count.read_at = now;
    count.known = true;
  });
  return {};
}

}  // namespace conversed::api
