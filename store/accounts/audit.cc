#include "store/accounts/audit.h"

#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "store/commit/receipt_blocks.h"
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

// Point selects. No row: there is no such object.
std::optional<std::string> project_of(Connection& connection, const AuditEntry& entry,
                                      const AuditedProject& project) {
  using By = AuditedProject::By;
  const auto of = [&](std::string_view sql) {
    return connection.value<std::string>(sql, project.value);
  };
  switch (project.by) {
    case By::none:
      return std::nullopt;
    case By::id:
      return of("SELECT id FROM projects WHERE id = :i");
    case By::name:
      return connection.value<std::string>(
          "SELECT id FROM projects WHERE organisation_id = :o AND name = :n", entry.organisation_id,
          project.value);
    case By::flow:
      return of("SELECT project_id FROM flows WHERE id = :i");
    case By::endpoint:
      return of("SELECT project_id FROM endpoints WHERE id = :i");
    case By::url_token:
      return connection.value<std::string>("SELECT project_id FROM endpoints WHERE url_token = :i",
                                           text::lower_case(project.value));
    case By::connection:
      return of("SELECT project_id FROM connections WHERE id = :i");
    case By::lexicon:
      return of("SELECT project_id FROM lexicons WHERE id = :i");
    case By::knowledge_store:
      return of("SELECT project_id FROM knowledge_stores WHERE id = :i");
    case By::job:
      return of("SELECT project_id FROM jobs WHERE id = :i");
    case By::dead_letter:
      return of("SELECT project_id FROM dead_letters WHERE id = :i");
    case By::schedule:
      return of("SELECT project_id FROM schedules WHERE id = :i");
    case By::output: {
      const auto receipt = find_receipt(connection, project.value);
      if (!receipt) return std::nullopt;
      return connection.value<std::string>("SELECT project_id FROM sessions WHERE id = :i",
                                           receipt->session);
    }
    case By::only_one:
      return connection.value<std::string>(
          "SELECT MIN(id) FROM projects WHERE organisation_id = :o HAVING COUNT(*) = 1",
          entry.organisation_id);
  }
  return std::nullopt;
}

// None: the project belongs to another organisation, whose objects the actor must not learn of.
std::optional<std::string> own_project_of(Connection& connection, const AuditEntry& entry,
                                          const AuditedProject& project) {
  const auto found = project_of(connection, entry, project);
  if (!found) return std::nullopt;
  return connection.value<std::string>(
      "SELECT id FROM projects WHERE id = :i AND organisation_id = :o", *found,
      entry.organisation_id);
}

// Whether the row that names the project is a session's, and so may be in any shard.
bool is_of_session(AuditedProject::By by) {
  using By = AuditedProject::By;
  return by == By::dead_letter || by == By::schedule || by == By::output;
}

// Asks the shards from `at` on, one after the other, for the row that names the project. `then`
// gets the project by its id if a shard has the row, else the question as it was. The Committers
// ask, since the caller must not block.
void find_elsewhere(const Shards& shards, std::size_t at, AuditedProject project,
                    std::function<void(AuditedProject)> then) {
  if (at == shards.size()) return then(std::move(project));
  const auto found = std::make_shared<std::optional<std::string>>();
  shards[at]->committer().write(
      [project, found](Writer& writer) -> Result<void> {
        *found = project_of(writer.connection(), {}, project);
        return {};
      },
      [&shards, at, project, found, then = std::move(then)](const Result<void>& asked) {
        if (asked && *found) return then({AuditedProject::By::id, **found});
        find_elsewhere(shards, at + 1, project, then);
      },
      Committer::Patience::none);
}

std::string with_project(const AuditEntry& entry) {
  if (entry.project_id.empty()) return entry.object;
  return entry.object + (entry.object.empty() ? "" : ", ") + "projectId=" + entry.project_id;
}

void insert(Connection& connection, const AuditEntry& entry) {
  const auto status = entry.status == 0 ? std::nullopt : std::optional(entry.status);
  connection.run(
      "INSERT INTO audit (id, made_at, organisation_id, user_id, actor, credential, address,"
      " operation, route, object, subject_user, subject_session, status, trace_id)"
      " VALUES (:i, :a, :o, :u, :c, :k, :f, :p, :r, :b, :v, :w, :s, :t)",
      entry.id, entry.at, entry.organisation_id, entry.user_id, entry.actor, entry.credential,
      entry.address, entry.operation, entry.route, with_project(entry), entry.subject_user,
      entry.subject_session, status, entry.trace_id);
}

}  // namespace

void Audit::begin(AuditEntry entry, Begun done, AuditedProject project) {
  if (shards_.size() == 1 || !is_of_session(project.by)) {
    return begin_in_first(std::move(entry), std::move(done), std::move(project));
  }
  find_elsewhere(shards_, 1, std::move(project),
                 [this, entry = std::move(entry), done = std::move(done)](AuditedProject found) {
                   begin_in_first(entry, done, std::move(found));
                 });
}

void Audit::begin_in_first(AuditEntry entry, Begun done, AuditedProject project) {
  const auto stored = std::make_shared<AuditEntry>();
  committer_.write(
      [entry = std::move(entry), project = std::move(project),
       stored](Writer& writer) -> Result<void> {
        *stored = entry;  // a batch may be tried again
        stored->at = writer.now();
        complete(writer.connection(), *stored);
        stored->project_id =
            own_project_of(writer.connection(), *stored, project).value_or(std::string());
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
      " AND (:d = '' OR id = :i OR trace_id = :t OR credential = :k"
      " OR LOWER(object) LIKE :j ESCAPE '!'"
      // A project's name stands for its id, which an object has.
      " OR EXISTS (SELECT 1 FROM projects p WHERE p.name = :m AND object LIKE '%' || p.id || '%'" +
      std::string(filter.organisation_id.empty()
                      ? ""
                      : " AND p.organisation_id = examined.organisation_id") +
      "))"
      " ORDER BY n DESC LIMIT :l";
  return read_snapshot(database_, [&](Connection& connection) {
    const auto with_organisation = [&](const auto& ask, const auto&... in) {
      return filter.organisation_id.empty() ? ask(in...) : ask(filter.organisation_id, in...);
    };
    Page page;
    page.rows = with_organisation(
        [&](const auto&... in) { return connection.all(row, sql, in...); }, below, examined,
        filter.actor, filter.actor, filter.operation, filter.operation, filter.about, filter.about,
        filter.about, "key " + filter.about, pattern_containing(filter.about), filter.about, limit);
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
