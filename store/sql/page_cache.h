#pragma once

#include <algorithm>

// SQLite's page cache (https://www.sqlite.org/c3ref/pcache_methods2.html) without a scan at each
// commit.
//
// When SQLite sorts the pages of a B-tree, it gives one of them the number of the lock-byte page
// (https://www.sqlite.org/fileformat2.html#the_lock_byte_page) for a moment. SQLite's cache
// remembers the highest number since its last truncation. So the next commit, which discards pages
// behind the database's end, visits each page in the cache, 14,000 in 16 MiB. These caches know
// that no such page is left, and skip the visit.
namespace conversed::store {

// Tracks the highest page number in a cache. Numbers begin at 1.
class CachedPages {
 public:
  void added(unsigned page) { highest_ = std::max(highest_, page); }
  void renumbered(unsigned from, unsigned to) {
    if (from == aside_) aside_ = 0;
    if (to <= highest_) return;
    if (aside_ != 0) added(std::max(aside_, to));
    aside_ = to;
  }
  // Whether the cache may have pages with this number or a higher one.
  [[nodiscard]] bool may_reach(unsigned page) const { return page <= std::max(highest_, aside_); }
  // No page has this number or a higher one any more.
  void truncated(unsigned page) {
    highest_ = page - 1;
    aside_ = 0;
  }

 private:
  unsigned highest_ = 0;  // of all pages but the one at `aside_`, or more
  unsigned aside_ = 0;    // a page that was renumbered to above `highest_`; 0: none
};

// Makes SQLite use such caches. To be called before the first use of SQLite; later it changes
// nothing. Any thread, once.
void use_page_cache();

}  // namespace conversed::store
