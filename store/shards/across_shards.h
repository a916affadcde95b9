#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "store/shards/shard.h"

// Questions that no single shard answers. Each asks the shards in their order. An error ends a list
// or a sum, since an answer that lacks a shard would be wrong. While a partition moves, two servers
// have its rows: a sum may count them twice, and a row may be found as it was before the move. With
// one shard all this costs nothing.
namespace conversed::store {

namespace across {

template <typename Answer>
[[nodiscard]] bool is_missing(const model::Result<Answer>& answer) {
  if (!answer) return answer.error().code == model::Errc::not_found;
  if constexpr (requires { answer->has_value(); }) {
    return !answer->has_value();
  } else {
    return false;
  }
}

// Merges `more` into `rows`. Both are in the order of `before`. A row that is in both counts once:
// while a partition moves, two servers have its rows.
template <typename Rows, typename Before>
void merge(Rows& rows, Rows&& more, const Before& before) {
  const auto middle = static_cast<std::ptrdiff_t>(rows.size());
  rows.insert(rows.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
  std::inplace_merge(rows.begin(), rows.begin() + middle, rows.end(), before);
  const auto same = [&](const auto& a, const auto& b) { return !before(a, b); };
  rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
}

template <typename Rows>
void cut(Rows& rows, std::size_t limit) {
  if (rows.size() > limit)
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(limit), rows.end());
}

}  // namespace across

// The answer of the shard that has the row. If no shard has it: the first error other than
// `not_found`, since the row may be in that shard, or else that the row is missing (`not_found`, or
// an empty optional).
template <typename Ask>
[[nodiscard]] auto find_in_shards(const Shards& shards, const Ask& ask) {
  auto answer = ask(*shards.front());
  const auto has_row = [](const auto& each) { return each && !across::is_missing(each); };
  for (std::size_t at = 1; at < shards.size() && !has_row(answer); ++at) {
    auto other = ask(*shards[at]);
    if (has_row(other) || across::is_missing(answer)) answer = std::move(other);
  }
  return answer;
}

// The rows of a list that is read in pages: each shard's page, merged in the list's order, cut to
// `limit`. `page` reads a shard's page of up to `limit` rows in that order. `before` compares two
// rows.
template <typename Page, typename Before>
[[nodiscard]] auto merge_shards(const Shards& shards, std::size_t limit, const Page& page,
                                const Before& before) {
  auto rows = page(*shards.front());
  for (std::size_t at = 1; at < shards.size() && rows; ++at) {
    auto more = page(*shards[at]);
    if (!more) return more;
    across::merge(*rows, *std::move(more), before);
    across::cut(*rows, limit);
  }
  return rows;
}

// The same of pages with `rows` and `next`, which may end before the limit: `next` is the place up
// to which the shard was examined, none at the end of its list. The merged page ends at the first
// of these places, since that shard may have rows behind it. `place` is a member of a row.
// `before` compares two places.
template <typename Page, typename Place, typename Before>
[[nodiscard]] auto merge_pages(const Shards& shards, std::size_t limit, const Page& page,
                               Place place, const Before& before) {
  auto merged = page(*shards.front());
  for (std::size_t at = 1; at < shards.size() && merged; ++at) {
    auto more = page(*shards[at]);
    if (!more) return more;
    auto& rows = merged->rows;
    auto& next = merged->next;
    across::merge(rows, std::move(more->rows), [&](const auto& a, const auto& b) {
      return before(std::invoke(place, a), std::invoke(place, b));
    });
    if (more->next && (!next || before(*more->next, *next))) next = std::move(more->next);
    if (next) {
      std::erase_if(rows, [&](const auto& row) { return before(*next, std::invoke(place, row)); });
    }
    if (rows.size() > limit) {
      across::cut(rows, limit);
      next = std::invoke(place, rows.back());
    }
  }
  return merged;
}

// The sum of the shards' answers.
template <typename Ask>
[[nodiscard]] auto sum_of_shards(const Shards& shards, const Ask& ask) {
  auto sum = ask(*shards.front());
  for (std::size_t at = 1; at < shards.size() && sum; ++at) {
    auto more = ask(*shards[at]);
    if (!more) return more;
    *sum += *more;
  }
  return sum;
}

// Takes the other time if it is the older one.
inline void take_older(std::optional<model::Timestamp>& oldest,
                       const std::optional<model::Timestamp>& other) {
  if (other && (!oldest || *other < *oldest)) oldest = other;
}

}  // namespace conversed::store
