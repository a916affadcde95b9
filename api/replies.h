#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/http/http.h"
#include "api/operation.h"
#include "store/model/error.h"

// Answers that several operations give.
namespace conversed::api {

struct Services;

// `application/json; charset=utf-8`. Bytes that are not UTF-8 become replacement characters.
void send_json(Reply& reply, int status, const nlohmann::json& body, HeaderList headers = {});
void send_json_text(Reply& reply, int status, std::string body, HeaderList headers = {});
void send_no_content(Reply& reply);

// The shape of an error that is this operation's: `reduced` is for 400 and 404 alone.
[[nodiscard]] ErrorShape error_shape_of(const Operation& operation, model::Errc code);

// An error of this operation, in the shape it documents.
void send_error(Reply& reply, const Operation& operation, const model::Error& error);

// What a failed append means to a client. The log's own words, which may name files or brokers, are
// not for strangers; that its bounded buffer is full (`too_many`) is nothing the client did.
[[nodiscard]] model::Error append_error(const model::Error& error);

// Nothing will answer this input any more: ends the wait of its clients here. Other daemons hear
// that the store says so.
void end_wait(Services& services, const std::string& input_id, const std::string& reason);

// A failure of the store, without its words, which may name files. Others pass as they are.
[[nodiscard]] model::Error store_error(const model::Error& error);

}  // namespace conversed::api
