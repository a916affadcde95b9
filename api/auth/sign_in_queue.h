#pragma once

#include <functional>
#include <string_view>

namespace conversed::api {

class Authenticator;
class BlockingPool;

// Queues `work`, which verifies a password, on `pool`. The pool serves the waiting addresses in
// turn, and each has a few places. An address that has signed in to the account before does not
// wait behind the others. False if there is no place. Costs a point select.
[[nodiscard]] bool post_sign_in(const Authenticator& authenticator, BlockingPool& pool,
                                std::string_view email, std::string_view peer,
                                std::function<void()> work);

}  // namespace conversed::api
