#include "api/dispatch.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "api/audit_trail.h"
#include "api/auth/authenticator.h"
#include "api/auth/credentials.h"
#include "api/http/client_address.h"
#include "api/http/error_reply.h"
#include "api/live/blocking_pool.h"
#include "api/live/rate_limiter.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::Result;

// A call on its way through the sign-in, the audit trail and the pool. It is shared, because
// std::function copies its captures.
struct Pending {
  Call call;
  Services& services;
  Reply reply;
};
using PendingPtr = std::shared_ptr<Pending>;

// ---- From the pool to the handler

template <typename Family>
Family& family(Services& all) {
  return std::get<Family&>(
      std::tie(all.messages, all.sessions, all.projects, all.accounts, all.daemon));
}

template <typename Family>
void handle(Respond<Family> respond, Pending& pending) {
  auto& [call, services, reply] = pending;
  call.exchange = reply.context();
  auto response = respond(call, family<Family>(services));
  if (!response) return reply.fail(response.error());
  reply.send(std::move(*response));
}

template <typename Family>
void handle(Run<Family> run, Pending& pending) {
  auto& [call, services, reply] = pending;
  run(std::move(call), family<Family>(services), std::move(reply));
}

// Runs before any look-up, so a user without the role learns nothing. Handlers check roles in
// projects.
Result<void> check_role(const Call& call) {
  const Operation& operation = call.operation;
  const bool checked_here =
      operation.credential == Credential::basic && is_of_organisation(operation.role);
  if (!checked_here || call.principal->has(operation.role)) return {};
  return model::fail(Errc::permission_denied,
                     "the role " + std::string(to_string(operation.role)) + " is needed");
}

// Refuses an operation outside the scope of the management token, even if its user may run it.
Result<void> check_scope(const Call& call) {
  const auto denied = [](std::string message) {
    return model::fail(Errc::permission_denied, std::move(message));
  };
  if (!call.principal || call.principal->scopes.empty()) return {};
  const Operation& operation = call.operation;
  if (operation.needs_password) {
    return denied("this makes a credential and takes your password, not a token");
  }
  // Each token may revoke itself.
  if (call.parameters["tokenId"] == call.principal->key_id) return {};
  const bool changes = operation.method != Method::get;
  if (changes &&
      std::ranges::find(call.principal->scopes, scope_of_reading) != call.principal->scopes.end()) {
    return denied("the token has the scope read: it changes nothing");
  }
  if (operation.role == Role::member && !changes) return {};
  if (covers(call.principal->scopes, operation.role)) return {};
  if (operation.other_role != Role::none && covers(call.principal->scopes, operation.other_role)) {
    return {};
  }
  return denied("the token lacks the scope " + std::string(operation.role == Role::member
                                                               ? scope_of_all
                                                               : to_string(operation.role)));
}

void handle(Pending& pending) {
  if (auto may = check_scope(pending.call); !may) return pending.reply.fail(may.error());
  if (auto may = check_role(pending.call); !may) return pending.reply.fail(may.error());
  std::visit([&](auto handler) { handle(handler, pending); }, pending.call.operation.run);
}

void handle_on_pool(const PendingPtr& pending) {
  const Credential credential = pending->call.operation.credential;
  // A client's request is refused here while the store fails, without a thread of the pool.
  // Requests of operators go on, because some of them show the state of the daemon.
  if (credential == Credential::client && !pending->services.entry.store.committer().healthy()) {
    return pending->reply.fail({Errc::unavailable, "the store is not available; try again later"});
  }
  const bool posted = pending->services.entry.pool.post(pending->call.principal->organisation_id,
                                                        BlockingPool::Line::others,
                                                        [pending] { handle(*pending); });
  if (posted) return;
  pending->reply.fail({Errc::unavailable, "too many requests wait; try again later"});
}

// Takes the request of a known user, or of an open operation.
void admit(Pending&& admitted) {
  const Operation& operation = admitted.call.operation;
  const bool is_kept = is_audited(operation);
  if (!is_kept && !operation.runs_on_pool()) return handle(admitted);
  auto pending = std::make_shared<Pending>(std::move(admitted));
  EntryServices& services = pending->services.entry;
  AuditTrail& audit = services.audit;
  if (!is_kept || audit.is_part_of_view(pending->call, services.options.steady_now())) {
    return handle_on_pool(pending);
  }
  audit.begin(pending->call, pending->reply.context().trace_id,
              [pending, &audit, &services](Result<store::AuditEntry> entry) {
                if (!entry) return pending->reply.fail(entry.error());
                const Operation& audited = pending->call.operation;
                pending->reply.on_answer(
                    [&audit, &services, &audited, entry = *std::move(entry)](int status) {
                      audit.end(entry, status);
                      if (status < 300)
                        audit.begin_view(entry, audited, services.options.steady_now());
                    });
                handle_on_pool(pending);
              });
}

// ---- Rates

const Error too_fast{Errc::too_many, "too many requests; slow down"};

// Whether the rate of this key or user allows the request.
bool take_as_user(const Principal& principal, EntryServices& services) {
  if (!services.rate_limiter.active()) return true;
  const std::string name =
      principal.key_id.empty() ? "user " + principal.user_id : "key " + principal.key_id;
  return !services.rate_limiter.take(name, services.options.steady_now());
}

std::string stranger_name(const Request& request) {
  return std::string(address_prefix) + counted_address(request.peer);
}

// A large body costs more than a small one, so its bytes count, too.
std::uint32_t tokens_of_bytes(const Request& request) {
  constexpr std::size_t bytes_of_one = 4096;
  return static_cast<std::uint32_t>(request.body.size() / bytes_of_one);
}

// ---- Operators: HTTP Basic

Response basic_challenge(const Error& error, const ExchangeContext& context, model::Timestamp now) {
  Response response = error_response(error, context, now);
  std::erase_if(response.headers,
                [](const auto& header) { return header.first == "WWW-Authenticate"; });
  response.headers.emplace_back("WWW-Authenticate", R"(Basic realm="conversed", charset="UTF-8")");
  return response;
}

void admit_operator(Pending& pending) {
  if (take_as_user(*pending.call.principal, pending.services.entry)) {
    return admit(std::move(pending));
  }
  pending.reply.fail(too_fast);
}

// Runs on the sign-in pool; for a token on the management pool.
void sign_in(Pending& pending) {
  auto& [call, all, reply] = pending;
  EntryServices& services = all.entry;
  const auto now = services.options.steady_now();
  const auto authorization = call.request.header("authorization").value_or("");
  auto verified = services.authenticator.basic(authorization, call.request.peer, now);
  const auto typed = parse_basic(authorization);
  // A token's requests are not sign-ins.
  if (!verified || (*verified)->key_id.empty()) {
    services.audit.sign_in(
        {typed ? typed->name : "", call.request.peer, call.operation, reply.context().trace_id},
        verified ? Result<const Principal*>(verified->get()) : model::fail(verified.error()));
  }
  if (!verified) {
    if (const auto tokens = tokens_of_bytes(call.request); tokens > 0) {
      services.public_limiter.charge(stranger_name(call.request), now, tokens);
    }
    if (verified.error().code != Errc::unauthenticated) return reply.fail(verified.error());
    return reply.send(basic_challenge(verified.error(), reply.context(), services.clock.now()));
  }
  call.principal = std::move(*verified);
  admit_operator(pending);
}

void start_operator(Pending&& started) {
  auto& [call, all, reply] = started;
  EntryServices& services = all.entry;
  // Browsers send remembered credentials with the requests of any page.
  if (call.operation.method != Method::get && !is_from_own_site(call.request)) {
    return reply.fail({Errc::permission_denied, "pages of other sites can't send this request"});
  }
  const auto now = services.options.steady_now();
  const auto authorization = call.request.header("authorization").value_or("");
  // Malformed credentials are refused without a thread of the pool.
  const auto credentials = parse_basic(authorization);
  if (!credentials) {
    if (!take_as_stranger(call.request, services, reply)) return;
    const Error error{Errc::unauthenticated, "this route takes HTTP Basic credentials"};
    return reply.send(basic_challenge(error, reply.context(), services.clock.now()));
  }
  // A user who was verified lately does not wait behind guesses.
  call.principal = services.authenticator.remembered_basic(authorization, now);
  if (call.principal) return admit_operator(started);
  const bool is_token = store::Accounts::is_management_token(credentials->password);
  // Guesses of passwords use up no rate of tokens.
  const std::string name = (is_token ? "token " : "") + stranger_name(call.request);
  // The body's bytes are charged if the credentials prove wrong.
  if (services.public_limiter.take(name, now)) return reply.fail(too_fast);
  auto pending = std::make_shared<Pending>(std::move(started));
  const auto verify = [pending] { sign_in(*pending); };
  // A token is looked up, which costs little: it does not wait behind passwords.
  const bool posted = is_token
                          ? services.pool.post(name, BlockingPool::Line::others, verify)
                          : post_sign_in(services.authenticator, services.sign_ins,
                                         credentials->name, pending->call.request.peer, verify);
  if (!posted) {
    pending->reply.fail({Errc::unavailable, "too many such requests wait; try again later"});
  }
}

// ---- Clients

// The user of a client's credentials. Errors: `unauthenticated`, `invalid_argument`, `unavailable`.
Result<Authenticator::Verified> verify_client(const Request& request, EntryServices& services) {
  auto credential = presented_credential(request);
  if (!credential) return model::fail(credential.error());
  if (*credential) {
    return services.authenticator.client(**credential, services.options.steady_now());
  }
  return model::fail(Errc::unauthenticated,
                     "credentials are required: an API key in X-API-Key, an access token in "
                     "Authorization, or a contact-center token");
}

// Names a refused token in the challenge (RFC 6750 section 3.1).
void refuse_client(Reply& reply, const Request& request, const Error& error, model::Timestamp now) {
  if (error.code != Errc::unauthenticated ||
      !bearer_token(request.header("authorization").value_or(""))) {
    return reply.fail(error);
  }
  Response response = error_response(error, reply.context(), now);
  for (auto& [name, value] : response.headers) {
    if (name == "WWW-Authenticate") value += R"(, error="invalid_token")";
  }
  reply.send(std::move(response));
}

void start_client(Pending&& started) {
  auto& [call, all, reply] = started;
  EntryServices& services = all.entry;
  auto verified = verify_client(call.request, services);
  // Unknown clients are limited by address, known clients by key or user.
  if (!verified) {
    if (!take_as_stranger(call.request, services, reply)) return;
    return refuse_client(reply, call.request, verified.error(), services.clock.now());
  }
  if (!take_as_user(**verified, services)) return reply.fail(too_fast);
  call.principal = std::move(*verified);
  admit(std::move(started));
}

}  // namespace

bool take_as_stranger(const Request& request, EntryServices& services, Reply& reply) {
  if (!services.public_limiter.active()) return true;
  const auto wait = services.public_limiter.take(
      stranger_name(request), services.options.steady_now(), 1 + tokens_of_bytes(request));
  if (wait) reply.fail(too_fast);
  return !wait;
}

void dispatch(Call&& call, Services& services, Reply&& reply) {
  const Credential credential = call.operation.credential;
  Pending pending{std::move(call), services, std::move(reply)};
  switch (credential) {
    case Credential::basic:
      return start_operator(std::move(pending));
    case Credential::client:
      return start_client(std::move(pending));
    case Credential::open:
      if (!take_as_stranger(pending.call.request, services.entry, pending.reply)) return;
      return admit(std::move(pending));
  }
}

}  // namespace conversed::api
