#include "store/sql/page_cache.h"

#include <sqlite3.h>

#include <new>

namespace conversed::store {
namespace {

sqlite3_pcache_methods2 sqlites;  // of SQLite's own caches

// One of SQLite's caches. SQLite calls these functions from C, so they throw nothing.
struct PageCache {
  sqlite3_pcache* cache;
  CachedPages pages{};
};

PageCache& page_cache(sqlite3_pcache* cache) {
  return *reinterpret_cast<PageCache*>(cache);
}

sqlite3_pcache* create(int page_bytes, int extra_bytes, int purgeable) noexcept {
  auto* cache = sqlites.xCreate(page_bytes, extra_bytes, purgeable);
  if (cache == nullptr) return nullptr;
  auto* made = new (std::nothrow) PageCache{cache};
  if (made == nullptr) sqlites.xDestroy(cache);
  return reinterpret_cast<sqlite3_pcache*>(made);
}

void destroy(sqlite3_pcache* cache) noexcept {
  sqlites.xDestroy(page_cache(cache).cache);
  delete &page_cache(cache);
}

void set_size(sqlite3_pcache* cache, int pages) noexcept {
  sqlites.xCachesize(page_cache(cache).cache, pages);
}

int page_count(sqlite3_pcache* cache) noexcept {
  return sqlites.xPagecount(page_cache(cache).cache);
}

sqlite3_pcache_page* fetch(sqlite3_pcache* cache, unsigned page, int create_flag) noexcept {
  auto* found = sqlites.xFetch(page_cache(cache).cache, page, create_flag);
  if (found != nullptr) page_cache(cache).pages.added(page);
  return found;
}

void unpin(sqlite3_pcache* cache, sqlite3_pcache_page* page, int discard) noexcept {
  sqlites.xUnpin(page_cache(cache).cache, page, discard);
}

void renumber(sqlite3_pcache* cache, sqlite3_pcache_page* page, unsigned from,
              unsigned to) noexcept {
  sqlites.xRekey(page_cache(cache).cache, page, from, to);
  page_cache(cache).pages.renumbered(from, to);
}

void truncate(sqlite3_pcache* cache, unsigned first) noexcept {
  auto& pages = page_cache(cache).pages;
  if (!pages.may_reach(first)) return;
  sqlites.xTruncate(page_cache(cache).cache, first);
  pages.truncated(first);
}

void shrink(sqlite3_pcache* cache) noexcept {
  sqlites.xShrink(page_cache(cache).cache);
}

}  // namespace

void use_page_cache() {
  if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &sqlites) != SQLITE_OK) return;
  auto methods = sqlites;
  methods.xCreate = create;
  methods.xCachesize = set_size;
  methods.xPagecount = page_count;
  methods.xFetch = fetch;
  methods.xUnpin = unpin;
  methods.xRekey = renumber;
  methods.xTruncate = truncate;
  methods.xDestroy = destroy;
  methods.xShrink = shrink;
  sqlite3_config(SQLITE_CONFIG_PCACHE2, &methods);
}

}  // namespace conversed::store
