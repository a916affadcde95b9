#pragma once

#include <string>

#include "store/model/effects.h"

namespace conversed::flows {

// Tells the request of a call from others: a hash of 16 hexadecimal digits of an HTTP call's
// method, URL and body, of a search's store, sources, text and limit, or of a script and its
// values. Headers, Connections and times are left out. Empty for a timer. Pure.
// Kept by: RequestMark.TellsRequestsApartByWhatTheyAskFor.
[[nodiscard]] std::string request_mark(const model::PendingCall& call);

}  // namespace conversed::flows
