#include "flows/tools/node_pages.h"

#include <algorithm>

namespace conversed::flows::tools {
namespace {

// The rest of the line behind `before`. Empty if the text has none.
std::string_view line_behind(std::string_view text, const std::string& before) {
  const auto at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find('\n'));
}

// Leaves the words of each `[words](address)`.
std::string without_links(std::string_view text) {
  std::string plain;
  while (true) {
    const auto middle = text.find("](");
    const auto begin = text.substr(0, middle).rfind('[');
    const auto end = middle == std::string_view::npos ? middle : text.find(')', middle);
    if (begin == std::string_view::npos || end == std::string_view::npos) return plain.append(text);
    plain.append(text.substr(0, begin)).append(text.substr(begin + 1, middle - begin - 1));
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string description_of(std::string_view type, std::string_view key) {
  const std::string heading = "\n## `" + std::string(type) + "`\n";
  if (key.empty()) return without_links(line_behind(nodes_page, heading));
  const auto at = nodes_page.find(heading);
  if (at == std::string_view::npos) return {};
  auto section = nodes_page.substr(at + heading.size());
  section = section.substr(0, section.find("\n## "));
  // The row has the key, its value, its default and its sentences.
  const auto cells = cells_of(line_behind(section, "\n| `" + std::string(key) + '`'));
  if (cells.size() != 4) return {};
  std::string facts(cells[1]);
  if (!cells[2].empty()) facts += cells[2] == "required" ? "; " : "; default ";
  return without_links(cells[3]) + " (" + facts.append(cells[2]) + ')';
}

std::vector<std::string_view> cells_of(std::string_view row) {
  std::vector<std::string_view> cells;
  for (auto end = row.find('|'); end != std::string_view::npos; end = row.find('|')) {
    auto cell = row.substr(0, end);
    cell.remove_prefix(std::min(cell.find_first_not_of(' '), cell.size()));
    cells.push_back(cell.substr(0, cell.find_last_not_of(' ') + 1));
    row.remove_prefix(end + 1);
  }
  return cells;
}

}  // namespace conversed::flows::tools
