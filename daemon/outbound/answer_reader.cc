#include "daemon/outbound/answer_reader.h"

#include <algorithm>

#include "store/text/ascii.h"

namespace conversed::daemon {
namespace {

constexpr std::size_t max_retry_after = 63;
constexpr std::size_t framing_a_byte = 8;  // of a body in chunks of one byte each, with some room

// Return values of llhttp's callbacks.
constexpr int go_on = 0;
constexpr int no_body = 1;  // of on_headers_complete, whatever the headers say (RFC 9112 §6.3)
constexpr int give_up = -1;

}  // namespace

llhttp_settings_t AnswerReader::callbacks() {
  llhttp_settings_t settings{};
  settings.on_header_field = [](llhttp_t* parser, const char* part, std::size_t size) {
    of(parser).take_name({part, size});
    return go_on;
  };
  settings.on_header_field_complete = [](llhttp_t* parser) {
    of(parser).end_name();
    return go_on;
  };
  settings.on_header_value = [](llhttp_t* parser, const char* part, std::size_t size) {
    of(parser).take_value({part, size});
    return go_on;
  };
  settings.on_headers_complete = [](llhttp_t* parser) { return of(parser).end_headers(); };
  settings.on_body = [](llhttp_t* parser, const char* part, std::size_t size) {
    return of(parser).take_body({part, size});
  };
  settings.on_message_complete = [](llhttp_t* parser) { return of(parser).end_answer(); };
  return settings;
}

AnswerReader::AnswerReader() {
  static const llhttp_settings_t settings = callbacks();
  llhttp_init(&parser_, HTTP_RESPONSE, &settings);
  parser_.data = this;
  // A client takes what servers send, as long as it knows where the answer ends: unusual characters
  // in headers, Content-Length beside Transfer-Encoding, and interim answers that announce the
  // connection's end. llhttp_reset keeps these.
  llhttp_set_lenient_headers(&parser_, 1);
  llhttp_set_lenient_chunked_length(&parser_, 1);
  llhttp_set_lenient_keep_alive(&parser_, 1);
}

void AnswerReader::begin(bool to_head, std::size_t max_body_bytes) {
  llhttp_reset(&parser_);
  to_head_ = to_head;
  max_body_bytes_ = max_body_bytes;
  fed_bytes_ = 0;
  too_large_ = complete_ = keeps_connection_ = false;
  status_ = 0;
  name_size_ = 0;
  is_retry_after_ = false;
  retry_after_.clear();
  body_ = std::string();  // gives the memory back
}

AnswerReader::Progress AnswerReader::feed(std::string_view bytes) {
  const auto error = llhttp_execute(&parser_, bytes.data(), bytes.size());
  const char* const end = complete_ ? llhttp_get_error_pos(&parser_) : bytes.data() + bytes.size();
  fed_bytes_ += static_cast<std::size_t>(end - bytes.data());
  if (fed_bytes_ > max_header_bytes + (1 + framing_a_byte) * body_.size()) too_large_ = true;
  if (too_large_) return Progress::too_large;
  if (complete_) {
    keeps_connection_ = keeps_connection_ && end == bytes.data() + bytes.size();
    return Progress::complete;
  }
  return error == HPE_OK ? Progress::need_more : Progress::malformed;
}

AnswerReader::Progress AnswerReader::close() {
  const auto error = llhttp_finish(&parser_);
  if (complete_) {
    keeps_connection_ = false;
    return Progress::complete;
  }
  return error == HPE_OK ? Progress::need_more : Progress::malformed;
}

void AnswerReader::take_name(std::string_view part) {
  for (const char c : part.substr(0, name_.size() + 1 - name_size_)) {
    if (name_size_ < name_.size()) name_[name_size_] = c;
    ++name_size_;
  }
}

void AnswerReader::end_name() {
  const bool is_of_final_answer = status_ == 0 && parser_.status_code >= 200;
  const std::string_view name(name_.data(), std::min(name_size_, name_.size()));
  is_retry_after_ = is_of_final_answer && text::equals_ignoring_case(name, "Retry-After");
  if (is_retry_after_) retry_after_.clear();
  name_size_ = 0;
}

void AnswerReader::take_value(std::string_view part) {
  if (is_retry_after_) retry_after_ += part.substr(0, max_retry_after - retry_after_.size());
}

int AnswerReader::take_body(std::string_view part) {
  if (body_.size() + part.size() > max_body_bytes_) {
    too_large_ = true;
    return give_up;
  }
  body_ += part;
  return go_on;
}

int AnswerReader::end_headers() {
  const int status = parser_.status_code;
  if (status < 200) return no_body;
  status_ = status;
  return to_head_ || status == 204 || status == 304 ? no_body : go_on;
}

int AnswerReader::end_answer() {
  if (status_ == 0) {
    // An interim answer. llhttp keeps its length if it announces the connection's end.
    parser_.content_length = 0;
    return go_on;
  }
  complete_ = true;
  // Two lengths may be an attack (RFC 9112 §6.3).
  constexpr unsigned both = F_CONTENT_LENGTH | F_TRANSFER_ENCODING;
  keeps_connection_ = llhttp_should_keep_alive(&parser_) != 0 && (parser_.flags & both) != both;
  return HPE_PAUSED;
}

}  // namespace conversed::daemon
