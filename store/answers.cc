#include "store/answers.h"

#include "store/read.h"

namespace conversed::store {

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

Result<void> Answers::prune(model::Timestamp now, model::Timestamp claims_before) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    writer.connection().run("DELETE FROM answers WHERE expires_at <= :n", model::to_unix_ms(now));
    writer.connection().run("DELETE FROM claims WHERE created_at < :b",
                            model::to_unix_ms(claims_before));
    return {};
  });
}

}  // namespace conversed::store
