#pragma once

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX's

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace conversed::tests {

// A new folder, removed with its content. Neither copied nor moved: paths into it stay valid as
// long as it exists.
class TempFolder {
 public:
  // Throws std::system_error if the folder can't be made.
  TempFolder() {
    auto name = (std::filesystem::temp_directory_path() / "conversed-test-XXXXXX").string();
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
  std::filesystem::path path_;
};

}  // namespace conversed::tests
