// Requests and answers as conversed's own types, so that no other file includes the HTTP library.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::api {

// `other`: a method that is not known, or not read yet.
enum class Method : std::uint8_t { get, head, post, put, patch, delete_, options, trace, other };

// "GET", "DELETE", ...; "" for `other`.
[[nodiscard]] std::string_view method_name(Method method);

// The statuses of operations. Any other integer from 200 to 599 is valid, too.
namespace status {
inline constexpr int ok = 200;
inline constexpr int created = 201;
inline constexpr int accepted = 202;
inline constexpr int no_content = 204;
inline constexpr int found = 302;
inline constexpr int unauthorized = 401;
}  // namespace status

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// One whole, well-formed request. A plain value: the thread that holds it may change it.
struct Request {
  Method method = Method::get;
  std::string target;  // as received: "/a%20b?x=1", or "*" (OPTIONS only)
  // Percent-decoded UTF-8 without NUL. An encoded slash or percent sign within a segment stays as
  // `%2F` or `%25`. Dot segments stay.
  std::string path;
  HeaderList query;    // percent-decoded (and '+' as space) UTF-8 pairs, in order, repeats kept
  HeaderList headers;  // names in lower case, values trimmed, in order, repeats kept
  std::string body;    // de-chunked; at most HttpSettings::max_body bytes
  std::string peer;    // the client's address without its port; behind a trusted proxy, the address
                       // that the proxy names
  bool keep_alive = true;
  std::string trace_id;         // 32 hex digits: from a valid traceparent header, otherwise new
  bool sampled = true;          // as that header says
  std::string tracestate = {};  // of other systems, to be passed on; may be empty
  // The memory that a large body takes (BodyShare). It is given back with the request.
  std::shared_ptr<const void> body_share = {};

  // The first header of that name. The name must be in lower case.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  [[nodiscard]] std::size_t count_headers(std::string_view name) const;
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};

// An answer. The server adds Content-Length, Date, Connection, the trace and the CORS headers, and
// sends control characters in header values as spaces.
struct Response {
  int status = status::ok;
  std::string content_type = {};  // empty: no Content-Type header
  HeaderList headers = {};
  std::string body = {};
  // For the log, which contains no query and no body: the operation's path pattern, "" if the
  // request found none, and the reason of an error.
  std::string_view route = {};
  std::string reason = {};
  // The event that the request began. Its span is then the request's.
  std::string event_id = {};
};

enum class ErrorShape : std::uint8_t {
  problem,  // problem details (RFC 7807) with all fields
  reduced,  // the four fields that the inject operation documents
  oauth,    // a problem with RFC 6749's `error` and `error_description` (see oauth_error_response)
};

// The request's data that every error body contains.
struct ExchangeContext {
  std::string instance;  // the request's path as received, without its query
  std::string trace_id;
};

// The receiver of answers. The server implements it. Tests of operations have a sink that collects.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // Delivers the answer of exchange `sequence`. Called once for each exchange, from any thread.
  virtual void answer(std::uint64_t sequence, Response response) noexcept = 0;
  // The Reply was destroyed without an answer. This is a defect. The sink reports it and answers.
  virtual void abandoned(std::uint64_t sequence) noexcept = 0;
  // The exchange in flight. Valid until its answer.
  [[nodiscard]] virtual const ExchangeContext& context() const = 0;
  [[nodiscard]] virtual model::Timestamp now() const = 0;
};

// Receives the status of each answer, and the time that it took, before it is sent. Called from any
// thread. It must cost next to nothing and must not throw.
using AnswerObserver = std::function<void(int status, std::chrono::steady_clock::duration took)>;

// The right and the duty to answer one request exactly once.
//
// One thread at a time, but any thread: a Reply may be moved to another thread and sent from there,
// whether or not the client is still connected. Sending spends it. Sending a spent or moved-from
// Reply does nothing. A Reply that is destroyed unsent answers 500 and reports a defect, so no
// request can hang.
class Reply {
 public:
  Reply(std::shared_ptr<ReplySink> sink, std::uint64_t sequence)
      : sink_(std::move(sink)), sequence_(sequence) {}
  Reply(Reply&&) noexcept = default;
  Reply& operator=(Reply&&) = delete;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply();

  void send(Response response);
  // `text/plain; charset=utf-8`.
  void text(int status, std::string body);
  // Sends the error as section 7 of the API says. `error.message` becomes the detail, so it must
  // not reveal anything internal. The message of Errc::internal is never sent.
  void fail(const model::Error& error);
  // Sets the shape of this request's errors. `reduced` applies to 400 and 404; the operation's
  // other errors are problems.
  void set_error_shape(ErrorShape shape) { error_shape_ = shape; }

  // Registers `told`, which is called with the status of the answer before it is sent, from any
  // thread. Several functions may be registered. They must neither block nor throw.
  void on_answer(std::function<void(int status)> told);

  // Names the path pattern of the operation, a constant, for the log.
  void set_route(std::string_view route) { route_ = route; }

  // False once sent or moved from.
  [[nodiscard]] explicit operator bool() const { return sink_ != nullptr; }
  // The request's context. Only before the answer is sent.
  [[nodiscard]] const ExchangeContext& context() const { return sink_->context(); }

 private:
  std::shared_ptr<ReplySink> sink_;
  std::uint64_t sequence_;
  std::function<void(int status)> told_;
  std::string_view route_;
  ErrorShape error_shape_ = ErrorShape::problem;
};

}  // namespace conversed::api
