// Frames and checks the bytes of HTTP/1.x requests (RFC 9112), strictly. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/http/body_budget.h"
#include "api/http/http.h"
#include "api/http/http_settings.h"

namespace conversed::api {

// An error that ends the connection, because the next request's beginning is unknown.
struct Refusal {
  int status = 0;  // 400, 413, 414, 415, 417, 431, 501, 503 or 505
  std::string_view detail;
};

// Reads one request after the other from bytes that may be split anywhere.
//
// The reader copies bytes as it takes them. Its memory is at most max_header + max_body, a
// constant, and the bytes granted by the budget of large bodies. A request whose body is not wanted
// is complete without it. One thread at a time.
class RequestReader {
 public:
  enum class Progress : std::uint8_t {
    need_more,         // all bytes are taken, the request is incomplete
    expects_continue,  // the client waits for 100 (Continue) before it sends the body; feed again
                       // after
    complete,          // take() it
    refused,           // see refusal(); the reader stays refused
  };

  // `limits` must outlive the reader. `large_bodies` pays for bodies beyond `max_body`, if not
  // null.
  explicit RequestReader(const HttpSettings& limits, std::shared_ptr<BodyBudget> large_bodies = {})
      : limits_(limits), large_bodies_(std::move(large_bodies)) {
    request_.method = Method::other;
  }

  // Takes the bytes of the current request and removes them from the front of `bytes`.
  Progress feed(std::string_view& bytes);

  // The complete request, without `peer` and `trace_id`; the reader is then ready for the next one.
  [[nodiscard]] Request take();

  // True before the first byte of a request.
  [[nodiscard]] bool idle() const { return stage_ == Stage::head && head_.empty(); }
  // True between the end of the header section and the end of the body.
  [[nodiscard]] bool in_body() const { return stage_ == Stage::length || stage_ == Stage::chunks; }
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }
  // The current request as far as it was read, for the answer that refuses it.
  [[nodiscard]] const Request& partial() const { return request_; }
  [[nodiscard]] bool http_1_0() const { return http_1_0_; }
  // The shape of errors by the body's rule, after the header section.
  [[nodiscard]] ErrorShape error_shape() const { return rule_.error_shape; }

 private:
  enum class Stage : std::uint8_t { head, length, chunks, complete, refused };
  // The next part of a chunked body. All parts except data are lines.
  enum class Chunk : std::uint8_t { size, data, data_end, trailer };
  // The header fields that decide the framing.
  struct Fields {
    std::size_t hosts = 0;
    std::size_t lengths = 0;
    std::uint64_t length = 0;
    bool transfer_encoding = false;
    bool chunked = false;
    bool close = false;
    bool keep_alive = false;
    bool continue_expected = false;
    bool compressed = false;
  };

  void read_head(std::string_view& bytes);
  void read_length(std::string_view& bytes);
  void read_chunks(std::string_view& bytes);
  void take_data(std::string_view& bytes);
  bool scan_lines(std::string_view head, std::size_t& end);

  // Each returns false after it has refused the request.
  bool parse_head(std::string_view head);
  bool parse_request_line(std::string_view line);
  bool parse_target(std::string_view target);
  bool parse_field(std::string_view line);
  bool interpret_field(std::string_view name, std::string_view value);
  bool interpret_length(std::string_view value);
  bool interpret_transfer_encoding(std::string_view value);
  bool decide_framing();
  bool append_to_body(std::string_view part);
  bool take_line(std::string_view part);
  bool chunk_size(std::string_view line);
  bool trailer(std::string_view line);

  void keep_trace(std::string_view fields);
  bool refuse(int status, std::string_view detail);
  void reset();

  const HttpSettings& limits_;
  const std::shared_ptr<BodyBudget> large_bodies_;
  Stage stage_ = Stage::head;
  Refusal refusal_;
  Request request_;
  bool http_1_0_ = false;
  Fields fields_;
  std::string authority_;  // of the target's absolute form; otherwise empty

  std::string head_;            // the header section so far
  std::size_t scanned_ = 0;     // bytes of the head without an end of the section
  std::size_t line_start_ = 0;  // where the current line begins
  std::size_t empty_lines_ = 0;

  Chunk chunk_ = Chunk::size;
  bool continue_due_ = false;
  std::uint64_t left_ = 0;  // bytes of the body or of the chunk that are missing
  BodyRule rule_;           // the current request's
  std::shared_ptr<BodyShare> share_;
  std::size_t framing_bytes_ = 0;  // bytes of a chunked body that are not data
  std::size_t trailer_bytes_ = 0;
  std::string line_;  // the current line of a chunked body
};

}  // namespace conversed::api
