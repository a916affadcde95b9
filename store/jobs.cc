#include "store/jobs.h"

#include <algorithm>

#include "store/read.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Job;
using model::JobState;
using model::Result;

namespace {

template <typename... In>
std::vector<Job> load_jobs(Connection& connection, std::string_view sql, const In&... in) {
  std::vector<Job> jobs;
  connection.rows<std::string, std::string, std::string, std::string, std::string, int, int, int,
                  std::string, std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>(
      [&](std::string id, std::string project, std::string type, std::string name,
          const std::string& state, int progress, int step, int total, std::string reason,
          const std::string& data, std::int64_t created, std::int64_t changed, std::int64_t token,
          std::int64_t lease) {
        const auto known = model::job_state_from(state);
        if (!known) throw DamagedData("a job has an unknown state");
        jobs.push_back({.id = std::move(id),
                        .project_id = std::move(project),
                        .type = std::move(type),
                        .name = std::move(name),
                        .state = *known,
                        .progress = progress,
                        .current_step = step,
                        .total_steps = total,
                        .fail_reason = std::move(reason),
                        .data = stored_json(data),
                        .created_at = model::from_unix_ms(created),
                        .changed_at = model::from_unix_ms(changed),
                        .fencing_token = token,
                        .lease_until = model::from_unix_ms(lease)});
      },
      sql, in...);
  return jobs;
}

Result<Job> find(Connection& connection, const std::string& id) {
  auto jobs = load_jobs(connection,
                        "SELECT id, project_id, type, name, state, progress, current_step,"
                        " total_steps, fail_reason, data, created_at, changed_at, fencing_token,"
                        " lease_until FROM jobs WHERE id = :i",
                        id);
  if (jobs.empty()) return fail(Errc::not_found, "there is no such job");
  return std::move(jobs.front());
}

// The one place where a state changes: along the table, from the state that was read.
Result<void> change_state(Connection& connection, const Job& job, JobState to,
                          model::Timestamp now) {
  if (!model::can_become(job.state, to)) {
    return fail(Errc::conflict, "the job is " + std::string(model::to_string(job.state)));
  }
  const auto changed = connection.run(
      "UPDATE jobs SET state = :n, changed_at = :t WHERE id = :i AND state = :o",
      model::to_string(to), model::to_unix_ms(now), job.id, model::to_string(job.state));
  if (changed != 1) return fail(Errc::conflict, "the job changed meanwhile");
  return {};
}

// The job as its worker sees it: with the lease that the token names, and not over.
Result<Job> held(Connection& connection, const std::string& id, std::int64_t token) {
  auto job = find(connection, id);
  if (!job) return job;
  if (job->fencing_token != token || model::is_final(job->state)) {
    return fail(Errc::conflict, "the job was given to another worker or is over");
  }
  return job;
}

}  // namespace

Result<void> Jobs::create(const Job& job) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    // The partial unique index is the rule; asking first gives the answer its name.
    const auto other = connection.value<std::string>(
        "SELECT id FROM jobs WHERE project_id = :p AND type = :t"
        " AND state IN ('queued', 'active', 'cancelling', 'done')",
        job.project_id, job.type);
    if (other) return fail(Errc::conflict, *other);
    connection.run(
        "INSERT INTO jobs (id, n, project_id, type, name, state, progress, current_step,"
        " total_steps, fail_reason, data, created_at, changed_at, fencing_token, lease_until)"
        " VALUES (:i, (SELECT COALESCE(MAX(n), 0) + 1 FROM jobs), :p, :t, :n, 'queued', 0, 0, :o,"
        " '', :d, :c, :h, 0, 0)",
        job.id, job.project_id, job.type, job.name, job.total_steps, job.data.dump(),
        model::to_unix_ms(job.created_at), model::to_unix_ms(job.created_at));
    return {};
  });
}

Result<Job> Jobs::get(const std::string& id) const {
  return read(database_, [&](Connection& connection) { return find(connection, id); });
}

Result<Jobs::Page> Jobs::list(const Filter& filter) const {
  const std::string projects = nlohmann::json(filter.project_ids).dump();
  const std::string state(filter.state ? model::to_string(*filter.state) : "");
  return read(database_, [&](Connection& connection) -> Result<Page> {
    Page page;
    page.total = connection
                     .value<std::int64_t>(
                         "SELECT COUNT(*) FROM jobs WHERE project_id IN"
                         " (SELECT value FROM json_each(:p)) AND (:s = '' OR state = :t)",
                         projects, state, state)
                     .value_or(0);
    page.items = load_jobs(
        connection,
        "SELECT id, project_id, type, name, state, progress, current_step, total_steps,"
        " fail_reason, data, created_at, changed_at, fencing_token, lease_until FROM jobs"
        " WHERE project_id IN (SELECT value FROM json_each(:p)) AND (:s = '' OR state = :t)"
        " ORDER BY n DESC LIMIT :l OFFSET :o",
        projects, state, state, filter.limit, filter.skip);
    return page;
  });
}

Result<std::vector<std::string>> Jobs::waiting(model::Timestamp now, std::size_t limit) const {
  return read(database_, [&](Connection& connection) -> Result<std::vector<std::string>> {
    std::vector<std::string> ids;
    connection.rows<std::string>(
        [&](std::string id) { ids.push_back(std::move(id)); },
        "SELECT id FROM jobs WHERE state IN ('queued', 'active', 'cancelling')"
        " AND lease_until <= :n ORDER BY lease_until, n LIMIT :l",
        model::to_unix_ms(now), limit);
    return ids;
  });
}

Result<Job> Jobs::lease(const std::string& id, model::Timestamp until) {
  Result<Job> leased = fail(Errc::internal, "");
  auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    leased = find(connection, id);
    if (!leased) return fail(leased.error());
    if (model::is_final(leased->state)) return fail(Errc::conflict, "the job is over");
    if (leased->lease_until > writer.now()) {
      return fail(Errc::conflict, "another worker has the job");
    }
    if (leased->state == JobState::queued) {
      auto changed = change_state(connection, *leased, JobState::active, writer.now());
      if (!changed) return changed;
    }
    connection.run(
        "UPDATE jobs SET fencing_token = fencing_token + 1, lease_until = :u WHERE id = :i",
        model::to_unix_ms(until), id);
    leased = find(connection, id);
    return {};
  });
  if (!written) return fail(written.error());
  return leased;
}

Result<void> Jobs::renew(const std::string& id, std::int64_t token, model::Timestamp until) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    auto job = held(writer.connection(), id, token);
    if (!job) return fail(job.error());
    writer.connection().run("UPDATE jobs SET lease_until = :u WHERE id = :i",
                            model::to_unix_ms(until), id);
    return {};
  });
}

Result<void> Jobs::step(Writer& writer, const std::string& id, std::int64_t token,
                        const Progress& progress) {
  auto job = held(writer.connection(), id, token);
  if (!job) return fail(job.error());
  writer.connection().run(
      "UPDATE jobs SET progress = :p, current_step = :s, data = :d, changed_at = :t WHERE id = :i",
      std::clamp(progress.progress, job->progress, 100),
      std::clamp(progress.current_step, job->current_step,
                 std::max(job->current_step, job->total_steps)),
      progress.data ? progress.data->dump() : job->data.dump(), model::to_unix_ms(writer.now()),
      id);
  return {};
}

Result<void> Jobs::step(const std::string& id, std::int64_t token, const Progress& progress) {
  return committer_.write_and_wait(
      [&](Writer& writer) { return step(writer, id, token, progress); });
}

Result<void> Jobs::finish(Writer& writer, const std::string& id, std::int64_t token, JobState state,
                          const std::string& fail_reason) {
  if (!model::is_final(state)) {
    return fail(Errc::invalid_argument, "a job ends as done, cancelled or error");
  }
  auto job = held(writer.connection(), id, token);
  if (!job) return fail(job.error());
  auto changed = change_state(writer.connection(), *job, state, writer.now());
  if (!changed) return changed;
  const bool done = state == JobState::done;
  writer.connection().run(
      "UPDATE jobs SET fail_reason = :r, progress = :p, current_step = :c, lease_until = 0"
      " WHERE id = :i",
      fail_reason, done ? 100 : job->progress, done ? job->total_steps : job->current_step, id);
  return {};
}

Result<void> Jobs::finish(const std::string& id, std::int64_t token, JobState state,
                          const std::string& fail_reason) {
  return committer_.write_and_wait(
      [&](Writer& writer) { return finish(writer, id, token, state, fail_reason); });
}

Result<Job> Jobs::cancel(const std::string& id) {
  Result<Job> job = fail(Errc::internal, "");
  auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    job = find(writer.connection(), id);
    if (!job) return fail(job.error());
    if (job->state == JobState::cancelling || job->state == JobState::cancelled) return {};
    const auto to = job->state == JobState::queued ? JobState::cancelled : JobState::cancelling;
    auto changed = change_state(writer.connection(), *job, to, writer.now());
    if (!changed) return changed;
    job = find(writer.connection(), id);
    return {};
  });
  if (!written) return fail(written.error());
  return job;
}

}  // namespace conversed::store
