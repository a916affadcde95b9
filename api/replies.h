#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "api/http/http.h"
#include "store/model/result.h"

// Answers that several operations share.
namespace conversed::api {

// `application/json; charset=utf-8`. Bytes that are not UTF-8 become replacement characters.
[[nodiscard]] Response json_response(int status, const nlohmann::json& body,
                                     HeaderList headers = {});
[[nodiscard]] Response json_text_response(int status, std::string body, HeaderList headers = {});
[[nodiscard]] Response ok(const nlohmann::json& body);
[[nodiscard]] Response no_content();

// The error that a client gets for a failed append. It omits the log's message, which may name
// files or brokers. A full buffer of the log (`too_many`) is not the client's fault, so it becomes
// `unavailable`.
[[nodiscard]] model::Error append_error(const model::Error& error);

// A failure of the store without its message, which may name files. Other errors pass unchanged.
[[nodiscard]] model::Error store_error(const model::Error& error);
// Applies store_error to a result: `return from_store(keys.remove(id)).map(no_content);`
template <typename T>
[[nodiscard]] model::Result<T> from_store(model::Result<T> result) {
  return std::move(result).map_error(store_error);
}

}  // namespace conversed::api
