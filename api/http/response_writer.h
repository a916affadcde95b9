// Writes answers as bytes.
#pragma once

#include <string>
#include <string_view>

#include "api/http/http.h"
#include "store/model/clock.h"

namespace conversed::api {

// The properties of an answer that its request decides.
struct AnswerFraming {
  bool head = false;        // an answer to HEAD: the body's length without the body
  bool http_1_0 = false;    // keep-alive needs a header
  bool keep_alive = false;  // false: `Connection: close`
  bool cors = true;         // pages of other sites may read it
  std::string_view trace_id;
  std::string_view traceparent;
};

// Appends the whole message to `out`: status line, the response's headers, the common headers, and
// the body. Each thread makes the Date header once a second. Thread-safe.
void write_response(std::string& out, const Response& response, const AnswerFraming& framing,
                    model::Timestamp now);

}  // namespace conversed::api
