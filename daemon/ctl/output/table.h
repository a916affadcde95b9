#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/ctl/output/screen.h"

namespace conversed::ctl {

// A cell of a table.
struct Cell {
  enum class Kind : std::uint8_t {
    text,
    number,  // aligned at the right, never shortened
    id,      // never shortened
    time,    // an age on a terminal
    state,   // colored
  };

  // Not explicit: a row is a list of texts and numbers.
  Cell(std::string value) : text(std::move(value)) {}                            // NOLINT
  Cell(const char* value) : text(value) {}                                       // NOLINT
  Cell(std::int64_t value) : text(std::to_string(value)), kind(Kind::number) {}  // NOLINT
  Cell(Kind of, std::string value) : text(std::move(value)), kind(of) {}
  // A time of Unix, or none.
  static Cell at(std::optional<std::int64_t> unix_seconds);

  std::string text;
  Kind kind = Kind::text;
  std::int64_t unix_seconds = 0;  // of a time that is not empty
};

// Whether the number of an answer with this name is a time.
[[nodiscard]] bool is_time(std::string_view name);

// The member of an answer as its type and name show it: `yes` or `no`, commas between the values of
// a list, nothing for null.
[[nodiscard]] Cell cell_of(std::string_view name, const nlohmann::json& value);

// Rows under headers, with the control characters of texts escaped (store/text/terminal.h).
//
// A terminal gets columns as wide as their widest cells. If they don't fit, the widest texts
// are shortened with `…`, or the last column goes on in further lines. A file or pipe gets a tab
// between cells and nothing shortened.
class Table {
 public:
  explicit Table(const std::vector<std::string>& headers);

  // Texts of the last column that are too long go on below, and are not shortened.
  void wrap_last() { wraps_last_ = true; }
  // `row` has one cell per header. An empty text is shown as `-`.
  void add(std::vector<Cell> row);
  [[nodiscard]] std::string to_text(const Screen& screen) const;
  // Prints the table, or `if_empty` if it has no rows.
  void print(std::string_view if_empty) const;

 private:
  [[nodiscard]] Cell::Kind kind_of(std::size_t column) const;
  // Makes the widest columns narrower, the last one of equals first, until the table fits.
  void fit(std::vector<std::size_t>& widths, std::size_t columns) const;
  [[nodiscard]] std::string line_of(const std::vector<Cell>& row,
                                    const std::vector<std::size_t>& widths,
                                    const Screen& screen) const;

  std::vector<std::vector<Cell>> rows_;  // the first has the headers
  bool wraps_last_ = false;
};

}  // namespace conversed::ctl
