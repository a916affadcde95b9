#pragma once

#include <string_view>

namespace conversed::api {

// A file of the web console, embedded.
struct ConsoleFile {
  std::string_view path;  // "console.html", "pages/overview.js"
  std::string_view content_type;
  std::string_view etag;  // of its content, in quotes
  std::string_view text;
};

// Null: there is no such file.
[[nodiscard]] const ConsoleFile* console_file(std::string_view path);

}  // namespace conversed::api
