#pragma once

#include <string_view>

namespace conversed::store {

// Delete at most `:l` rows of the sessions whose keys are from `:f` up to, but without, `:t`.
inline constexpr std::string_view sql_to_delete_append_keys =
    "DELETE FROM append_keys WHERE (scope, idempotency_key) IN (SELECT scope, idempotency_key"
    " FROM append_keys WHERE session_key >= :f AND session_key < :t LIMIT :l)";
inline constexpr std::string_view sql_to_delete_keyed_answers =
    "DELETE FROM keyed_answers WHERE (scope, idempotency_key) IN (SELECT scope, idempotency_key"
    " FROM keyed_answers WHERE session_key >= :f AND session_key < :t LIMIT :l)";
inline constexpr std::string_view sql_to_delete_dead_letters =
    "DELETE FROM dead_letters WHERE id IN (SELECT id FROM dead_letters WHERE key >= :f"
    " AND key < :t LIMIT :l)";
inline constexpr std::string_view sql_to_delete_answers =
    "DELETE FROM answers WHERE input_id IN (SELECT input_id FROM answers"
    " WHERE session_key >= :f AND session_key < :t LIMIT :l)";

}  // namespace conversed::store
