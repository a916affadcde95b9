#include <array>

#include "flows/expression/text.h"
#include "flows/nodes/calls.h"
#include "store/model/hex.h"
#include "store/model/json.h"
#include "store/model/url.h"
#include "store/text/ascii.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 6> methods{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};

// Percent-encodes characters that a URL can't contain, so a value can't end the request line.
std::string encode_rest(std::string_view url) {
  static constexpr std::string_view forbidden = "\"<>\\^`{|}";
  return model::percent_encoded(url, [](char c) {
    return c > ' ' && c < '\x7f' && forbidden.find(c) == std::string_view::npos;
  });
}

// The parts of a URL that may contain a value.
enum class UrlPart : std::uint8_t { scheme, host, path, query, parameter };

// The part of the next character after `url`.
UrlPart part_behind(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return UrlPart::scheme;
  const auto path = url.find_first_of("/?#", scheme + 3);
  if (path == std::string_view::npos) return UrlPart::host;
  const auto query = url.find_first_of("?#", path);
  if (query == std::string_view::npos) return UrlPart::path;
  return url[url.find_last_of("?&=#")] == '=' ? UrlPart::parameter : UrlPart::query;
}

// The characters that end the part. A value with one would continue in the next part.
std::string_view ends_of(UrlPart part) {
  if (part == UrlPart::scheme) return {};
  if (part == UrlPart::query) return "#";
  if (part == UrlPart::parameter) return "&#";
  return part == UrlPart::path ? "/?#" : "?#";
}

std::string_view name_of_part(UrlPart part) {
  return part == UrlPart::path ? "path" : part == UrlPart::host ? "host" : "query";
}

// The URL of a request, with values in it. A value can't leave its segment of the path, end the
// query, or add a parameter. A value in place of the host may bring a path and a query.
// Kept by: HttpRequestNode.NoValueClimbsOutOfItsPlaceInThePath,
// HttpRequestNode.NoValueAddsASegmentToThePath,
// HttpRequestNode.NoValueAddsAParameterToTheQuery.
class UrlTemplate {
 public:
  // Warns of unencoded values in the URL. A URL without values is checked here.
  static void read(NodeConfig& config, const View& at, UrlTemplate& into) {
    into.text_ = config.template_at(at);
    into.warn_of_values(config, at);
    if (!at.value().is_text() || at.value().text().find("{{") != std::string::npos) return;
    const auto problem = model::url_problem(encode_rest(at.value().text()));
    if (!problem.empty()) at.problem(std::string(problem));
  }

  // The URL, percent-encoded. `invalid_argument` has the reason for a refused URL.
  [[nodiscard]] Result<std::string> render(const expression::Scope& scope) const {
    std::vector<expression::Template::Span> values;
    const std::string url = text_.render(scope, values);
    for (const auto& [begin, end] : values) {
      const UrlPart part = part_behind(std::string_view(url).substr(0, begin));
      const auto found =
          std::string_view(url).substr(begin, end - begin).find_first_of(ends_of(part));
      if (found == std::string_view::npos) continue;
      return model::fail(model::Errc::invalid_argument,
                         "a value in the URL's " + std::string(name_of_part(part)) + " has '" +
                             url[begin + found] + "'; write {{encodeURIComponent(...)}}");
    }
    std::string encoded = encode_rest(url);
    if (const auto problem = model::url_problem(encoded); !problem.empty()) {
      return model::fail(model::Errc::invalid_argument, std::string(problem));
    }
    return encoded;
  }

 private:
  void warn_of_values(NodeConfig& config, const View& at) const {
    std::string before;
    for (const auto& braces : text_.braces()) {
      before += braces.before;
      const UrlPart part = part_behind(before);
      const bool names_host = part == UrlPart::scheme || part == UrlPart::host;
      before += part == UrlPart::scheme ? "http://x" : "x";
      if (!braces.reads_values) continue;
      if (names_host) {
        config.warn(at,
                    "a value decides which host is asked; write the host into the URL, or give the "
                    "Connection its `hosts`");
      } else if (!braces.url_encoded) {
        config.warn(at, "a value stands bare in the URL's " + std::string(name_of_part(part)) +
                            "; write {{encodeURIComponent(...)}}, else it can change what is "
                            "asked for");
      }
    }
  }

  expression::Template text_;
};

struct HttpRequestNode final : CallNode {
  std::string connection;
  std::string method;
  UrlTemplate url;
  NodeConfig::Headers headers;
  std::optional<expression::JsonTemplate> body;
  std::optional<expression::Path> store_in;
  std::optional<std::chrono::milliseconds> timeout;
  int retries = 0;

  void check(NodeConfig& config) const {
    if (body && (method == "GET" || method == "HEAD")) {
      config.problem("body", "a " + method + " request has no body; use POST, PUT or PATCH");
    }
  }

  Result<Step> run(Turn& turn) const override {
    model::HttpCall call;
    if (!connection.empty()) {
      const auto known = turn.assets().connection_ids.find(connection);
      if (known == turn.assets().connection_ids.end()) return connection_deleted(turn, connection);
      call.connection_id = known->second;
    }
    call.method = method;
    auto rendered_url = url.render(turn.scope());
    if (!rendered_url) return failed(turn, "invalid_url", rendered_url.error().message);
    call.url = std::move(*rendered_url);
    bool has_content_type = false;
    for (const auto& [name, value] : headers) {
      std::string rendered = value.render(turn.scope());
      if (text::has_control(rendered)) {
        return failed(turn, "invalid_header",
                      "the value of the header '" + name + "' has control characters");
      }
      has_content_type = has_content_type || expression::to_lower(name) == "content-type";
      call.headers.emplace_back(name, std::move(rendered));
    }
    if (body) add_body(turn, call, has_content_type);
    call.timeout = timeout.value_or(turn.limits().call_timeout);
    call.retries = retries;
    return CallUpstream{std::move(call)};
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    if (!result.error_code.empty()) return failed(turn, result, connection);
    if (!store_in) return Continue{};
    return step_after(turn.assign(*store_in, result.body));
  }

 private:
  // Sends a text unchanged, and any other value as JSON.
  void add_body(Turn& turn, model::HttpCall& call, bool has_content_type) const {
    auto value = body->value(turn.scope());
    const bool is_text = value.is_string();
    call.body = is_text ? std::move(value.get_ref<std::string&>()) : model::json_text(value);
    if (!has_content_type) {
      call.headers.emplace_back("Content-Type",
                                is_text ? "text/plain; charset=utf-8" : "application/json");
    }
  }
};

constexpr NodeField http_request_fields[]{
    required<&HttpRequestNode::url, &UrlTemplate::read>("url").as(Form::template_text),
    optional<&HttpRequestNode::method>("method").one_of(methods).by_default("GET"),
    optional<&HttpRequestNode::connection, &NodeConfig::connection>("connection"),
    optional<&HttpRequestNode::headers>("headers"),
    optional<&HttpRequestNode::body>("body"),
    optional<&HttpRequestNode::store_in>("storeIn"),
    optional<&HttpRequestNode::timeout>("timeout").within(std::chrono::milliseconds(1),
                                                          std::chrono::minutes(5)),
    optional<&HttpRequestNode::retries>("retries").within(0, 10).by_default(0),
    on_error_field};

}  // namespace

constinit const NodeType http_request_node{
    .name = "httpRequest", .fields = http_request_fields, .create = create<HttpRequestNode>};

}  // namespace conversed::flows
