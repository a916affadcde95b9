// Errors as answers: section 7 of the API, in one table.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "store/model/clock.h"
#include "store/model/error.h"

namespace conversed::api {

// How long a client that got 429 or 503 is asked to wait.
inline constexpr std::chrono::seconds default_retry_after{2};

// The one mapping of failures to HTTP.
[[nodiscard]] int status_of(model::Errc code);

// "Not Found" and so on; "Unknown" for a status that has no name here.
[[nodiscard]] std::string_view reason_phrase(int status);

// The `code` of a status in error bodies; 1000 for what the API does not name.
[[nodiscard]] int error_code(int status);

// The reason of an error in the log: of a failure of ours its detail, else a word for its status,
// since a detail may quote the client.
[[nodiscard]] std::string reason_for_log(int status, std::string_view detail);

// IMF-fixdate (RFC 9110 §5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT".
[[nodiscard]] std::string http_date(model::Timestamp time);

// An error body with its status (400 to 599) and the headers that go with it: `WWW-Authenticate`
// for 401, `Retry-After` as an HTTP-date for 429 and 503. `detail` is shown to the client as it is
// (bytes that are not UTF-8 are replaced). `details`, a JSON object for programs, is in problems
// only. Thread-safe.
[[nodiscard]] Response error_response(int status, std::string_view detail,
                                      const ExchangeContext& context, model::Timestamp now,
                                      ErrorShape shape = ErrorShape::problem,
                                      const nlohmann::json* details = nullptr);

// An error of the OAuth routes: a problem that carries RFC 6749's `error` and `error_description`,
// too, in the media type that its section 5.2 asks for. Never to be cached.
[[nodiscard]] Response oauth_error_response(int status, std::string_view error,
                                            std::string_view description,
                                            const ExchangeContext& context, model::Timestamp now);

// An Error as an answer. What went wrong inside (Errc::internal) is never shown: it belongs in the
// log.
[[nodiscard]] Response error_response(const model::Error& error, const ExchangeContext& context,
                                      model::Timestamp now, ErrorShape shape = ErrorShape::problem);

}  // namespace conversed::api
