#include "store/calls.h"

#include "store/read.h"

namespace conversed::store {

using model::PendingCall;
using model::Result;

namespace {

template <typename... In>
std::vector<PendingCall> load_calls(Connection& connection, std::string_view sql, const In&... in) {
  std::vector<PendingCall> calls;
  connection.rows<std::string, std::string, std::string, std::optional<std::string>,
                  std::optional<std::int64_t>, std::int64_t>(
      [&](std::string id, const std::string& key, std::string trace,
          const std::optional<std::string>& request, std::optional<std::int64_t> due_at,
          std::int64_t time_out) {
        PendingCall call;
        call.id = std::move(id);
        call.session = stored_or_throw(model::SessionKey::decode(key));
        call.trace_id = std::move(trace);
        if (request) {
          const auto good = model::read_request(stored_json(*request), call);
          if (!good) throw DamagedData(good.error().message);
        }
        if (due_at) call.due_at = model::from_unix_ms(*due_at);
        call.is_time_out = time_out != 0;
        calls.push_back(std::move(call));
      },
      sql, in...);
  return calls;
}

}  // namespace

Result<std::optional<PendingCall>> Calls::find(const std::string& id) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<PendingCall>> {
    auto found = load_calls(connection,
                            "SELECT c.id, s.key, c.trace_id, c.request, c.due_at, c.time_out"
                            " FROM pending_calls c JOIN sessions s ON s.id = c.session"
                            " WHERE c.id = :i",
                            id);
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  });
}

Result<bool> Calls::waits(const std::string& id) const {
  return read(database_, [&](Connection& connection) -> Result<bool> {
    return connection.value<std::int64_t>("SELECT 1 FROM pending_calls WHERE id = :i", id)
        .has_value();
  });
}

Result<std::vector<Calls::Unfinished>> Calls::unfinished(const std::string& after_id,
                                                         std::size_t limit) const {
  return read(database_, [&](Connection& connection) -> Result<std::vector<Unfinished>> {
    std::vector<Unfinished> calls;
    connection.rows<std::string, std::string>(
        [&](std::string id, const std::string& key) {
          calls.push_back({std::move(id), stored_or_throw(model::SessionKey::decode(key))});
        },
        "SELECT c.id, s.key FROM pending_calls c JOIN sessions s ON s.id = c.session"
        " WHERE c.id > :a AND c.request IS NOT NULL ORDER BY c.id LIMIT :l",
        after_id, limit);
    return calls;
  });
}

Result<std::int64_t> Calls::pending() const {
  return read(database_, [](Connection& connection) {
    return number(
        connection.value<std::int64_t>("SELECT COUNT(*) FROM pending_calls WHERE time_out = 0"));
  });
}

}  // namespace conversed::store
