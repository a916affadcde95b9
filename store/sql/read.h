#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "store/model/result.h"
#include "store/sql/as_result.h"
#include "store/sql/database.h"
#include "store/sql/sql.h"

// For .cc files of store/ only.
namespace conversed::store {

// Stored data can't be read back; becomes `internal` in `read`.
struct DamagedData : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[nodiscard]] inline nlohmann::json stored_json(const std::string& text) {
  auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) throw DamagedData("stored JSON can't be read");
  return value;
}

template <typename T>
[[nodiscard]] T stored_or_throw(model::Result<T> value) {
  if (!value) throw DamagedData(value.error().message);
  return *std::move(value);
}

// Runs `work(Connection&)`, which returns a Result, a value or nothing, and turns exceptions into
// errors.
template <typename F>
[[nodiscard]] auto with_errors(Connection& connection, F&& work)
    -> AsResult<std::invoke_result_t<F, Connection&>> {
  try {
    return returned(std::forward<F>(work), connection);
  } catch (const SqlError& error) {
    return model::fail(to_error(error));
  } catch (const DamagedData& error) {
    return model::fail(model::Errc::internal, error.what());
  } catch (const nlohmann::json::exception&) {
    return model::fail(model::Errc::internal, "stored data has another shape than expected");
  }
}

// The same on a reader's connection.
template <typename F>
[[nodiscard]] auto read(Database& database, F&& work) {
  const auto lease = database.reader();
  return with_errors(*lease, std::forward<F>(work));
}

// The same; `timed_out` if it takes longer than `most`.
template <typename F>
[[nodiscard]] auto read_within(Database& database, std::chrono::milliseconds most, F&& work) {
  const auto until = std::chrono::steady_clock::now() + most;
  auto done = read(database, [&](Connection& connection) {
    const Connection::TimeLimit limit(connection, until);
    return std::forward<F>(work)(connection);
  });
  if (!done && done.error().code == model::Errc::unavailable &&
      std::chrono::steady_clock::now() >= until) {
    done = model::fail(model::Errc::timed_out, "the store takes too long");
  }
  return done;
}

// As `read`; `work` reads one snapshot.
template <typename F>
[[nodiscard]] auto read_snapshot(Database& database, F&& work) {
  class Snapshot {
   public:
    explicit Snapshot(Connection& connection) : connection_(connection) {
      connection_.begin_snapshot();
    }
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    ~Snapshot() { connection_.rollback(); }

   private:
    Connection& connection_;
  };
  return read(database, [&](Connection& connection) {
    const Snapshot snapshot(connection);
    return work(connection);
  });
}

}  // namespace conversed::store
