#include "store/attempts.h"

#include "store/sql.h"

namespace conversed::store {

using model::fail;
using model::Result;

Result<int> Attempts::begin(const std::string& event_id) {
  int count = 0;
  auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    count = writer.connection()
                .value<int>(
                    "INSERT INTO attempts (event_id, count) VALUES (:e, 1)"
                    " ON CONFLICT (event_id) DO UPDATE SET count = attempts.count + 1"
                    " RETURNING count",
                    event_id)
                .value_or(1);
    return {};
  });
  if (!written) return fail(written.error());
  return count;
}

Result<void> Attempts::clear() {
  return committer_.write_and_wait([](Writer& writer) -> Result<void> {
    writer.connection().run("DELETE FROM attempts");
    return {};
  });
}

}  // namespace conversed::store
