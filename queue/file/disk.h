#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/result.h"

namespace conversed::queue {

using model::Errc;
using model::Error;
using model::Result;

// A file of a Disk. One thread at a time changes it; any thread reads beside it. Errors:
// `unavailable`.
class File {
 public:
  virtual ~File() = default;

  // Writes all bytes. After an error any part of them may be written.
  [[nodiscard]] virtual Result<void> write(std::uint64_t at, std::string_view bytes) = 0;
  // The bytes from `at` on: `most` of them, or fewer at the end of the file.
  [[nodiscard]] virtual Result<std::string> read(std::uint64_t at, std::size_t most) const = 0;
  // As `read`, but into the caller's buffer. Returns the number of bytes: less than the buffer's
  // size only at the end of the file.
  [[nodiscard]] virtual Result<std::size_t> read_into(std::uint64_t at,
                                                      std::span<char> buffer) const = 0;
  // Makes all writes durable. After an error the outcome is unknown for ever: a later success says
  // nothing about these writes.
  [[nodiscard]] virtual Result<void> sync() = 0;
  // Takes the space for this size, so that writes below it need none.
  [[nodiscard]] virtual Result<void> reserve(std::uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() const = 0;
};

// The files of one folder. Tests replace it by a disk that fails, or loses unsynced writes. One
// thread at a time. Errors: `unavailable`.
class Disk {
 public:
  virtual ~Disk() = default;

  [[nodiscard]] virtual Result<std::vector<std::string>> names() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<File>> open(const std::string& name) = 0;
  // A new, empty file of mode 0600.
  [[nodiscard]] virtual Result<std::unique_ptr<File>> create(const std::string& name) = 0;
  [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual Result<void> remove(const std::string& name) = 0;
  // Makes the names durable: files that were created, renamed or removed.
  [[nodiscard]] virtual Result<void> sync() = 0;
};

// Makes the folder (mode 0700) if it is missing.
[[nodiscard]] Result<std::unique_ptr<Disk>> open_disk(const std::filesystem::path& folder);

}  // namespace conversed::queue
