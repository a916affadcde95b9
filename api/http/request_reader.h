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

// A request that is answered with an error and ends its connection: where the next request would
// begin can't be trusted.
struct Refusal {
  int status = 0;  // 400, 413, 414, 417, 431, 501, 503 or 505
  std::string_view detail;
};

// Reads one request after the other from bytes that may come split anywhere.
//
// Bytes are copied as they are taken in; memory is at most max_header + max_body and a constant,
// and what the budget of large bodies has granted. A request whose body is not wanted is complete
// without it. One thread at a time.
class RequestReader {
 public:
  enum class Progress : std::uint8_t {
    need_more,         // all bytes are taken in, the request is not whole
    expects_continue,  // the client waits for 100 (Continue) before it sends the body; feed again
                       // after
    complete,          // take() it
    refused,           // see refusal(); the reader stays refused
  };

  // `limits` must outlive the reader. Bodies beyond `max_body` are paid for from `large_bodies`;
  // null: they are free.
  explicit RequestReader(const HttpSettings& limits, std::shared_ptr<BodyBudget> large_bodies = {})
      : limits_(limits), large_bodies_(std::move(large_bodies)) {}

  // Takes in the bytes of the current request and removes them from the front of `bytes`.
  Progress feed(std::string_view& bytes);

  // The complete request, without `peer` and `trace_id`; the reader is then ready for the next one.
  [[nodiscard]] Request take();

  // True while no byte of a request has come in.
  [[nodiscard]] bool idle() const { return stage_ == Stage::head && head_.empty(); }
  // True once the header section was whole and the body is not.
  [[nodiscard]] bool in_body() const { return stage_ == Stage::length || stage_ == Stage::chunks; }
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }
  // The current request as far as it is known: for the answer to one that is refused.
  [[nodiscard]] const Request& partial() const { return request_; }
  [[nodiscard]] bool http_1_0() const { return http_1_0_; }
  // What its rule says of errors, once the header section was whole.
  [[nodiscard]] ErrorShape error_shape() const { return rule_.error_shape; }

 private:
  enum class Stage : std::uint8_t { head, length, chunks, complete, refused };
  // Within a chunked body: what comes next. All but data comes by lines.
  enum class Chunk : std::uint8_t { size, data, data_end, trailer };
  // What the header fields said that decides about the framing.
  struct Fields {
    std::size_t hosts = 0;
    std::size_t lengths = 0;
    std::uint64_t length = 0;
    bool transfer_encoding = false;
    bool chunked = false;
    bool close = false;
    bool keep_alive = false;
    bool continue_expected = false;
  };

  void read_head(std::string_view& bytes);
  void read_length(std::string_view& bytes);
  void read_chunks(std::string_view& bytes);
  void take_data(std::string_view& bytes);
  bool scan_lines(std::string_view head, std::size_t& end);

  // Each returns false after refusing.
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

  bool refuse(int status, std::string_view detail);
  void reset();

  const HttpSettings& limits_;
  const std::shared_ptr<BodyBudget> large_bodies_;
  Stage stage_ = Stage::head;
  Refusal refusal_;
  Request request_;
  bool http_1_0_ = false;
  Fields fields_;

  std::string head_;            // the header section, as far as it has come
  std::size_t scanned_ = 0;     // bytes of the head that are known to hold no end
  std::size_t line_start_ = 0;  // where the line that is being scanned begins
  std::size_t empty_lines_ = 0;

  Chunk chunk_ = Chunk::size;
  bool continue_due_ = false;
  std::uint64_t left_ = 0;  // bytes of the body, or of the chunk, that are to come
  BodyRule rule_;           // of this request
  std::shared_ptr<BodyShare> share_;
  std::size_t framing_bytes_ = 0;  // bytes of a chunked body that are not data
  std::size_t trailer_bytes_ = 0;
  std::string line_;  // of a chunked body, as far as it has come
};

}  // namespace conversed::api
