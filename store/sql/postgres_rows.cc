#include "store/sql/postgres_rows.h"

#include <endian.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "store/sql/postgres_session.h"

namespace conversed::store {
namespace {

constexpr char escape = '\x01';
constexpr char escaped_nul = '\x01';
constexpr char escaped_escape = '\x02';

// The place of a word outside of all parentheses.
std::size_t outermost(std::string_view sql, std::string_view word) {
  int depth = 0;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    if (depth == 0 && sql.substr(i).starts_with(word)) return i;
    if (sql[i] == '(') ++depth;
    if (sql[i] == ')') --depth;
  }
  return sql.size();
}

// The parts of an INSERT around the list behind VALUES.
struct Values {
  std::string_view before;
  std::string_view list;
  std::string_view after;
};

// None: the statement is no INSERT with VALUES. Valid as long as `sql`.
std::optional<Values> values_of(std::string_view sql) {
  constexpr std::string_view word = "VALUES (";
  const auto begin = outermost(sql, word);
  if (!sql.starts_with("INSERT") || begin == sql.size()) return std::nullopt;
  const auto rest = sql.substr(begin + word.size());
  const auto length = outermost(rest, ")");
  return Values{sql.substr(0, begin), rest.substr(0, length), rest.substr(length + 1)};
}

// The INSERT with a SELECT of the list.
std::string selected(const Values& values, std::string_view from) {
  std::string sql(values.before);
  sql.append("SELECT ").append(values.list).append(from).append(values.after);
  return sql;
}

void append_int32(std::string& bytes, std::size_t value) {
  const auto big = htobe32(static_cast<std::uint32_t>(value));
  bytes.append(reinterpret_cast<const char*>(&big), sizeof(big));
}

}  // namespace

bool needs_escape(std::string_view text) {
  return std::memchr(text.data(), '\0', text.size()) != nullptr ||
         std::memchr(text.data(), escape, text.size()) != nullptr;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '\0' && c != escape) {
      out += c;
    } else {
      out += escape;
      out += c == '\0' ? escaped_nul : escaped_escape;
    }
  }
  return out;
}

std::string unescaped(std::string_view stored) {
  std::string text;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (stored[i] != escape || i + 1 == stored.size()) {
      text += stored[i];
    } else {
      text += stored[++i] == escaped_nul ? '\0' : escape;
    }
  }
  return text;
}

std::string with_select(std::string sql) {
  const auto values = values_of(sql);
  if (!values || values->list.find("(SELECT ") == std::string_view::npos) return sql;
  return selected(*values, "");
}

// The rows are joined by LATERAL with a part that LIMIT or OFFSET keeps apart. So the server looks
// up row by row, also in tables that were empty when it made its plan. A row that is found by its
// ctid is still the row that the condition has chosen, since one transaction writes at a time.
std::string sql_of_rows(std::string_view sql, std::size_t parameters) {
  std::string arrays;
  std::string names;
  for (std::size_t i = 1; i <= parameters; ++i) {
    arrays += (i == 1 ? "$" : ", $") + std::to_string(i);
    names += (i == 1 ? "p" : ", p") + std::to_string(i);
  }
  const auto rows = "unnest(" + arrays + ')';
  const auto given = rows + " AS given (" + names + ')';
  std::string one;
  for (const char c : sql) {
    if (c == '$') {
      one += "given.p";
    } else {
      one += c;
    }
  }
  if (sql.starts_with("SELECT")) {
    return "SELECT answer.*, given.n FROM " + rows + " WITH ORDINALITY AS given (" + names +
           ", n) CROSS JOIN LATERAL (SELECT * FROM (" + one + ") AS found OFFSET 0) AS answer";
  }
  if (sql.starts_with("INSERT")) {
    if (const auto values = values_of(one)) return selected(*values, " FROM " + given);
    const auto query = outermost(one, "SELECT ");
    const auto conflict = outermost(one, " ON CONFLICT ");
    return one.substr(0, query) + "SELECT found.* FROM " + given + " CROSS JOIN LATERAL (" +
           one.substr(query, conflict - query) + " OFFSET 0) AS found" + one.substr(conflict);
  }
  const bool updates = sql.starts_with("UPDATE ");
  const auto name = std::string_view(updates ? "UPDATE " : "DELETE FROM ").size();
  const auto table = one.substr(name, one.find(' ', name) - name);
  const auto where = outermost(one, " WHERE ");
  return one.substr(0, where) + (updates ? " FROM " : " USING ") + given +
         " CROSS JOIN LATERAL (SELECT ctid AS place FROM " + table + one.substr(where) +
         " OFFSET 0) AS found WHERE " + table + ".ctid = found.place";
}

std::string array_of(const std::vector<SqlRow>& rows, std::size_t parameter) {
  const bool is_text = rows.front()[parameter].type == SqlType::text;
  std::string bytes;
  append_int32(bytes, 1);  // dimension
  append_int32(bytes, 1);  // there may be NULL
  append_int32(bytes, is_text ? text_oid : int8_oid);
  append_int32(bytes, rows.size());
  append_int32(bytes, 1);  // the number of the first element
  for (const auto& row : rows) {
    const SqlSlot& slot = row[parameter];
    if (slot.null) {
      append_int32(bytes, static_cast<std::size_t>(-1));
    } else if (is_text) {
      const auto text = needs_escape(slot.text) ? escaped(slot.text) : std::string();
      const std::string& value = text.empty() ? slot.text : text;
      append_int32(bytes, value.size());
      bytes += value;
    } else {
      const auto big = htobe64(static_cast<std::uint64_t>(slot.integer));
      append_int32(bytes, sizeof(big));
      bytes.append(reinterpret_cast<const char*>(&big), sizeof(big));
    }
  }
  return bytes;
}

}  // namespace conversed::store
