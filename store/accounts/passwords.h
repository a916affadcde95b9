#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/model/result.h"

namespace conversed::store {

inline constexpr std::size_t min_password_characters = 12;
inline constexpr std::size_t max_password_bytes = 1024;

// Whether a user may choose this password. `invalid_argument` if it is too short, too long, or
// among the common passwords (common_passwords.txt, without regard to ASCII case).
[[nodiscard]] model::Result<void> check_new_password(std::string_view password);

// argon2id with 19 MiB and two passes. Takes some 20 ms of CPU: never call it on a thread that
// serves connections. `invalid_argument` for a password that `check_new_password` refuses,
// `unavailable` when memory is short. Thread-safe.
//
// Tests sign in often, and few of them test the cost: builds for tests (CMake option
// CONVERSED_PLANTED_FAULTS) take the least cost if CONVERSED_TEST_CHEAP_PASSWORDS is 1.
[[nodiscard]] model::Result<std::string> hash_password(std::string_view password);

// Whether the password belongs to the hash. Without a hash (no such user, or no password) it does
// the same work against a dummy and returns false, so that the time does not tell whether the user
// exists. Thread-safe.
[[nodiscard]] bool verify_password(const std::optional<std::string>& stored,
                                   std::string_view password);

}  // namespace conversed::store
