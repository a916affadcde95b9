#pragma once

#include <functional>
#include <string_view>

#include "api/services.h"

namespace conversed::api {

// Has a password verified in its turn: `work` runs on `Services::sign_ins`. Turns go round the
// addresses that wait, each with a few places, and who asks from an address that has signed in to
// the account before does not wait behind all the others. False if there is no place. Costs a point
// select.
[[nodiscard]] bool post_sign_in(Services& services, std::string_view email, std::string_view peer,
                                std::function<void()> work);

}  // namespace conversed::api
