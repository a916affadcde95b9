#pragma once

#include <string_view>

// The statements that read and delete receipts. Tests show that each reads a range of an index. For
// the .cc files of this folder and their tests.
namespace conversed::store {

inline constexpr std::string_view sql_of_receipt_event =
    "SELECT r.input_id FROM receipts r JOIN sessions s ON s.id = r.session"
    " WHERE r.input_id = :i AND s.project_id = :p";

// The events of a trace in its first second.
inline constexpr std::string_view sql_of_first_traced_receipts =
    "SELECT r.input_id FROM (SELECT input_id, session FROM receipts WHERE input_id >= :f"
    " AND input_id < :e AND trace_id = :t ORDER BY input_id DESC LIMIT 1000) AS r"
    " CROSS JOIN sessions s WHERE s.id = r.session AND s.project_id = :p"
    " ORDER BY r.input_id LIMIT :l";

// The other events of a trace. The inner limit bounds the read to the newest rows: other projects
// may have rows of the same trace.
inline constexpr std::string_view sql_of_traced_receipts =
    "SELECT r.input_id FROM (SELECT input_id, session, trace_id FROM receipts"
    " WHERE trace_number = :n ORDER BY written_at DESC LIMIT 1000) AS r CROSS JOIN sessions s"
    " WHERE r.trace_id = :t AND s.id = r.session AND s.project_id = :p ORDER BY r.input_id LIMIT "
    ":l";
inline constexpr std::string_view sql_of_keyed_receipts =
    "SELECT r.input_id FROM (SELECT input_id, session FROM receipts"
    " WHERE key_number = :n ORDER BY written_at DESC LIMIT 1000) AS r CROSS JOIN sessions s"
    " WHERE s.id = r.session AND s.project_id = :p ORDER BY r.input_id LIMIT :l";

inline constexpr std::string_view sql_of_receipt_steps =
    "SELECT session, written_at, trace_id, previous, body, COALESCE(steps, '')"
    " FROM receipts LEFT JOIN later_steps ON receipt = n WHERE input_id = :i";

// The number of events with this id in the session's inbox is the last column.
inline constexpr std::string_view sql_of_receipt_session =
    "SELECT s.key, s.execution, s.inbox_size,"
    " (SELECT COUNT(*) FROM inbox i WHERE i.session = s.id AND i.event_id = :e)"
    " FROM sessions s WHERE s.id = :s";

// The later steps of an event, and the event before it.
inline constexpr std::string_view sql_of_later_steps =
    "SELECT previous, COALESCE(steps, '') FROM receipts LEFT JOIN later_steps ON receipt = n"
    " WHERE input_id = :i AND session = :s";

inline constexpr std::string_view sql_of_receipt_outputs =
    "SELECT o.output_id, o.seq, o.created_at, d.due_at,"
    " CASE WHEN COALESCE((SELECT MIN(f.seq) FROM deliveries f WHERE f.session = o.session), o.seq)"
    " < o.seq THEN 1 ELSE 0 END"
    " FROM outputs o"
    " LEFT JOIN deliveries d ON d.session = o.session AND d.seq = o.seq"
    " WHERE o.session = :s AND o.seq >= :f AND o.seq < :t AND o.input_id = :i"
    " ORDER BY o.seq LIMIT :l";

// The newest receipts, up to a number of characters in all. CROSS JOIN makes SQLite begin with the
// sessions.
inline constexpr std::string_view sql_of_newest_receipts =
    "WITH newest AS (SELECT id, last_receipt FROM sessions WHERE project_id = :p"
    " ORDER BY id DESC LIMIT :s),"
    " sized AS (SELECT newest.id, r.input_id,"
    " SUM(length(r.body)"
    " + COALESCE((SELECT length(steps) FROM later_steps WHERE receipt = r.n), 0))"
    " OVER (ORDER BY newest.id DESC) AS size"
    " FROM newest CROSS JOIN receipts r WHERE r.input_id = newest.last_receipt)"
    " SELECT r.input_id, r.body,"
    " COALESCE((SELECT steps FROM later_steps WHERE receipt = r.n), '')"
    " FROM sized CROSS JOIN receipts r"
    " WHERE sized.size <= :m AND r.input_id = sized.input_id ORDER BY sized.id DESC";

// Receipts that are older than an id. One that links to a younger receipt stays as long as that
// one: a repeat of a request may have an id that is a day older than its place in the chain.
inline constexpr std::string_view sql_of_an_old_receipt =
    "SELECT 1 FROM receipts WHERE input_id < :i AND previous < :j LIMIT 1";
inline constexpr std::string_view sql_to_delete_old_receipts =
    "DELETE FROM receipts WHERE input_id IN (SELECT input_id FROM receipts"
    " WHERE input_id < :i AND previous < :j ORDER BY input_id LIMIT :l)";

// The events of a session's receipts. The condition on the session ends a walk into another one.
inline constexpr std::string_view sql_of_receipt_chain =
    "WITH RECURSIVE chain (id, session) AS ("
    " SELECT last_receipt || '', id FROM sessions WHERE id = :s"
    " UNION SELECT r.previous || '', chain.session FROM chain"
    " JOIN receipts r ON r.input_id = chain.id WHERE r.session = chain.session)"
    " SELECT id FROM chain WHERE id <> ''";

// The rows of a session's receipts behind the receipt of an event, newest first. Each page reads
// its own part of the chain. The first text is the WITH clause; the second one follows the columns.
inline constexpr std::string_view sql_of_exported_chain =
    "WITH RECURSIVE asked (of_session, after_event, most) AS (SELECT :s, :a, :l),"
    " chain (id, k) AS ("
    " SELECT COALESCE(NULLIF(after_event, ''), last_receipt) || '', 0"
    " FROM asked CROSS JOIN sessions WHERE sessions.id = of_session"
    " UNION ALL SELECT r.previous || '', chain.k + 1"
    " FROM chain CROSS JOIN asked CROSS JOIN receipts r"
    " WHERE r.input_id = chain.id AND r.session = of_session AND chain.k < most) ";
inline constexpr std::string_view sql_of_exported_rows =
    "asked CROSS JOIN chain CROSS JOIN receipts WHERE input_id = chain.id"
    " AND session = of_session AND input_id <> after_event"
    " ORDER BY k LIMIT (SELECT most FROM asked)";

}  // namespace conversed::store
