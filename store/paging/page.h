#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
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
  std::vector<T> items{};
  std::int64_t total = 0;
  std::string next;  // a cursor; empty: there is no such page
  std::string previous;

  // The page of the objects that `find` finds for the ids: an optional or a Result of one. An
  // object that has gone since the page was read is left out.
  template <typename Find>
  [[nodiscard]] static Page of(Page<std::string>&& ids, const Find& find) {
    Page page{.total = ids.total, .next = std::move(ids.next), .previous = std::move(ids.previous)};
    for (const auto& id : ids.items) {
      if (auto item = find(id)) page.items.push_back(*std::move(item));
    }
    return page;
  }
};

}  // namespace conversed::store
