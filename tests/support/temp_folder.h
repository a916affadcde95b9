#pragma once

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX's
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace conversed::tests {

// A new folder, removed with its content. It lies in memory if there is room: tests end processes,
// not the machine, so their files need not reach a disk. Neither copied nor moved: paths into it
// stay valid as long as it exists.
class TempFolder {
 public:
  // Throws std::system_error if the folder can't be made.
  TempFolder() {
    auto name = (parent() / "conversed-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), name);
    }
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const {
    return path_ / name;
  }

 private:
  static std::filesystem::path parent() {
    constexpr std::uintmax_t enough = 4ULL << 30;
    const std::filesystem::path memory = "/dev/shm";
    std::error_code none;
    const auto space = std::filesystem::space(memory, none);
    const bool is_named = getenv("TMPDIR") != nullptr;
    return !is_named && !none && space.available >= enough && access(memory.c_str(), W_OK) == 0
               ? memory
               : std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

}  // namespace conversed::tests
