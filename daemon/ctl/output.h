#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/ctl/client.h"
#include "daemon/ctl/fields.h"

// Prints for commands. Escapes control characters (store/text/terminal.h), since answers contain
// texts of users.
namespace conversed::ctl {

// Print a line to standard output, or to standard error. A line end within it is escaped.
void say(std::string_view line);
void note(std::string_view line);
void say_lines(std::string_view lines);

// Prints the error, of one or several lines, to stderr. Returns the exit code of a failed command.
int failed(const model::Error& error);

// Prints JSON on one line, for programs. Returns the exit code of success.
int say_json(const nlohmann::json& value);

// A cell of a table: a text, or a number, which is aligned at the right.
struct Cell {
  // Not explicit: a row is a list of texts and numbers.
  Cell(std::string value) : text(std::move(value)) {}                         // NOLINT
  Cell(const char* value) : text(value) {}                                    // NOLINT
  Cell(std::int64_t value) : text(std::to_string(value)), is_number(true) {}  // NOLINT

  std::string text;
  bool is_number = false;
};

// Rows under headers. Each column is as wide as its widest cell, except for the last: its cells are
// not padded.
class Table {
 public:
  explicit Table(const std::vector<std::string>& headers);

  // `row` has one cell per header. An empty text is shown as `-`.
  void add(std::vector<Cell> row);
  [[nodiscard]] std::string to_text() const;
  // Prints the table, or `if_empty` if it has no rows.
  void print(std::string_view if_empty) const;

 private:
  std::vector<std::vector<Cell>> rows_;  // the first has the headers
};

using ForPeople = std::function<void(const Fields&)>;

// Prints an answer or the error, and returns the exit code. With --json it prints the answer as it
// is (without a body: `{}`), else by `for_people`. If that is empty, it prints JSON on many lines.
int print(const Client& client, const model::Result<nlohmann::json>& answer,
          const ForPeople& for_people);

}  // namespace conversed::ctl
