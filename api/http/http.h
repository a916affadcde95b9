// What a request and its answer are inside conversed: our own types, so that no other file sees the
// HTTP library.
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
#include "store/model/error.h"

namespace conversed::api {

enum class Method : std::uint8_t { get, head, post, put, patch, delete_, options };

// "GET", "DELETE", ...
[[nodiscard]] std::string_view method_name(Method method);

// The answers that operations give. Any other integer from 200 to 599 is as good a status.
namespace status {
inline constexpr int ok = 200;
inline constexpr int created = 201;
inline constexpr int accepted = 202;
inline constexpr int no_content = 204;
inline constexpr int found = 302;
inline constexpr int unauthorized = 401;
}  // namespace status

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// One whole, well-formed request. A plain value: the thread that holds it may do as it likes with
// it.
struct Request {
  Method method = Method::get;
  std::string target;  // as received: "/a%20b?x=1", or "*" (OPTIONS only)
  // Percent-decoded UTF-8 without NUL, but for slashes and percent signs within a segment, which
  // are
  // `%2F` and `%25`; dot segments are left as they are.
  std::string path;
  HeaderList query;    // percent-decoded (and '+' as space) UTF-8 pairs, in order, repeats kept
  HeaderList headers;  // names in lower case, values trimmed, in order, repeats kept
  std::string body;    // de-chunked; at most HttpSettings::max_body bytes
  std::string peer;  // the client's address without its port: behind a trusted proxy, whom it names
  bool keep_alive = true;
  std::string trace_id;  // 32 hex digits: of a valid incoming traceparent, else a new one
  // What a large body takes of the server's memory (BodyShare): given back with the request.
  std::shared_ptr<const void> body_share = {};

  // The first header of that name, which must be given in lower case.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  // The first query parameter of that name.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};

// An answer. Content-Length, Date, Connection, the trace and the CORS headers are added when it is
// sent; control characters in header values are sent as spaces.
struct Response {
  int status = status::ok;
  std::string content_type = {};  // empty: no Content-Type header
  HeaderList headers = {};
  std::string body = {};
  // For the log alone, which names no query and no body: the path of the operation's row, "" if the
  // request found none, and of an error its reason.
  std::string_view route = {};
  std::string reason = {};
};

enum class ErrorShape : std::uint8_t {
  problem,  // problem details (RFC 7807) with all fields
  reduced,  // the four fields that the inject operation documents
  oauth,    // a problem with RFC 6749's `error` and `error_description` (see oauth_error_response)
};

// What every error body must be able to name.
struct ExchangeContext {
  std::string instance;  // the request's path as received, without its query
  std::string trace_id;
};

// Where a Reply delivers. The server implements it; tests of operations have one that collects.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // Delivers the answer of exchange `sequence`. Called once an exchange, from any thread.
  virtual void answer(std::uint64_t sequence, Response response) noexcept = 0;
  // The exchange was abandoned without an answer: a defect, which the sink reports and answers.
  virtual void abandoned(std::uint64_t sequence) noexcept = 0;
  // Of the exchange that is in flight; valid until its answer.
  [[nodiscard]] virtual const ExchangeContext& context() const = 0;
  [[nodiscard]] virtual model::Timestamp now() const = 0;
};

// Told the status of an answer, and how long it took, before it is sent. On the way of every
// answer, from any thread: it must cost next to nothing, and not throw.
using AnswerObserver = std::function<void(int status, std::chrono::steady_clock::duration took)>;

// The right, and the duty, to answer one request exactly once.
//
// One thread at a time, but any thread: it may be moved to another one and sent from there, whether
// or not the client is still connected. Sending spends it; sending a spent or moved-from Reply does
// nothing. One that is destroyed unsent answers 500 and reports a defect, so no request can hang.
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
  // The error as section 7 of the API says; `error.message` becomes the detail, so it must be fit
  // for strangers. Errc::internal never shows its message.
  void fail(const model::Error& error);
  // The shape of its errors. `reduced` is for 400 and 404; the operation's other errors are
  // problems.
  void set_error_shape(ErrorShape shape) { error_shape_ = shape; }

  // Has `told` called with the status of the answer, whoever gives it, before it is sent. Each
  // function that was given is called. From any thread; it must neither block nor throw.
  void on_answer(std::function<void(int status)> told);

  // Names the path pattern of the operation, a constant, for the log.
  void set_route(std::string_view route) { route_ = route; }

  // False once sent or moved from.
  [[nodiscard]] explicit operator bool() const { return sink_ != nullptr; }
  // Of the request; only while not yet sent.
  [[nodiscard]] const ExchangeContext& context() const { return sink_->context(); }

 private:
  std::shared_ptr<ReplySink> sink_;
  std::uint64_t sequence_;
  std::function<void(int status)> told_;
  std::string_view route_;
  ErrorShape error_shape_ = ErrorShape::problem;
};

}  // namespace conversed::api
