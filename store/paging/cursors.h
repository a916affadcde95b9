#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/paging/page.h"
#include "store/paging/paging.h"
#include "store/sql/sql.h"

// Cursors as rows: the place where the next page of a list begins. For .cc files of store/ only.
namespace conversed::store {

struct Cursor {
  std::string id;
  Side side = Side::after;
  std::vector<SortKey> sort;
  std::string filter;
  std::vector<SqlValue> keys;  // of the item at the place; empty: the place is an end of the list
  std::int64_t numbering = 0;  // the list's, if it is needed to read the keys
};

// The cursor of that list, unless it has expired or is of another numbering.
[[nodiscard]] std::optional<Cursor> find_cursor(Connection& connection, const PagedList& list,
                                                const std::string& id, model::Timestamp now,
                                                std::int64_t numbering);

// Writes the cursors of a page that was read before, and removes some that have expired.
void write_cursors(Writer& writer, const PagedList& list, const std::vector<Cursor>& cursors);

}  // namespace conversed::store
