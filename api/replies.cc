#include "api/replies.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "store/model/json.h"

namespace conversed::api {

using model::Errc;
using model::Error;

Response json_response(int status, const nlohmann::json& body, HeaderList headers) {
  return json_text_response(status, model::json_text(body), std::move(headers));
}

Response json_text_response(int status, std::string body, HeaderList headers) {
  return {.status = status,
          .content_type = "application/json; charset=utf-8",
          .headers = std::move(headers),
          .body = std::move(body)};
}

Response ok(const nlohmann::json& body) {
  return json_response(status::ok, body);
}

Response no_content() {
  return {.status = status::no_content};
}

Error store_error(const Error& error) {
  if (error.code != Errc::unavailable) return error;
  return {Errc::unavailable, "the store is not available; try again later"};
}

Error append_error(const Error& error) {
  switch (error.code) {
    case Errc::conflict:
      return {Errc::conflict, "the Idempotency-Key was used with another body; use a new key"};
    case Errc::too_large:
      return {Errc::too_large, "the message is larger than the queue takes; send a smaller one"};
    case Errc::timed_out:
      return {Errc::timed_out,
              "the queue did not answer in time and may have taken the message; repeat the request "
              "under its Idempotency-Key"};
    case Errc::bad_upstream:
      return {Errc::bad_upstream, "the queue refused the message; nothing was done"};
    case Errc::too_many:
    case Errc::unavailable:
      return {Errc::unavailable, "the queue takes no messages; nothing was done; try again later"};
    default:
      return {Errc::internal, "append: " + error.message};
  }
}

}  // namespace conversed::api
