#include "store/sql/postgres_rows.h"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "store/sql/postgres.h"

namespace conversed::store {
namespace {

constexpr char escape = '\x01';
constexpr char escaped_nul = '\x01';
constexpr char escaped_escape = '\x02';

template <typename Big>
void put_bytes(std::string& bytes, Big number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Dimensions, whether there is a NULL, the elements' type, their count, the first one's index.
constexpr std::size_t head_bytes = 5 * sizeof(std::uint32_t);

// The place of `word` outside of parentheses and quotes, from `from` on; npos: it is not there.
std::size_t find_outside(std::string_view sql, std::string_view word, std::size_t from) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = from; i < sql.size(); ++i) {
    if (!quoted && depth == 0 && sql.substr(i).starts_with(word)) return i;
    if (sql[i] == '\'') quoted = !quoted;
    if (quoted) continue;
    depth += sql[i] == '(' ? 1 : 0;
    depth -= sql[i] == ')' ? 1 : 0;
  }
  return std::string_view::npos;
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

std::string sql_of_rows(std::string_view sql, std::size_t parameters) {
  std::string arrays;
  std::string names;
  for (std::size_t i = 1; i <= parameters; ++i) {
    arrays += (i == 1 ? "$" : ", $") + std::to_string(i);
    names += (i == 1 ? "p" : ", p") + std::to_string(i);
  }
  // `$1` becomes `g.p1`.
  std::string out;
  bool quoted = false;
  for (const char c : sql) {
    if (c == '\'') quoted = !quoted;
    (c == '$' && !quoted) ? out += "g.p" : out += c;
  }
  const std::string given = "unnest(" + arrays + ")";
  const std::string as_rows = " AS g (" + names;
  constexpr std::string_view select = "SELECT ";
  constexpr std::string_view values = " VALUES (";
  const auto where = find_outside(out, " WHERE ", 0);
  if (out.starts_with(select)) {
    if (where == std::string::npos) throw std::logic_error("a SELECT of rows needs a WHERE");
    out.insert(where, ", " + given + " WITH ORDINALITY" + as_rows + ", n)");
    return out.insert(select.size(), "g.n, ");
  }
  const std::string from = given + as_rows + ')';
  if (const auto begin = find_outside(out, values, 0); begin != std::string::npos) {
    const auto end = find_outside(out, ")", begin + values.size());
    out.replace(end, 1, " FROM " + from);
    return out.replace(begin, values.size(), " SELECT ");
  }
  if (where == std::string::npos) throw std::logic_error("a statement of rows needs a WHERE");
  return out.insert(where, (out.starts_with("DELETE") ? " USING " : " FROM ") + from);
}

unsigned int scalar_oid(SqlType type) {
  return type == SqlType::integer ? 20 : 25;  // int8, text
}

unsigned int array_oid(SqlType type) {
  return type == SqlType::integer ? 1016 : 1009;
}

void PostgresArrays::add_row(const std::vector<SqlSlot>& parameters) {
  arrays_.resize(parameters.size());
  ++rows_;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const SqlSlot& slot = parameters[i];
    Array& array = arrays_[i];
    array.type = slot.type;
    if (array.bytes.empty()) array.bytes.resize(head_bytes);
    if (slot.null) {
      array.has_null = true;
      put_bytes(array.bytes, ~std::uint32_t{0});
    } else if (slot.type == SqlType::integer) {
      put_bytes(array.bytes, htobe32(sizeof(std::uint64_t)));
      put_bytes(array.bytes, htobe64(static_cast<std::uint64_t>(slot.integer)));
    } else {
      std::string_view text = slot.text;
      std::string without_nul;
      if (needs_escape(text)) text = without_nul = escaped(text);
      put_bytes(array.bytes, htobe32(static_cast<std::uint32_t>(text.size())));
      array.bytes += text;
    }
  }
}

void PostgresArrays::clear() {
  for (Array& array : arrays_) {
    array.bytes.clear();
    array.has_null = false;
  }
  rows_ = 0;
}

PostgresValues PostgresArrays::values() {
  PostgresValues values;
  for (Array& array : arrays_) {
    std::string head;
    for (const std::uint32_t number :
         {1U, array.has_null ? 1U : 0U, scalar_oid(array.type), rows_, 1U}) {
      put_bytes(head, htobe32(number));
    }
    std::ranges::copy(head, array.bytes.begin());
    values.add(array.bytes.data(), array.bytes.size());
  }
  return values;
}

}  // namespace conversed::store
