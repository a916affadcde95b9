#include "store/sql/postgres.h"

#include <endian.h>

#include <charconv>
#include <deque>
#include <optional>
#include <utility>

#include "store/sql/postgres_rows.h"
#include "store/sql/postgres_session.h"

namespace conversed::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::hours script_limit{1};  // migrations of large tables

constexpr char escape = '\x01';

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

void take_row(const PGresult* result, int row, int column, std::vector<SqlSlot>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i, ++column) {
    SqlSlot& slot = columns[i];
    slot.null = PQgetisnull(result, row, column) != 0;
    slot.integer = 0;
    slot.text.clear();
    if (slot.null) continue;
    const std::string_view value(PQgetvalue(result, row, column),
                                 static_cast<std::size_t>(PQgetlength(result, row, column)));
    if (slot.type == SqlType::integer) {
      std::from_chars(value.data(), value.data() + value.size(), slot.integer);
    } else if (value.find(escape) == std::string_view::npos) {
      slot.text.assign(value);
    } else {
      slot.text = unescaped(value);
    }
  }
}

class PostgresStatement;

// A statement of the server's, prepared once in each session.
struct Prepared {
  std::string name;  // empty: it is prepared each time
  std::string sql;
  std::vector<Oid> types;
  std::uint64_t session = 0;
};

class PostgresDriver final : public Driver {
 public:
  PostgresDriver(PostgresSettings settings, Connection::Role role,
                 std::shared_ptr<PostgresPulse> pulse);

  std::unique_ptr<Statement> prepare(std::string_view sql, std::span<const SqlType> parameters,
                                     std::span<const SqlType> columns, Use use) override;
  void script(std::string_view sql) override;
  void begin() override;
  void begin_snapshot() override;
  void commit() override;
  void rollback() noexcept override;
  void settle() override;
  void ask_meanwhile(const std::function<bool()>* go_on) noexcept override {
    go_on_ = go_on;
    if (session_) session_->ask_meanwhile(go_on);
  }
  [[nodiscard]] Dialect dialect() const override { return Dialect::postgres; }
  [[nodiscard]] Traffic traffic() const override { return traffic_; }

  // Sends the statement behind all rows that have gathered. Its result goes to `receiver`, if not
  // null.
  void send(PostgresStatement& statement, PostgresStatement* receiver);
  // Its rows are sent with the next statement that is sent or settled.
  void gather(PostgresStatement& statement) { gathered_.push_back(&statement); }
  [[nodiscard]] bool in_transaction() const { return in_transaction_; }
  // Runs a reader's statement again if the session broke meanwhile: reading twice is harmless.
  // Inside a snapshot it fails: the snapshot ended with its session.
  [[nodiscard]] bool may_repeat() const {
    return role_ == Connection::Role::reader && !in_transaction_;
  }

 private:
  struct Sent {
    Prepared* prepared = nullptr;                       // the statement to prepare
    PostgresStatement* receiver = nullptr;              // the statement that gets the result
    std::vector<std::shared_ptr<SqlAnswer>> answers{};  // or these, by the row's number
  };

  void need_session();
  void drop_session() noexcept;
  void forget_gathered() noexcept;
  void send_gathered();
  void send(Prepared& prepared, const PostgresValues& values, Sent sent);
  void collect();
  static void deliver(const Sent& sent, PostgresResult result);

  const PostgresSettings settings_;
  const Connection::Role role_;
  const std::shared_ptr<PostgresPulse> pulse_;
  std::optional<PostgresSession> session_;
  std::uint64_t session_number_ = 0;  // statements are prepared anew in each
  std::uint64_t next_name_ = 0;
  std::deque<Sent> sent_;
  std::vector<PostgresStatement*> gathered_;  // in the order of their first row
  Traffic traffic_;
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
        one_{.name = std::move(name), .sql = numbered(sql), .types = {}} {
    for (const SqlType type : parameters) one_.types.push_back(scalar_oid(type));
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
    settle_outside();
  }
  void defer_row() override {
    add_row(nullptr);
    settle_outside();
  }
  void ask(const std::shared_ptr<SqlAnswer>& answer) override { add_row(answer); }

  void receive(PostgresResult result) { result_ = std::move(result); }
  [[nodiscard]] PGresult* result() const { return result_.get(); }

  [[nodiscard]] Prepared& one() { return one_; }
  // Points to the parameters, and to `texts`.
  [[nodiscard]] PostgresValues values(std::deque<std::string>& texts) const;

  // The rows that have gathered.
  struct Rows {
    Prepared prepared;
    PostgresArrays arrays;
    std::vector<std::shared_ptr<SqlAnswer>> answers;  // empty, or one for each row

    void clear() {
      arrays.clear();
      answers.clear();
    }
  };
  [[nodiscard]] Rows& rows() { return *rows_; }

 private:
  bool next_row() {
    if (row_ >= PQntuples(result_.get()) || columns().empty()) return false;
    take_row(result_.get(), row_, 0, columns());
    return true;
  }
  // Outside a transaction there may be no later statement that would take it along.
  void settle_outside() {
    if (!driver_.in_transaction()) driver_.settle();
  }
  void add_row(const std::shared_ptr<SqlAnswer>& answer);

  PostgresDriver& driver_;
  Prepared one_;
  std::optional<Rows> rows_;
  PostgresResult result_;
  int row_ = 0;
};

PostgresValues PostgresStatement::values(std::deque<std::string>& texts) const {
  PostgresValues values;
  for (const SqlSlot& slot : parameters()) {
    if (slot.null) {
      values.add(nullptr, 0);
    } else if (slot.type == SqlType::integer) {
      const auto big = htobe64(static_cast<std::uint64_t>(slot.integer));
      const auto& text = texts.emplace_back(reinterpret_cast<const char*>(&big), sizeof big);
      values.add(text.data(), text.size());
    } else {
      std::string_view text = slot.text;
      if (needs_escape(text)) text = texts.emplace_back(escaped(text));
      values.add(text.data(), text.size());
    }
  }
  return values;
}

void PostgresStatement::add_row(const std::shared_ptr<SqlAnswer>& answer) {
  if (!rows_) {
    rows_.emplace();
    rows_->prepared = {.name = one_.name + "_rows",
                       .sql = sql_of_rows(one_.sql, parameters().size()),
                       .types = {}};
    for (const SqlSlot& slot : parameters()) {
      rows_->prepared.types.push_back(array_oid(slot.type));
    }
  }
  if (rows_->arrays.empty()) driver_.gather(*this);
  rows_->arrays.add_row(parameters());
  if (answer) rows_->answers.push_back(answer);
}

PostgresDriver::PostgresDriver(PostgresSettings settings, Connection::Role role,
                               std::shared_ptr<PostgresPulse> pulse)
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
  need_session();
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
  forget_gathered();
  sent_.clear();
  session_.reset();
}

void PostgresDriver::forget_gathered() noexcept {
  for (PostgresStatement* statement : gathered_) statement->rows().clear();
  gathered_.clear();
}

void PostgresDriver::send_gathered() {
  if (gathered_.empty()) return;
  try {
    need_session();
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
      auto& rows = gathered_[i]->rows();
      send(rows.prepared, rows.arrays.values(),
           {.receiver = rows.answers.empty() ? nullptr : gathered_[i], .answers = rows.answers});
    }
  } catch (const SqlError&) {
    forget_gathered();
    throw;
  }
  forget_gathered();
}

void PostgresDriver::send(PostgresStatement& statement, PostgresStatement* receiver) {
  need_session();
  send_gathered();
  std::deque<std::string> texts;
  send(statement.one(), statement.values(texts), {.receiver = receiver});
}

void PostgresDriver::send(Prepared& prepared, const PostgresValues& values, Sent sent) {
  PGconn* handle = session_->handle();
  const auto sent_or_lost = [this](int done) {
    if (done != 0) return;
    drop_session();
    throw connection_lost();
  };
  if (prepared.session != session_number_ || prepared.name.empty()) {
    sent_or_lost(PQsendPrepare(handle, prepared.name.c_str(), prepared.sql.c_str(),
                               static_cast<int>(prepared.types.size()), prepared.types.data()));
    prepared.session = session_number_;
    sent_.push_back({.prepared = &prepared});
  }
  sent_or_lost(PQsendQueryPrepared(handle, prepared.name.c_str(),
                                   static_cast<int>(values.data.size()), values.data.data(),
                                   values.lengths.data(), values.formats.data(), 0));
  sent_.push_back(std::move(sent));
  ++traffic_.statements;
}

void PostgresDriver::settle() {
  send_gathered();
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
  ++traffic_.round_trips;
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
      if (Prepared* prepared = sent_.front().prepared) prepared->session = 0;
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
  if (failed) throw *failed;
}

void PostgresDriver::deliver(const Sent& sent, PostgresResult result) {
  if (sent.receiver == nullptr) return;
  if (sent.answers.empty()) return sent.receiver->receive(std::move(result));
  for (const auto& answer : sent.answers) answer->arrived = true;
  std::vector<SqlSlot> number(1);
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    take_row(result.get(), row, 0, number);
    SqlAnswer& answer = *sent.answers.at(static_cast<std::size_t>(number[0].integer) - 1);
    if (std::exchange(answer.found, true)) continue;
    answer.columns = sent.receiver->columns();
    take_row(result.get(), row, 1, answer.columns);
  }
}

void PostgresDriver::script(std::string_view sql) {
  settle();
  need_session();
  try {
    if (PQexitPipelineMode(session_->handle()) == 0) throw connection_lost();
    // Its statements may take long, too: an index of a large table.
    session_->script("SET LOCAL statement_timeout = 0; " + std::string(sql),
                     Clock::now() + script_limit);
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

void PostgresDriver::begin_snapshot() {
  settle();
  // Outside a transaction still: a session that broke meanwhile is made anew.
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
  forget_gathered();
  if (!std::exchange(in_transaction_, false) || !session_) return;
  // Whatever goes wrong here, the end of the session is the end of its transaction.
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
                                          std::shared_ptr<PostgresPulse> pulse) {
  return std::make_unique<Connection>(
      std::make_unique<PostgresDriver>(settings, role, std::move(pulse)));
}

}  // namespace conversed::store
