#include "store/paging/cursors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/model/names.h"
#include "store/sql/read.h"

namespace conversed::store {

using nlohmann::json;

namespace {

constexpr model::Names<Side, 4> sides{{{
    {Side::after, "after"},
    {Side::from, "from"},
    {Side::before, "before"},
    {Side::upto, "upto"},
}}};

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
    if (value.is_string()) {
      values.emplace_back(value.get<std::string>());
    } else {
      values.emplace_back(value.get<std::int64_t>());
    }
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

// The item and its keys.
json position_of(const Cursor& cursor) {
  return {{"id", cursor.item}, {"keys", to_json(cursor.keys)}};
}

Cursor cursor_from(std::string id, const std::string& query_text, std::string_view side,
                   const std::string& position_text) {
  const json query = stored_json(query_text);
  const json position = stored_json(position_text);
  const auto known = sides.value_of(side);
  if (!known) throw DamagedData("a cursor has no side");
  return {.id = std::move(id),
          .side = *known,
          .sort = sort_from(query),
          .filter = query.at("filter").get<std::string>(),
          .item = position.at("id").get<std::string>(),
          .keys = values_from(position.at("keys"))};
}

}  // namespace

std::optional<Cursor> find_cursor(Connection& connection, const PagedList& list,
                                  const std::string& id, model::Timestamp now) {
  const auto row = connection.row<std::string, std::string, std::string>(
      "SELECT query, side, position FROM cursors"
      " WHERE id = :i AND scope = :s AND expires_at > :n",
      id, list.scope, now);
  if (!row) return std::nullopt;
  return cursor_from(id, std::get<0>(*row), std::get<1>(*row), std::get<2>(*row));
}

bool write_cursors(Writer& writer, const PagedList& list, const std::vector<Cursor>& cursors) {
  Connection& connection = writer.connection();
  // The cursors of a page have one sort.
  const auto keys = plan_sort(list, cursors.front().sort);
  const bool numbered = keys && follows_numbers(list, *keys);
  for (const auto& cursor : cursors) {
    if (!numbered || cursor.item.empty()) continue;
    if (keys_of_item(connection, list, *keys, cursor.item).empty()) return false;
  }
  const auto now = writer.timer_now();
  const auto expires = writer.timer_now() + cursor_lifetime;
  for (const auto& cursor : cursors) {
    std::optional<std::string> item;
    if (numbered && !cursor.item.empty()) item = cursor.item;
    connection.run(
        "INSERT INTO cursors (id, scope, query, side, position, item, expires_at)"
        " VALUES (:i, :s, :q, :d, :p, :t, :e)",
        cursor.id, list.scope, query_of(cursor.sort, cursor.filter).dump(),
        sides.name_of(cursor.side), position_of(cursor).dump(), item, expires);
  }
  // Removes a few expired cursors at a time, but more than are added.
  connection.run(
      "DELETE FROM cursors WHERE id IN"
      " (SELECT id FROM cursors WHERE expires_at <= :n ORDER BY expires_at LIMIT 16)",
      now);
  return true;
}

bool follows_numbers(const PagedList& list, const std::vector<PlannedKey>& keys) {
  return !list.numbering.empty() &&
         std::any_of(keys.begin(), keys.end(),
                     [&](const PlannedKey& key) { return key.field.name == list.numbering; });
}

std::vector<SqlValue> keys_of_item(Connection& connection, const PagedList& list,
                                   const std::vector<PlannedKey>& keys, const std::string& item) {
  PagedList one = list;
  one.from +=
      " AND " + std::string(list.fields.front().sql) + " = :p" + std::to_string(one.values.size());
  one.values.emplace_back(item);
  const auto select = select_page(one, keys, {}, "", 1, 0);
  std::vector<SqlValue> found;
  connection.rows_once(
      [&](std::vector<SqlValue>&& row) {
        found.assign(std::make_move_iterator(row.begin() + 1), std::make_move_iterator(row.end()));
      },
      select.sql, select.values, select.columns);
  return found;
}

void CursorMover::leave(const std::string& item) {
  std::vector<Cursor> here;
  connection_.rows(
      [&](std::string id, const std::string& query, const std::string& side,
          const std::string& position) {
        here.push_back(cursor_from(std::move(id), query, side, position));
      },
      "SELECT id, query, side, position FROM cursors WHERE item = :i AND scope = :s", item,
      list_.scope);
  for (auto& cursor : here) {
    auto plan = plan_sort(list_, cursor.sort);
    if (!plan) continue;  // of a field that there was once
    cursor.keys = keys_of_item(connection_, list_, *plan, item);
    if (!cursor.keys.empty()) stranded_.push_back({std::move(cursor), *std::move(plan)});
  }
}

void CursorMover::settle() {
  for (auto& [cursor, plan] : stranded_) {
    const bool backward = is_backward(cursor.side);
    const Bound beside{backward ? Side::after : Side::before, cursor.keys};
    const auto select = select_page(list_, plan, beside, "", 1, 0);
    // Without a neighbour the list begins, or ends, here.
    cursor.side = backward ? Side::before : Side::after;
    cursor.item.clear();
    cursor.keys.clear();
    connection_.rows_once(
        [&cursor = cursor](std::vector<SqlValue>&& row) {
          cursor.item = std::get<std::string>(row.front());
          cursor.keys.assign(std::make_move_iterator(row.begin() + 1),
                             std::make_move_iterator(row.end()));
        },
        select.sql, select.values, select.columns);
    std::optional<std::string> item;
    if (!cursor.item.empty()) item = cursor.item;
    connection_.run("UPDATE cursors SET side = :d, position = :p, item = :t WHERE id = :i",
                    sides.name_of(cursor.side), position_of(cursor).dump(), item, cursor.id);
  }
  stranded_.clear();
}

}  // namespace conversed::store
