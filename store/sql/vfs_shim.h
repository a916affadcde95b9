#pragma once

#include <sqlite3.h>

#include <cstddef>

// Parts of a VFS of SQLite that stands before another VFS (https://www.sqlite.org/vfs.html,
// "VFS shims"). For the .cc files of this folder, and tests.
namespace conversed::store {

// A file of the VFS. SQLite allocates it together with the other VFS's file, which lies behind it.
struct ShimFile : sqlite3_file {
  sqlite3_file* file = nullptr;  // of the other VFS
};

// Where the other VFS's file begins in the memory of a `Shim`, which derives from ShimFile.
template <typename Shim>
constexpr std::size_t bytes_before_file = (sizeof(Shim) + alignof(std::max_align_t) - 1) /
                                          alignof(std::max_align_t) * alignof(std::max_align_t);

template <typename Shim>
sqlite3_file* file_behind(sqlite3_file* memory) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(memory) + bytes_before_file<Shim>);
}

namespace detail {
template <auto Method>
struct Pass;
template <typename Result, typename... Arguments,
          Result (*sqlite3_io_methods::*Method)(sqlite3_file*, Arguments...)>
struct Pass<Method> {
  static Result call(sqlite3_file* shim, Arguments... arguments) {
    auto* file = static_cast<ShimFile*>(shim)->file;
    return (file->pMethods->*Method)(file, arguments...);
  }
};
}  // namespace detail

// The function of a shim's method that only calls the other VFS's.
template <auto Method>
constexpr auto pass = detail::Pass<Method>::call;

}  // namespace conversed::store
