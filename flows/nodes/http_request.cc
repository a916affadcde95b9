#include <array>

#include "flows/expression/text.h"
#include "flows/node_types.h"
#include "flows/nodes/on_error.h"
#include "flows/nodes/url_template.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::chrono::milliseconds longest_request_timeout = std::chrono::minutes(5);

constexpr std::array<std::string_view, 6> methods{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"};

struct Request {
  std::string connection;
  std::string method;
  UrlTemplate url;
  std::vector<std::pair<std::string, expression::Template>> headers;
  std::optional<expression::JsonTemplate> body;
  std::optional<expression::Path> store_in;
  std::optional<std::chrono::milliseconds> timeout;
  int retries = 0;
  OnError on_error;
};

class HttpRequestNode final : public Node {
 public:
  explicit HttpRequestNode(Request request) : request_(std::move(request)) {}

  Result<Step> run(Turn& turn) const override {
    model::HttpCall call;
    if (!request_.connection.empty()) {
      const auto known = turn.assets().connection_ids.find(request_.connection);
      if (known == turn.assets().connection_ids.end()) {
        return request_.on_error.connection_deleted(turn, request_.connection);
      }
      call.connection_id = known->second;
    }
    call.method = request_.method;
    auto url = request_.url.render(turn.scope());
    if (!url) return request_.on_error.failed(turn, "invalid_url", url.error().message);
    call.url = std::move(*url);
    bool has_content_type = false;
    for (const auto& [name, value] : request_.headers) {
      std::string rendered = value.render(turn.scope());
      if (has_control_characters(rendered)) {
        return request_.on_error.failed(
            turn, "invalid_header",
            "the value of the header '" + name + "' has control characters");
      }
      has_content_type = has_content_type || expression::to_lower(name) == "content-type";
      call.headers.emplace_back(name, std::move(rendered));
    }
    if (request_.body) add_body(turn, call, has_content_type);
    call.timeout = request_.timeout.value_or(turn.limits().call_timeout);
    call.retries = request_.retries;
    return CallUpstream{std::move(call)};
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    if (!result.error_code.empty()) {
      return request_.on_error.failed(turn, result, request_.connection);
    }
    if (!request_.store_in) return Continue{};
    return step_after(turn.assign(*request_.store_in, result.body));
  }

  Awaits awaits() const override { return Awaits::call_result; }

 private:
  // A text is sent as it is, everything else as JSON.
  void add_body(Turn& turn, model::HttpCall& call, bool has_content_type) const {
    auto body = request_.body->value(turn.scope());
    const bool is_text = body.is_string();
    call.body = is_text ? std::move(body.get_ref<std::string&>())
                        : body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (!has_content_type) {
      call.headers.emplace_back("Content-Type",
                                is_text ? "text/plain; charset=utf-8" : "application/json");
    }
  }

  const Request request_;
};

NodePtr create_http_request(NodeConfig& config) {
  Request request{.connection = config.connection("connection"),
                  .method = config.choice("method", methods, "GET"),
                  .url = UrlTemplate(config, "url"),
                  .headers = config.headers("headers"),
                  .body = config.json_template("body"),
                  .store_in = config.path("storeIn"),
                  .timeout = std::nullopt,
                  .retries = config.integer("retries", 0, 0, 10),
                  .on_error = OnError(config)};
  if (config.has("timeout")) {
    request.timeout = config.duration("timeout", std::nullopt, std::chrono::milliseconds(1),
                                      longest_request_timeout);
  }
  if (request.body && (request.method == "GET" || request.method == "HEAD")) {
    config.problem("body", "a " + request.method + " request has no body; use POST, PUT or PATCH");
  }
  return std::make_unique<const HttpRequestNode>(std::move(request));
}

constexpr NodeField http_request_fields[]{
    {"url", "template",
     "Absolute, http or https. Characters that a URL can't hold are encoded. A value that leaves "
     "its "
     "segment or parameter fails the call with `invalid_url`. Required."},
    {"method", "text", "GET, HEAD, POST, PUT, PATCH or DELETE. Default GET."},
    {"connection", "name", "The Connection whose credentials go with the request."},
    {"headers", "texts to templates", "Further headers."},
    {"body", "JSON template", "A text is sent unchanged, every other value as JSON."},
    {"storeIn", "path",
     "Where the answer's body is stored: its value if it is JSON, else its text."},
    {"timeout", "duration",
     "For one attempt, at most 5m. Default: the setting `calls.timeout`, 10s."},
    {"retries", "number", "Further attempts after the first, 0 to 10. Default 0."},
    OnError::field};

}  // namespace

constinit const NodeType http_request_node{
    .name = "httpRequest",
    .summary =
        "Sends an HTTP request and continues with its answer. Only this session waits for it.",
    .fields = http_request_fields,
    .example =
        "- httpRequest:\n"
        "    connection: crm\n"
        "    url: \"https://crm.example.com/orders/{{encodeURIComponent(input.data.id)}}\"\n"
        "    storeIn: context.order\n"
        "    timeout: 8s\n"
        "    retries: 2\n"
        "    onError: [{say: \"Please try later.\"}]\n",
    .create = create_http_request};

}  // namespace conversed::flows
