#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/paging/page.h"
#include "store/paging/paging.h"
#include "store/sql/sql.h"

// Cursors as rows: where a list is to be read on. For the .cc files of this folder only.
namespace conversed::store {

struct Cursor {
  std::string id;
  Side side = Side::after;
  std::vector<SortKey> sort;
  std::string filter;
  std::string item;            // at the place; empty: the place is an end of the list
  std::vector<SqlValue> keys;  // of the item, when the cursor was written; empty as the item is
};

// The cursor of that list, unless it has expired.
[[nodiscard]] std::optional<Cursor> find_cursor(Connection& connection, const PagedList& list,
                                                const std::string& id, model::Timestamp now);

// Writes the cursors of a page that was read before. False, with nothing written, if the list is
// numbered and an item has gone since: the page has to be read again.
[[nodiscard]] bool write_cursors(Writer& writer, const PagedList& list,
                                 const std::vector<Cursor>& cursors);

// Whether a list that is sorted so can be renumbered under a cursor's feet.
[[nodiscard]] bool follows_numbers(const PagedList& list, const std::vector<PlannedKey>& keys);

// The keys of an item as they are now; empty if it is gone.
[[nodiscard]] std::vector<SqlValue> keys_of_item(Connection& connection, const PagedList& list,
                                                 const std::vector<PlannedKey>& keys,
                                                 const std::string& item);

// Keeps the cursors of a numbered list in their places while items are removed and the others get
// new numbers. One transaction: `leave` each item that goes, remove them all, `settle`, and only
// then renumber. A cursor then stands at the item before the one that has gone (for one that leads
// backwards: behind it), so that its next page has all that came after, and nothing twice.
class CursorMover {
 public:
  // The connection must outlive it.
  CursorMover(Connection& connection, PagedList list)
      : connection_(connection), list_(std::move(list)) {}

  void leave(const std::string& item);
  void settle();

 private:
  struct Stranded {
    Cursor cursor;  // with the keys that its item had at the end
    std::vector<PlannedKey> plan;
  };

  Connection& connection_;
  const PagedList list_;
  std::vector<Stranded> stranded_;
};

}  // namespace conversed::store
