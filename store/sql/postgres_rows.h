#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/sql.h"

// Many rows of parameters for one statement of PostgreSQL. For postgres.cc and tests.
namespace conversed::store {

// The statement that does for all rows of its array parameters what `sql` does for one row. `sql`
// has numbered parameters and is an INSERT of VALUES, or a SELECT, INSERT, UPDATE or DELETE whose
// first condition (WHERE) is its own. A SELECT gets the row's number, from 1, as its first column.
[[nodiscard]] std::string sql_of_rows(std::string_view sql, std::size_t parameters);

// A text as it is stored, if that differs: postgres.h says how.
[[nodiscard]] bool needs_escape(std::string_view text);
[[nodiscard]] std::string escaped(std::string_view text);

// Values of parameters in PostgreSQL's binary format. They point to what they were made of.
struct PostgresValues {
  std::vector<const char*> data;
  std::vector<int> lengths;
  std::vector<int> formats;

  void add(const char* value, std::size_t length) {
    data.push_back(value);
    lengths.push_back(static_cast<int>(length));
    formats.push_back(1);
  }
};

// The OID of the parameter's type, or of an array of such.
[[nodiscard]] unsigned int scalar_oid(SqlType type);
[[nodiscard]] unsigned int array_oid(SqlType type);

// An array for each parameter, in PostgreSQL's binary format, with an element for each row.
class PostgresArrays {
 public:
  void add_row(const std::vector<SqlSlot>& parameters);
  void clear();
  [[nodiscard]] bool empty() const { return rows_ == 0; }
  // Valid until the next change.
  [[nodiscard]] PostgresValues values();

 private:
  struct Array {
    std::string bytes;  // the head, then the elements
    SqlType type{};
    bool has_null = false;
  };
  std::vector<Array> arrays_;
  std::uint32_t rows_ = 0;
};

}  // namespace conversed::store
