#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/model/clock.h"

// Lists that are read page by page.
namespace conversed::store {

enum class Order : std::uint8_t { ascending, descending };

struct SortKey {
  std::string field;  // a name of the list's, such as "_id"
  Order order = Order::ascending;

  bool operator==(const SortKey&) const = default;
};

// A cursor expires after this time.
inline constexpr std::chrono::hours cursor_lifetime{1};

// Which page. At most one of `next` and `previous` is set: a cursor of an earlier page. Sort and
// filter are then the cursor's; if they are given again, they have to be the same.
struct PageRequest {
  std::size_t limit = 25;
  std::int64_t skip = 0;        // items passed over before the page, in its direction
  std::vector<SortKey> sort{};  // empty: the list's own order
  std::string filter{};         // empty: everything
  std::string next{};
  std::string previous{};
  model::Timestamp now{};  // cursors expire by it
};

template <typename T>
struct Page {
  std::vector<T> items;
  std::int64_t total = 0;
  std::string next;  // a cursor; empty: there is no such page
  std::string previous;
};

}  // namespace conversed::store
