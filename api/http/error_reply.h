// Errors as answers: section 7 of the API, in one table.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::api {

// The Retry-After of an answer with 429 or 503.
inline constexpr std::chrono::seconds default_retry_after{2};

// The status of each error code. No other place maps errors to HTTP.
[[nodiscard]] int status_of(model::Errc code);

// The reason phrase, such as "Not Found". "Unknown" for a status that this table lacks.
[[nodiscard]] std::string_view reason_phrase(int status);

// The `code` of a status in error bodies. 1000 for a status that the API does not name.
[[nodiscard]] int error_code(int status);

// The reason of an error for the log. For an internal failure it is `detail`. Otherwise it is a
// word for the status, because a detail may quote the client.
[[nodiscard]] std::string reason_for_log(int status, std::string_view detail);

// IMF-fixdate (RFC 9110 §5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT".
[[nodiscard]] std::string http_date(model::Timestamp time);

// An error body with its status (400 to 599) and its headers: `WWW-Authenticate` for 401,
// `Retry-After` as an HTTP-date for 429 and 503. The client sees `detail` unchanged (bytes that are
// not UTF-8 are replaced). `details`, a JSON object for programs, is in problems only. Thread-safe.
[[nodiscard]] Response error_response(int status, std::string_view detail,
                                      const ExchangeContext& context, model::Timestamp now,
                                      ErrorShape shape = ErrorShape::problem,
                                      const nlohmann::json* details = nullptr);

// An error of the OAuth routes: a problem that also has RFC 6749's `error` and `error_description`,
// in the media type of its section 5.2. It is never cached.
[[nodiscard]] Response oauth_error_response(int status, std::string_view error,
                                            std::string_view description,
                                            const ExchangeContext& context, model::Timestamp now);

// An Error as an answer. The client never sees the message of Errc::internal.
[[nodiscard]] Response error_response(const model::Error& error, const ExchangeContext& context,
                                      model::Timestamp now, ErrorShape shape = ErrorShape::problem);

}  // namespace conversed::api
