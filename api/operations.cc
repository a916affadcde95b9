#include "api/operations.h"

#include <array>

namespace conversed::api {
namespace {

constexpr std::array operations{
    &inject_operation,
    &inject_by_token_operation,
    &message_operation,
    &outputs_operation,
    &import_operation,
    &create_api_key_operation,
    &list_api_keys_operation,
    &revoke_api_key_operation,
    &list_sessions_operation,
    &show_session_operation,
    &reset_session_operation,
    &list_dead_letters_operation,
    &show_dead_letter_operation,
    &replay_dead_letter_operation,
    &discard_dead_letter_operation,
    &management_inject_operation,
    &status_operation,
};

}  // namespace

std::span<const Operation* const> all_operations() {
  return operations;
}

}  // namespace conversed::api
