#include "store/sql/postgres.h"

#include <endian.h>

#include <charconv>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "store/sql/postgres_session.h"

namespace conversed::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Oid int8_oid = 20;
constexpr Oid text_oid = 25;
constexpr std::chrono::hours script_limit{1};  // migrations of large tables

constexpr char escape = '\x01';
constexpr char escaped_nul = '\x01';
constexpr char escaped_escape = '\x02';

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
    } else if (value.find(escape) == std::string_view::npos) {
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
  [[nodiscard]] std::uint64_t round_trips() const override { return round_trips_; }

  // Sends the statement. Its result goes to `receiver` or to the answer for it, if not null.
  void send(PostgresStatement& statement, PostgresStatement* receiver,
            std::shared_ptr<SqlAnswer> answer = nullptr);
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
    std::shared_ptr<SqlAnswer> answer{};
  };

  void need_session();
  void drop_session() noexcept;
  void collect();
  void deliver(const Sent& sent, PostgresResult result);

  const PostgresSettings settings_;
  const Connection::Role role_;
  const std::shared_ptr<PostgresPulse> pulse_;
  std::optional<PostgresSession> session_;
  std::uint64_t session_number_ = 0;  // statements are prepared anew in each
  std::uint64_t next_name_ = 0;
  std::deque<Sent> sent_;
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
    // Outside a transaction there may be nothing that would take it along.
    if (!driver_.in_transaction()) driver_.settle();
  }
  void ask(const std::shared_ptr<SqlAnswer>& answer) override { driver_.send(*this, this, answer); }

  void receive(PostgresResult result) { result_ = std::move(result); }
  [[nodiscard]] PGresult* result() const { return result_.get(); }

  // One without a name is prepared each time.
  [[nodiscard]] bool is_prepared(std::uint64_t session) const {
    return prepared_in_ == session && !name_.empty();
  }
  void set_prepared(std::uint64_t session) { prepared_in_ = session; }
  [[nodiscard]] bool send_prepare(PGconn* connection) const {
    return PQsendPrepare(connection, name_.c_str(), sql_.c_str(), static_cast<int>(types_.size()),
                         types_.data()) != 0;
  }
  [[nodiscard]] bool send_execute(PGconn* connection);

 private:
  bool next_row() {
    if (row_ >= PQntuples(result_.get()) || columns().empty()) return false;
    take_row(result_.get(), row_, columns());
    return true;
  }

  PostgresDriver& driver_;
  const std::string name_;
  const std::string sql_;
  std::vector<Oid> types_;
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
      if (needs_escape(text)) text = escaped_texts.emplace_back(escaped(text));
      values[i] = text.data();
      lengths[i] = static_cast<int>(text.size());
    }
  }
  return PQsendQueryPrepared(connection, name_.c_str(), static_cast<int>(count), values.data(),
                             lengths.data(), formats.data(), 0) != 0;
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
  sent_.clear();
  session_.reset();
}

void PostgresDriver::send(PostgresStatement& statement, PostgresStatement* receiver,
                          std::shared_ptr<SqlAnswer> answer) {
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
  sent_.push_back({.receiver = receiver, .answer = std::move(answer)});
}

void PostgresDriver::settle() {
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
  if (failed) throw *failed;
}

void PostgresDriver::deliver(const Sent& sent, PostgresResult result) {
  if (sent.receiver == nullptr) return;
  if (!sent.answer) return sent.receiver->receive(std::move(result));
  sent.answer->arrived = true;
  sent.answer->found = PQntuples(result.get()) > 0;
  if (!sent.answer->found) return;
  sent.answer->columns = sent.receiver->columns();
  take_row(result.get(), 0, sent.answer->columns);
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

std::unique_ptr<Connection> open_postgres(const PostgresSettings& settings, Connection::Role role,
                                          std::shared_ptr<PostgresPulse> pulse) {
  return std::make_unique<Connection>(
      std::make_unique<PostgresDriver>(settings, role, std::move(pulse)));
}

}  // namespace conversed::store
