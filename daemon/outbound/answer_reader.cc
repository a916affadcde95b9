#include "daemon/outbound/answer_reader.h"

#include <algorithm>

#include "store/text/ascii.h"

namespace conversed::daemon {
namespace {

constexpr std::size_t line_overhead = 4;  // ": " and the line's end
constexpr std::size_t max_retry_after = 63;

// What llhttp's callbacks return. Any other value than these ends the parsing.
constexpr int go_on = 0;
constexpr int no_body = 1;  // of on_headers_complete, whatever the headers say (RFC 9112 §6.3)
constexpr int give_up = -1;

}  // namespace

llhttp_settings_t AnswerReader::callbacks() {
  llhttp_settings_t settings{};
  settings.on_status = [](llhttp_t* parser, const char*, std::size_t size) {
    return of(parser).count_header(size);
  };
  settings.on_header_field = [](llhttp_t* parser, const char* part, std::size_t size) {
    return of(parser).take_name({part, size});
  };
  settings.on_header_value = [](llhttp_t* parser, const char* part, std::size_t size) {
    return of(parser).take_value({part, size});
  };
  settings.on_header_value_complete = [](llhttp_t* parser) {
    of(parser).name_size_ = 0;
    return of(parser).count_header(line_overhead);
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
}

void AnswerReader::begin(bool to_head, std::size_t max_body_bytes) {
  llhttp_reset(&parser_);
  to_head_ = to_head;
  max_body_bytes_ = max_body_bytes;
  header_bytes_ = 0;
  has_begun_ = too_large_ = complete_ = keeps_connection_ = false;
  status_ = 0;
  name_size_ = 0;
  retry_after_.clear();
  body_.clear();
}

AnswerReader::Progress AnswerReader::feed(std::string_view bytes) {
  has_begun_ = has_begun_ || !bytes.empty();
  const auto error = llhttp_execute(&parser_, bytes.data(), bytes.size());
  if (complete_) {
    const char* end = llhttp_get_error_pos(&parser_);
    keeps_connection_ = keeps_connection_ && end == bytes.data() + bytes.size();
    return Progress::complete;
  }
  if (too_large_) return Progress::too_large;
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

int AnswerReader::count_header(std::size_t bytes) {
  header_bytes_ += bytes;
  too_large_ = header_bytes_ > max_header_bytes;
  return too_large_ ? give_up : go_on;
}

int AnswerReader::take_name(std::string_view part) {
  for (const char c : part.substr(0, name_.size() + 1 - name_size_)) {
    if (name_size_ < name_.size()) name_[name_size_] = c;
    ++name_size_;
  }
  return count_header(part.size());
}

int AnswerReader::take_value(std::string_view part) {
  const bool is_of_final_answer = status_ == 0 && parser_.status_code >= 200;
  if (is_of_final_answer && name_size_ <= name_.size() &&
      text::equals_ignoring_case({name_.data(), name_size_}, "Retry-After")) {
    retry_after_ += part.substr(0, max_retry_after - retry_after_.size());
  }
  return count_header(part.size());
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
  // The status line and the empty line, so that interim answers have an end.
  if (const int counted = count_header(sizeof("HTTP/1.1 200 \r\n\r\n") - 1); counted != go_on) {
    return counted;
  }
  const int status = parser_.status_code;
  if (status < 200) return no_body;
  status_ = status;
  return to_head_ || status == 204 || status == 304 ? no_body : go_on;
}

int AnswerReader::end_answer() {
  if (status_ == 0) return go_on;  // an interim answer
  complete_ = true;
  keeps_connection_ = llhttp_should_keep_alive(&parser_) != 0;
  return HPE_PAUSED;
}

}  // namespace conversed::daemon
