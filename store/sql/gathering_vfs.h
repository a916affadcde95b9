#pragma once

namespace conversed::store {

// The name of a VFS of SQLite (https://www.sqlite.org/vfs.html) for the one connection that writes
// a database. With it a commit and a checkpoint take fewer system calls:
//
// - SQLite writes each frame of its write-ahead log by two calls of `pwrite`. The VFS gathers
//   frames, and writes them by one call before SQLite syncs or reads the log.
// - A checkpoint reads the log frame by frame. The VFS reads ahead while the frames follow each
//   other.
//
// A commit needs `synchronous=FULL` and SQLite's default SQLITE_IOCAP_POWERSAFE_OVERWRITE: then
// SQLite syncs all of its frames before readers may see them, and a write that fails is the error
// of that sync. The database's file is not gathered: SQLite ignores errors of the calls behind a
// checkpoint's writes. Everything else is SQLite's default VFS. No other connection may write the
// database while this one is open: frames of a transaction that was rolled back may be written
// late, over those of another writer. The folder's lock and the one writer of Database ensure that.
// Kept by: GatheringVfsTest, GatheringVfsPowerTest. Thread-safe. Throws SqliteError.
[[nodiscard]] const char* gathering_vfs();

}  // namespace conversed::store
