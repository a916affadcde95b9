#include "daemon/ctl/files/text_file.h"

#include <array>
#include <filesystem>
#include <fstream>

namespace conversed::ctl {

using model::Errc;
using model::fail;
using model::Result;

Result<std::string> read_file(const std::string& path) {
  std::error_code unknown;  // opening the file reports it
  if (std::filesystem::is_directory(path, unknown)) {
    return fail(Errc::not_found, path + ": is a folder; name a file in it");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 16 * 1024> part;
  // Iterators of the buffer would throw when a read fails; the stream remembers the failure.
  while (file) {
    file.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || !file.eof()) {
    return fail(Errc::not_found, path + ": can't be read; is the path right?");
  }
  return text;
}

Result<void> write_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) return fail(Errc::unavailable, path + ": can't be written");
  return {};
}

Result<void> write_new_file(const std::string& path, std::string_view text) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown)) {
    return fail(Errc::conflict, path + ": exists already; choose another name");
  }
  return write_file(path, text);
}

}  // namespace conversed::ctl
