#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/text_writer.h"
#include "store/sql/sql.h"

// The tables `receipts` and `plain_deliveries`. Their rows are blocks of receipts or deliveries. A
// row for each receipt, with an index of ids, and one for each delivery would cost an event 25,000
// instructions of SQLite.
//
//   receipt  = GS event SP session SP written-at SP trace SP previous *(SP number) RS step
//   delivery = GS event SP seq SP at SP microseconds SP status
//
// The steps of a transaction are alike, so a large block compresses them together, in parts of some
// `most_part_bytes`. The last receipt of a part has, in place of its step, a packed text
// (store/commit/stored_steps.h) with the steps of all receipts of the part, each behind an RS. The
// other receipts have an empty step. Damage in the packed text hides no receipt, breaks no chain,
// and gives no receipt the step of another.
//
// A transaction sorts its entries by model::id_number of their events, and writes a block for up to
// 64 of them. The block has the number of its first event, and that of its last is at most
// `block_span` higher. So the entries of an event lie in a short range of blocks.
//
// Erasure cuts a receipt out of its block. Plain deliveries tell nothing of a user: they stay until
// the retention ends, and do not bring the receipt back. They go with the retention even if their
// receipt stays for its link to a younger one.
namespace conversed::store {

// 16 ms, in the numbers of ids.
inline constexpr std::int64_t block_span = 16LL * 36 * 36 * 36;
inline constexpr std::size_t most_part_bytes = 65'536;  // of steps; a part ends with the next one
inline constexpr std::string_view damaged_step = "?";   // can't be read

// The first step of an event, and what finds it. Times, sessions and ids are those of the table's
// readers: store/conversation/receipts.h.
struct ReceiptBegin {
  std::string event_id;
  std::int64_t session = 0;
  model::Timestamp written_at{};
  std::string trace_id;
  std::string previous;
  // In `receipt_numbers`: of its trace and its Idempotency-Key (store/commit/receipt_keys.h).
  std::vector<std::int64_t> numbers;
  std::string step;  // `damaged_step` if it is damaged
};

// The entries of one transaction. One thread.
class ReceiptBlocks {
 public:
  // `row` has `first`, and its event has an id of this program.
  void begin(const NewReceiptRow& row, std::int64_t session, model::Timestamp now);
  // Its event has such an id, too.
  void add(const PlainDelivery& delivery);
  // Writes what was added since the last flush. Throws SqlError.
  void flush(Connection& connection);

 private:
  struct Entry {
    std::int64_t number = 0;  // of its event
    std::size_t begin = 0;    // where its text begins in `Entries::text`
    std::size_t end = 0;
  };
  struct Entries {
    model::TextWriter text{usual_bytes};
    std::vector<Entry> all;
  };
  static constexpr std::size_t usual_bytes = 2048;  // of a few events

  using Stored = std::string (*)(std::string block);
  static void write(Connection& connection, std::string_view sql, Stored stored, Entries& entries);

  Entries begun_;
  Entries delivered_;
  std::vector<std::pair<std::int64_t, std::string>> numbers_;  // with their events
};

// The functions below read or write inside a transaction, and throw SqlError. An event that has no
// id of this program has no receipt.

[[nodiscard]] std::optional<ReceiptBegin> find_receipt(Connection& connection,
                                                       std::string_view event_id);
// The event's plain deliveries as later steps (store/commit/stored_steps.h): an array.
[[nodiscard]] nlohmann::json plain_deliveries(Connection& connection, std::string_view event_id);

// Deletes an event's receipt if it is one of the session. Returns its `previous`. None: there is no
// such receipt.
std::optional<std::string> remove_receipt(Connection& connection, const std::string& event_id,
                                          std::int64_t session);

// The receipts that begin in the stored block.
[[nodiscard]] std::vector<ReceiptBegin> receipts_in(const std::string& block);
// Deletes the receipts that begin in a stored block, with all their rows; returns how many. A
// receipt that links to an event from `first_kept` on stays: a repeat of a request may have an id
// that is a day older than its place in the chain.
std::int64_t remove_block(Connection& connection, std::int64_t n, const std::string& block,
                          std::string_view first_kept);

// Whether a session's receipts are meant.
using OfSession = std::function<bool(std::int64_t session)>;
// Copies these receipts to another database, with their numbers and the plain deliveries that it
// lacks, and not their later steps. The stored blocks are neighbors. Returns the events, some
// perhaps twice. Changes no row that is there, so other transactions do not wait for this one.
std::vector<std::string> copy_receipts(Connection& from, Connection& to,
                                       const std::vector<std::string>& blocks,
                                       const OfSession& is_meant);
// Deletes these receipts of a block, with all their rows; returns how many.
std::int64_t remove_from_block(Connection& connection, std::int64_t n, const OfSession& is_meant);

// The place of an event's blocks, for statements: `n >= :from AND n <= :to`.
struct BlockRange {
  std::int64_t from = 0;
  std::int64_t to = 0;
};
[[nodiscard]] BlockRange blocks_of(std::string_view event_id);
// A pattern of LIKE for the stored block in which an event's receipt begins. `?` stands for the
// event's id. With a session, only a receipt of that session counts.
[[nodiscard]] std::string pattern_of_receipt(std::optional<std::int64_t> session);

// For this folder, store/conversation, and their tests.
inline constexpr std::string_view sql_of_blocks =
    "SELECT n, steps FROM receipts WHERE n >= :f AND n <= :t ORDER BY n";
inline constexpr std::string_view sql_of_plain_deliveries =
    "SELECT steps FROM plain_deliveries WHERE n >= :f AND n <= :t ORDER BY n";

}  // namespace conversed::store
