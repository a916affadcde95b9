#include "api/http/request_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "api/http/http_syntax.h"
#include "api/http/percent.h"
#include "store/model/hex.h"

namespace conversed::api {
namespace {

// Header lines of one request. A browser sends about 20, other programs fewer than `usual_fields`.
constexpr std::size_t max_fields = 100;
constexpr std::size_t usual_fields = 16;
// RFC 9112 §2.2 asks servers to ignore at least one empty line before a request line.
constexpr std::size_t max_empty_lines = 4;
// Bytes of chunk sizes and extensions for each byte of the body, beyond max_header. This allows
// chunks of one byte with a short extension, and no connection that stays busy without data.
constexpr std::size_t framing_per_byte = 16;

// Content codings that clients use (RFC 9110 §8.4.1, RFC 7932, RFC 8878). No body is decoded.
constexpr std::array<std::string_view, 7> codings{"gzip", "x-gzip", "deflate",   "compress",
                                                  "br",   "zstd",   "x-compress"};

std::optional<Method> find_method(std::string_view name) {
  for (const Method method : {Method::get, Method::post, Method::head, Method::put, Method::patch,
                              Method::delete_, Method::options, Method::trace}) {
    if (name == method_name(method)) return method;
  }
  return std::nullopt;
}

}  // namespace

RequestReader::Progress RequestReader::feed(std::string_view& bytes) {
  if (stage_ == Stage::head) read_head(bytes);
  // A client that has begun to send the body does not wait for 100 (RFC 9110 §10.1.1).
  if (std::exchange(continue_due_, false) && in_body() && bytes.empty()) {
    return Progress::expects_continue;
  }
  if (stage_ == Stage::length) read_length(bytes);
  if (stage_ == Stage::chunks) read_chunks(bytes);
  if (stage_ == Stage::complete) return Progress::complete;
  return stage_ == Stage::refused ? Progress::refused : Progress::need_more;
}

Request RequestReader::take() {
  request_.body_share = std::move(share_);
  Request request = std::move(request_);
  reset();
  return request;
}

void RequestReader::reset() {
  stage_ = Stage::head;
  request_ = Request{};
  request_.method = Method::other;
  authority_.clear();
  http_1_0_ = false;
  fields_ = Fields{};
  head_.clear();
  scanned_ = line_start_ = 0;
  chunk_ = Chunk::size;
  left_ = 0;
  framing_bytes_ = trailer_bytes_ = 0;
  line_.clear();
  rule_ = BodyRule{};
  share_.reset();
}

bool RequestReader::refuse(int status, std::string_view detail) {
  stage_ = Stage::refused;
  std::string().swap(request_.body);  // gives its share back; the connection may linger
  share_.reset();
  refusal_ = {status, detail};
  return false;
}

// ---- The header section

void RequestReader::read_head(std::string_view& bytes) {
  const auto fresh = bytes.substr(0, limits_.max_header + 1 - head_.size());
  head_.append(fresh);
  while (head_.starts_with("\r\n")) {
    head_.erase(0, 2);
    scanned_ = 0;
    if (++empty_lines_ > max_empty_lines) {
      refuse(400, "Too many empty lines before the request line.");
      return;
    }
  }
  std::size_t end = 0;
  if (!scan_lines(head_, end)) return;
  if (end != 0 && end <= limits_.max_header) {
    bytes.remove_prefix(fresh.size() - (head_.size() - end));
    parse_head(std::string_view(head_).substr(0, end));
    head_.clear();
  } else if (head_.size() <= limits_.max_header) {
    bytes.remove_prefix(fresh.size());
  } else if (line_start_ == 0) {
    refuse(414, "The request line is longer than this server accepts.");
  } else {
    refuse(431, "The header fields are larger than this server accepts.");
  }
}

// Looks for the empty line that ends the section. `end` stays 0 until it is found. A bare LF is
// refused at once, because waiting for a CRLF would end in a time-out.
bool RequestReader::scan_lines(std::string_view head, std::size_t& end) {
  for (;;) {
    const auto lf = head.find('\n', scanned_);
    if (lf == std::string_view::npos) {
      scanned_ = head.size();
      return true;
    }
    if (lf == line_start_ || head[lf - 1] != '\r')
      return refuse(400, "A line does not end in CRLF.");
    const bool empty = lf - line_start_ == 1;
    scanned_ = line_start_ = lf + 1;
    if (empty) {
      end = lf + 1;
      return true;
    }
  }
}

bool RequestReader::parse_head(std::string_view head) {
  head.remove_suffix(2);  // the empty line
  bool first = true;
  request_.headers.reserve(usual_fields);
  while (!head.empty()) {
    const auto end = head.find("\r\n");
    const auto line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (first && !parse_request_line(line)) {
      keep_trace(head);
      return false;
    }
    if (!first && !parse_field(line)) return false;
    first = false;
  }
  if (!authority_.empty()) {
    const auto host = std::ranges::find(request_.headers, "host", &HeaderList::value_type::first);
    if (host != request_.headers.end()) host->second = authority_;
  }
  empty_lines_ = 0;
  return decide_framing();
}

bool RequestReader::parse_request_line(std::string_view line) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return refuse(400, "The request line is not `method target version`.");
  }
  const auto method = line.substr(0, first);
  const auto target = line.substr(first + 1, last - first - 1);
  const auto version = line.substr(last + 1);
  if (!is_token(method)) return refuse(400, "The method is not a token.");
  const auto known = find_method(method);
  if (known) request_.method = *known;
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) ||
      version[6] != '.' || !is_digit(version[7])) {
    return refuse(400, "The HTTP version is malformed.");
  }
  if (version[5] != '1') return refuse(505, "This server speaks HTTP/1.1 and HTTP/1.0.");
  http_1_0_ = version[7] == '0';
  if (!parse_target(target)) return false;
  if (!known) return refuse(501, "This method is not implemented.");
  return true;
}

// Keeps the trace of a request whose request line is refused, for the answer.
void RequestReader::keep_trace(std::string_view fields) {
  while (!fields.empty()) {
    const auto end = fields.find("\r\n");
    const auto line = fields.substr(0, end);
    fields.remove_prefix(end + 2);
    const auto colon = std::min(line.find(':'), line.size());
    if (!equals_ignoring_case(line.substr(0, colon), "traceparent")) continue;
    request_.headers.emplace_back("traceparent",
                                  trim(line.substr(std::min(colon + 1, line.size()))));
  }
}

bool RequestReader::parse_target(std::string_view target) {
  for (const char c : target) {
    if (c <= ' ' || c >= 0x7F || c == '#') return refuse(400, "The request target is malformed.");
  }
  // The absolute form, which clients send to proxies, must be accepted. Its authority replaces the
  // Host header (RFC 9112 §3.2.2).
  if (equals_ignoring_case(target.substr(0, 7), "http://") ||
      equals_ignoring_case(target.substr(0, 8), "https://")) {
    const auto authority = target.find("//") + 2;
    const auto end = std::min(target.find_first_of("/?", authority), target.size());
    if (end == authority || !is_host(target.substr(authority, end - authority))) {
      return refuse(400, "The request target is malformed.");
    }
    authority_ = target.substr(authority, end - authority);
    target.remove_prefix(end);
    request_.target.assign(target.starts_with('/') ? "" : "/").append(target);
  } else {
    request_.target = target;
  }
  if (request_.target == "*" && request_.method == Method::options) {
    request_.path = "*";
    return true;
  }
  const std::string_view whole = request_.target;
  if (!whole.starts_with('/')) return refuse(400, "The request target is not a path.");
  const auto mark = whole.find('?');
  auto path = percent_decode_path(whole.substr(0, mark));
  if (!path) return refuse(400, "The path is not well percent-encoded UTF-8.");
  request_.path = std::move(*path);
  if (mark == std::string_view::npos) return true;
  auto query = parse_query(whole.substr(mark + 1));
  if (!query) return refuse(400, "The query is not well percent-encoded UTF-8.");
  request_.query = std::move(*query);
  return true;
}

bool RequestReader::parse_field(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') {
    return refuse(400, "A header field is folded over several lines.");
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return refuse(400, "A header line has no colon.");
  const auto name = line.substr(0, colon);
  if (!is_token(name)) return refuse(400, "A header name is not a token.");
  const auto value = trim(line.substr(colon + 1));
  if (!is_field_text(value)) return refuse(400, "A header value holds a control character.");
  if (request_.headers.size() == max_fields)
    return refuse(431, "There are too many header fields.");
  auto& field = request_.headers.emplace_back(name, value);
  std::transform(field.first.begin(), field.first.end(), field.first.begin(), to_lower);
  return interpret_field(field.first, field.second);
}

bool RequestReader::interpret_field(std::string_view name, std::string_view value) {
  if (name == "host") {
    if (++fields_.hosts > 1) return refuse(400, "There is more than one Host header.");
    if (!is_host(value)) return refuse(400, "The Host header is malformed.");
  } else if (name == "content-length") {
    return interpret_length(value);
  } else if (name == "transfer-encoding") {
    return interpret_transfer_encoding(value);
  } else if (name == "connection") {
    for_each_element(value, [&](std::string_view option) {
      if (equals_ignoring_case(option, "close")) fields_.close = true;
      if (equals_ignoring_case(option, "keep-alive")) fields_.keep_alive = true;
    });
  } else if (name == "expect" && !http_1_0_) {
    if (!equals_ignoring_case(value, "100-continue")) {
      return refuse(417, "The only expectation that can be met is 100-continue.");
    }
    fields_.continue_expected = true;
  } else if (name == "content-encoding") {
    for_each_element(value, [&](std::string_view coding) {
      fields_.compressed = fields_.compressed || std::ranges::any_of(codings, [&](auto known) {
                             return equals_ignoring_case(coding, known);
                           });
    });
  }
  return true;
}

bool RequestReader::interpret_length(std::string_view value) {
  if (++fields_.lengths > 1) return refuse(400, "There is more than one Content-Length header.");
  const auto* const last = value.data() + value.size();
  const auto [end, error] = std::from_chars(value.data(), last, fields_.length);
  if (end != last || error == std::errc::invalid_argument) {
    return refuse(400, "The Content-Length header is not a number.");
  }
  if (error != std::errc()) fields_.length = std::numeric_limits<std::uint64_t>::max();
  return true;
}

bool RequestReader::interpret_transfer_encoding(std::string_view value) {
  fields_.transfer_encoding = true;
  bool understood = true;
  bool repeated = false;
  for_each_element(value, [&](std::string_view coding) {
    const bool chunked = equals_ignoring_case(coding, "chunked");
    repeated = repeated || fields_.chunked;  // nothing may follow chunked (RFC 9112 §6.1)
    understood = understood && chunked;
    fields_.chunked = fields_.chunked || chunked;
  });
  if (repeated) return refuse(400, "Chunked is not the last transfer coding.");
  if (!understood) return refuse(501, "The only transfer coding that is understood is chunked.");
  return true;
}

bool RequestReader::decide_framing() {
  if (fields_.hosts == 0 && !http_1_0_) return refuse(400, "The Host header is missing.");
  if (fields_.transfer_encoding) {
    if (fields_.lengths != 0) {
      return refuse(400, "Content-Length and Transfer-Encoding exclude each other.");
    }
    if (http_1_0_) return refuse(400, "HTTP/1.0 knows no Transfer-Encoding.");
    if (!fields_.chunked) return refuse(400, "The Transfer-Encoding header is empty.");
  }
  rule_ = {.max_body = limits_.max_body};
  if (limits_.body_rule) rule_ = limits_.body_rule(request_);
  const bool unwanted = !rule_.wanted && (fields_.chunked || fields_.length != 0);
  const bool has_body = fields_.chunked || fields_.length != 0;
  if (!unwanted && has_body && fields_.compressed) {
    return refuse(415, "The body is compressed; send it without Content-Encoding.");
  }
  if (!unwanted && fields_.length > rule_.max_body) {
    return refuse(413, "The body is larger than this server accepts.");
  }
  // After an unread body the next request can't be found.
  request_.keep_alive = !unwanted && !fields_.close && (!http_1_0_ || fields_.keep_alive);
  if (unwanted || (!fields_.chunked && fields_.length == 0)) {
    stage_ = Stage::complete;
  } else if (fields_.chunked) {
    stage_ = Stage::chunks;
  } else {
    left_ = fields_.length;
    request_.body.reserve(
        std::min<std::size_t>(left_, limits_.max_body));  // larger bodies are paid for first
    stage_ = Stage::length;
  }
  continue_due_ = fields_.continue_expected;
  return true;
}

// ---- The body

bool RequestReader::append_to_body(std::string_view part) {
  const std::size_t needed = request_.body.size() + part.size();
  if (needed > limits_.max_body && large_bodies_) {
    if (!share_) share_ = std::make_shared<BodyShare>(large_bodies_, rule_.sender);
    const bool known_length = stage_ == Stage::length;
    const auto largest = known_length ? request_.body.size() + left_ : rule_.max_body;
    if (!share_->make_room(request_.body, needed, largest)) {
      return refuse(503, "Too many large bodies are being read; try again later.");
    }
  }
  request_.body.append(part);
  return true;
}

void RequestReader::take_data(std::string_view& bytes) {
  const auto part = bytes.substr(0, static_cast<std::size_t>(left_));
  if (!append_to_body(part)) return;
  bytes.remove_prefix(part.size());
  left_ -= part.size();
}

void RequestReader::read_length(std::string_view& bytes) {
  take_data(bytes);
  if (left_ == 0) stage_ = Stage::complete;
}

void RequestReader::read_chunks(std::string_view& bytes) {
  while (!bytes.empty() && stage_ == Stage::chunks) {
    if (chunk_ == Chunk::data) {
      take_data(bytes);
      if (left_ == 0) chunk_ = Chunk::data_end;
    } else {
      const auto part = bytes.substr(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1);
      bytes.remove_prefix(part.size());
      take_line(part);
    }
  }
}

// Takes a part of a line with its LF. A malformed line is refused before its LF arrives.
bool RequestReader::take_line(std::string_view part) {
  if (chunk_ == Chunk::trailer) {
    trailer_bytes_ += part.size();
    if (trailer_bytes_ > limits_.max_header) return refuse(431, "The trailers are too large.");
  } else {
    framing_bytes_ += part.size();
    if (line_.size() + part.size() > limits_.max_header ||
        framing_bytes_ > limits_.max_header + framing_per_byte * request_.body.size()) {
      return refuse(400, "The chunks cost more than they carry.");
    }
  }
  const std::size_t unchecked = line_.empty() ? 0 : line_.size() - 1;  // the last byte may be a CR
  line_.append(part);
  if (chunk_ == Chunk::size && model::hex_value(line_.front()) < 0) {
    return refuse(400, "A chunk size is malformed.");
  }
  if (chunk_ == Chunk::data_end && !std::string_view("\r\n").starts_with(line_)) {
    return refuse(400, "A chunk does not end in CRLF.");
  }
  const auto cr = line_.find('\r', unchecked);
  if (cr < line_.size() - 1 && line_[cr + 1] != '\n') {
    return refuse(400, "A line does not end in CRLF.");
  }
  if (!line_.ends_with('\n')) return true;
  if (!line_.ends_with("\r\n")) return refuse(400, "A line does not end in CRLF.");
  line_.resize(line_.size() - 2);
  const std::string line = std::exchange(line_, {});
  if (chunk_ == Chunk::size) return chunk_size(line);
  if (chunk_ == Chunk::trailer) return trailer(line);
  chunk_ = Chunk::size;
  return true;
}

// chunk-size [ BWS ";" chunk-ext ]. Extensions are ignored.
bool RequestReader::chunk_size(std::string_view line) {
  left_ = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), left_, 16);
  if (error == std::errc::result_out_of_range || left_ > rule_.max_body - request_.body.size()) {
    return refuse(413, "The body is larger than this server accepts.");
  }
  const auto extension = line.substr(static_cast<std::size_t>(end - line.data()));
  const bool fits =
      extension.empty() || (trim(extension).starts_with(';') && is_field_text(extension));
  if (!fits) return refuse(400, "A chunk size is malformed.");
  chunk_ = left_ == 0 ? Chunk::trailer : Chunk::data;
  return true;
}

// Checks trailers like header fields and drops them. No operation needs one, and merging them would
// let a body change the meaning of its request.
bool RequestReader::trailer(std::string_view line) {
  if (line.empty()) {
    stage_ = Stage::complete;
    return true;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
      !is_field_text(line.substr(colon + 1))) {
    return refuse(400, "A trailer field is malformed.");
  }
  return true;
}

}  // namespace conversed::api
