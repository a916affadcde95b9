#include "daemon/ctl/output/sheet.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "daemon/ctl/output/table.h"
#include "store/model/json.h"
#include "store/text/ascii.h"
#include "store/text/joined.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

constexpr std::size_t step = 2;  // of the indentation

// Documents whose members are the project's or a user's.
bool is_document(std::string_view name) {
  constexpr std::array names{"context", "flowState", "profile", "data", "definition"};
  return std::ranges::find(names, name) != names.end();
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

// `lastActivityAt` is `Last activity`, `URLToken` is `URL token`, `_id` is `Id`.
std::string label_of(std::string name, bool is_time) {
  if (is_time && name.size() > 2) name.resize(name.size() - 2);
  name.erase(0, name.find_first_not_of('_'));
  std::string label;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool ends_initials = i + 1 < name.size() && !is_upper(name[i + 1]);
    const bool begins_word =
        i > 0 && is_upper(name[i]) && (!is_upper(name[i - 1]) || ends_initials);
    if (begins_word) label += ' ';
    label += begins_word && ends_initials ? text::to_lower(name[i]) : name[i];
  }
  if (!label.empty()) label[0] = upper(label[0]);
  return text::shown(label, text::Lines::one);
}

std::string indented(std::string_view lines, std::size_t columns) {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const auto end = std::min(lines.find('\n', at), lines.size());
    out += std::string(columns, ' ').append(lines.substr(at, end - at)) + '\n';
    at = end + 1;
  }
  return out;
}

// Times to come, one in a line.
bool is_times(std::string_view name, const json& value) {
  return name == "next" && value.is_array() &&
         std::ranges::all_of(value, [](const json& each) { return each.is_number_integer(); });
}

std::string times_of(const json& times, const Screen& screen) {
  std::vector<std::string> lines;
  for (const json& time : times) lines.push_back(full_time(time.get<std::int64_t>(), screen));
  return lines.empty() ? "-" : text::joined(lines, "\n");
}

std::string value_of(const Cell& cell, const Screen& screen) {
  if (cell.text.empty()) return "-";
  if (cell.kind == Cell::Kind::time) return full_time(cell.unix_seconds, screen);
  if (!screen.is_terminal) return text::shown(cell.text, text::Lines::one);
  const auto style = cell.kind == Cell::Kind::state ? style_of(cell.text) : Style::plain;
  return styled(text::shown(cell.text, text::Lines::many), style, screen);
}

bool is_table(const json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const json& each) { return each.is_object(); });
}

std::string table_of(const json& items, const Screen& screen) {
  std::vector<std::string> names;  // of members that have a value; traces leave no room for texts
  for (const json& item : items) {
    for (const auto& [name, value] : item.items()) {
      if (value.is_null() || name == "traceId") continue;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  std::vector<std::string> headers;
  for (const auto& name : names) {
    auto header = label_of(name, name.ends_with("At"));
    std::ranges::transform(header, header.begin(), upper);
    headers.push_back(std::move(header));
  }
  Table table(headers);
  for (const json& item : items) {
    std::vector<Cell> row;
    for (const auto& name : names) row.push_back(cell_of(name, item.value(name, json())));
    table.add(std::move(row));
  }
  return table.to_text(screen);
}

std::string lines_of(const json& object, const Screen& screen) {
  std::vector<std::pair<std::string, std::string>> plain;
  std::string nested;
  std::size_t widest = 0;
  Screen inner = screen;
  inner.columns -= std::min(inner.columns, step);
  for (const auto& [name, value] : object.items()) {
    std::string below;
    if (!value.empty() && is_document(name) && value.is_structured()) {
      below = text::shown(model::json_text(value, 2), text::Lines::many);
    } else if (value.is_object() && !value.empty()) {
      below = lines_of(value, inner);
    } else if (name == "waits" && is_table(value)) {
      for (const json& wait : value) below += wait_of(Fields(wait), inner);
    } else if (is_table(value)) {
      below = table_of(value, inner);
    } else {
      const Cell cell = value.is_structured() && value.empty() ? Cell("") : cell_of(name, value);
      plain.emplace_back(label_of(name, name.ends_with("At")),
                         is_times(name, value) ? times_of(value, screen) : value_of(cell, screen));
      widest = std::max(widest, text::width(plain.back().first));
      continue;
    }
    nested += styled(label_of(name, false), Style::header, screen) + '\n' + indented(below, step);
  }
  std::string lines;
  for (const auto& [label, value] : plain) {
    const auto further = indented(value, widest + step);  // the first line gets the label
    lines += styled(label, Style::header, screen) +
             std::string(widest + step - text::width(label), ' ') + further.substr(widest + step);
  }
  return lines + nested;
}

// The number of an entry in a list.
bool is_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

// Of a member by its path, such as `/outputs/0/text`. Entries of a list have the list's name.
Cell cell_at(std::string_view path, const json& value) {
  if (is_document(path.substr(1, path.find('/', 1) - 1))) return cell_of("", value);
  auto name = path.substr(path.rfind('/') + 1);
  if (!is_number(name)) return cell_of(name, value);
  path.remove_suffix(name.size() + 1);
  name = path.substr(path.rfind('/') + 1);
  const bool is_time_to_come = name == "next" && value.is_number_integer();
  return is_time_to_come ? Cell::at(value.get<std::int64_t>()) : cell_of(name, value);
}

}  // namespace

std::string wait_of(const Fields& wait, const Screen& screen) {
  const auto line = [](const std::string& words) {
    return text::shown(words, text::Lines::one) + '\n';
  };
  std::string lines = line(wait.text("reason") + ": " + wait.text("subject"));
  const auto add_time = [&](const char* field, const char* label) {
    if (const auto time = wait.time(field)) lines += line(label + full_time(*time, screen));
  };
  add_time("since", "  since ");
  add_time("expectedAt", "  expected at ");
  return lines + line("  " + wait.text("remedy"));
}

std::string sheet_of(const json& object, const Screen& screen) {
  if (screen.is_terminal) return lines_of(object, screen);
  std::string lines;
  const json flat = object.flatten();
  for (const auto& [path, value] : flat.items()) {
    const Cell cell = value.is_structured() ? Cell("") : cell_at(path, value);
    lines += text::shown(path.substr(1), text::Lines::one) + '\t' + value_of(cell, screen) + '\n';
  }
  return lines;
}

void print_sheet(const json& object) {
  std::cout << sheet_of(object, screen());
}

}  // namespace conversed::ctl
