#include "api/dispatch.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/audit_trail.h"
#include "api/live/blocking_pool.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

// A call on its way through the audit trail and the pool: std::function copies what it holds.
struct Pending {
  Call call;
  Services& services;
  Reply reply;
};
using PendingPtr = std::shared_ptr<Pending>;

MessageServices& family(Services& all, std::type_identity<MessageServices>) {
  return all.messages;
}
SessionServices& family(Services& all, std::type_identity<SessionServices>) {
  return all.sessions;
}
ProjectServices& family(Services& all, std::type_identity<ProjectServices>) {
  return all.projects;
}
AccountServices& family(Services& all, std::type_identity<AccountServices>) {
  return all.accounts;
}
DaemonServices& family(Services& all, std::type_identity<DaemonServices>) {
  return all.daemon;
}

template <typename Family>
void handle(Respond<Family> respond, Pending& pending) {
  auto& [call, services, reply] = pending;
  call.exchange = reply.context();
  auto response = respond(call, family(services, std::type_identity<Family>()));
  if (!response) return reply.fail(response.error());
  reply.send(std::move(*response));
}

template <typename Family>
void handle(Run<Family> run, Pending& pending) {
  auto& [call, services, reply] = pending;
  run(std::move(call), family(services, std::type_identity<Family>()), std::move(reply));
}

// Said before anything is looked up: without the role of the organisation nothing is to be found
// out. Roles in a project are for the handler to check.
Result<void> check_role(const Call& call) {
  const Operation& operation = call.operation;
  const bool checked_here =
      operation.credential == Credential::basic && is_of_organisation(operation.role);
  if (!checked_here || call.principal->has(operation.role)) return {};
  return model::fail(Errc::permission_denied,
                     "the role " + std::string(to_string(operation.role)) + " is needed");
}

void handle(Pending& pending) {
  if (auto may = check_role(pending.call); !may) return pending.reply.fail(may.error());
  std::visit([&](auto handler) { handle(handler, pending); }, pending.call.operation.run);
}

void handle_on_pool(const PendingPtr& pending) {
  const Credential credential = pending->call.operation.credential;
  // A client's request needs no thread of the pool to find out that the store fails. Operators'
  // requests do: some of them say how the daemon is.
  if (credential == Credential::client && !pending->services.entry.store.committer().healthy()) {
    return pending->reply.fail({Errc::unavailable, "the store is not available at present"});
  }
  const bool posted = pending->services.entry.pool.post(pending->call.principal->organisation_id,
                                                        BlockingPool::Line::others,
                                                        [pending] { handle(*pending); });
  if (posted) return;
  pending->reply.fail({Errc::unavailable, "too many requests wait; try again later"});
}

}  // namespace

void dispatch(Call&& call, Services& services, Reply&& reply) {
  const Operation& operation = call.operation;
  Pending pending{std::move(call), services, std::move(reply)};
  const bool is_kept = operation.credential != Credential::open && is_audited(operation);
  if (!is_kept && !operation.runs_on_pool()) return handle(pending);
  auto kept = std::make_shared<Pending>(std::move(pending));
  if (!is_kept) return handle_on_pool(kept);
  AuditTrail& audit = services.entry.audit;
  audit.begin(kept->call, kept->reply.context().trace_id,
              [kept, &audit](Result<store::AuditEntry> entry) {
                if (!entry) return kept->reply.fail(entry.error());
                kept->reply.on_answer(
                    [&audit, entry = *std::move(entry)](int status) { audit.end(entry, status); });
                handle_on_pool(kept);
              });
}

}  // namespace conversed::api
