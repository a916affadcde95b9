#include "store/sql/sql.h"

#include <cstdint>
#include <limits>

#include "store/model/json.h"

namespace conversed::store {

namespace {

std::vector<SqlSlot> slots_of(std::span<const SqlType> types) {
  std::vector<SqlSlot> slots(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) slots[i].type = types[i];
  return slots;
}

}  // namespace

nlohmann::json stored_json(const std::string& text) {
  // Values of Flows are as deep as events, inside of some levels of state.
  constexpr std::size_t max_depth = 2 * model::max_json_depth;
  auto value = model::parse_json(text, max_depth, std::numeric_limits<std::size_t>::max());
  if (!value) throw DamagedData("stored JSON can't be read");
  return *std::move(value);
}

std::string detail::Stored<nlohmann::json>::text(const nlohmann::json& value) {
  return model::json_text(value);
}

Statement::Statement(std::span<const SqlType> parameters, std::span<const SqlType> columns)
    : parameters_(slots_of(parameters)), columns_(slots_of(columns)) {}

Connection::Connection(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}
Connection::~Connection() = default;

Statement& Connection::prepared(std::string_view sql, std::span<const SqlType> parameters,
                                std::span<const SqlType> columns) {
  constexpr std::uintptr_t grain = 32;  // few statements are shorter
  const auto address = reinterpret_cast<std::uintptr_t>(sql.data());
  Found& found = by_address_[address / grain % by_address_.size()];
  if (found.statement != nullptr && found.text == sql) return *found.statement;
  auto known = statements_.find(sql);
  if (known == statements_.end()) {
    auto statement = driver_->prepare(sql, parameters, columns, Driver::Use::many);
    known = statements_.emplace(std::string(sql), std::move(statement)).first;
  }
  found = {known->first, known->second.get()};
  return *known->second;
}

void Connection::rows_once(const std::function<void(std::vector<SqlValue>&&)>& each,
                           std::string_view sql, const std::vector<SqlValue>& in,
                           const std::vector<SqlType>& out) {
  std::vector<SqlType> types;
  types.reserve(in.size());
  for (const auto& value : in) {
    types.push_back(std::holds_alternative<std::int64_t>(value) ? SqlType::integer : SqlType::text);
  }
  const auto statement = driver_->prepare(sql, types, out, Driver::Use::once);
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::visit([&](const auto& value) { detail::put(statement->parameters()[i], value); }, in[i]);
  }
  for (bool more = statement->execute(); more; more = statement->fetch()) {
    std::vector<SqlValue> row;
    row.reserve(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      SqlSlot& slot = statement->columns()[i];
      if (out[i] == SqlType::integer) {
        row.emplace_back(detail::take<std::int64_t>(slot));
      } else {
        row.emplace_back(detail::take<std::string>(slot));
      }
    }
    each(std::move(row));
  }
}

Connection::Asking::Asking(Connection& connection, const std::function<bool()>& go_on)
    : connection_(connection) {
  if (go_on) connection_.driver_->ask_meanwhile(&go_on);
}
Connection::Asking::~Asking() {
  connection_.driver_->ask_meanwhile(nullptr);
}

void Connection::savepoint() {
  run("SAVEPOINT work");
}
void Connection::release_savepoint() {
  run("RELEASE work");
  settle();
}
void Connection::rollback_to_savepoint() {
  run("ROLLBACK TO work");
  run("RELEASE work");
  settle();
}

std::string pattern_containing(std::string_view text) {
  if (text.empty()) return {};
  std::string pattern = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '!') pattern += '!';
    pattern += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return pattern + '%';
}

model::Error to_error(const SqlError& error) {
  if (error.kind() == SqlError::Kind::refused) {
    return {model::Errc::conflict, "the store refuses these values"};
  }
  return {model::Errc::unavailable,
          std::string("the store can't be used at the moment: ") + error.what()};
}

}  // namespace conversed::store
