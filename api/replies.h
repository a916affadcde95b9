#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "api/http/http.h"
#include "store/model/result.h"

// Answers that several operations give.
namespace conversed::api {

// `application/json; charset=utf-8`. Bytes that are not UTF-8 become replacement characters.
[[nodiscard]] Response json_response(int status, const nlohmann::json& body,
                                     HeaderList headers = {});
[[nodiscard]] Response json_text_response(int status, std::string body, HeaderList headers = {});
[[nodiscard]] Response ok(const nlohmann::json& body);
[[nodiscard]] Response no_content();

// What a failed append means to a client. The log's own words, which may name files or brokers, are
// not for strangers; that its bounded buffer is full (`too_many`) is nothing the client did.
[[nodiscard]] model::Error append_error(const model::Error& error);

// A failure of the store, without its words, which may name files. Others pass as they are.
[[nodiscard]] model::Error store_error(const model::Error& error);
// The same of a result: `return from_store(keys.remove(id)).map(no_content);`
template <typename T>
[[nodiscard]] model::Result<T> from_store(model::Result<T> result) {
  return std::move(result).map_error(store_error);
}

}  // namespace conversed::api
