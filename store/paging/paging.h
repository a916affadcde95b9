#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/result.h"
#include "store/paging/page.h"
#include "store/sql/sql.h"

// Reads lists by key. Each page begins at a cursor: a random id for the sort keys of the last item
// of the page before. Items that are added or removed shift no page. Where an index has the sort's
// order, a page costs the same at any depth. For the .cc files of this folder and their tests.
// Kept by: PagingTest.ItemsAddedOrRemovedMeanwhileShiftNothing,
// PagingCostTest.ByIdAndOrderAnyPageByCursorCostsTheSameAtAnyDepth.
namespace conversed::store {

enum class Unique : std::uint8_t { no, yes };

// A field to sort a list by. `sql` must never be NULL; texts compare by code points.
struct PagedField {
  std::string_view name;
  std::string_view sql;
  SqlType type = SqlType::text;
  Unique unique = Unique::no;  // within the list; a sort that ends with it needs no further key
};

struct PagedList {
  std::string scope{};           // names the list; a cursor of one list is unknown to all others
  std::string from;              // table and condition: "jobs WHERE project_id = :p0"
  std::vector<SqlValue> values;  // of :p0, :p1 and so on, in this order
  std::span<const PagedField> fields;  // the first one is the id, which is unique
  PagedField own_order;                // unique; the order if the request names no sort
  Order own_direction = Order::ascending;
  std::string total_sql{};  // reads a kept total, with the same values; empty: the rows are counted
  // Reads a number that rises when all items get new values of `own_order`, which ends the cursors
  // at the former ones. Empty: they keep their values.
  std::string numbering_sql{};
  std::string filter_text{};  // the column that a filter searches; empty: the list has no filter
};

[[nodiscard]] std::vector<std::string_view> names_of(std::span<const PagedField> fields);

struct PlannedKey {
  PagedField field;
  Order order;

  bool operator==(const PlannedKey& other) const {
    return field.name == other.field.name && order == other.order;
  }
};

// `invalid_argument` for an unknown field. The last key is unique.
[[nodiscard]] model::Result<std::vector<PlannedKey>> plan_sort(const PagedList& list,
                                                               const std::vector<SortKey>& sort);

// Which side of a position, in the order of the list.
enum class Side : std::uint8_t { after, before };

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
