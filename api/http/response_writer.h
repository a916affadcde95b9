// Answers as bytes.
#pragma once

#include <string>
#include <string_view>

#include "api/http/http.h"
#include "store/model/clock.h"

namespace conversed::api {

// What an answer owes to the request that it belongs to.
struct AnswerFraming {
  bool head = false;        // answer to HEAD: no body, but its length
  bool http_1_0 = false;    // keep-alive must then be said
  bool keep_alive = false;  // false: `Connection: close`
  bool cors = true;         // pages of other sites may read it
  std::string_view trace_id;
  std::string_view traceparent;
};

// Appends the whole message to `out`: status line, the response's headers, those that every answer
// carries, and the body. The Date header is made once a second and thread. Thread-safe.
void write_response(std::string& out, const Response& response, const AnswerFraming& framing,
                    model::Timestamp now);

}  // namespace conversed::api
