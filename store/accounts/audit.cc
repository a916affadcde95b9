#include "store/accounts/audit.h"

#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "store/accounts/people.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::Result;

namespace {

void complete(Connection& connection, AuditEntry& entry) {
  if (!entry.user_id.empty()) {
    entry.actor =
        connection.value<std::string>("SELECT email FROM users WHERE id = :i", entry.user_id)
            .value_or("");
    return;
  }
  const auto user = connection.row<std::string, std::string, std::string>(
      "SELECT id, organisation_id, email FROM users WHERE email_folded = :e",
      fold_ascii(entry.actor));
  if (!user) {
    entry.actor.clear();
    return;
  }
  std::tie(entry.user_id, entry.organisation_id, entry.actor) = *user;
}

void insert(Connection& connection, const AuditEntry& entry) {
  const auto status = entry.status == 0 ? std::nullopt : std::optional(entry.status);
  connection.run(
      "INSERT INTO audit (id, made_at, organisation_id, user_id, actor, credential, address,"
      " operation, route, object, subject_user, subject_session, status, trace_id)"
      " VALUES (:i, :a, :o, :u, :c, :k, :f, :p, :r, :b, :v, :w, :s, :t)",
      entry.id, entry.at, entry.organisation_id, entry.user_id, entry.actor, entry.credential,
      entry.address, entry.operation, entry.route, entry.object, entry.subject_user,
      entry.subject_session, status, entry.trace_id);
}

}  // namespace

void Audit::begin(AuditEntry entry, Begun done) {
  const auto stored = std::make_shared<AuditEntry>();
  committer_.write(
      [entry = std::move(entry), stored](Writer& writer) -> Result<void> {
        *stored = entry;  // a batch may be tried again
        stored->at = writer.now();
        complete(writer.connection(), *stored);
        insert(writer.connection(), *stored);
        return {};
      },
      [stored, done = std::move(done)](const Result<void>& written) {
        if (!written) return done(model::fail(written.error()));
        done(std::move(*stored));
      },
      Committer::Patience::none);
}

void Audit::end(std::string id, int status) {
  committer_.write(
      [id = std::move(id), status](Writer& writer) -> Result<void> {
        writer.connection().run("UPDATE audit SET status = :s WHERE id = :i AND status IS NULL",
                                status, id);
        return {};
      },
      [](const Result<void>&) {}, Committer::Patience::none);
}

Result<std::vector<AuditEntry>> Audit::list(const AuditFilter& filter, std::int64_t before,
                                            std::size_t limit) const {
  return read(database_, [&](Connection& connection) {
    using Text = std::string;
    return connection.all(
        [&](std::int64_t row, Text id, model::Timestamp at, Text organisation, Text user,
            Text actor, Text credential, Text address, Text operation, Text route, Text object,
            Text user_of, Text session_of, std::optional<int> status, Text trace) {
          return AuditEntry{.id = std::move(id),
                            .row = row,
                            .at = at,
                            .organisation_id = std::move(organisation),
                            .user_id = std::move(user),
                            .actor = std::move(actor),
                            .credential = std::move(credential),
                            .address = std::move(address),
                            .operation = std::move(operation),
                            .route = std::move(route),
                            .object = std::move(object),
                            .subject_user = std::move(user_of),
                            .subject_session = std::move(session_of),
                            .status = status.value_or(0),
                            .trace_id = std::move(trace)};
        },
        "SELECT n, id, made_at, organisation_id, user_id, actor, credential, address, operation,"
        " route, object, subject_user, subject_session, status, trace_id FROM audit WHERE n < :b"
        " AND (:o = '' OR organisation_id = :p)"
        " AND (:a = '' OR actor = :c) AND (:q = '' OR operation = :r) ORDER BY n DESC LIMIT :l",
        before == 0 ? std::numeric_limits<std::int64_t>::max() : before, filter.organisation_id,
        filter.organisation_id, filter.actor, filter.actor, filter.operation, filter.operation,
        limit);
  });
}

Result<std::int64_t> Audit::prune(model::Timestamp before, std::size_t limit) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::int64_t> {
    return writer.connection().run_counted(
        "DELETE FROM audit WHERE n IN"
        " (SELECT n FROM audit WHERE made_at < :b ORDER BY made_at LIMIT :l)",
        before, limit);
  });
}

}  // namespace conversed::store
