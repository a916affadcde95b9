#include "store/paging.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/fold.h"
#include "store/model/ids.h"
#include "store/read.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

namespace {

constexpr std::array<std::pair<Side, std::string_view>, 4> side_names{{
    {Side::after, "after"},
    {Side::from, "from"},
    {Side::before, "before"},
    {Side::upto, "upto"},
}};

std::string_view to_string(Side side) {
  return std::find_if(side_names.begin(), side_names.end(),
                      [side](const auto& each) { return each.first == side; })
      ->second;
}

bool is_backward(Side side) {
  return side == Side::before || side == Side::upto;
}

// The same place, seen from the other direction.
Side opposite(Side side) {
  switch (side) {
    case Side::after:
      return Side::upto;
    case Side::from:
      return Side::before;
    case Side::before:
      return Side::from;
    case Side::upto:
      break;
  }
  return Side::after;
}

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

bool same_order(const std::vector<PlannedKey>& a, const std::vector<PlannedKey>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.field.name == y.field.name && x.order == y.order;
  });
}

// Numbers parameters on from those that a list has.
class Parameters {
 public:
  explicit Parameters(std::vector<SqlValue> values) : values_(std::move(values)) {}
  std::string add(SqlValue value) {
    values_.push_back(std::move(value));
    return ":p" + std::to_string(values_.size() - 1);
  }
  [[nodiscard]] std::vector<SqlValue> take() { return std::move(values_); }

 private:
  std::vector<SqlValue> values_;
};

// "k1 > v1 OR (k1 = v1 AND (k2 < v2 OR (...)))", each key in its own direction.
std::string beyond(const std::vector<PlannedKey>& keys, const Bound& bound,
                   Parameters& parameters) {
  const bool backward = is_backward(bound.side);
  const bool inclusive = bound.side == Side::from || bound.side == Side::upto;
  std::string sql;
  std::string closing;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string column(keys[i].field.sql);
    const bool falling = (keys[i].order == Order::descending) != backward;
    const bool last = i + 1 == keys.size();
    sql += column + (falling ? " <" : " >") + (last && inclusive ? "= " : " ") +
           parameters.add(bound.position[i]);
    if (last) break;
    sql += " OR (" + column + " = " + parameters.add(bound.position[i]) + " AND (";
    closing += "))";
  }
  return sql + closing;
}

struct Row {
  std::string id;
  std::vector<SqlValue> keys;
};

struct NewCursor {
  std::string id;
  Side side = Side::after;
  std::string query;
  std::string position;
};

// Reads one page: what a request asks for, or its cursor.
class PageReader {
 public:
  PageReader(Connection& connection, const PagedList& list, const PageRequest& request)
      : connection_(connection), list_(list), request_(request) {}

  Result<Page<std::string>> read();
  // What the page's cursors stand for; to be written before they are given away.
  [[nodiscard]] const std::vector<NewCursor>& cursors() const { return cursors_; }

 private:
  Result<void> begin();
  Result<void> begin_at(const std::string& cursor, bool backward);
  void follow_numbering(const std::string& id);
  std::vector<Row> select(const Bound& bound, std::size_t limit, std::int64_t skip);
  std::string offer(Side side, const Row* row);
  std::string offer_if_any(Side side, const Row* row);
  std::int64_t total();

  Connection& connection_;
  const PagedList& list_;
  const PageRequest& request_;
  std::vector<SortKey> sort_;
  std::string filter_;
  std::string folded_;
  std::vector<PlannedKey> keys_;
  Bound bound_;
  std::string bound_id_;  // of the item at the bound
  std::vector<NewCursor> cursors_;
};

Result<void> PageReader::begin() {
  if (!request_.next.empty() && !request_.previous.empty()) {
    return fail(Errc::invalid_argument, "next and previous exclude each other");
  }
  const bool backward = !request_.previous.empty();
  const std::string& cursor = backward ? request_.previous : request_.next;
  sort_ = request_.sort;
  filter_ = request_.filter;
  if (cursor.empty()) {
    auto keys = plan_sort(list_, sort_);
    if (!keys) return fail(keys.error());
    keys_ = *std::move(keys);
  } else if (auto begun = begin_at(cursor, backward); !begun) {
    return begun;
  }
  folded_ = fold_case(filter_);
  return {};
}

Result<void> PageReader::begin_at(const std::string& cursor, bool backward) {
  const auto row = connection_.row<std::string, std::string, std::string>(
      "SELECT query, side, position FROM cursors"
      " WHERE id = :i AND scope = :s AND expires_at > :n",
      cursor, list_.scope, model::to_unix_ms(request_.now));
  const auto side =
      row ? std::find_if(side_names.begin(), side_names.end(),
                         [&](const auto& each) { return each.second == std::get<1>(*row); })
          : side_names.end();
  if (side == side_names.end() || is_backward(side->first) != backward) {
    return fail(Errc::invalid_argument, "the cursor is unknown or has expired");
  }
  const json query = stored_json(std::get<0>(*row));
  auto keys = plan_sort(list_, sort_from(query));
  if (!keys) return fail(keys.error());
  auto filter = query.at("filter").get<std::string>();
  const auto asked = plan_sort(list_, sort_);
  if (!asked) return fail(asked.error());
  if ((!sort_.empty() && !same_order(*asked, *keys)) || (!filter_.empty() && filter_ != filter)) {
    return fail(Errc::invalid_argument, "the cursor belongs to another sort or filter");
  }
  sort_ = sort_from(query);
  filter_ = std::move(filter);
  keys_ = *std::move(keys);
  const json position = stored_json(std::get<2>(*row));
  bound_.side = side->first;
  bound_.position = values_from(position.at("keys"));
  if (!bound_.position.empty() && bound_.position.size() != keys_.size()) {
    throw DamagedData("a cursor has another number of keys than its sort");
  }
  bound_id_ = position.at("id").get<std::string>();
  follow_numbering(bound_id_);
  return {};
}

void PageReader::follow_numbering(const std::string& id) {
  const bool numbered = std::any_of(keys_.begin(), keys_.end(), [this](const PlannedKey& key) {
    return !list_.numbering.empty() && key.field.name == list_.numbering;
  });
  if (!numbered || id.empty()) return;
  PagedList one = list_;
  one.from +=
      " AND " + std::string(list_.fields.front().sql) + " = :p" + std::to_string(one.values.size());
  one.values.emplace_back(id);
  const auto select = select_page(one, keys_, {}, "", 1, 0);
  connection_.rows_once(
      [this](std::vector<SqlValue>&& row) {
        bound_.position.assign(std::make_move_iterator(row.begin() + 1),
                               std::make_move_iterator(row.end()));
      },
      select.sql, select.values, select.columns);
}

std::vector<Row> PageReader::select(const Bound& bound, std::size_t limit, std::int64_t skip) {
  const auto select = select_page(list_, keys_, bound, folded_, limit, skip);
  std::vector<Row> rows;
  connection_.rows_once(
      [&](std::vector<SqlValue>&& row) {
        rows.push_back(
            {std::get<std::string>(row.front()),
             {std::make_move_iterator(row.begin() + 1), std::make_move_iterator(row.end())}});
      },
      select.sql, select.values, select.columns);
  return rows;
}

// A cursor for what is on that side of the row; without a row, of the end.
std::string PageReader::offer(Side side, const Row* row) {
  const json position{{"id", row ? row->id : ""},
                      {"keys", row ? to_json(row->keys) : json::array()}};
  cursors_.push_back({model::new_id(), side, query_of(sort_, filter_).dump(), position.dump()});
  return cursors_.back().id;
}

std::string PageReader::offer_if_any(Side side, const Row* row) {
  const Bound there{side, row ? row->keys : std::vector<SqlValue>()};
  return select(there, 1, 0).empty() ? std::string() : offer(side, row);
}

std::int64_t PageReader::total() {
  std::int64_t total = 0;
  Parameters parameters(list_.values);
  std::string sql = list_.total_sql;
  if (!filter_.empty() || sql.empty()) {
    sql = "SELECT COUNT(*) FROM " + list_.from;
    if (!filter_.empty()) {
      sql += " AND folded_contains(" + list_.filter_text + ", " + parameters.add(folded_) + ")";
    }
  }
  connection_.rows_once(
      [&](std::vector<SqlValue>&& row) { total = std::get<std::int64_t>(row.front()); }, sql,
      parameters.take(), {SqlType::integer});
  return total;
}

Result<Page<std::string>> PageReader::read() {
  if (auto begun = begin(); !begun) return fail(begun.error());
  const bool backward = is_backward(bound_.side);
  // One more than asked for tells whether there are more.
  auto rows = select(bound_, request_.limit + 1, request_.skip);
  const bool more = rows.size() > request_.limit;
  if (more) rows.pop_back();
  if (backward) std::reverse(rows.begin(), rows.end());

  Page<std::string> page;
  page.total = total();
  const Side ahead = backward ? Side::before : Side::after;
  const Side behind = backward ? Side::after : Side::before;
  std::string in_front;
  std::string in_back;
  if (rows.empty()) {
    // What lies behind begins where this page would have: at the cursor, or at the list's end.
    const Row at{bound_id_, bound_.position};
    const bool at_end = bound_.position.empty();
    in_back = offer_if_any(at_end ? behind : opposite(bound_.side), at_end ? nullptr : &at);
  } else {
    const Row& far = backward ? rows.front() : rows.back();
    const Row& near = backward ? rows.back() : rows.front();
    if (more) in_front = offer(ahead, &far);
    const bool from_the_beginning = bound_.position.empty() && request_.skip == 0;
    if (!from_the_beginning) in_back = offer_if_any(behind, &near);
  }
  page.next = backward ? in_back : in_front;
  page.previous = backward ? in_front : in_back;
  for (auto& row : rows) page.items.push_back(std::move(row.id));
  return page;
}

void write_cursors(Writer& writer, const std::string& scope,
                   const std::vector<NewCursor>& cursors) {
  const auto now = model::to_unix_ms(writer.now());
  const auto expires = model::to_unix_ms(writer.now() + cursor_lifetime);
  for (const auto& cursor : cursors) {
    writer.connection().run(
        "INSERT INTO cursors (id, scope, query, side, position, expires_at)"
        " VALUES (:i, :s, :q, :d, :p, :e)",
        cursor.id, scope, cursor.query, to_string(cursor.side), cursor.position, expires);
  }
  // Those that have expired go a few at a time, but more of them than come.
  writer.connection().run(
      "DELETE FROM cursors WHERE id IN"
      " (SELECT id FROM cursors WHERE expires_at <= :n ORDER BY expires_at LIMIT 16)",
      now);
}

}  // namespace

std::vector<std::string_view> names_of(std::span<const PagedField> fields) {
  std::vector<std::string_view> names;
  for (const PagedField& field : fields) names.push_back(field.name);
  return names;
}

Result<std::vector<PlannedKey>> plan_sort(const PagedList& list, const std::vector<SortKey>& sort) {
  if (sort.empty()) {
    return std::vector<PlannedKey>{{list.own_order, list.own_direction}};
  }
  std::vector<PlannedKey> keys;
  bool unique = false;
  for (const auto& key : sort) {
    const auto field = std::find_if(list.fields.begin(), list.fields.end(),
                                    [&](const auto& each) { return each.name == key.field; });
    if (field == list.fields.end()) {
      return fail(Errc::invalid_argument, "sort: there is no sortable field " + key.field);
    }
    // Behind a unique key, or named a second time, a field decides nothing.
    const bool named = std::any_of(keys.begin(), keys.end(),
                                   [&](const auto& each) { return each.field.name == key.field; });
    if (unique || named) continue;
    keys.push_back({*field, key.order});
    unique = field->unique == Unique::yes;
  }
  if (!unique) keys.push_back({list.fields.front(), Order::ascending});
  return keys;
}

PageSelect select_page(const PagedList& list, const std::vector<PlannedKey>& keys,
                       const Bound& bound, const std::string& folded_filter, std::size_t limit,
                       std::int64_t skip) {
  Parameters parameters(list.values);
  PageSelect select;
  select.sql = "SELECT " + std::string(list.fields.front().sql);
  select.columns.push_back(SqlType::text);
  for (const auto& key : keys) {
    select.sql += ", " + std::string(key.field.sql);
    select.columns.push_back(key.field.type);
  }
  select.sql += " FROM " + list.from;
  if (!folded_filter.empty()) {
    select.sql +=
        " AND folded_contains(" + list.filter_text + ", " + parameters.add(folded_filter) + ")";
  }
  if (!bound.position.empty()) select.sql += " AND (" + beyond(keys, bound, parameters) + ")";
  std::string_view separator = " ORDER BY ";
  for (const auto& key : keys) {
    const bool falling = (key.order == Order::descending) != is_backward(bound.side);
    select.sql.append(separator).append(key.field.sql).append(falling ? " DESC" : " ASC");
    separator = ", ";
  }
  select.sql += " LIMIT " + parameters.add(static_cast<std::int64_t>(limit));
  select.sql += " OFFSET " + parameters.add(skip);
  select.values = parameters.take();
  return select;
}

Result<Page<std::string>> read_page(Database& database, Committer& committer, const PagedList& list,
                                    const PageRequest& request) {
  std::vector<NewCursor> cursors;
  auto page = read(database, [&](Connection& connection) -> Result<Page<std::string>> {
    PageReader reader(connection, list, request);
    auto found = reader.read();
    cursors = reader.cursors();
    return found;
  });
  if (!page || cursors.empty()) return page;
  auto written = committer.write_and_wait([&](Writer& writer) -> Result<void> {
    write_cursors(writer, list.scope, cursors);
    return {};
  });
  if (!written) return fail(written.error());
  return page;
}

}  // namespace conversed::store
