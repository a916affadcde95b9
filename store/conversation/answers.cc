#include "store/conversation/answers.h"

#include <algorithm>

#include "store/sql/read.h"

namespace conversed::store {

using model::fail;
using model::Result;

Result<std::optional<NewAnswer>> Answers::find(const std::string& input_id,
                                               model::Timestamp now) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<NewAnswer>> {
    auto row = connection.row<int, std::string, std::int64_t>(
        "SELECT status, body, expires_at FROM answers WHERE input_id = :i AND expires_at > :n",
        input_id, model::to_unix_ms(now));
    if (!row) return std::nullopt;
    return NewAnswer{.input_id = input_id,
                     .status = std::get<0>(*row),
                     .body = std::move(std::get<1>(*row)),
                     .expires_at = model::from_unix_ms(std::get<2>(*row))};
  });
}

Result<bool> Answers::claimed(const std::string& event_id) const {
  return read(database_, [&](Connection& connection) -> Result<bool> {
    return connection.row<int>("SELECT 1 FROM claims WHERE id = :i", event_id).has_value();
  });
}

Result<std::int64_t> Answers::prune(model::Timestamp now, model::Timestamp claims_before,
                                    std::size_t limit) {
  std::int64_t deleted = 0;
  auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    const auto answers = writer.connection().run_counted(
        "DELETE FROM answers WHERE input_id IN (SELECT input_id FROM answers"
        " WHERE expires_at <= :n ORDER BY expires_at LIMIT :l)",
        model::to_unix_ms(now), limit);
    const auto claims = writer.connection().run_counted(
        "DELETE FROM claims WHERE id IN (SELECT id FROM claims WHERE created_at < :b"
        " ORDER BY created_at LIMIT :l)",
        model::to_unix_ms(claims_before), limit);
    deleted = std::max(answers, claims);
    return {};
  });
  if (!written) return fail(written.error());
  return deleted;
}

}  // namespace conversed::store
