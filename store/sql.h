#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "store/model/result.h"

// How this folder speaks SQL: prepared statements over SOCI, kept by their text. For the .cc files
// of this folder only. SOCI itself is included by sql.cc alone. Beside SQLite's functions there is
// folded_contains(text, needle): whether the text holds the needle under Unicode case folding; the
// needle has to be folded already (see fold.h).
namespace conversed::store {

// What went wrong in the database, as far as the Committer cares. Thrown by Connection's statements
// and caught by `read`, `Committer` and `Database`; it never crosses a header that others include.
class SqlError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    refused,  // these values can't be stored: a constraint, too large
    failed,   // full, locked, I/O error, damaged: try again later
  };
  SqlError(Kind kind, int code)
      : std::runtime_error("database error " + std::to_string(code)), kind_(kind), code_(code) {}
  [[nodiscard]] Kind kind() const { return kind_; }
  // Of a COMMIT that can't be found to have worked: whether it may show after all, if the process
  // ends before the next transaction. It may have been written without being known to be.
  [[nodiscard]] bool uncertain() const;
  [[nodiscard]] bool timed_out() const;

 private:
  Kind kind_;
  int code_;
};

enum class SqlType : std::uint8_t { integer, text };

// A value whose type is known at run time only.
using SqlValue = std::variant<std::int64_t, std::string>;

// One prepared statement with its bound values; a slot keeps its memory from use to use.
class Statement {
 public:
  struct Slot {
    SqlType type;
    long long integer;
    std::string text;
    bool null;
  };
  struct Impl;

  explicit Statement(std::unique_ptr<Impl> impl);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  [[nodiscard]] Slot& parameter(std::size_t i);
  [[nodiscard]] Slot& column(std::size_t i);
  // True if there is a row.
  bool execute();
  bool fetch();
  [[nodiscard]] std::int64_t affected();
  // Ends the statement, so that it holds no read snapshot.
  void reset() noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

namespace detail {

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
constexpr SqlType type_of() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (IsOptional<Plain>::value) {
    return type_of<typename Plain::value_type>();
  } else if constexpr (std::is_integral_v<Plain> || std::is_enum_v<Plain>) {
    return SqlType::integer;
  } else {
    return SqlType::text;
  }
}

template <typename T>
void put(Statement::Slot& slot, const T& value) {
  if constexpr (IsOptional<T>::value) {
    slot.null = !value;
    if (value) put(slot, *value);
  } else if constexpr (std::is_integral_v<T>) {
    slot.null = false;
    slot.integer = static_cast<long long>(value);
  } else {
    slot.null = false;
    slot.text.assign(std::string_view(value));
  }
}

template <typename T>
T take(Statement::Slot& slot) {
  if constexpr (IsOptional<T>::value) {
    if (slot.null) return std::nullopt;
    return take<typename T::value_type>(slot);
  } else if constexpr (std::is_same_v<T, bool>) {
    return slot.integer != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(slot.integer);
  } else {
    return std::move(slot.text);
  }
}

struct ResetAtEnd {
  Statement& statement;
  ~ResetAtEnd() { statement.reset(); }
};

}  // namespace detail

// One connection with its prepared statements. Parameters are written `:name`, each name once, and
// bound by position, which is what all of SOCI's dialects understand. Integers, bools, strings and
// optionals of them go in and come out. One thread at a time. Throws SqlError.
class Connection {
 public:
  enum class Role : std::uint8_t { writer, reader };
  static std::unique_ptr<Connection> open(const std::filesystem::path& file, Role role,
                                          std::chrono::milliseconds busy_timeout);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs a statement without rows; returns how many rows it changed.
  template <typename... In>
  std::int64_t run(std::string_view sql, const In&... in) {
    Statement& statement = bound<>(sql, in...);
    const detail::ResetAtEnd reset{statement};
    statement.execute();
    return statement.affected();
  }

  // The first row, if there is one.
  template <typename... Out, typename... In>
  std::optional<std::tuple<Out...>> row(std::string_view sql, const In&... in) {
    Statement& statement = bound<Out...>(sql, in...);
    const detail::ResetAtEnd reset{statement};
    if (!statement.execute()) return std::nullopt;
    return take_row<Out...>(statement, std::index_sequence_for<Out...>());
  }

  // The one value of the first row, if there is one that is not NULL.
  template <typename Out, typename... In>
  std::optional<Out> value(std::string_view sql, const In&... in) {
    auto found = row<std::optional<Out>>(sql, in...);
    if (!found) return std::nullopt;
    return std::move(std::get<0>(*found));
  }

  // Calls `each(Out...)` for every row. `each` must not run the same statement.
  template <typename... Out, typename Each, typename... In>
  void rows(Each&& each, std::string_view sql, const In&... in) {
    Statement& statement = bound<Out...>(sql, in...);
    const detail::ResetAtEnd reset{statement};
    for (bool more = statement.execute(); more; more = statement.fetch()) {
      std::apply(each, take_row<Out...>(statement, std::index_sequence_for<Out...>()));
    }
  }

  // Calls `each` with the row's values for a statement that was put together from what somebody
  // asked for: it is not kept, as there is no end of such.
  void rows_once(const std::function<void(std::vector<SqlValue>&&)>& each, std::string_view sql,
                 const std::vector<SqlValue>& in, const std::vector<SqlType>& out);

  // While it lives, statements that go on past `most` from its beginning are ended: a SqlError that
  // `timed_out`. One at a time.
  class TimeLimit {
   public:
    TimeLimit(Connection& connection, std::chrono::milliseconds most);
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;
    ~TimeLimit();

   private:
    Connection& connection_;
  };

  // Runs statements that are not worth keeping: migrations, pragmas. Separated by ";".
  void script(std::string_view sql);

  void begin();
  // What is read until `rollback` is of one moment.
  void begin_snapshot();
  void commit();
  void rollback() noexcept;  // tolerates that nothing is open
  void savepoint();
  void release_savepoint();
  void rollback_to_savepoint();

 private:
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);

  Statement& prepared(std::string_view sql, const SqlType* parameters, std::size_t parameter_count,
                      const SqlType* columns, std::size_t column_count);
  std::unique_ptr<Statement> prepare(std::string_view sql, const SqlType* parameters,
                                     std::size_t parameter_count, const SqlType* columns,
                                     std::size_t column_count);

  template <typename... Out, typename... In>
  Statement& bound(std::string_view sql, const In&... in) {
    // One element more than needed: an array can't be empty.
    static constexpr SqlType parameters[] = {detail::type_of<In>()..., SqlType::integer};
    static constexpr SqlType columns[] = {detail::type_of<Out>()..., SqlType::integer};
    Statement& statement = prepared(sql, parameters, sizeof...(In), columns, sizeof...(Out));
    std::size_t i = 0;
    (detail::put(statement.parameter(i++), in), ...);
    return statement;
  }

  template <typename... Out, std::size_t... I>
  static std::tuple<Out...> take_row(Statement& statement, std::index_sequence<I...>) {
    return std::tuple<Out...>{detail::take<Out>(statement.column(I))...};
  }

  std::unique_ptr<Impl> impl_;
};

// The error that a failed statement becomes for callers.
[[nodiscard]] model::Error to_error(const SqlError& error);

}  // namespace conversed::store
