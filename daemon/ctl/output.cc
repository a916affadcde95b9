#include "daemon/ctl/output.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/model/json.h"
#include "store/text/terminal.h"
#include "store/text/utf8.h"

namespace conversed::ctl {

using nlohmann::json;

void say(std::string_view line) {
  std::cout << text::shown(line, text::Lines::one) << '\n';
}

void say_lines(std::string_view lines) {
  std::cout << text::shown(lines, text::Lines::many) << '\n';
}

void note(std::string_view line) {
  std::cerr << text::shown(line, text::Lines::one) << '\n';
}

int failed(const model::Error& error) {
  std::cerr << "conversectl: " << text::shown(error.message, text::Lines::many) << '\n';
  return 1;
}

int say_json(const json& value) {
  say(model::json_text(value));
  return 0;
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

std::string Table::to_text() const {
  const std::size_t count = rows_.front().size();
  std::vector<std::size_t> widths(count);
  std::vector<bool> is_number(count);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < count; ++i) {
      widths[i] = std::max(widths[i], text::count_characters(row[i].text));
      is_number[i] = is_number[i] || row[i].is_number;
    }
  }
  std::string lines;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string padding(widths[i] - text::count_characters(row[i].text), ' ');
      if (i > 0) line += "  ";
      line += is_number[i] ? padding + row[i].text : row[i].text + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines += line + '\n';
  }
  lines.pop_back();
  return lines;
}

void Table::print(std::string_view if_empty) const {
  say_lines(rows_.size() > 1 ? to_text() : std::string(if_empty));
}

int print(const Client& client, const model::Result<json>& answer, const ForPeople& for_people) {
  if (!answer) return failed(answer.error());
  const json& body = answer->is_null() ? json::object() : *answer;
  if (client.options().json) return say_json(body);
  if (for_people) {
    for_people(Fields(body));
  } else {
    say_lines(model::json_text(body, 2));
  }
  return 0;
}

}  // namespace conversed::ctl
