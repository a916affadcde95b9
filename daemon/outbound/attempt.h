#pragma once

#include <string>
#include <string_view>

#include "daemon/outbound/http_client.h"
#include "store/model/clock.h"
#include "store/model/receipt_text.h"

namespace conversed::daemon {

// Adds a try of a call or delivery to the row of a receipt: its duration, its status or
// error. Not the answer: an upstream may echo secrets of a Connection.
void add_attempt(model::ReceiptText& row, const HttpOutcome& outcome);

// The first 200 bytes of a body, as printable text.
[[nodiscard]] std::string begin_of_answer(std::string_view body);

}  // namespace conversed::daemon
