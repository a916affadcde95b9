#include "store/sql/gathering_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "store/sql/sqlite.h"
#include "store/sql/vfs_shim.h"

namespace conversed::store {
namespace {

// Bytes: some hundred pages, each of at most 64 KiB. SQLite's VFS for Unix writes fewer than 128
// KiB at once, and refuses to write a multiple of that.
constexpr std::size_t most_gathered = 120 * 1024;
constexpr std::size_t most_read_ahead = 32 * 1024;  // bytes
constexpr sqlite3_int64 frame_header = 24;          // bytes, between two pages of the log

// A write-ahead log. SQLite calls its functions from C, so they throw nothing.
struct GatheringFile : ShimFile {
  std::string pending;           // written by SQLite, and not yet to `file`
  sqlite3_int64 pending_at = 0;  // where it begins in the file
  std::string ahead;             // read from `file`
  sqlite3_int64 ahead_at = 0;    // where it begins in the file
  sqlite3_int64 end_of_last_read = 0;
  std::optional<sqlite3_int64> lost_at{};  // where bytes that were not written begin in the file
};
static_assert(alignof(GatheringFile) <= 8, "SQLite's memory is aligned to 8 bytes");

GatheringFile& gathering(sqlite3_file* file) {
  return *static_cast<GatheringFile*>(file);
}

// After an error the bytes are gone, as after a write that failed. Until they are written again, no
// sync succeeds.
int write_pending(GatheringFile& log) noexcept {
  if (log.pending.empty()) return SQLITE_OK;
  const int code = log.file->pMethods->xWrite(log.file, log.pending.data(),
                                              static_cast<int>(log.pending.size()), log.pending_at);
  log.pending.clear();
  if (code != SQLITE_OK) log.lost_at = log.pending_at;
  return code;
}

// The same for calls other than a write or a sync. There, SQLite rolls the transaction back for
// this error code only.
int write_pending_first(GatheringFile& log) noexcept {
  return write_pending(log) == SQLITE_OK ? SQLITE_OK : SQLITE_IOERR_WRITE;
}

int close(sqlite3_file* file) noexcept {
  const int code = write_pending_first(gathering(file));
  const int closed = pass<&sqlite3_io_methods::xClose>(file);
  gathering(file).~GatheringFile();
  return code == SQLITE_OK ? closed : code;
}

int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) noexcept {
  auto& log = gathering(file);
  log.ahead.clear();
  const auto added = static_cast<std::size_t>(size);
  const auto end = log.pending_at + static_cast<sqlite3_int64>(log.pending.size());
  if (at != end || log.pending.size() + added > most_gathered) {
    if (const int code = write_pending(log); code != SQLITE_OK) return code;
    log.pending_at = at;
  }
  if (log.lost_at && at <= *log.lost_at) log.lost_at.reset();
  log.pending.append(static_cast<const char*>(bytes), added);  // `open` reserved the memory
  return SQLITE_OK;
}

int sync(sqlite3_file* file, int flags) noexcept {
  auto& log = gathering(file);
  log.ahead.clear();
  if (const int code = write_pending(log); code != SQLITE_OK) return code;
  if (log.lost_at) return SQLITE_IOERR_WRITE;
  return pass<&sqlite3_io_methods::xSync>(file, flags);
}

int truncate(sqlite3_file* file, sqlite3_int64 size) noexcept {
  auto& log = gathering(file);
  log.ahead.clear();
  const int code = write_pending_first(log);
  if (log.lost_at && size <= *log.lost_at) log.lost_at.reset();
  return code == SQLITE_OK ? pass<&sqlite3_io_methods::xTruncate>(file, size) : code;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) noexcept {
  const int code = write_pending_first(gathering(file));
  return code == SQLITE_OK ? pass<&sqlite3_io_methods::xFileSize>(file, size) : code;
}

// Reads the log from `at` on, as much as there is. On an error nothing is ahead.
void read_ahead(GatheringFile& log, sqlite3_int64 at) noexcept {
  log.ahead.clear();
  sqlite3_int64 size = 0;
  if (log.file->pMethods->xFileSize(log.file, &size) != SQLITE_OK || size <= at) return;
  log.ahead.resize(std::min(static_cast<std::size_t>(size - at), most_read_ahead));
  log.ahead_at = at;
  const int code =
      log.file->pMethods->xRead(log.file, log.ahead.data(), static_cast<int>(log.ahead.size()), at);
  if (code != SQLITE_OK) log.ahead.clear();
}

bool has_ahead(const GatheringFile& log, std::size_t size, sqlite3_int64 at) {
  return at >= log.ahead_at && at + static_cast<sqlite3_int64>(size) <=
                                   log.ahead_at + static_cast<sqlite3_int64>(log.ahead.size());
}

int read(sqlite3_file* file, void* bytes, int size, sqlite3_int64 at) noexcept {
  auto& log = gathering(file);
  if (const int code = write_pending_first(log); code != SQLITE_OK) return code;
  const auto wanted = static_cast<std::size_t>(size);
  const bool follows = at == log.end_of_last_read + frame_header;
  log.end_of_last_read = at + size;
  if (follows && !has_ahead(log, wanted, at)) read_ahead(log, at);
  if (!has_ahead(log, wanted, at)) return pass<&sqlite3_io_methods::xRead>(file, bytes, size, at);
  std::memcpy(bytes, log.ahead.data() + (at - log.ahead_at), wanted);
  return SQLITE_OK;
}

// Version 1: SQLite asks the database's file, not the log, for shared memory.
constexpr sqlite3_io_methods methods{
    .iVersion = 1,
    .xClose = close,
    .xRead = read,
    .xWrite = write,
    .xTruncate = truncate,
    .xSync = sync,
    .xFileSize = file_size,
    .xLock = pass<&sqlite3_io_methods::xLock>,
    .xUnlock = pass<&sqlite3_io_methods::xUnlock>,
    .xCheckReservedLock = pass<&sqlite3_io_methods::xCheckReservedLock>,
    .xFileControl = pass<&sqlite3_io_methods::xFileControl>,
    .xSectorSize = pass<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = pass<&sqlite3_io_methods::xDeviceCharacteristics>,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr};

sqlite3_vfs& default_vfs() {
  static sqlite3_vfs* const found = sqlite3_vfs_find(nullptr);
  if (found == nullptr) throw SqliteError(SQLITE_NOMEM);  // SQLite could not begin
  return *found;
}

int open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* memory, int flags,
         int* flags_opened) noexcept {
  auto& vfs = default_vfs();  // there is one since the registration
  if ((flags & SQLITE_OPEN_WAL) == 0) return vfs.xOpen(&vfs, name, memory, flags, flags_opened);
  memory->pMethods = nullptr;  // SQLite closes a file that has methods, even if it was not opened
  std::string pending;
  std::string ahead;
  try {
    pending.reserve(most_gathered);
    ahead.reserve(most_read_ahead);
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
  auto* file = file_behind<GatheringFile>(memory);
  const int code = vfs.xOpen(&vfs, name, file, flags, flags_opened);
  if (code != SQLITE_OK) {
    if (file->pMethods != nullptr) file->pMethods->xClose(file);
    return code;
  }
  auto* log = new (memory) GatheringFile;
  log->pMethods = &methods;
  log->file = file;
  log->pending = std::move(pending);
  log->ahead = std::move(ahead);
  return SQLITE_OK;
}

sqlite3_vfs gathering_copy() {
  auto vfs = default_vfs();  // all but its files
  vfs.szOsFile += static_cast<int>(bytes_before_file<GatheringFile>);
  vfs.pNext = nullptr;
  vfs.zName = "conversed";
  vfs.xOpen = open;
  return vfs;
}

}  // namespace

const char* gathering_vfs() {
  static sqlite3_vfs vfs = gathering_copy();
  static const int code = sqlite3_vfs_register(&vfs, 0);
  if (code != SQLITE_OK) throw SqliteError(code);
  return vfs.zName;
}

}  // namespace conversed::store
