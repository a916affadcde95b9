#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <stdexcept>
#include <string>

#include "store/sql/vfs_shim.h"
#include "tests/support/lossy_file.h"

namespace conversed::tests {

// SQLite's default VFS from the construction of the first one on: SQLite's files lie in their
// folder as ever, and this object notes what of them a loss of power would leave. Thread-safe. One
// for a program, since SQLite keeps its VFS: a test ends with `forget_files`.
class FaultyVfs {
 public:
  [[nodiscard]] static FaultyVfs& get() {
    static FaultyVfs vfs;
    return vfs;
  }
  FaultyVfs(const FaultyVfs&) = delete;
  FaultyVfs& operator=(const FaultyVfs&) = delete;

  // From the n-th write, truncation, sync or removal on (1 is the next one) the power is off: all
  // of these fail. Of a write the power goes in the middle.
  void cut_power_at(std::size_t change) {
    const std::lock_guard lock(mutex_);
    left_ = change;
  }
  // The n-th write (1 is the next one) into a file whose name ends so fails once, with this code.
  void fail_write(const std::string& suffix, std::size_t nth, int code) {
    const std::lock_guard lock(mutex_);
    failing_ = {suffix, nth, code};
  }
  // The files have all writes so far.
  void switch_on() {
    const std::lock_guard lock(mutex_);
    left_ = never;
  }
  [[nodiscard]] bool is_off() {
    const std::lock_guard lock(mutex_);
    return left_ == 0;
  }
  // Writes into files whose names end so, and reads of them.
  [[nodiscard]] std::size_t writes(const std::string& suffix) {
    return sum(suffix, &Noted::writes);
  }
  [[nodiscard]] std::size_t reads(const std::string& suffix) { return sum(suffix, &Noted::reads); }

  // While no file is open: writes the files into a folder as the disk has them after a loss of
  // power, and switches the power on.
  void lose_power(const std::filesystem::path& folder, std::mt19937_64& random) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, file] : files_) {
      file->content.lose_power(random);
      std::ofstream out(folder / std::filesystem::path(name).filename(), std::ios::binary);
      out << file->content.bytes();
      if (!out.flush()) throw std::runtime_error("the files can't be written");
    }
    files_.clear();
    left_ = never;
  }
  void forget_files() {
    const std::lock_guard lock(mutex_);
    files_.clear();
    left_ = never;
  }

 private:
  static constexpr std::size_t never = ~std::size_t{0};

  struct Noted {
    std::string name;
    LossyFile content;
    std::size_t writes = 0;
    std::size_t reads = 0;
  };
  struct Open : store::ShimFile {
    std::shared_ptr<Noted> noted;
  };

  FaultyVfs() : system_(*sqlite3_vfs_find(nullptr)), vfs_(system_) {
    vfs_.szOsFile += static_cast<int>(store::bytes_before_file<Open>);
    vfs_.zName = "faulty";
    vfs_.xOpen = [](sqlite3_vfs*, sqlite3_filename name, sqlite3_file* memory, int flags,
                    int* opened) { return get().open(name, memory, flags, opened); };
    vfs_.xDelete = [](sqlite3_vfs*, const char* name, int sync) {
      return get().remove(name, sync);
    };
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~FaultyVfs() = default;

  std::size_t sum(const std::string& suffix, std::size_t Noted::*of) {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [name, file] : files_) {
      if (name.ends_with(suffix)) sum += *file.*of;
    }
    return sum;
  }

  static Open& opened(sqlite3_file* file) { return *static_cast<Open*>(file); }

  int open(sqlite3_filename name, sqlite3_file* memory, int flags, int* opened_flags) {
    const bool is_lost = (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) != 0;
    if (!is_lost) return system_.xOpen(&system_, name, memory, flags, opened_flags);
    memory->pMethods = nullptr;
    auto* file = store::file_behind<Open>(memory);
    const int code = system_.xOpen(&system_, name, file, flags, opened_flags);
    if (code != SQLITE_OK) return code;
    auto* open = new (memory) Open;
    open->pMethods = &methods;
    open->file = file;
    const std::lock_guard lock(mutex_);
    auto& noted = files_[name];
    if (noted == nullptr) {
      noted = std::make_shared<Noted>();
      noted->name = name;
      std::ifstream in(name, std::ios::binary);  // opened once more: it may have been there
      noted->content = LossyFile(std::string(std::istreambuf_iterator<char>(in), {}));
    }
    open->noted = noted;
    return SQLITE_OK;
  }
  // The name is gone at once. SQLite removes a WAL when all of it is in the database.
  int remove(const char* name, int sync) {
    const std::lock_guard lock(mutex_);
    if (!change()) return SQLITE_IOERR_DELETE;
    files_.erase(name);
    return system_.xDelete(&system_, name, sync);
  }
  // Counts a change; false if the power goes with it or is off.
  bool change() {
    if (left_ != 0 && left_ != never) --left_;
    return left_ != 0;
  }
  // The code with which a write into this file fails; SQLITE_OK: it works.
  int failure_of(const std::string& name) {
    if (failing_.nth == 0 || !name.ends_with(failing_.suffix)) return SQLITE_OK;
    return --failing_.nth == 0 ? failing_.code : SQLITE_OK;
  }

  static int close(sqlite3_file* file) {
    auto& open = opened(file);
    const int code = open.file->pMethods->xClose(open.file);
    open.~Open();
    return code;
  }
  static int read(sqlite3_file* file, void* bytes, int size, sqlite3_int64 at) {
    {
      const std::lock_guard lock(get().mutex_);
      ++opened(file).noted->reads;
    }
    return store::pass<&sqlite3_io_methods::xRead>(file, bytes, size, at);
  }
  static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
    auto& open = opened(file);
    auto& vfs = get();
    const std::lock_guard lock(vfs.mutex_);
    if (vfs.left_ == 0) return SQLITE_IOERR_WRITE;
    if (const int code = vfs.failure_of(open.noted->name); code != SQLITE_OK) return code;
    const bool on = vfs.change();  // else a part of the bytes may have gone
    ++open.noted->writes;
    open.noted->content.write(static_cast<std::uint64_t>(at),
                              {static_cast<const char*>(bytes), static_cast<std::size_t>(size)});
    const int code = open.file->pMethods->xWrite(open.file, bytes, size, at);
    return on ? code : SQLITE_IOERR_WRITE;
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    auto& open = opened(file);
    auto& vfs = get();
    const std::lock_guard lock(vfs.mutex_);
    if (!vfs.change()) return SQLITE_IOERR_TRUNCATE;
    open.noted->content.resize(static_cast<std::uint64_t>(size));
    return open.file->pMethods->xTruncate(open.file, size);
  }
  // The kernel's own disk is not asked: a loss of power is only played.
  static int sync(sqlite3_file* file, int) {
    auto& open = opened(file);
    auto& vfs = get();
    const std::lock_guard lock(vfs.mutex_);
    if (!vfs.change()) return SQLITE_IOERR_FSYNC;
    open.noted->content.sync();
    return SQLITE_OK;
  }

  // Version 2: without pages of the file in memory, all writes come along here.
  static constexpr sqlite3_io_methods methods{
      2,
      close,
      read,
      write,
      truncate,
      sync,
      store::pass<&sqlite3_io_methods::xFileSize>,
      store::pass<&sqlite3_io_methods::xLock>,
      store::pass<&sqlite3_io_methods::xUnlock>,
      store::pass<&sqlite3_io_methods::xCheckReservedLock>,
      store::pass<&sqlite3_io_methods::xFileControl>,
      store::pass<&sqlite3_io_methods::xSectorSize>,
      store::pass<&sqlite3_io_methods::xDeviceCharacteristics>,
      store::pass<&sqlite3_io_methods::xShmMap>,
      store::pass<&sqlite3_io_methods::xShmLock>,
      store::pass<&sqlite3_io_methods::xShmBarrier>,
      store::pass<&sqlite3_io_methods::xShmUnmap>,
      nullptr,
      nullptr};

  sqlite3_vfs& system_;
  sqlite3_vfs vfs_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Noted>> files_;
  std::size_t left_ = never;
  struct {
    std::string suffix;
    std::size_t nth = 0;  // 0: none
    int code = SQLITE_OK;
  } failing_;
};

}  // namespace conversed::tests
