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

// Cursors as rows: the place where the next page of a list begins. For .cc files of store/ only.
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

// Whether an import can renumber the list that the cursor is sorted by.
[[nodiscard]] bool follows_numbers(const PagedList& list, const std::vector<PlannedKey>& keys);

// The keys of an item as they are now; empty if it is gone.
[[nodiscard]] std::vector<SqlValue> keys_of_item(Connection& connection, const PagedList& list,
                                                 const std::vector<PlannedKey>& keys,
                                                 const std::string& item);

// Keeps the cursors of a numbered list in their places while items are removed and renumbered. In
// one transaction: `leave` each item that goes, remove them all, `settle`, and then renumber. A
// cursor of a removed item moves to the item before it (a backward cursor: behind it), so that its
// next page has all items that followed, each once.
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
