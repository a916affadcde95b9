#include "store/attempts.h"

#include "store/read.h"

namespace conversed::store {

using model::fail;
using model::Result;

Result<int> Attempts::begin(const std::string& event_id, int before) {
  int count = 0;
  const auto work = [&](Writer& writer) -> Result<void> {
    count = writer.connection()
                .value<int>(
                    "INSERT INTO attempts (event_id, count) VALUES (:e, :c)"
                    " ON CONFLICT (event_id) DO UPDATE SET count = attempts.count + 1"
                    " RETURNING count",
                    event_id, before + 1)
                .value_or(before + 1);
    return {};
  };
  // Patient: one whose outcome is unknown would be counted twice.
  auto written = committer_.write_and_wait(work, {}, Committer::Patience::until_it_works);
  if (!written) return fail(written.error());
  return count;
}

Result<bool> Attempts::empty() const {
  return read(database_, [](Connection& connection) -> Result<bool> {
    return !connection.value<std::int64_t>("SELECT 1 FROM attempts LIMIT 1");
  });
}

Result<void> Attempts::clear() {
  const auto work = [](Writer& writer) -> Result<void> {
    writer.connection().run("DELETE FROM attempts");
    return {};
  };
  return committer_.write_and_wait(work, {}, Committer::Patience::until_it_works);
}

}  // namespace conversed::store
