#include "store/paging/paging.h"

#include <algorithm>
#include <utility>

#include "store/model/ids.h"
#include "store/paging/cursors.h"
#include "store/sql/fold.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

bool has(const std::vector<PlannedKey>& keys, std::string_view field) {
  return std::ranges::any_of(keys, [&](const auto& key) { return key.field.name == field; });
}

// Numbers parameters behind those of the list.
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
  const bool backward = bound.side == Side::before;
  std::string sql;
  std::string closing;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string column(keys[i].field.sql);
    const bool falling = (keys[i].order == Order::descending) != backward;
    sql += column + (falling ? " <" : " >") + " " + parameters.add(bound.position[i]);
    if (i + 1 == keys.size()) break;
    sql += " OR (" + column + " = " + parameters.add(bound.position[i]) + " AND (";
    closing += "))";
  }
  return sql + closing;
}

struct Row {
  std::string id;
  std::vector<SqlValue> keys;
};

// Reads the page of a request or of its cursor.
class PageReader {
 public:
  PageReader(Connection& connection, const PagedList& list, const PageRequest& request)
      : connection_(connection), list_(list), request_(request) {}

  // The page's cursors; to be written before the client gets them.
  [[nodiscard]] const std::vector<Cursor>& cursors() const { return cursors_; }

  Result<Page<std::string>> read() {
    if (auto begun = begin(); !begun) return fail(begun.error());
    const bool backward = bound_.side == Side::before;
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
      in_back = offer_if_any(behind, nullptr);  // the other end of the list
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

 private:
  Result<void> begin() {
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

  Result<void> begin_at(const std::string& cursor, bool backward) {
    auto stored = find_cursor(connection_, list_, cursor, request_.now, numbering());
    if (!stored || (stored->side == Side::before) != backward) {
      return fail(Errc::invalid_argument, "the cursor is unknown or has expired");
    }
    auto keys = plan_sort(list_, stored->sort);
    if (!keys) return fail(keys.error());
    const auto asked = plan_sort(list_, sort_);
    if (!asked) return fail(asked.error());
    if ((!sort_.empty() && *asked != *keys) || (!filter_.empty() && filter_ != stored->filter)) {
      return fail(Errc::invalid_argument, "the cursor belongs to another sort or filter");
    }
    sort_ = std::move(stored->sort);
    filter_ = std::move(stored->filter);
    keys_ = *std::move(keys);
    bound_ = {stored->side, std::move(stored->keys)};
    if (!bound_.position.empty() && bound_.position.size() != keys_.size()) {
      throw DamagedData("a cursor has another number of keys than its sort");
    }
    return {};
  }

  std::vector<Row> select(const Bound& bound, std::size_t limit, std::int64_t skip) {
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

  // A cursor for that side of the row; without a row, for an end of the list.
  std::string offer(Side side, const Row* row) {
    const bool numbered = row && has(keys_, list_.own_order.name);
    cursors_.push_back({model::new_id(), side, sort_, filter_,
                        row ? row->keys : std::vector<SqlValue>(), numbered ? numbering() : 0});
    return cursors_.back().id;
  }

  std::string offer_if_any(Side side, const Row* row) {
    const Bound there{side, row ? row->keys : std::vector<SqlValue>()};
    return select(there, 1, 0).empty() ? std::string() : offer(side, row);
  }

  std::int64_t total() {
    if (filter_.empty() && !list_.total_sql.empty()) return number(list_.total_sql, list_.values);
    Parameters parameters(list_.values);
    std::string sql = "SELECT COUNT(*) FROM " + list_.from;
    if (!filter_.empty()) {
      sql += " AND folded_contains(" + list_.filter_text + ", " + parameters.add(folded_) + ")";
    }
    return number(sql, parameters.take());
  }

  std::int64_t numbering() {
    return list_.numbering_sql.empty() ? 0 : number(list_.numbering_sql, list_.values);
  }

  std::int64_t number(const std::string& sql, const std::vector<SqlValue>& values) {
    std::int64_t value = 0;
    connection_.rows_once(
        [&](std::vector<SqlValue>&& row) { value = std::get<std::int64_t>(row.front()); }, sql,
        values, {SqlType::integer});
    return value;
  }

  Connection& connection_;
  const PagedList& list_;
  const PageRequest& request_;
  std::vector<SortKey> sort_;
  std::string filter_;
  std::string folded_;
  std::vector<PlannedKey> keys_;
  Bound bound_;
  std::vector<Cursor> cursors_;
};

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
    const auto field = std::ranges::find(list.fields, key.field, &PagedField::name);
    if (field == list.fields.end()) {
      return fail(Errc::invalid_argument, "sort: there is no sortable field " + key.field);
    }
    // A field behind a unique key, or named a second time, does not affect the order.
    if (unique || has(keys, key.field)) continue;
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
    const bool falling = (key.order == Order::descending) != (bound.side == Side::before);
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
  std::vector<Cursor> cursors;
  auto page = read_snapshot(database, [&](Connection& connection) -> Result<Page<std::string>> {
    PageReader reader(connection, list, request);
    auto found = reader.read();
    cursors = reader.cursors();
    return found;
  });
  if (!page || cursors.empty()) return page;
  auto written =
      committer.write_and_wait([&](Writer& writer) { write_cursors(writer, list, cursors); });
  if (written) return page;
  // No client has seen the cursors, so an unknown outcome is the same as no change.
  if (written.error().code != Errc::timed_out) return fail(written.error());
  return fail(Errc::unavailable, "the store can't be written to now; no page was read");
}

}  // namespace conversed::store
