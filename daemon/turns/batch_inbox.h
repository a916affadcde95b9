#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/turns/batch_draft.h"
#include "queue/log.h"

namespace conversed::daemon {

// The session's inbox, from which a batch takes events and to which it adds events. Added events go
// behind all stored ones and are taken only after them. So the order of a session's events follows
// from the order of its records alone, and not from the number of records in a batch, up to
// `max_drained`.
// Kept by:
// TurnBatchTest.EventsKeepTheirOrderAroundAResultInBatchesOfAnySize.
class BatchInbox {
 public:
  explicit BatchInbox(BatchDraft& draft) : draft_(draft) {}  // must outlive it

  // Reads the stored inbox. Errors: those of the store.
  [[nodiscard]] model::Result<void> load();

  struct Waiting {
    store::InboxEvent parts;
    std::optional<model::Position> at;  // in the log, if this batch has brought the event
    std::optional<store::NewReceiptRow> receipt{};  // the row of its wait, not yet stored
  };
  [[nodiscard]] bool has_next() const;
  [[nodiscard]] Waiting take_oldest();  // only if `has_next`
  void add(const queue::LogRecord& logged);
  // The row of the event that was added last.
  void note(std::optional<store::NewReceiptRow> row) { added_.back().receipt = std::move(row); }

  void close();

 private:
  BatchDraft& draft_;
  std::vector<store::InboxEvent> stored_;
  std::size_t stored_taken_ = 0;
  std::vector<Waiting> added_;
  std::size_t added_taken_ = 0;
};

[[nodiscard]] store::InboxEvent parts_of(const queue::Record& record);

}  // namespace conversed::daemon
