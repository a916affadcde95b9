#include "store/accounts/audit.h"

#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "store/commit/row_writes.h"
#include "store/sql/read.h"
#include "store/text/ascii.h"

namespace conversed::store {

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
      text::lower_case(entry.actor));
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

void Audit::add(Writer& writer, AuditEntry entry) {
  entry.at = writer.now();
  insert(writer.connection(), entry);
}

Result<Audit::Page> Audit::list(const AuditFilter& filter, std::int64_t before,
                                std::size_t limit) const {
  using Row = AuditEntry;
  const auto row =
      row_of<&Row::row, &Row::id, &Row::at, &Row::organisation_id, &Row::user_id, &Row::actor,
             &Row::credential, &Row::address, &Row::operation, &Row::route, &Row::object,
             &Row::subject_user, &Row::subject_session, &Row::status, &Row::trace_id>;
  const auto below = before == 0 ? std::numeric_limits<std::int64_t>::max() : before;
  const std::string of_organisation =
      filter.organisation_id.empty() ? "" : "organisation_id = :o AND ";
  const auto examined_entries = "FROM audit WHERE " + of_organisation + "n < :b ORDER BY n DESC ";
  const auto sql =
      "SELECT n, id, made_at, organisation_id, user_id, actor, credential, address, operation,"
      " route, object, subject_user, subject_session, COALESCE(status, 0), trace_id"
      " FROM (SELECT * " +
      examined_entries +
      "LIMIT :e) AS examined"
      " WHERE (:a = '' OR actor = :c) AND (:q = '' OR operation = :r)"
      " AND (:d = '' OR id = :i OR trace_id = :t OR credential = :k OR object LIKE :j)"
      " ORDER BY n DESC LIMIT :l";
  return read_snapshot(database_, [&](Connection& connection) {
    const auto with_organisation = [&](const auto& ask, const auto&... in) {
      return filter.organisation_id.empty() ? ask(in...) : ask(filter.organisation_id, in...);
    };
    Page page;
    page.rows = with_organisation(
        [&](const auto&... in) { return connection.all(row, sql, in...); }, below, examined,
        filter.actor, filter.actor, filter.operation, filter.operation, filter.about, filter.about,
        filter.about, "key " + filter.about, '%' + filter.about + '%', limit);
    if (page.rows.size() == limit) {
      page.next = page.rows.back().row;
    } else {
      page.next = with_organisation(
          [&](const auto&... in) {
            return connection.value<std::int64_t>(
                "SELECT n " + examined_entries + "LIMIT 1 OFFSET :e", in...);
          },
          below, examined - 1);
    }
    return page;
  });
}

Result<std::int64_t> Audit::prune(model::Timestamp before, std::size_t limit) {
  return write_counted(committer_,
                       "DELETE FROM audit WHERE n IN"
                       " (SELECT n FROM audit WHERE made_at < :b ORDER BY made_at LIMIT :l)",
                       before, limit);
}

}  // namespace conversed::store
