// Writes the commented default file from the table of keys.
#include <algorithm>

#include "config/keys.h"
#include "store/text/joined.h"

namespace conversed::config {
namespace {

constexpr std::string_view heading =
    "# The settings of conversed, each with its default. A file needs only what it changes.\n"
    "#\n"
    "# Every key is an environment variable as well, which wins over the file: listen.port is\n"
    "# CONVERSED_LISTEN_PORT. There a list is written with commas. An unknown key is an error.\n"
    "# `conversed --check-config --config FILE` reports all problems at once.\n";

std::size_t depth_of(std::string_view path) {
  return static_cast<std::size_t>(std::count(path.begin(), path.end(), '.'));
}

// The text as comment lines of at most 100 columns.
void comment(std::string& out, std::string_view text, const std::string& indent) {
  constexpr std::size_t width = 100;
  std::string line = indent + "#";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (line.size() + 1 + end > width) {
      out += line + "\n";
      line = indent + "#";
    }
    line += " " + std::string(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += line + "\n";
}

std::string value_text(const Key& key, const Settings& settings) {
  const std::vector<std::string> items = key.show(settings, key);
  if (!key.is_list()) return items.front().empty() ? "\"\"" : items.front();
  return "[" + text::joined(items) + "]";
}

// Writes the groups of `path` that are not open after `previous`.
void open_groups(std::string& out, std::string_view path, std::string_view previous) {
  std::size_t begin = 0;
  for (std::size_t depth = 0; depth < depth_of(path); ++depth) {
    const std::size_t end = path.find('.', begin);
    if (!previous.starts_with(path.substr(0, end + 1))) {
      if (depth == 0) out += "\n";
      out += std::string(2 * depth, ' ') + std::string(path.substr(begin, end - begin)) + ":\n";
    }
    begin = end + 1;
  }
}

}  // namespace

std::string default_file() {
  const Settings defaults;
  std::string out(heading);
  std::string_view previous;
  for (const Key& key : keys()) {
    open_groups(out, key.path, previous);
    const std::size_t depth = depth_of(key.path);
    if (depth == 0) out += "\n";
    const std::string indent(2 * depth, ' ');
    comment(out, key.doc, indent);
    std::string form = key.expected();
    if (form.front() >= 'a') form.front() = static_cast<char>(form.front() - 'a' + 'A');
    comment(out, form + (key.reloads ? ". Reloaded by SIGHUP." : "."), indent);
    out += indent + std::string(key.path.substr(key.path.rfind('.') + 1)) + ": " +
           value_text(key, defaults) + "\n";
    previous = key.path;
  }
  return out;
}

}  // namespace conversed::config
