#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/sql.h"

// One statement for many rows of parameters. For postgres*.cc alone. Pure.
namespace conversed::store {

// A row of parameters.
using SqlRow = std::vector<SqlSlot>;

// PostgreSQL's texts can't hold NUL: see postgres.h.
[[nodiscard]] bool needs_escape(std::string_view text);
[[nodiscard]] std::string escaped(std::string_view text);

// A statement that runs `sql` for many rows of parameters at once: each parameter is an array. If
// `sql` is a SELECT, the number of the row of parameters, from 1, follows its columns. `sql` has
// the parameters $1, $2 and so on. It is a SELECT, an INSERT with VALUES or with a SELECT of one
// table, an UPDATE without FROM, or a DELETE without USING.
[[nodiscard]] std::string sql_of_rows(std::string_view sql, std::size_t parameters);

// An INSERT with VALUES that contain a subquery, as an INSERT with a SELECT; other statements as
// they are. PostgreSQL takes both, Citus only the second.
[[nodiscard]] std::string with_select(std::string sql);

// A parameter of many rows: an array in PostgreSQL's binary form.
[[nodiscard]] std::string array_of(const std::vector<SqlRow>& rows, std::size_t parameter);

}  // namespace conversed::store
