#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

// SQL for both databases: prepared statements, kept by their text. For .cc files of store/.
// The dialects are SQLite's (sqlite.cc) and PostgreSQL's (postgres.cc, over libpq); a
// statement is written once, in their common subset. Both also have folded_contains(text, needle),
// whether the text holds the needle under Unicode case folding (the needle is folded already, see
// fold.h), and the table json_each(text), whose column `value` has the elements of a JSON array.
namespace conversed::store {

// A failure of the database. Connection's statements throw it; `read`, Committer and
// Database catch it. It never crosses a header that other folders include.
class SqlError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    refused,   // these values can't be stored: a constraint, too large
    failed,    // full, locked, I/O error, damaged, connection lost: try again later
    too_long,  // ended by the server's time limit, undone: try less at a time
  };
  // Whether a failed COMMIT may have worked. A server that was `silent` until the deadline may
  // still be working on it.
  enum class Effect : std::uint8_t { none, uncertain, silent };

  // `code`: the database's own, which holds neither SQL nor values.
  SqlError(Kind kind, const std::string& code, Effect effect)
      : std::runtime_error("database error " + code), kind_(kind), effect_(effect) {}
  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool uncertain() const { return effect_ != Effect::none; }
  [[nodiscard]] bool silent() const { return effect_ == Effect::silent; }

 private:
  Kind kind_;
  Effect effect_;
};

// Stored data can't be read back. `with_errors` makes it `internal`.
struct DamagedData : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[nodiscard]] nlohmann::json stored_json(const std::string& text);

template <typename T>
[[nodiscard]] T stored_or_throw(model::Result<T> value) {
  if (!value) throw DamagedData(value.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(value);
}

enum class SqlType : std::uint8_t { integer, text };

// For the few statements outside the common subset.
enum class Dialect : std::uint8_t { sqlite, postgres };

// A value whose type is known at run time only.
using SqlValue = std::variant<std::int64_t, std::string>;

// A value on its way into a statement or out of it.
struct SqlSlot {
  SqlType type = SqlType::integer;
  long long integer = 0;
  std::string text{};
  bool null = false;
};

// The rows of a statement that was asked for ahead.
struct SqlAnswer {
  bool arrived = false;
  std::vector<SqlSlot> columns{};  // of all rows, one row after the other
};

// One prepared statement with its bound values.
class Statement {
 public:
  Statement(std::span<const SqlType> parameters, std::span<const SqlType> columns);
  virtual ~Statement() = default;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  [[nodiscard]] std::vector<SqlSlot>& parameters() { return parameters_; }
  [[nodiscard]] std::vector<SqlSlot>& columns() { return columns_; }

  // True if there is a row.
  virtual bool execute() = 0;
  virtual bool fetch() = 0;
  [[nodiscard]] virtual std::int64_t affected() = 0;
  // Ends the statement, so that it holds no read snapshot.
  virtual void reset() noexcept = 0;

  // Runs the statement now or together with the next one. A later statement may throw its error.
  virtual void defer() = 0;
  // The same, perhaps together with other rows of parameters: see Connection::run_row.
  virtual void add_row() = 0;
  // The same for a SELECT, with its rows for `answer`; it has arrived after `Driver::settle` at the
  // latest.
  virtual void ask(const std::shared_ptr<SqlAnswer>& answer) = 0;

 private:
  // Never resized: a driver may hold their addresses.
  std::vector<SqlSlot> parameters_;
  std::vector<SqlSlot> columns_;
};

// One connection to a database, as Connection needs it. One thread at a time. Throws SqlError.
class Driver {
 public:
  // Whether a statement will be run again.
  enum class Use : std::uint8_t { many, once };

  Driver() = default;
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // The statement must not outlive the driver.
  [[nodiscard]] virtual std::unique_ptr<Statement> prepare(std::string_view sql,
                                                           std::span<const SqlType> parameters,
                                                           std::span<const SqlType> columns,
                                                           Use use) = 0;
  virtual void script(std::string_view sql) = 0;
  // Begins a transaction that writes. Waits until no process has such a transaction open. So the
  // rows that it reads do not change until it ends.
  virtual void begin() = 0;
  // Begins a transaction that writes and does not wait for its turn. Only for rows that no other
  // transaction reads, writes or counts on before this one ends.
  virtual void begin_aside() = 0;
  // Begins a transaction that only reads, from one snapshot. `rollback` ends it.
  virtual void begin_snapshot() = 0;
  virtual void commit() = 0;
  virtual void rollback() noexcept = 0;
  // Waits for deferred statements; throws their error.
  virtual void settle() = 0;
  // From now on `*go_on` is asked many times a second in statements that take long, until this is
  // called with null; false ends the statement as a failure of the database.
  virtual void ask_meanwhile(const std::function<bool()>* go_on) noexcept = 0;
  [[nodiscard]] virtual Dialect dialect() const = 0;
  // How often a server was waited for.
  [[nodiscard]] virtual std::uint64_t round_trips() const = 0;
};

namespace detail {

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

// A value that is stored as a text: `Stored<T>` has `static std::string text(const T&)` and
// `static T value(std::string&&)`, which throws DamagedData.
template <typename T>
struct Stored;
template <typename T>
concept StoredAsText = requires {
  &Stored<T>::text;
};

template <>
struct Stored<nlohmann::json> {
  static std::string text(const nlohmann::json& value);
  static nlohmann::json value(const std::string& text) { return stored_json(text); }
};
template <>
struct Stored<model::SessionKey> {
  static std::string text(const model::SessionKey& key) { return key.encode(); }
  static model::SessionKey value(const std::string& text) {
    return stored_or_throw(model::SessionKey::decode(text));
  }
};
template <typename T>
struct Stored<std::vector<T>> {
  static std::string text(const std::vector<T>& list) { return nlohmann::json(list).dump(); }
  static std::vector<T> value(const std::string& text) {
    return stored_json(text).get<std::vector<T>>();
  }
};

template <typename T>
constexpr SqlType type_of() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (IsOptional<Plain>::value) {
    return type_of<typename Plain::value_type>();
  } else if constexpr (std::is_integral_v<Plain> || std::is_same_v<Plain, model::Timestamp> ||
                       std::is_same_v<Plain, std::chrono::milliseconds>) {
    return SqlType::integer;
  } else {
    return SqlType::text;
  }
}

template <typename T>
void put(SqlSlot& slot, const T& value) {
  if constexpr (IsOptional<T>::value) {
    slot.null = !value;
    if (value) put(slot, *value);
  } else if constexpr (std::is_integral_v<T>) {
    slot.null = false;
    slot.integer = static_cast<long long>(value);
  } else if constexpr (std::is_same_v<T, model::Timestamp>) {
    put(slot, model::to_unix_ms(value));
  } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    put(slot, value.count());
  } else if constexpr (StoredAsText<T>) {
    put(slot, Stored<T>::text(value));
  } else {
    slot.null = false;
    slot.text.assign(std::string_view(value));
  }
}

template <typename T>
T take(SqlSlot& slot) {
  if constexpr (IsOptional<T>::value) {
    if (slot.null) return std::nullopt;
    return take<typename T::value_type>(slot);
  } else if constexpr (std::is_same_v<T, bool>) {
    return slot.integer != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(slot.integer);
  } else if constexpr (std::is_same_v<T, model::Timestamp>) {
    return model::from_unix_ms(slot.integer);
  } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    return std::chrono::milliseconds(slot.integer);
  } else if constexpr (StoredAsText<T>) {
    return Stored<T>::value(std::move(slot.text));
  } else {
    return std::move(slot.text);
  }
}

template <typename... Out>
std::tuple<Out...> take_row(std::span<SqlSlot> columns) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Out...>{take<Out>(columns[I])...};
  }
  (std::index_sequence_for<Out...>());
}

// The parameters of a lambda or function, which tell the types of a row's columns.
template <typename... T>
struct Columns {};
template <typename F>
struct ColumnsOf : ColumnsOf<decltype(&F::operator())> {};
template <typename R, typename... T>
struct ColumnsOf<R(T...)> {
  using Type = Columns<std::remove_cvref_t<T>...>;
};
template <typename F, typename R, typename... T>
struct ColumnsOf<R (F::*)(T...)> : ColumnsOf<R(T...)> {};
template <typename F, typename R, typename... T>
struct ColumnsOf<R (F::*)(T...) const> : ColumnsOf<R(T...)> {};

template <typename T>
struct MemberOf;
template <typename Class, typename T>
struct MemberOf<T Class::*> {
  using Object = Class;
  using Type = T;
};

struct ResetAtEnd {
  Statement& statement;
  ~ResetAtEnd() { statement.reset(); }
};

}  // namespace detail

// For Connection::all and the like: makes an object of a row whose columns are these members.
template <auto First, auto... Rest>
struct RowOf {
  template <auto Member>
  using Column = typename detail::MemberOf<decltype(Member)>::Type;

  auto operator()(Column<First> first, Column<Rest>... rest) const {
    typename detail::MemberOf<decltype(First)>::Object object;
    object.*First = std::move(first);
    ((object.*Rest = std::move(rest)), ...);
    return object;
  }
};
template <auto... Members>
inline constexpr RowOf<Members...> row_of{};

// Rows that were asked for ahead: see Connection::ask.
template <typename... Out>
class Asked;

// One connection with its prepared statements. Parameters are written `:name`, each name once, and
// bound by position. Integers, bools, times, strings, JSON, lists, session keys and optionals of
// them go in and come out. One thread at a time. Throws SqlError, and DamagedData for a column that
// can't be read.
class Connection {
 public:
  enum class Role : std::uint8_t { writer, reader };

  explicit Connection(std::unique_ptr<Driver> driver);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs a statement without asking for its outcome. Over a network it leaves together with the
  // next statement that answers, so many cost one round trip. Its error is thrown there, or by
  // `settle`.
  template <typename... In>
  void run(std::string_view sql, const In&... in) {
    bound<>(sql, in...).defer();
  }

  // The same for one of many rows, which PostgreSQL writes by one statement. It keeps its order
  // with other kinds of calls. Among calls of `run_row` and `ask`, those with the same text run
  // together, in the place of the first of them. The statement is an INSERT with VALUES or with a
  // SELECT of one table, or an UPDATE or a DELETE of one table. The row that a statement changes is
  // named by the first parameters of an INSERT with VALUES and DO UPDATE, and by the last parameter
  // of an INSERT with SELECT and DO UPDATE or of an UPDATE. Changes of the same row keep their
  // order.
  template <typename... In>
  void run_row(std::string_view sql, const In&... in) {
    bound<>(sql, in...).add_row();
  }

  // Runs a statement without rows; returns how many rows it changed.
  template <typename... In>
  std::int64_t run_counted(std::string_view sql, const In&... in) {
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
    return detail::take_row<Out...>(statement.columns());
  }

  // Rows for later: all questions together cost one round trip when the first answer is taken, and
  // those with the same text are one statement (see `run_row`).
  template <typename... Out, typename... In>
  [[nodiscard]] Asked<Out...> ask(std::string_view sql, const In&... in) {
    auto answer = std::make_shared<SqlAnswer>();
    bound<Out...>(sql, in...).ask(answer);
    return Asked<Out...>(*driver_, std::move(answer));
  }

  // The one value of the first row, if there is one that is not NULL.
  template <typename Out, typename... In>
  std::optional<Out> value(std::string_view sql, const In&... in) {
    auto found = row<std::optional<Out>>(sql, in...);
    if (!found) return std::nullopt;
    return std::move(std::get<0>(*found));
  }

  // The same for an integer such as a count; 0 if there is none.
  template <typename... In>
  [[nodiscard]] std::int64_t number(std::string_view sql, const In&... in) {
    return value<std::int64_t>(sql, in...).value_or(0);
  }

  // Whether `SELECT 1 FROM ...` has a row.
  template <typename... In>
  [[nodiscard]] bool exists(std::string_view sql, const In&... in) {
    Statement& statement = bound<std::int64_t>(sql, in...);
    const detail::ResetAtEnd reset{statement};
    return statement.execute();
  }

  // Calls the lambda `each` for every row, or until it returns false if it returns a bool; its
  // parameters are the columns. It must not run the same statement.
  template <typename Each, typename... In>
  void rows(const Each& each, std::string_view sql, const In&... in) {
    each_row(typename detail::ColumnsOf<Each>::Type(), each, sql, in...);
  }

  // The values that the lambda `make` returns for the rows, in order. As `rows`.
  template <typename Make, typename... In>
  [[nodiscard]] auto all(const Make& make, std::string_view sql, const In&... in) {
    return all_rows(typename detail::ColumnsOf<Make>::Type(), make, sql, in...);
  }
  // The value that `make` returns for the first row, if there is a row.
  template <typename Make, typename... In>
  [[nodiscard]] auto first(const Make& make, std::string_view sql, const In&... in) {
    return first_row(typename detail::ColumnsOf<Make>::Type(), make, sql, in...);
  }
  // The values of a statement with one column.
  template <typename Out, typename... In>
  [[nodiscard]] std::vector<Out> values(std::string_view sql, const In&... in) {
    return all([](Out value) { return value; }, sql, in...);
  }

  // Calls `each` with the values of each row of a composed statement, such as a list with a filter.
  // The prepared statement is not kept: there is no limit to their number.
  void rows_once(const std::function<void(std::vector<SqlValue>&&)>& each, std::string_view sql,
                 const std::vector<SqlValue>& in, const std::vector<SqlType>& out);

  // Runs statements that are not worth keeping: migrations, pragmas. The ";" of each statement ends
  // a line. In PostgreSQL call it in a transaction.
  void script(std::string_view sql) { driver_->script(sql); }

  // While it lives, long statements call `go_on`, unless it is empty, many times a second; false
  // ends the statement as a failure of the database. Both must outlive it.
  class Asking {
   public:
    Asking(Connection& connection, const std::function<bool()>& go_on);
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    Connection& connection_;
  };

  // While it lives, statements that run past `until` are ended as failures of the database. One at
  // a time, and not beside an Asking.
  class TimeLimit {
   public:
    TimeLimit(Connection& connection, std::chrono::steady_clock::time_point until)
        : go_on_([until] { return std::chrono::steady_clock::now() < until; }),
          asking_(connection, go_on_) {}

   private:
    const std::function<bool()> go_on_;
    const Asking asking_;
  };

  // Waits until no other transaction of a writer is open.
  void begin() { driver_->begin(); }
  void begin_aside() { driver_->begin_aside(); }  // see Driver
  // All reads until `rollback` see one snapshot.
  void begin_snapshot() { driver_->begin_snapshot(); }
  void commit() { driver_->commit(); }
  void rollback() noexcept { driver_->rollback(); }  // tolerates that nothing is open
  void settle() { driver_->settle(); }  // throws what statements that ran deferred threw
  void savepoint();
  [[nodiscard]] Dialect dialect() const { return driver_->dialect(); }
  [[nodiscard]] std::uint64_t round_trips() const { return driver_->round_trips(); }
  void release_savepoint();  // throws like `settle`; the savepoint is there still, then
  void rollback_to_savepoint();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  Statement& prepared(std::string_view sql, std::span<const SqlType> parameters,
                      std::span<const SqlType> columns);

  template <typename... Out, typename... In>
  Statement& bound(std::string_view sql, const In&... in) {
    // One element more than needed: an array can't be empty.
    static constexpr SqlType parameters[] = {detail::type_of<In>()..., SqlType::integer};
    static constexpr SqlType columns[] = {detail::type_of<Out>()..., SqlType::integer};
    Statement& statement =
        prepared(sql, std::span(parameters, sizeof...(In)), std::span(columns, sizeof...(Out)));
    std::size_t i = 0;
    (detail::put(statement.parameters()[i++], in), ...);
    return statement;
  }

  template <typename... Out, typename Each, typename... In>
  void each_row(detail::Columns<Out...>, const Each& each, std::string_view sql, const In&... in) {
    Statement& statement = bound<Out...>(sql, in...);
    const detail::ResetAtEnd reset{statement};
    for (bool more = statement.execute(); more; more = statement.fetch()) {
      auto row = detail::take_row<Out...>(statement.columns());
      if constexpr (std::is_same_v<std::invoke_result_t<const Each&, Out...>, bool>) {
        if (!std::apply(each, std::move(row))) return;
      } else {
        std::apply(each, std::move(row));
      }
    }
  }
  template <typename... Out, typename Make, typename... In>
  auto all_rows(detail::Columns<Out...> columns, const Make& make, std::string_view sql,
                const In&... in) {
    std::vector<std::invoke_result_t<const Make&, Out...>> made;
    each_row(
        columns, [&](Out... out) { made.push_back(make(std::move(out)...)); }, sql, in...);
    return made;
  }

  template <typename... Out, typename Make, typename... In>
  auto first_row(detail::Columns<Out...>, const Make& make, std::string_view sql, const In&... in) {
    auto found = row<Out...>(sql, in...);
    return found ? std::optional(std::apply(make, *std::move(found))) : std::nullopt;
  }

  std::unique_ptr<Driver> driver_;
  // After the driver: statements have to be gone before it is.
  std::unordered_map<std::string, std::unique_ptr<Statement>, Hash, std::equal_to<>> statements_;
  // Most texts are literals, so their address finds the statement. A hash of the text takes more
  // than twice as long. A text may take another's slot: then the map finds it.
  struct Found {
    std::string_view text;  // the key in `statements_`
    Statement* statement = nullptr;
  };
  std::array<Found, 512> by_address_{};
};

// Of the connection that was asked, which must outlive it.
template <typename... Out>
class Asked {
 public:
  Asked(Driver& driver, std::shared_ptr<SqlAnswer> answer)
      : driver_(&driver), answer_(std::move(answer)) {}

  // The first row, if there was one. This or `take_all` is called once. Throws SqlError.
  [[nodiscard]] std::optional<std::tuple<Out...>> take() {
    settle();
    if (answer_->columns.empty()) return std::nullopt;
    return detail::take_row<Out...>(answer_->columns);
  }

  // The values that `make` returns for the rows. PostgreSQL answers several questions by one
  // statement, so the rows have no order.
  template <typename Make>
  [[nodiscard]] auto take_all(const Make& make) {
    settle();
    std::vector<std::invoke_result_t<const Make&, Out...>> made;
    std::span<SqlSlot> left(answer_->columns);
    for (; !left.empty(); left = left.subspan(sizeof...(Out))) {
      made.push_back(std::apply(make, detail::take_row<Out...>(left)));
    }
    return made;
  }

 private:
  void settle() {
    if (!answer_->arrived) driver_->settle();
  }

  Driver* driver_;
  std::shared_ptr<SqlAnswer> answer_;
};

// The pattern of LIKE, with the escape character `!`, for texts in lower case that contain this
// one. Letters of ASCII match in either case. Empty for an empty text.
[[nodiscard]] std::string pattern_containing(std::string_view text);

// The error that a failed statement becomes for callers.
[[nodiscard]] model::Error to_error(const SqlError& error);

}  // namespace conversed::store
