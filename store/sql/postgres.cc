#include "store/sql/postgres.h"

#include <endian.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "store/sql/postgres_rows.h"
#include "store/sql/postgres_session.h"

namespace conversed::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Oid int8_array_oid = 1016;
constexpr Oid text_array_oid = 1009;
constexpr std::chrono::hours script_limit{1};  // migrations of large tables

// Rows that wait for their statements, so that each statement takes a bounded time.
constexpr std::size_t most_rows_waiting = 1000;
constexpr std::size_t most_bytes_waiting = 1 << 20;

// `:name` becomes `$1`, `$2` and so on, in order.
std::string numbered(std::string_view sql) {
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::string out;
  int count = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] == '\'') quoted = !quoted;
    const bool begins = !quoted && sql[i] == ':' && i + 1 < sql.size() && in_name(sql[i + 1]);
    if (!begins) {
      out += sql[i];
      continue;
    }
    out += '$' + std::to_string(++count);
    while (i + 1 < sql.size() && in_name(sql[i + 1])) ++i;
  }
  return out;
}

// The statements of a script, each of which ends a line. Citus takes them one by one.
std::vector<std::string> statements_of(std::string_view script) {
  std::vector<std::string> statements(1);
  bool in_body = false;  // of a function: between two `$$`
  while (!script.empty()) {
    const auto line = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(script.size(), line.size() + 1));
    if (line.starts_with("--")) continue;
    for (auto at = line.find("$$"); at != std::string_view::npos; at = line.find("$$", at + 2)) {
      in_body = !in_body;
    }
    statements.back().append(line) += '\n';
    if (line.ends_with(';') && !in_body) statements.emplace_back();
  }
  std::erase_if(statements, [](const std::string& each) {
    return each.find_first_not_of(" \n") == std::string::npos;
  });
  return statements;
}

void take_row(const PGresult* result, int row, std::vector<SqlSlot>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const int column = static_cast<int>(i);
    SqlSlot& slot = columns[i];
    slot.null = PQgetisnull(result, row, column) != 0;
    slot.integer = 0;
    slot.text.clear();
    if (slot.null) continue;
    const std::string_view value(PQgetvalue(result, row, column),
                                 static_cast<std::size_t>(PQgetlength(result, row, column)));
    if (slot.type == SqlType::integer) {
      std::from_chars(value.data(), value.data() + value.size(), slot.integer);
    } else if (!needs_escape(value)) {
      slot.text.assign(value);
    } else {
      slot.text = unescaped(value);
    }
  }
}

class PostgresStatement;

class PostgresDriver final : public Driver {
 public:
  PostgresDriver(PostgresSettings settings, Connection::Role role,
                 std::shared_ptr<PostgresPulse> pulse, Connect connect);

  std::unique_ptr<Statement> prepare(std::string_view sql, std::span<const SqlType> parameters,
                                     std::span<const SqlType> columns, Use use) override;
  void script(std::string_view sql) override;
  void begin() override;
  void begin_aside() override;
  void begin_snapshot() override;
  void commit() override;
  void rollback() noexcept override;
  void settle() override;
  void ask_meanwhile(const std::function<bool()>* go_on) noexcept override {
    go_on_ = go_on;
    if (session_) session_->ask_meanwhile(go_on);
  }
  [[nodiscard]] Dialect dialect() const override { return Dialect::postgres; }
  [[nodiscard]] std::uint64_t round_trips() const override { return round_trips_; }

  using Answers = std::vector<std::shared_ptr<SqlAnswer>>;

  // Sends the statements whose rows wait, then this one. Its result goes to `receiver`, if not
  // null, or to `answers`: a single answer, or one for each row of parameters.
  void send(PostgresStatement& statement, PostgresStatement* receiver, Answers answers = {});
  // Moves the statement's parameters into a row for a later `send`.
  void add_row(PostgresStatement& statement, std::shared_ptr<SqlAnswer> answer);
  [[nodiscard]] bool in_transaction() const { return in_transaction_; }
  // Runs a reader's statement again if the session broke meanwhile: reading twice is harmless.
  // Inside a snapshot it fails: the snapshot ended with its session.
  [[nodiscard]] bool may_repeat() const {
    return role_ == Connection::Role::reader && !in_transaction_;
  }

 private:
  struct Sent {
    PostgresStatement* prepared = nullptr;  // the statement to prepare
    PostgresStatement* receiver = nullptr;  // the statement that gets the result
    Answers answers{};
  };
  // Rows that wait for one statement.
  struct Waiting {
    PostgresStatement* statement = nullptr;
    std::vector<SqlRow> rows{};
    Answers answers{};
    std::set<std::string> changed{};  // names of rows: PostgresStatement::changed_row
  };

  void need_session();
  void drop_session() noexcept;
  void send_waiting();
  void settle_once();
  void forget_waiting() noexcept;
  void collect();
  void deliver(const Sent& sent, PostgresResult result);

  const PostgresSettings settings_;
  const Connection::Role role_;
  const std::shared_ptr<PostgresPulse> pulse_;
  std::optional<PostgresSession> session_;
  std::uint64_t session_number_ = 0;  // statements are prepared anew in each
  std::uint64_t next_name_ = 0;
  std::deque<Sent> sent_;
  std::vector<Waiting> waiting_;  // in the order of their first rows
  std::size_t rows_waiting_ = 0;
  std::size_t bytes_waiting_ = 0;
  std::uint64_t round_trips_ = 0;
  bool in_transaction_ = false;
  const std::function<bool()>* go_on_ = nullptr;
  std::unique_ptr<PostgresStatement> begin_;
  std::unique_ptr<PostgresStatement> begin_snapshot_;
  std::unique_ptr<PostgresStatement> take_turn_;
  std::unique_ptr<PostgresStatement> commit_;
  std::unique_ptr<PostgresStatement> rollback_;
};

class PostgresStatement final : public Statement {
 public:
  PostgresStatement(PostgresDriver& driver, std::string name, std::string_view sql,
                    std::span<const SqlType> parameters, std::span<const SqlType> columns)
      : Statement(parameters, columns),
        driver_(driver),
        name_(std::move(name)),
        sql_(numbered(sql)) {
    for (const SqlType type : parameters) {
      types_.push_back(type == SqlType::integer ? int8_oid : text_oid);
    }
    const auto key = sql_.find("ON CONFLICT (");
    const bool is_upsert = key != std::string::npos && sql_.find("DO UPDATE") != std::string::npos;
    const bool has_values = sql_.find("VALUES (") != std::string::npos;
    if (types_.empty()) return;
    if (sql_.starts_with("UPDATE") || (is_upsert && !has_values)) {
      name_of_row_ = {types_.size() - 1, 1};
    } else if (is_upsert) {
      const auto columns_of_key = std::string_view(sql_).substr(key, sql_.find(')', key) - key);
      const auto commas = std::ranges::count(columns_of_key, ',');
      name_of_row_ = {0, static_cast<std::size_t>(commas) + 1};
    }
  }

  bool execute() override {
    driver_.settle();
    for (bool again = driver_.may_repeat();; again = false) {
      try {
        driver_.send(*this, this);
        driver_.settle();
        break;
      } catch (const SqlError& error) {
        if (!again || !error.uncertain()) throw;
      }
    }
    row_ = 0;
    return next_row();
  }
  bool fetch() override {
    ++row_;
    return next_row();
  }
  std::int64_t affected() override {
    const std::string_view text(PQcmdTuples(result_.get()));
    std::int64_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }
  void reset() noexcept override { result_.reset(); }

  void defer() override {
    driver_.send(*this, nullptr);
    // Outside a transaction there may be no later statement that would take it along.
    if (!driver_.in_transaction()) driver_.settle();
  }
  void add_row() override {
    driver_.add_row(*this, nullptr);
    if (!driver_.in_transaction()) driver_.settle();
  }
  void ask(const std::shared_ptr<SqlAnswer>& answer) override { driver_.add_row(*this, answer); }

  // Names the row that the parameters change. Empty: one statement may take several equal rows of
  // parameters.
  [[nodiscard]] std::string changed_row() {
    std::string name;
    for (std::size_t i = 0; i < name_of_row_.count; ++i) {
      const SqlSlot& slot = parameters()[name_of_row_.first + i];
      name += (slot.type == SqlType::text ? slot.text : std::to_string(slot.integer)) + '\0';
    }
    return name;
  }
  void send_rows(std::vector<SqlRow> rows, PostgresDriver::Answers answers);

  void receive(PostgresResult result) { result_ = std::move(result); }
  [[nodiscard]] PGresult* result() const { return result_.get(); }

  // One without a name is prepared each time.
  [[nodiscard]] bool is_prepared(std::uint64_t session) const {
    return prepared_in_ == session && !name_.empty();
  }
  void set_prepared(std::uint64_t session) { prepared_in_ = session; }
  [[nodiscard]] bool send_prepare(PGconn* connection) const {
    return PQsendPrepare(connection, name_.c_str(), with_select(sql_).c_str(),
                         static_cast<int>(types_.size()), types_.data()) != 0;
  }
  [[nodiscard]] bool send_execute(PGconn* connection);

 private:
  [[nodiscard]] std::unique_ptr<PostgresStatement> make_of_rows();
  bool next_row() {
    if (row_ >= PQntuples(result_.get()) || columns().empty()) return false;
    take_row(result_.get(), row_, columns());
    return true;
  }

  PostgresDriver& driver_;
  const std::string name_;
  const std::string sql_;
  std::vector<Oid> types_;
  struct {
    std::size_t first = 0;
    std::size_t count = 0;
  } name_of_row_;  // the parameters that name the row which an UPDATE or an upsert changes
  std::unique_ptr<PostgresStatement> of_rows_;  // the same for many rows, from the first need on
  std::uint64_t prepared_in_ = 0;
  PostgresResult result_;
  int row_ = 0;
};

bool PostgresStatement::send_execute(PGconn* connection) {
  const std::size_t count = parameters().size();
  std::vector<const char*> values(count);
  std::vector<int> lengths(count);
  std::vector<int> formats(count);
  std::vector<std::uint64_t> integers(count);
  std::deque<std::string> escaped_texts;  // a deque leaves them where they are
  for (std::size_t i = 0; i < count; ++i) {
    const SqlSlot& slot = parameters()[i];
    formats[i] = 1;
    if (slot.null) continue;
    if (slot.type == SqlType::integer) {
      integers[i] = htobe64(static_cast<std::uint64_t>(slot.integer));
      values[i] = reinterpret_cast<const char*>(&integers[i]);
      lengths[i] = sizeof(std::uint64_t);
    } else {
      std::string_view text = slot.text;
      const bool is_array = types_[i] != text_oid;
      if (!is_array && needs_escape(text)) text = escaped_texts.emplace_back(escaped(text));
      values[i] = text.data();
      lengths[i] = static_cast<int>(text.size());
    }
  }
  return PQsendQueryPrepared(connection, name_.c_str(), static_cast<int>(count), values.data(),
                             lengths.data(), formats.data(), 0) != 0;
}

void PostgresStatement::send_rows(std::vector<SqlRow> rows, PostgresDriver::Answers answers) {
  const bool asks = !answers.empty();
  if (rows.size() == 1) {
    // Other parameters may be bound already.
    parameters().swap(rows.front());
    try {
      driver_.send(*this, asks ? this : nullptr, std::move(answers));
    } catch (...) {
      parameters().swap(rows.front());
      throw;
    }
    return parameters().swap(rows.front());
  }
  if (!of_rows_) of_rows_ = make_of_rows();
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    of_rows_->parameters()[i].text = array_of(rows, i);
  }
  driver_.send(*of_rows_, asks ? of_rows_.get() : nullptr, std::move(answers));
}

// An array is passed as a text.
std::unique_ptr<PostgresStatement> PostgresStatement::make_of_rows() {
  const std::vector<SqlType> arrays(parameters().size(), SqlType::text);
  std::vector<SqlType> columns_and_number;
  for (const SqlSlot& slot : columns()) columns_and_number.push_back(slot.type);
  columns_and_number.push_back(SqlType::integer);
  auto made = std::make_unique<PostgresStatement>(
      driver_, name_ + "_rows", sql_of_rows(sql_, arrays.size()), arrays, columns_and_number);
  for (std::size_t i = 0; i < types_.size(); ++i) {
    made->types_[i] = types_[i] == int8_oid ? int8_array_oid : text_array_oid;
  }
  return made;
}

PostgresDriver::PostgresDriver(PostgresSettings settings, Connection::Role role,
                               std::shared_ptr<PostgresPulse> pulse, Connect connect)
    : settings_(std::move(settings)), role_(role), pulse_(std::move(pulse)) {
  const auto own = [this](std::string name, std::string_view sql) {
    return std::make_unique<PostgresStatement>(
        *this, std::move(name), sql, std::span<const SqlType>(), std::span<const SqlType>());
  };
  begin_ = own("begin", "BEGIN");
  begin_snapshot_ = own("begin_snapshot", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  // One writer at a time, as with SQLite: a fact that a transaction has checked stays true until
  // its COMMIT. With this lock, all transactions of other sessions have ended.
  take_turn_ = own("take_turn",
                   "SELECT pg_advisory_xact_lock(hashtext('conversed'),"
                   " hashtext(current_schema()))");
  commit_ = own("commit", "COMMIT");
  rollback_ = own("rollback", "ROLLBACK");
  if (connect == Connect::at_once) need_session();
}

std::unique_ptr<Statement> PostgresDriver::prepare(std::string_view sql,
                                                   std::span<const SqlType> parameters,
                                                   std::span<const SqlType> columns, Use use) {
  std::string name = use == Use::once ? std::string() : 's' + std::to_string(++next_name_);
  return std::make_unique<PostgresStatement>(*this, std::move(name), sql, parameters, columns);
}

void PostgresDriver::need_session() {
  const bool has_to_wait = role_ == Connection::Role::reader && !pulse_->answers();
  if (has_to_wait && sent_.empty()) throw server_silent();
  if (session_) return;
  // A transaction that lost its session is over; only `rollback` ends it here.
  if (in_transaction_) throw connection_lost();
  try {
    session_.emplace(settings_, role_);
  } catch (const SqlError& error) {
    if (error.silent()) pulse_->lost();
    throw;
  }
  session_->ask_meanwhile(go_on_);
  ++session_number_;
  if (PQenterPipelineMode(session_->handle()) == 0) {
    drop_session();
    throw connection_lost();
  }
}

void PostgresDriver::drop_session() noexcept {
  sent_.clear();
  forget_waiting();
  session_.reset();
}

void PostgresDriver::add_row(PostgresStatement& statement, std::shared_ptr<SqlAnswer> answer) {
  if (rows_waiting_ == most_rows_waiting || bytes_waiting_ >= most_bytes_waiting) send_waiting();
  auto place = std::ranges::find(waiting_, &statement, &Waiting::statement);
  auto changed = statement.changed_row();
  // One statement changes a row once.
  if (place != waiting_.end() && place->changed.contains(changed)) {
    send_waiting();
    place = waiting_.end();
  }
  if (place == waiting_.end()) {
    place = waiting_.emplace(waiting_.end());
    place->statement = &statement;
  }
  for (const SqlSlot& slot : statement.parameters()) bytes_waiting_ += slot.text.size();
  ++rows_waiting_;
  place->rows.emplace_back(std::make_move_iterator(statement.parameters().begin()),
                           std::make_move_iterator(statement.parameters().end()));
  if (answer) place->answers.push_back(std::move(answer));
  if (!changed.empty()) place->changed.insert(std::move(changed));
}

void PostgresDriver::send_waiting() {
  std::vector<Waiting> all;
  all.swap(waiting_);
  forget_waiting();
  for (auto& each : all) each.statement->send_rows(std::move(each.rows), std::move(each.answers));
}

void PostgresDriver::forget_waiting() noexcept {
  waiting_.clear();
  rows_waiting_ = 0;
  bytes_waiting_ = 0;
}

void PostgresDriver::send(PostgresStatement& statement, PostgresStatement* receiver,
                          Answers answers) {
  send_waiting();
  need_session();
  PGconn* handle = session_->handle();
  if (!statement.is_prepared(session_number_)) {
    if (!statement.send_prepare(handle)) {
      drop_session();
      throw connection_lost();
    }
    statement.set_prepared(session_number_);
    sent_.push_back({.prepared = &statement});
  }
  if (!statement.send_execute(handle)) {
    drop_session();
    throw connection_lost();
  }
  sent_.push_back({.receiver = receiver, .answers = std::move(answers)});
}

void PostgresDriver::settle() {
  if (waiting_.empty() && sent_.empty()) return;
  std::vector<Waiting> asked;
  if (may_repeat() && sent_.empty()) asked = waiting_;
  try {
    settle_once();
  } catch (const SqlError& error) {
    if (asked.empty() || !error.uncertain()) throw;
    for (const Waiting& each : asked) {
      for (const auto& answer : each.answers) *answer = {};
    }
    waiting_ = std::move(asked);
    settle_once();
  }
}

void PostgresDriver::settle_once() {
  send_waiting();
  if (sent_.empty()) return;
  try {
    collect();
  } catch (const SqlError& error) {
    if (error.silent()) pulse_->lost();
    // The error of a statement leaves the session usable; all results have been taken.
    if (!sent_.empty()) drop_session();
    throw;
  }
}

// Takes the results of all that was sent. `sent_` is empty afterwards, unless the session broke.
void PostgresDriver::collect() {
  if (PQpipelineSync(session_->handle()) == 0) throw connection_lost();
  ++round_trips_;
  std::optional<SqlError> failed;
  while (!sent_.empty()) {
    const auto deadline = session_->deadline();
    auto result = session_->next(deadline);
    if (!result) throw connection_lost();
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
      deliver(sent_.front(), std::move(result));
    } else {
      if (status == PGRES_FATAL_ERROR && !failed) failed = postgres_error(result.get());
      if (auto* statement = sent_.front().prepared) statement->set_prepared(0);
    }
    if (session_->next(deadline)) throw connection_lost();
    if (sent_.size() > 1) {
      sent_.pop_front();
      continue;
    }
    const auto end = session_->next(deadline);
    if (!end || PQresultStatus(end.get()) != PGRES_PIPELINE_SYNC) throw connection_lost();
    sent_.pop_front();
  }
  if (failed) throw SqlError(*failed);
}

void PostgresDriver::deliver(const Sent& sent, PostgresResult result) {
  if (sent.receiver == nullptr) return;
  if (sent.answers.empty()) return sent.receiver->receive(std::move(result));
  for (const auto& answer : sent.answers) answer->arrived = true;
  auto columns = sent.receiver->columns();
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    take_row(result.get(), row, columns);
    // The number of the row of parameters follows the other columns.
    const bool of_many = sent.answers.size() > 1;
    const auto number = of_many ? columns.back().integer : 1;
    SqlAnswer& answer = *sent.answers.at(static_cast<std::size_t>(number) - 1);
    answer.columns.insert(answer.columns.end(), columns.begin(), columns.end() - (of_many ? 1 : 0));
  }
}

void PostgresDriver::script(std::string_view sql) {
  settle();
  need_session();
  try {
    if (PQexitPipelineMode(session_->handle()) == 0) throw connection_lost();
    const auto deadline = Clock::now() + script_limit;
    // Its statements may take long, too: an index of a large table.
    session_->script("SET LOCAL statement_timeout = 0", deadline);
    for (const auto& statement : statements_of(sql)) session_->script(statement, deadline);
  } catch (const SqlError& error) {
    if (error.uncertain() || PQenterPipelineMode(session_->handle()) == 0) drop_session();
    throw;
  }
  if (PQenterPipelineMode(session_->handle()) == 0) {
    drop_session();
    throw connection_lost();
  }
}

void PostgresDriver::begin() {
  settle();
  need_session();
  in_transaction_ = true;
  begin_->defer();
  take_turn_->defer();
}

void PostgresDriver::begin_aside() {
  settle();
  need_session();
  in_transaction_ = true;
  begin_->defer();
}

void PostgresDriver::begin_snapshot() {
  settle();
  // `in_transaction_` is still false here, so a session that broke meanwhile is made anew.
  begin_snapshot_->execute();
  begin_snapshot_->reset();
  in_transaction_ = true;
}

void PostgresDriver::commit() {
  send(*commit_, commit_.get());
  settle();
  in_transaction_ = false;
  // A transaction that had failed ends by ROLLBACK, and without an error.
  const bool done = std::string_view(PQcmdStatus(commit_->result())) == "COMMIT";
  commit_->reset();
  if (!done) throw SqlError(SqlError::Kind::failed, "(rolled back)", SqlError::Effect::none);
}

void PostgresDriver::rollback() noexcept {
  forget_waiting();
  if (!std::exchange(in_transaction_, false) || !session_) return;
  // An error here does no harm: the end of the session ends its transaction.
  try {
    settle();
  } catch (const SqlError&) {  // of a statement that is undone now
  }
  try {
    if (!session_) return;
    send(*rollback_, nullptr);
    settle();
  } catch (const std::exception&) {
    drop_session();
  }
}

}  // namespace

std::unique_ptr<Connection> open_postgres(const PostgresSettings& settings, Connection::Role role,
                                          std::shared_ptr<PostgresPulse> pulse, Connect connect) {
  return std::make_unique<Connection>(
      std::make_unique<PostgresDriver>(settings, role, std::move(pulse), connect));
}

}  // namespace conversed::store
