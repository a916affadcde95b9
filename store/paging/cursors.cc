#include "store/paging/cursors.h"

#include <nlohmann/json.hpp>

#include "store/model/names.h"
#include "store/sql/read.h"

namespace conversed::store {

using nlohmann::json;

namespace {

constexpr model::Names<Side, 2> sides{{{{Side::after, "after"}, {Side::before, "before"}}}};

json to_json(const std::vector<SqlValue>& values) {
  json list = json::array();
  for (const auto& value : values) {
    std::visit([&](const auto& held) { list.push_back(held); }, value);
  }
  return list;
}

std::vector<SqlValue> values_from(const json& list) {
  std::vector<SqlValue> values;
  for (const auto& value : list) {
    values.push_back(value.is_string() ? SqlValue(value.get<std::string>())
                                       : SqlValue(value.get<std::int64_t>()));
  }
  return values;
}

// Sort and filter, as a cursor remembers them.
json query_of(const std::vector<SortKey>& sort, const std::string& filter) {
  json keys = json::array();
  for (const auto& key : sort) keys.push_back({key.field, key.order == Order::descending});
  return {{"sort", std::move(keys)}, {"filter", filter}};
}

std::vector<SortKey> sort_from(const json& query) {
  std::vector<SortKey> sort;
  for (const auto& key : query.at("sort")) {
    sort.push_back({key.at(0).get<std::string>(),
                    key.at(1).get<bool>() ? Order::descending : Order::ascending});
  }
  return sort;
}

}  // namespace

std::optional<Cursor> find_cursor(Connection& connection, const PagedList& list,
                                  const std::string& id, model::Timestamp now,
                                  std::int64_t numbering) {
  const auto row = connection.row<json, std::string, json>(
      "SELECT query, side, position FROM cursors"
      " WHERE id = :i AND scope = :s AND expires_at > :n AND numbering IN (0, :m)",
      id, list.scope, now, numbering);
  if (!row) return std::nullopt;
  const auto& [query, side, position] = *row;
  const auto known = sides.value_of(side);
  if (!known) throw DamagedData("a cursor has no side");
  return Cursor{.id = id,
                .side = *known,
                .sort = sort_from(query),
                .filter = query.at("filter").get<std::string>(),
                .keys = values_from(position)};
}

void write_cursors(Writer& writer, const PagedList& list, const std::vector<Cursor>& cursors) {
  Connection& connection = writer.connection();
  const auto now = writer.timer_now();
  for (const auto& cursor : cursors) {
    connection.run(
        "INSERT INTO cursors (id, scope, query, side, position, numbering, expires_at)"
        " VALUES (:i, :s, :q, :d, :p, :m, :e)",
        cursor.id, list.scope, query_of(cursor.sort, cursor.filter), sides.name_of(cursor.side),
        to_json(cursor.keys), cursor.numbering, now + cursor_lifetime);
  }
  // Removes a few expired cursors at a time, but more than are added.
  connection.run(
      "DELETE FROM cursors WHERE id IN"
      " (SELECT id FROM cursors WHERE expires_at <= :n ORDER BY expires_at LIMIT 16)",
      now);
}

}  // namespace conversed::store
