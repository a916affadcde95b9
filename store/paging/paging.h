#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/result.h"
#include "store/paging/page.h"
#include "store/sql/sql.h"

// How lists are read by key: each page begins where a cursor, a random id of stored sort keys, says
// that the one before it ended. So what is added or removed meanwhile shifts nothing, and a page
// costs the same at any depth where an index has the sort's order. For the .cc files of this folder
// and their tests.
namespace conversed::store {

enum class Unique : std::uint8_t { no, yes };

// What a list can be sorted by. `sql` must never be NULL; texts compare by code points.
struct PagedField {
  std::string_view name;
  std::string_view sql;
  SqlType type = SqlType::text;
  Unique unique = Unique::no;  // within the list: no further key is needed then
};

struct PagedList {
  std::string scope;             // names the list; a cursor of one list is unknown to all others
  std::string from;              // table and condition: "jobs WHERE project_id = :p0"
  std::vector<SqlValue> values;  // of :p0, :p1 and so on, in this order
  std::span<const PagedField> fields;  // the first one is the id, which is unique
  PagedField own_order;                // unique; the order of a list that nobody sorts
  Order own_direction = Order::ascending;
  std::string total_sql;    // a kept total, with the values as they are; empty: counted
  std::string filter_text;  // the column that a filter looks into; empty: the list has none
  // The field that numbers the items. A whole list may be renumbered (an import), so a cursor that
  // is sorted by it goes by where its item is now; who removes items moves it
  // (store/paging/cursors.h).
  std::string_view numbering;
};

[[nodiscard]] std::vector<std::string_view> names_of(std::span<const PagedField> fields);

struct PlannedKey {
  PagedField field;
  Order order;
};

// `invalid_argument` for an unknown field. The last key is unique.
[[nodiscard]] model::Result<std::vector<PlannedKey>> plan_sort(const PagedList& list,
                                                               const std::vector<SortKey>& sort);

// Which side of a position, in the order of the list; with or without the item at it.
enum class Side : std::uint8_t { after, from, before, upto };

[[nodiscard]] bool is_backward(Side side);

struct Bound {
  Side side = Side::after;
  std::vector<SqlValue> position{};  // a value a key; empty: the beginning or, backwards, the end
};

struct PageSelect {
  std::string sql;
  std::vector<SqlValue> values;
  std::vector<SqlType> columns;  // the id, then the keys
};

// Selects items on one side of a position, the nearest first.
[[nodiscard]] PageSelect select_page(const PagedList& list, const std::vector<PlannedKey>& keys,
                                     const Bound& bound, const std::string& folded_filter,
                                     std::size_t limit, std::int64_t skip);

// The ids of a page's items. Errors: `invalid_argument` (sort, filter, an unknown or expired
// cursor), `unavailable`, `internal`.
[[nodiscard]] model::Result<Page<std::string>> read_page(Database& database, Committer& committer,
                                                         const PagedList& list,
                                                         const PageRequest& request);

}  // namespace conversed::store
