#pragma once

#include <string_view>

// The statements that read and delete receipts; see also store/commit/receipt_blocks.h. Tests show
// that each reads a range of an index. For the .cc files of this folder and their tests.
namespace conversed::store {

// The blocks of a trace's first second that name the trace.
inline constexpr std::string_view sql_of_traced_blocks =
    "SELECT steps FROM receipts WHERE n >= :f AND n < :t AND steps LIKE :p ORDER BY n";

// The newest events with a number.
inline constexpr std::string_view sql_of_numbered_events =
    "SELECT event_id FROM receipt_numbers WHERE number = :n ORDER BY event_id DESC LIMIT 1000";

// Those sessions of a JSON array that are of the project.
inline constexpr std::string_view sql_of_own_sessions =
    "SELECT id FROM sessions WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(:i))"
    " AND project_id = :p";

inline constexpr std::string_view sql_of_later_steps =
    "SELECT steps FROM later_steps WHERE event_id = :e";

// The number of events with this id in the session's inbox is the last column.
inline constexpr std::string_view sql_of_receipt_session =
    "SELECT s.key, s.execution, s.inbox_size,"
    " (SELECT COUNT(*) FROM inbox i WHERE i.session = s.id AND i.event_id = :e)"
    " FROM sessions s WHERE s.id = :s";

inline constexpr std::string_view sql_of_receipt_outputs =
    "SELECT o.output_id, o.seq, o.created_at, d.due_at,"
    " CASE WHEN COALESCE((SELECT MIN(f.seq) FROM deliveries f WHERE f.session = o.session), o.seq)"
    " < o.seq THEN 1 ELSE 0 END"
    " FROM outputs o"
    " LEFT JOIN deliveries d ON d.session = o.session AND d.seq = o.seq"
    " WHERE o.session = :s AND o.seq >= :f AND o.seq < :t AND o.input_id = :i"
    " ORDER BY o.seq LIMIT :l";

// The newest events of a project's newest sessions.
inline constexpr std::string_view sql_of_newest_receipts =
    "SELECT last_receipt FROM sessions WHERE project_id = :p ORDER BY id DESC LIMIT :s";

// Blocks from before the number of an event.
inline constexpr std::string_view sql_of_an_old_block =
    "SELECT 1 WHERE (SELECT MIN(n) FROM receipts) < :n"
    " OR (SELECT MIN(n) FROM plain_deliveries) < :m";
inline constexpr std::string_view sql_to_delete_old_deliveries =
    "DELETE FROM plain_deliveries WHERE n IN"
    " (SELECT n FROM plain_deliveries WHERE n < :n ORDER BY n LIMIT :l)";
inline constexpr std::string_view sql_of_next_old_block =
    "SELECT n, steps FROM receipts WHERE n > :b AND n < :n ORDER BY n LIMIT 1";

}  // namespace conversed::store
