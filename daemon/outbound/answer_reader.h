#pragma once

#include <llhttp/llhttp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace conversed::daemon {

// Reads the answer to an HTTP/1.x request (RFC 9112 §6) from bytes that may be split anywhere.
// llhttp, the parser of Node.js, frames them. No I/O. One thread. It is not copied, since llhttp
// keeps its address.
class AnswerReader {
 public:
  // Of all that is not body: headers, those of interim answers (1xx), trailers, and the framing of
  // chunks. A body in chunks may have eight times its size besides.
  static constexpr std::size_t max_header_bytes = 64 * 1024;

  enum class Progress : std::uint8_t {
    need_more,  // all bytes are taken
    complete,   // the final answer has ended
    too_large,  // the body, or the headers
    malformed,
  };

  AnswerReader();
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;

  // Begins a new answer. `to_head`: the answer has no body, whatever its headers say.
  void begin(bool to_head, std::size_t max_body_bytes);

  // Takes bytes of the connection. After another result than `need_more`, the next call is `begin`.
  [[nodiscard]] Progress feed(std::string_view bytes);
  // The connection has ended. `need_more`: no final answer has begun.
  [[nodiscard]] Progress close();

  // Whether a byte of an answer has come, interim answers included.
  [[nodiscard]] bool has_begun() const { return fed_bytes_ > 0; }
  // Of the final answer; 0 until its headers have come.
  [[nodiscard]] int status() const { return status_; }
  // The last header Retry-After of the final answer, at most its first 63 characters; or empty.
  [[nodiscard]] std::string_view retry_after() const { return retry_after_; }
  [[nodiscard]] std::string& body() { return body_; }
  // Of a complete answer: whether the connection serves another request (RFC 9112 §9.3). Bytes
  // behind the answer belong to no request, so they end the connection.
  [[nodiscard]] bool keeps_connection() const { return keeps_connection_; }

 private:
  static llhttp_settings_t callbacks();
  static AnswerReader& of(llhttp_t* parser) { return *static_cast<AnswerReader*>(parser->data); }
  void take_name(std::string_view part);
  void end_name();
  void take_value(std::string_view part);
  [[nodiscard]] int take_body(std::string_view part);
  [[nodiscard]] int end_headers();
  [[nodiscard]] int end_answer();

  llhttp_t parser_{};
  bool to_head_ = false;
  std::size_t max_body_bytes_ = 0;
  std::size_t fed_bytes_ = 0;
  bool too_large_ = false;
  bool complete_ = false;
  bool keeps_connection_ = false;
  int status_ = 0;
  std::array<char, 12> name_{};  // of the current header, as far as it fits
  std::size_t name_size_ = 0;    // at most one more than fits
  bool is_retry_after_ = false;  // the current value
  std::string retry_after_;
  std::string body_;
};

}  // namespace conversed::daemon
