#include "daemon/ctl/output/table.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "store/model/json.h"
#include "store/text/joined.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

constexpr std::string_view gap = "  ";
constexpr std::size_t narrowest = 8;  // of a column that is shortened

std::string shown_on(const Cell& cell, const Screen& screen) {
  if (cell.kind != Cell::Kind::time || cell.text == "-") return cell.text;
  return screen.is_terminal ? age(cell.unix_seconds, screen) : full_time(cell.unix_seconds, screen);
}

// Parts of the text of at most `width` columns, broken at blanks; a longer word stays whole.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    auto& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (text::width(line) + 1 + text::width(word) <= width) {
      line.append(" ").append(word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

}  // namespace

Cell Cell::at(std::optional<std::int64_t> unix_seconds) {
  Cell cell(Kind::time, unix_seconds ? std::to_string(*unix_seconds) : "");
  cell.unix_seconds = unix_seconds.value_or(0);
  return cell;
}

bool is_time(std::string_view name) {
  return name == "at" || name == "since" || name.ends_with("At") || name.ends_with("Since");
}

Cell cell_of(std::string_view name, const json& value) {
  if (value.is_null()) return "";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (name == "uptime") return std::to_string(number) + " s";
    return is_time(name) ? Cell::at(number) : Cell(number);
  }
  if (value.is_string()) {
    using enum Cell::Kind;
    // Names of users and sessions may be long, and are no ids of the daemon.
    const bool is_id = name != "userId" && name != "sessionId" &&
                       (name.ends_with("_id") || name.ends_with("Id") || name.ends_with("Token"));
    const bool is_state = name == "state" || name == "status";
    return {is_id ? id : is_state ? state : text, value.get<std::string>()};
  }
  const auto is_plain = [](const json& each) { return each.is_primitive(); };
  if (!value.is_array() || !std::ranges::all_of(value, is_plain)) return model::json_text(value);
  std::vector<std::string> texts;
  for (const json& each : value) texts.push_back(cell_of("", each).text);
  return text::joined(texts, ",");
}

Table::Table(const std::vector<std::string>& headers) {
  rows_.emplace_back(headers.begin(), headers.end());
}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) {
    cell.text = cell.text.empty() ? "-" : text::shown(cell.text, text::Lines::one);
  }
  rows_.push_back(std::move(row));
}

Cell::Kind Table::kind_of(std::size_t column) const {
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    const Cell& cell = rows_[row][column];
    if (cell.kind != Cell::Kind::text) return cell.kind;
  }
  return Cell::Kind::text;
}

void Table::fit(std::vector<std::size_t>& widths, std::size_t columns) const {
  std::vector<std::pair<std::size_t*, std::size_t>> texts;  // widths, and how far they may shrink
  for (std::size_t i = widths.size(); i-- > 0;) {
    if (kind_of(i) != Cell::Kind::text) continue;
    texts.emplace_back(&widths[i], std::max(narrowest, text::width(rows_.front()[i].text)));
  }
  const auto room = [](const auto& column) {
    return *column.first > column.second ? *column.first : 0;
  };
  const auto taken =
      std::accumulate(widths.begin(), widths.end(), (widths.size() - 1) * gap.size());
  for (std::size_t over = taken - std::min(taken, columns); over > 0; --over) {
    const auto widest = std::ranges::max_element(texts, {}, room);
    if (widest == texts.end() || room(*widest) == 0) return;
    --*widest->first;
  }
}

std::string Table::line_of(const std::vector<Cell>& row, const std::vector<std::size_t>& widths,
                           const Screen& screen) const {
  const bool is_header = &row == &rows_.front();
  std::string line;
  std::size_t blanks = 0;  // written before the next text, and so never at the end of a line
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string text = text::shortened(shown_on(row[i], screen), widths[i]);
    const std::size_t padding = widths[i] - text::width(text);
    const bool at_right = kind_of(i) == Cell::Kind::number;
    const auto style = is_header                          ? Style::header
                       : row[i].kind == Cell::Kind::state ? style_of(text)
                                                          : Style::plain;
    line += std::string(blanks + (at_right ? padding : 0), ' ') + styled(text, style, screen);
    blanks = gap.size() + (at_right ? 0 : padding);
  }
  return line + '\n';
}

std::string Table::to_text(const Screen& screen) const {
  std::string lines;
  if (!screen.is_terminal) {
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        lines += (i > 0 ? "\t" : "") + shown_on(row[i], screen);
      }
      lines += '\n';
    }
    return lines;
  }
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], text::width(shown_on(row[i], screen)));
    }
  }
  fit(widths, screen.columns);
  const auto before =
      std::accumulate(widths.begin(), widths.end() - 1, (widths.size() - 1) * gap.size());
  for (const auto& row : rows_) {
    const auto parts = wraps_last_ ? wrapped(row.back().text, widths.back())
                                   : std::vector<std::string>{row.back().text};
    if (parts.size() == 1) {
      lines += line_of(row, widths, screen);
      continue;
    }
    auto first = row;
    first.back().text = parts.front();
    lines += line_of(first, widths, screen);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      lines += std::string(before, ' ') + parts[i] + '\n';
    }
  }
  return lines;
}

void Table::print(std::string_view if_empty) const {
  if (rows_.size() > 1) {
    std::cout << to_text(screen());
  } else {
    std::cout << text::shown(if_empty, text::Lines::one) << '\n';
  }
}

}  // namespace conversed::ctl
