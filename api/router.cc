#include "api/router.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "api/audit_trail.h"
#include "api/auth/authenticator.h"
#include "api/auth/browser.h"
#include "api/auth/credentials.h"
#include "api/auth/issuer.h"
#include "api/dispatch.h"
#include "api/http/client_address.h"
#include "api/http/error_reply.h"
#include "api/http/percent.h"
#include "api/live/blocking_pool.h"
#include "api/live/rate_limiter.h"
#include "api/replies.h"
#include "api/services.h"
#include "store/model/ids.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::Result;

using Segments = std::vector<std::string_view>;

// "/a/b" → a, b. An empty segment stays one: "/a//b" and "/a/" are other paths than "/a/b", "/a".
void split(std::string_view path, Segments& segments) {
  segments.clear();
  if (path.empty() || path.front() != '/') return;
  path.remove_prefix(1);
  while (true) {
    const auto end = path.find('/');
    segments.push_back(path.substr(0, end));
    if (end == std::string_view::npos) return;
    path.remove_prefix(end + 1);
  }
}

std::string_view without_base(std::string_view path, std::string_view base) {
  if (base_of(path, base).empty()) return path;
  // RFC 8414 §3.1: the well-known path comes before the issuer's.
  return path.starts_with(base) ? path.substr(base.size()) : metadata_path;
}

bool looks_like_url_token(std::string_view text) {
  return text.size() == model::url_token_length &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; });
}

struct Route {
  const Operation* operation;
  Segments segments;  // of the table's constant path

  [[nodiscard]] bool matches(const Segments& path) const {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (!segments[i].starts_with('{')) {
        if (segments[i] != path[i]) return false;
      } else if (path[i].empty() || (i == 0 && !looks_like_url_token(path[i]))) {
        // A name in the first place is a URLToken; were it anything, no path would be unknown.
        return false;
      }
    }
    return true;
  }

  // How many segments are {names}.
  [[nodiscard]] std::size_t names() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(segments, [](auto segment) { return segment.starts_with('{'); }));
  }

  [[nodiscard]] PathParameters parameters(const Segments& path) const {
    PathParameters found;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (!segments[i].starts_with('{')) continue;
      found.add(std::string(segments[i].substr(1, segments[i].size() - 2)),
                percent_decode_segment(path[i]));
    }
    return found;
  }
};

// Of the errors that come before the operation has its request.
ErrorShape shape_before(const Operation& operation) {
  const bool oauth = operation.error_shape == ErrorShape::oauth;
  return oauth ? ErrorShape::oauth : ErrorShape::problem;
}

bool serves(const Operation& operation, Method method) {
  return operation.method == method || (method == Method::head && operation.method == Method::get);
}

Response preflight(const std::string& methods) {
  Response response;
  response.status = status::no_content;
  response.headers = {
      {"Access-Control-Allow-Methods", methods},
      {"Access-Control-Allow-Headers",
       "Accept, Authorization, Content-Type, Idempotency-Key, Prefer, X-API-Key, "
       "X-ContactCenter-Authorization, traceparent, tracestate"},
      {"Access-Control-Max-Age", "86400"},
  };
  return response;
}

Response basic_challenge(const Error& error, const ExchangeContext& context, model::Timestamp now) {
  Response response = error_response(error, context, now);
  std::erase_if(response.headers,
                [](const auto& header) { return header.first == "WWW-Authenticate"; });
  response.headers.emplace_back("WWW-Authenticate", R"(Basic realm="conversed", charset="UTF-8")");
  return response;
}

// A Call on its way through the sign-in pool: std::function wants to copy what it holds.
struct Pending {
  Call call;
  Reply reply;
  Services& services;
};

// Whether there was room for a request of this key or user.
bool take_as_user(const Principal& principal, EntryServices& services) {
  if (!services.rate_limiter.active()) return true;
  const std::string name =
      principal.key_id.empty() ? "user " + principal.user_id : "key " + principal.key_id;
  return !services.rate_limiter.take(name, services.options.steady_now());
}

// The bytes of a body count, too: a large body costs more than its request.
std::uint32_t tokens_of_bytes(const Request& request) {
  constexpr std::size_t bytes_of_one = 4096;
  return static_cast<std::uint32_t>(request.body.size() / bytes_of_one);
}

std::string stranger_name(const Request& request) {
  return std::string(address_prefix) + counted_address(request.peer);
}

// Whether there was room for a request of this address, which shows no credentials or wrong ones.
bool take_as_stranger(const Request& request, EntryServices& services) {
  if (!services.public_limiter.active()) return true;
  return !services.public_limiter.take(stranger_name(request), services.options.steady_now(),
                                       1 + tokens_of_bytes(request));
}

// The same for credentials that may be right: the bytes are charged once they proved wrong.
bool take_as_guest(const Request& request, EntryServices& services) {
  if (!services.public_limiter.active()) return true;
  return !services.public_limiter.take(stranger_name(request), services.options.steady_now());
}

void charge_bytes(const Request& request, EntryServices& services) {
  const auto tokens = tokens_of_bytes(request);
  if (tokens == 0 || !services.public_limiter.active()) return;
  services.public_limiter.charge(stranger_name(request), services.options.steady_now(), tokens);
}

const Error too_fast{Errc::too_many, "too many requests; slow down"};

void run_management(const std::shared_ptr<Pending>& pending) {
  if (!take_as_user(*pending->call.principal, pending->services.entry)) {
    return pending->reply.fail(too_fast);
  }
  dispatch(std::move(pending->call), pending->services, std::move(pending->reply));
}

// On the sign-in pool.
void sign_in(const std::shared_ptr<Pending>& pending) {
  auto& [call, reply, all] = *pending;
  EntryServices& services = all.entry;
  const auto authorization = call.request.header("authorization").value_or("");
  auto verified =
      services.authenticator.basic(authorization, call.request.peer, services.options.steady_now());
  const auto typed = parse_basic(authorization);
  services.audit.sign_in(
      {typed ? typed->name : "", call.request.peer, call.operation, reply.context().trace_id},
      verified ? Result<const Principal*>(verified->get()) : model::fail(verified.error()));
  if (!verified) {
    charge_bytes(call.request, services);
    if (verified.error().code != Errc::unauthenticated) return reply.fail(verified.error());
    return reply.send(basic_challenge(verified.error(), reply.context(), services.clock.now()));
  }
  call.principal = std::move(*verified);
  run_management(pending);
}

void start_management(Call&& call, Services& all, Reply reply) {
  EntryServices& services = all.entry;
  // A browser remembers the credentials that it was asked for, whoever sends it here.
  if (call.operation.method != Method::get && !is_from_own_site(call.request)) {
    return reply.fail({Errc::permission_denied, "a page of another site may not ask for this"});
  }
  const auto authorization = call.request.header("authorization").value_or("");
  // What can't be right is told apart here: it costs no thread of a pool.
  const auto credentials = parse_basic(authorization);
  if (!credentials) {
    if (!take_as_stranger(call.request, services)) {
      return reply.fail(too_fast);
    }
    const Error error{Errc::unauthenticated, "this route takes HTTP Basic credentials"};
    return reply.send(basic_challenge(error, reply.context(), services.clock.now()));
  }
  call.principal =
      services.authenticator.remembered_basic(authorization, services.options.steady_now());
  auto pending = std::make_shared<Pending>(Pending{std::move(call), std::move(reply), all});
  // Whoever was here before does not wait behind those who guess.
  if (pending->call.principal) return run_management(pending);
  if (!take_as_guest(pending->call.request, services)) return pending->reply.fail(too_fast);
  if (!post_sign_in(services.authenticator, services.sign_ins, credentials->name,
                    pending->call.request.peer, [pending] { sign_in(pending); })) {
    pending->reply.fail({Errc::unavailable, "too many such requests wait; try again later"});
  }
}

// The user of an operation's request. Errors: `unauthenticated`, `invalid_argument`, `too_many`,
// `unavailable`.
Result<Authenticator::Verified> check_client(const Call& call, EntryServices& services) {
  const auto now = services.options.steady_now();
  const auto verify = [&]() -> Result<Authenticator::Verified> {
    auto credential = presented_credential(call.request);
    if (!credential) return model::fail(credential.error());
    if (*credential) return services.authenticator.client(**credential, now);
    return model::fail(Errc::unauthenticated,
                       "credentials are required: an API key in X-API-Key, an access token in "
                       "Authorization, or a contact-center token");
  };
  auto verified = verify();
  // Whoever guesses is limited by address, whoever is known by the key, or as a user.
  const bool room =
      verified ? take_as_user(**verified, services) : take_as_stranger(call.request, services);
  if (!room) return model::fail(too_fast);
  return verified;
}

// What a refused client is told. A token that was refused is named as such (RFC 6750 section 3.1).
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

}  // namespace

class Router::Table {
 public:
  Table(std::span<const Operation* const> operations, std::string base_path)
      : base_(std::move(base_path)) {
    for (const Operation* operation : operations) {
      Route route{operation, {}};
      split(operation->path, route.segments);
      if (by_length_.size() <= route.segments.size()) by_length_.resize(route.segments.size() + 1);
      by_length_[route.segments.size()].push_back(std::move(route));
    }
    for (auto& routes : by_length_) {
      std::ranges::stable_sort(routes, {}, &Route::names);
    }
  }

  // Null when the path is unknown or has no operation for the method.
  [[nodiscard]] const Route* find(Method method, std::string_view path, Segments& segments) const {
    split(without_base(path, base_), segments);
    return find(method, segments);
  }

  // What a path has, whatever the method.
  struct Path {
    std::string allowed;  // "GET, HEAD, OPTIONS"; empty if the path is unknown
    ErrorShape error_shape = ErrorShape::problem;  // of what no operation has refused
  };
  [[nodiscard]] Path path(std::string_view path) const {
    Segments segments;
    split(without_base(path, base_), segments);
    Path found;
    for (const Method method :
         {Method::get, Method::head, Method::post, Method::put, Method::patch, Method::delete_}) {
      const Route* route = find(method, segments);
      if (route == nullptr) continue;
      found.allowed.append(method_name(method)).append(", ");
      found.error_shape = shape_before(*route->operation);
    }
    if (!found.allowed.empty()) found.allowed += method_name(Method::options);
    return found;
  }

 private:
  [[nodiscard]] const Route* find(Method method, const Segments& path) const {
    if (path.size() >= by_length_.size()) return nullptr;
    const Route* first = nullptr;
    for (const Route& route : by_length_[path.size()]) {
      if (!route.matches(path)) continue;
      if (first == nullptr) first = &route;
      // "users/password" is no user, whatever the method.
      if (route.segments == first->segments && serves(*route.operation, method)) return &route;
    }
    return nullptr;
  }

  const std::string base_;
  // By the number of segments; those with fewer {names} first, else in the table's order.
  std::vector<std::vector<Route>> by_length_;
};

Router::Router(std::span<const Operation* const> operations, Services& services)
    : Router(operations, services.entry.options.api) {
  open(services);
}

Router::Router(std::span<const Operation* const> operations, const config::ApiSettings& settings)
    : table_(std::make_unique<const Table>(operations, settings.base_path)),
      usual_body_bytes_(settings.max_body_bytes) {}

Router::~Router() = default;

void Router::handle(Request&& request, Reply reply) const {
  thread_local Segments segments;  // its memory is kept from request to request
  if (request.method == Method::options) {
    const std::string allowed = table_->path(request.path).allowed;
    return reply.send(
        preflight(allowed.empty() ? "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" : allowed));
  }
  Services* const opened = services_.load();
  if (opened == nullptr) {
    reply.set_error_shape(table_->path(request.path).error_shape);
    return reply.fail({Errc::unavailable, "The daemon waits for its store; try again later."});
  }
  EntryServices& services = opened->entry;
  const Route* route = table_->find(request.method, request.path, segments);
  if (route == nullptr) {
    const auto path = table_->path(request.path);
    reply.set_error_shape(path.error_shape);
    if (!take_as_stranger(request, services)) return reply.fail(too_fast);
    if (path.allowed.empty()) return reply.fail({Errc::not_found, "there is nothing at this path"});
    Response response = error_response(405, "the method is not defined on this path",
                                       reply.context(), services.clock.now(), path.error_shape);
    response.headers.emplace_back("Allow", path.allowed);
    return reply.send(std::move(response));
  }

  const Operation& operation = *route->operation;
  reply.set_route(operation.path);
  reply.set_error_shape(operation.error_shape);
  if (operation.is_inject && services.on_inject_answered) {
    reply.on_answer([&observer = services.on_inject_answered,
                     since = std::chrono::steady_clock::now()](int status) {
      observer(status, std::chrono::steady_clock::now() - since);
    });
  }
  if (request.body.size() > body_limit(operation)) {
    return reply.fail({Errc::too_large, "the body is larger than this operation takes"});
  }
  auto parameters = route->parameters(segments);  // read from the request's path
  Call call{
      .operation = operation, .request = std::move(request), .parameters = std::move(parameters)};
  switch (operation.credential) {
    case Credential::basic:
      return start_management(std::move(call), *opened, std::move(reply));
    case Credential::client: {
      auto verified = check_client(call, services);
      if (!verified) {
        return refuse_client(reply, call.request, verified.error(), services.clock.now());
      }
      call.principal = std::move(*verified);
      break;
    }
    case Credential::open:
      if (!take_as_stranger(call.request, services)) return reply.fail(too_fast);
      break;
  }
  dispatch(std::move(call), *opened, std::move(reply));
}

BodyRule Router::body_rule(const Request& head) const {
  const std::size_t usual = usual_body_bytes_;
  thread_local Segments segments;
  const Route* route = table_->find(head.method, head.path, segments);
  BodyRule rule{.max_body = route == nullptr ? usual : body_limit(*route->operation)};
  rule.error_shape =
      route == nullptr ? table_->path(head.path).error_shape : shape_before(*route->operation);
  if (rule.max_body <= usual || route->operation->credential != Credential::basic) return rule;
  Services* const services = services_.load();
  if (services == nullptr) {
    rule.wanted = false;
    return rule;
  }
  const auto authorization = head.header("authorization").value_or("");
  rule.wanted = parse_basic(authorization).has_value();
  if (const auto known = services->entry.authenticator.remembered_basic(
          authorization, services->entry.options.steady_now())) {
    rule.sender = Sender::known;
    rule.wanted = known->has_anywhere(route->operation->role);
  }
  return rule;
}

std::size_t Router::body_limit(const Operation& operation) const {
  return std::max<std::size_t>(operation.max_body_bytes, usual_body_bytes_);
}

}  // namespace conversed::api
