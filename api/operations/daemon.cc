// GET /management/status: the state of the daemon. Its figures cover all organisations, so it
// requires the role platformAdmin.
// POST /management/backups: copies of store and log that belong together, made while the daemon
// runs, in the folder of the setting `backup.dir`. Requires the role platformAdmin.
// POST /management/key/rotate: makes a new master key and seals every sealed value by it. Answers
// after the old key is removed from the key file. Requires the role platformAdmin.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/live/events.h"
#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "queue/log.h"
#include "store/shards/backlog.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using namespace openapi;

// The daemon that owns the partition. Null while no daemon owns it.
json owner_of(std::int32_t partition, const std::vector<MemberView>& members) {
  const auto owner = std::ranges::find_if(members, [&](const MemberView& member) {
    return std::ranges::find(member.partitions, partition) != member.partitions.end();
  });
  return owner == members.end() ? json(nullptr) : json(owner->name);
}

const Shape<MemberView>& member_view_shape() {
  static const Shape<MemberView> shape(
      "", {{"name", text(1), &MemberView::name},
           {"roles", list_of(one_of({"api", "worker", "scheduler"})), &MemberView::roles},
           {"version", text(1), &MemberView::version},
           {"partitions", described("Of the queue, that it has now.", list_of(integer(0))),
            &MemberView::partitions},
           {"seenAt", unix_time(), &MemberView::seen_at}});
  return shape;
}

// A failed part is not healthy and has null figures, so the status answers in any case.
json queue_status(queue::Log& log, const std::vector<MemberView>& members) {
  const auto ranges = log.ranges();
  json partitions = json::array();
  if (ranges) {
    for (const queue::PartitionRange& range : *ranges) {
      partitions.push_back({{"partition", range.partition},
                            {"epoch", range.epoch},
                            {"first", range.first},
                            {"end", range.end},
                            {"committed", range.committed},
                            {"lag", range.lag()},
                            {"owner", owner_of(range.partition, members)}});
    }
  }
  const auto health = log.health();
  return {{"healthy", ranges.has_value() && health.has_value()},
          {"error", !health   ? json(health.error().message)
                    : !ranges ? json(ranges.error().message)
                              : json(nullptr)},
          {"lag", ranges ? json(queue::lag_of(*ranges)) : json(nullptr)},
          {"partitions", std::move(partitions)}};
}

// Counts of rows; null if the store can't be read.
json counts_of_rows(const store::Shards& shards) {
  const auto backlog = store::read_backlog(shards);
  const auto shown = [&](std::int64_t store::Backlog::*count) {
    return backlog ? json((*backlog).*count) : json(nullptr);
  };
  return {{"deadLetters", shown(&store::Backlog::dead_letters)},
          {"pendingDeliveries", shown(&store::Backlog::deliveries)},
          {"pendingCalls", shown(&store::Backlog::running_calls)},
          {"inInboxes", shown(&store::Backlog::inbox_events)}};
}

// Ids begin with the time.
json newest_letter(const store::Shards& shards) {
  std::string newest;
  for (const auto& shard : shards) {
    auto id = shard->dead_letters().newest_new();
    if (!id) return nullptr;
    newest = std::max(newest, *id);
  }
  return newest.empty() ? json(nullptr) : json(newest);
}

std::uint64_t session_commits(const store::Shards& shards) {
  std::uint64_t commits = 0;
  for (const auto& shard : shards) commits += shard->committer().commits();
  return commits;
}

json error_or_null(const std::string& failure) {
  return failure.empty() ? json(nullptr) : json(failure);
}

json store_status(store::Store& store) {
  const auto failure = store.first().failure();
  json status{{"healthy", failure.empty()}, {"error", error_or_null(failure)}};
  const auto& shards = store.shards();
  for (std::size_t number = 0; shards.size() > 1 && number < shards.size(); ++number) {
    const auto reason = shards[number]->failure();
    status["shards"].push_back(
        {{"number", number}, {"healthy", reason.empty()}, {"failure", error_or_null(reason)}});
  }
  return status;
}

Result<Response> show_status(const Call& /*call*/, DaemonServices& services) {
  const auto uptime = services.clock.now() - services.options.started_at;
  const auto& shards = services.store.shards();
  const auto members = services.members ? services.members() : std::vector<MemberView>();
  json counts = counts_of_rows(shards);
  counts["appended"] = services.events.appended();
  counts["sessionCommits"] = session_commits(shards);
  counts["waitingForAnswers"] = services.pending_replies.size();
  counts["polls"] = services.watch.size();
  return ok({{"version", services.options.version},
             {"startedAt", unix_seconds(services.options.started_at)},
             {"uptime", std::chrono::duration_cast<std::chrono::seconds>(uptime).count()},
             {"warnings", services.options.warnings},
             {"members", member_view_shape()(members)},
             {"queue", queue_status(services.log, members)},
             {"store", store_status(services.store)},
             {"newestDeadLetter", newest_letter(shards)},
             {"counts", std::move(counts)}});
}

Description describe_status() {
  const auto count = integer(0);
  const auto unknown = nullable(integer(0));
  const auto partition =
      object({{"partition", count},
              {"epoch", count},
              {"first", count},
              {"end", count},
              {"committed", count},
              {"lag", count},
              {"owner", described("The member that runs its events; null while no member owns it.",
                                  nullable(text(1)))}});
  const auto queue = object({{"healthy", boolean()},
                             {"error", described("Why it is not healthy.", nullable(text(1)))},
                             {"lag", unknown},
                             {"partitions", list_of(partition)}});
  const auto shard = object({{"number", described("0: the first.", count)},
                             {"healthy", boolean()},
                             {"failure", described("Why it is not healthy.", nullable(text(1)))}});
  const auto store = object(
      {{"healthy", described("Of several shards, the first.", boolean())},
       {"error", described("The last error, with the store's file; null: the store is healthy.",
                           nullable(text(1)))},
       {"shards", described("Only if there are several.", list_of(shard)), Need::optional}});
  const auto counts = object({{"appended", count},
                              {"sessionCommits", count},
                              {"waitingForAnswers", count},
                              {"polls", count},
                              {"deadLetters", unknown},
                              {"pendingDeliveries", unknown},
                              {"pendingCalls", unknown},
                              {"inInboxes", unknown}});
  const auto body =
      object({{"version", text(1)},
              {"startedAt", unix_time()},
              {"uptime", described("In seconds.", count)},
              {"warnings", described("Settings that may be mistakes.", list_of(text(1)))},
              {"members", described("The daemons that share the store, as of a second ago.",
                                    list_of(member_view_shape().schema()))},
              {"queue", queue},
              {"store", store},
              {"newestDeadLetter", described("Null: there is no new one.", nullable_id())},
              {"counts", counts}});
  return {.summary = "Get the daemon's state",
          .details = "A figure that can't be read is null. Rows are counted up to " +
                     std::to_string(store::most_counted) + ".",
          .answers = {json_answer("The figures of all organisations.", named("Status", body))}};
}

Result<Response> back_up(const Call& call, DaemonServices& services) {
  std::string name;
  auto body = read_object(call.request, {{"name", &name}});
  if (!body) return model::fail(body.error());
  if (name.empty() && body->contains("name")) {
    return model::fail(Errc::invalid_argument, "name must not be empty");
  }
  if (!services.back_up) return model::fail(Errc::not_supported, "there is nothing to back up");
  auto made = services.back_up(name);
  if (!made) return model::fail(made.error());
  return json_response(status::created, {{"name", made->name},
                                         {"path", made->path},
                                         {"bytes", made->bytes},
                                         {"createdAt", unix_seconds(made->created_at)}});
}

Description describe_back_up() {
  const auto name = text_like("^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$");
  const auto body = object({{"name", described("Default: the time.", name), Need::optional}});
  const auto backup = object({{"name", text(1)},
                              {"path", described("On the daemon's machine.", text(1))},
                              {"bytes", integer(0)},
                              {"createdAt", unix_time()}});
  return {.summary = "Make a backup",
          .details =
              "Copies store and log for `conversectl restore`. The backup does not contain the "
              "master key.",
          .body = json_content(named("BackupCreation", body)),
          .answers = {json_answer("The backup is on the disk.", named("Backup", backup),
                                  status::created)},
          .errors = {409, 501}};
}

// For error messages. Empty if this daemon is the only one.
std::string other_members(DaemonServices& services) {
  const auto members = services.members ? services.members() : std::vector<MemberView>();
  if (members.size() < 2) return {};
  std::string names;
  for (const MemberView& member : members) {
    if (member.name == services.options.member_name) continue;
    names += (names.empty() ? "" : ", ") + member.name;
  }
  return names;
}

Result<Response> rotate(const Call& /*call*/, DaemonServices& services) {
  // The other daemons read their own key files, and only at their start.
  if (const auto others = other_members(services); !others.empty()) {
    return model::fail(Errc::conflict,
                       "the master key is in a file of each daemon, so that one daemon alone can "
                       "rotate it; stop the others first (" +
                           others + "), and then give them the new master.key");
  }
  return from_store(services.store.key_rotation().rotate()).map([](const auto& done) {
    return ok({{"key", done.key},
               {"resealed", done.resealed},
               {"replacedKey", done.kept.empty() ? json(nullptr) : json(done.kept.string())}});
  });
}

Description describe_rotate_key() {
  const auto answer =
      object({{"key", described("The number of the key that seals now.", integer(1))},
              {"resealed", described("Values that were sealed anew.", integer(0))},
              {"replacedKey", described("The file on the daemon's machine that keeps the replaced "
                                        "key. Older backups need it. Null: there is none.",
                                        nullable(text(1)))}});
  return {.summary = "Rotate the master key",
          .details =
              "If it is interrupted, both keys stay, and the next start of the daemon continues. "
              "In a cluster, stop all daemons but one first.",
          .answers = {json_answer("The old key has moved to a file beside the key file.",
                                  named("KeyRotation", answer))},
          .errors = {409, 501}};
}

}  // namespace

Operations daemon_operations() {
  static constexpr Operation rows[] = {
      for_operators("status", Method::get, "/management/status", Role::platform_admin, show_status,
                    describe_status),
      for_operators("backUp", Method::post, "/management/backups", Role::platform_admin, back_up,
                    describe_back_up),
      for_operators("rotateKey", Method::post, "/management/key/rotate", Role::platform_admin,
                    rotate, describe_rotate_key),
  };
  return rows;
}

}  // namespace conversed::api
