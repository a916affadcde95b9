#include "store/jobs/jobs.h"

#include <algorithm>
#include <array>

#include "store/cluster/notifications.h"
#include "store/commit/row_writes.h"
#include "store/commit/usage.h"
#include "store/paging/paging.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::Job;
using model::JobState;

template <>
struct detail::Stored<JobState> {
  static std::string text(JobState state) { return std::string(model::to_string(state)); }
  static JobState value(const std::string& text) {
    const auto known = model::job_state_from(text);
    if (!known) throw DamagedData("a job has an unknown state");
    return *known;
  }
};

namespace {

Result<Job> find(Connection& connection, const std::string& id) {
  auto job = connection.first(
      row_of<&Job::id, &Job::project_id, &Job::type, &Job::name, &Job::state, &Job::progress,
             &Job::current_step, &Job::total_steps, &Job::fail_reason, &Job::data, &Job::created_at,
             &Job::changed_at, &Job::fencing_token, &Job::lease_until>,
      "SELECT id, project_id, type, name, state, progress, current_step, total_steps, fail_reason,"
      " data, created_at, changed_at, fencing_token, lease_until FROM jobs WHERE id = :i",
      id);
  if (!job) return fail(Errc::not_found, "there is no such job");
  return *std::move(job);
}

// The filter of a job on dead letters or deliveries may name a user.
void forget_filter(Connection& connection, const Job& job) {
  if (!job.data.is_object() || !job.data.contains("filter")) return;
  auto data = job.data;
  data.erase("filter");
  connection.run("UPDATE jobs SET data = :d WHERE id = :i", data, job.id);
}

// Changes the state, along the table, from the state that was read. No other function changes a
// state. An ended job has no filter.
Result<void> change_state(Connection& connection, const Job& job, JobState to,
                          model::Timestamp now) {
  if (!model::can_become(job.state, to)) {
    return fail(Errc::conflict, "the job is " + std::string(model::to_string(job.state)));
  }
  const auto changed = connection.run_counted(
      "UPDATE jobs SET state = :n, changed_at = :t WHERE id = :i AND state = :o", to, now, job.id,
      job.state);
  if (changed != 1) return fail(Errc::conflict, "the job changed meanwhile");
  if (model::is_final(to)) forget_filter(connection, job);
  return {};
}

// The job, if the token's lease is still valid and the job has not ended.
Result<Job> held(Connection& connection, const std::string& id, std::int64_t token) {
  auto job = find(connection, id);
  if (!job) return job;
  if (job->fencing_token != token || model::is_final(job->state)) {
    return fail(Errc::conflict, "the job was given to another worker or has ended");
  }
  return job;
}

// Counts the job in the month's usage of its plan.
Result<void> count(Writer& writer, const Jobs::Creation& creation) {
  if (creation.organisation_id.empty()) return {};
  const auto used = writer.connection().number(
      "SELECT amount FROM usage WHERE organisation_id = :o"
      " AND counter = 'jobs' AND month = :m",
      creation.organisation_id, month_of(writer.now()));
  if (creation.max_per_month > 0 && used >= creation.max_per_month) {
    return fail(Errc::quota_exhausted, "the plan's quota of jobs is used up for this month");
  }
  Usage::add(writer, {creation.organisation_id, "jobs", 1});
  return {};
}

// Times are in seconds, as the API shows them.
constexpr std::array job_fields{
    PagedField{"_id", "id", SqlType::text, Unique::yes},
    PagedField{"status", "state", SqlType::text, Unique::no},
    PagedField{"type", "type", SqlType::text, Unique::no},
    PagedField{"progress", "progress", SqlType::integer, Unique::no},
    PagedField{"name", "name", SqlType::text, Unique::no},
    PagedField{"currentStep", "current_step", SqlType::integer, Unique::no},
    PagedField{"totalStep", "total_steps", SqlType::integer, Unique::no},
    PagedField{"failReason", "fail_reason", SqlType::text, Unique::no},
    PagedField{"createdAt", "(created_at / 1000)", SqlType::integer, Unique::no},
    PagedField{"lastChangedAt", "(changed_at / 1000)", SqlType::integer, Unique::no},
};
constexpr PagedField newest{"", "n", SqlType::integer, Unique::yes};

}  // namespace

void Jobs::tell(Writer& writer, const std::string& id) const {
  if (listener_) writer.on_commit([this, id] { listener_(id); });
  announce(writer.connection(), std::string(jobs_topic) + ' ' + id);
}

void Jobs::wake_workers(Writer& writer, const std::string& id) {
  announce(writer.connection(), std::string(wake_topic) + ' ' + id);
}

Result<std::optional<KeptAnswer>> Jobs::create(const Job& job, const Creation& creation) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::optional<KeptAnswer>> {
    std::optional<KeptAnswer> kept;
    Connection& connection = writer.connection();
    if (creation.keyed) {
      auto found = find_keyed_answer(writer, creation.keyed->key);
      if (!found) return fail(found.error());
      kept = *std::move(found);
      if (kept) return kept;
    }
    // The partial unique index enforces the rule. The query before the insert finds the other job's
    // id for the message.
    const auto other = connection.value<std::string>(
        "SELECT id FROM jobs WHERE project_id = :p AND type = :t"
        " AND (state IN ('queued', 'active', 'cancelling')"
        " OR (state = 'done' AND type = 'proactiveSetup'))",
        job.project_id, job.type);
    if (other) return fail(Errc::conflict, *other);
    if (auto counted = count(writer, creation); !counted) return fail(counted.error());
    connection.run(
        "INSERT INTO jobs (id, n, project_id, type, name, state, progress, current_step,"
        " total_steps, fail_reason, data, created_at, changed_at, fencing_token, lease_until)"
        " VALUES (:i, (SELECT COALESCE(MAX(n), 0) + 1 FROM jobs), :p, :t, :n, 'queued', 0, 0, :o,"
        " '', :d, :c, :h, 0, 0)",
        job.id, job.project_id, job.type, job.name, job.total_steps, job.data, job.created_at,
        job.created_at);
    if (creation.keyed) keep_keyed_answer(writer, *creation.keyed);
    tell(writer, job.id);
    wake_workers(writer, job.id);
    return kept;
  });
}

Result<Job> Jobs::get(const std::string& id) const {
  return read(database_, [&](Connection& connection) { return find(connection, id); });
}

std::vector<std::string_view> Jobs::sort_fields() {
  return names_of(job_fields);
}

Result<Page<Job>> Jobs::list(const Filter& filter, const PageRequest& request) const {
  PagedList list{.from = "jobs WHERE project_id IN (SELECT value FROM json_each(:p0))",
                 .values = {nlohmann::json(filter.project_ids).dump()},
                 .fields = job_fields,
                 .own_order = newest,
                 .own_direction = Order::descending};
  if (filter.state) {
    list.from += " AND state = :p1";
    list.values.emplace_back(std::string(model::to_string(*filter.state)));
  }
  list.scope = "jobs";
  for (const auto& value : list.values) list.scope += ' ' + std::get<std::string>(value);
  auto ids = read_page(database_, committer_, list, request);
  if (!ids) return fail(ids.error());
  return read(database_, [&](Connection& connection) -> Result<Page<Job>> {
    return Page<Job>::of(*std::move(ids), [&](const auto& id) { return find(connection, id); });
  });
}

Result<std::vector<std::string>> Jobs::waiting(model::Timestamp now, std::size_t limit) const {
  return read(database_, [&](Connection& connection) {
    return connection.values<std::string>(
        "SELECT id FROM jobs WHERE state IN ('queued', 'active', 'cancelling')"
        " AND lease_until <= :n ORDER BY lease_until, n LIMIT :l",
        now, limit);
  });
}

Result<Job> Jobs::lease(const std::string& id, model::Timestamp until) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<Job> {
    Connection& connection = writer.connection();
    auto leased = find(connection, id);
    if (!leased) return leased;
    if (model::is_final(leased->state)) return fail(Errc::conflict, "the job has ended");
    if (leased->lease_until > writer.timer_now()) {
      return fail(Errc::conflict, "another worker has the job");
    }
    if (leased->state == JobState::queued) {
      auto moved = change_state(connection, *leased, JobState::active, writer.now());
      if (!moved) return fail(moved.error());
    }
    connection.run(
        "UPDATE jobs SET fencing_token = fencing_token + 1, lease_until = :u WHERE id = :i", until,
        id);
    leased = find(connection, id);
    tell(writer, id);
    return leased;
  });
}

Result<void> Jobs::renew(const std::string& id, std::int64_t token, model::Timestamp until) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    auto job = held(writer.connection(), id, token);
    if (!job) return fail(job.error());
    writer.connection().run("UPDATE jobs SET lease_until = :u WHERE id = :i", until, id);
    return {};
  });
}

Result<void> Jobs::end_leases() {
  const auto work = [](Writer& writer) {
    writer.connection().run(
        "UPDATE jobs SET lease_until = 0 WHERE state IN ('queued', 'active', 'cancelling')");
  };
  return committer_.write_and_wait(work, Committer::Patience::until_it_works);
}

Result<std::int64_t> Jobs::prune(model::Timestamp before, std::size_t limit) {
  return write_counted(
      committer_,
      "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE (state IN ('cancelled', 'error')"
      " OR (state = 'done' AND type <> 'proactiveSetup')) AND changed_at < :b ORDER BY changed_at "
      "LIMIT :l)",
      before, limit);
}

Result<void> Jobs::step(Writer& writer, const std::string& id, std::int64_t token,
                        const Progress& progress) const {
  auto job = held(writer.connection(), id, token);
  if (!job) return fail(job.error());
  writer.connection().run(
      "UPDATE jobs SET progress = :p, current_step = :s, data = :d, changed_at = :t WHERE id = :i",
      std::clamp(progress.progress, job->progress, 100),
      std::clamp(progress.current_step, job->current_step,
                 std::max(job->current_step, job->total_steps)),
      progress.data ? *progress.data : job->data, writer.now(), id);
  tell(writer, id);
  return {};
}

Result<void> Jobs::step(const std::string& id, std::int64_t token, const Progress& progress) {
  return committer_.write_and_wait(
      [&](Writer& writer) { return step(writer, id, token, progress); });
}

Result<void> Jobs::finish(Writer& writer, const std::string& id, std::int64_t token, JobState state,
                          const std::string& fail_reason) const {
  if (!model::is_final(state)) {
    return fail(Errc::invalid_argument, "a job ends as done, cancelled or error");
  }
  auto job = held(writer.connection(), id, token);
  if (!job) return fail(job.error());
  auto moved = change_state(writer.connection(), *job, state, writer.now());
  if (!moved) return moved;
  const bool done = state == JobState::done;
  writer.connection().run(
      "UPDATE jobs SET fail_reason = :r, progress = :p, current_step = :c, lease_until = 0"
      " WHERE id = :i",
      fail_reason, done ? 100 : job->progress, done ? job->total_steps : job->current_step, id);
  tell(writer, id);
  return {};
}

Result<void> Jobs::finish(const std::string& id, std::int64_t token, JobState state,
                          const std::string& fail_reason) {
  return committer_.write_and_wait(
      [&](Writer& writer) { return finish(writer, id, token, state, fail_reason); });
}

bool Jobs::is_cancelling(Writer& writer, const std::string& id) {
  const auto job = find(writer.connection(), id);
  return job && job->state == JobState::cancelling;
}

Result<Job> Jobs::cancel(const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<Job> {
    auto job = find(writer.connection(), id);
    if (!job) return job;
    if (job->state == JobState::cancelling || job->state == JobState::cancelled) return job;
    const auto to = job->state == JobState::queued ? JobState::cancelled : JobState::cancelling;
    auto moved = change_state(writer.connection(), *job, to, writer.now());
    if (!moved) return fail(moved.error());
    job = find(writer.connection(), id);
    tell(writer, id);
    wake_workers(writer, id);
    return job;
  });
}

}  // namespace conversed::store
