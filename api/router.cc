#include "api/router.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "api/auth/authenticator.h"
#include "api/auth/credentials.h"
#include "api/auth/oauth_parameters.h"
#include "api/dispatch.h"
#include "api/http/error_reply.h"
#include "api/http/percent.h"
#include "api/services.h"
#include "store/model/ids.h"

namespace conversed::api {
namespace {

using model::Errc;

using Segments = std::vector<std::string_view>;

// "/a/b" → a, b. Keeps empty segments, so "/a//b" and "/a/" differ from "/a/b" and "/a".
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
        // A name in the first place must be a URLToken. Otherwise every path would be known.
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::size_t names() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(segments, [](auto segment) { return segment.starts_with('{'); }));
  }

  [[nodiscard]] PathParameters parameters(const Segments& path) const {
    PathParameters found;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (!segments[i].starts_with('{')) continue;
      found.values.emplace_back(segments[i].substr(1, segments[i].size() - 2),
                                percent_decode_segment(path[i]));
    }
    return found;
  }
};

// The shape of errors before the operation has its request.
ErrorShape shape_before(const Operation& operation) {
  const bool oauth = operation.error_shape == ErrorShape::oauth;
  return oauth ? ErrorShape::oauth : ErrorShape::problem;
}

bool serves(const Operation& operation, Method method) {
  return operation.method == method || (method == Method::head && operation.method == Method::get);
}

Response preflight(const std::string& methods) {
  return {.status = status::no_content,
          .headers = {{"Allow", methods},
                      {"Access-Control-Allow-Methods", methods},
                      {"Access-Control-Allow-Headers",
                       "Accept, Authorization, Content-Type, Idempotency-Key, Prefer, X-API-Key, "
                       "X-ContactCenter-Authorization, traceparent, tracestate"},
                      {"Access-Control-Max-Age", "86400"}}};
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
    for (auto& routes : by_length_) std::ranges::stable_sort(routes, {}, &Route::names);
  }

  // Null if the path is unknown or has no operation for the method.
  [[nodiscard]] const Route* find(Method method, std::string_view path, Segments& segments) const {
    split(without_base(path, base_), segments);
    return find(method, segments);
  }

  // The properties of a path for all its methods.
  struct Path {
    std::string allowed;  // "GET, HEAD, OPTIONS"; empty if the path is unknown
    ErrorShape error_shape = ErrorShape::problem;  // for errors before an operation has the request
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
      // "users/password" never matches "users/{userId}", whatever the method.
      if (route.segments == first->segments && serves(*route.operation, method)) return &route;
    }
    return nullptr;
  }

  const std::string base_;
  // By the number of segments. Patterns with fewer {names} come first, then the table's order.
  std::vector<std::vector<Route>> by_length_;
};

Router::Router(std::span<const Operation* const> operations, const config::ApiSettings& settings)
    : table_(std::make_unique<const Table>(operations, settings.base_path)),
      usual_body_bytes_(settings.max_body_bytes) {}

Router::~Router() = default;

void Router::handle(Request&& request, Reply reply) const {
  thread_local Segments segments;  // keeps its memory between requests
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
    if (!take_as_stranger(request, services, reply)) return;
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
  auto parameters = route->parameters(segments);  // views into the request's path
  Call call{
      .operation = operation, .request = std::move(request), .parameters = std::move(parameters)};
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
