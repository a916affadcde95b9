#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::store {

// Calls, searches and scripts for which Nodes wait, and timers. A row is the claim of its result:
// the Turn that takes the result deletes the row. Thread-safe; blocks on the disk. Errors:
// `unavailable`, `internal`.
//
// A call is due until its result is in the log. The calls of one project to one target form a lane
// and are read together. All due times use the clock of timers.
//
// A read of due rows is a range of an index. The mark `appended` removes a row from the index. Kept
// by: CallsTest.DueCallsAndLanesAreRangesOfAnIndex.
class Calls : Rows {
 public:
  using Rows::Rows;

  struct Found {
    model::PendingCall call;
    int attempts = 0;                        // failed tries
    std::optional<model::Timestamp> try_at;  // of a call: when its next try is due
  };
  // A call or a timer. `internal`: its row can't be read.
  [[nodiscard]] model::Result<std::optional<Found>> find(const std::string& id) const;

  // The part of a call or a timer that pages show. It is read without the call's request.
  struct Shown {
    std::int64_t session = 0;  // SessionSummary::row
    std::string id;
    std::optional<model::Timestamp> due_at;  // of a timer
    bool is_time_out = false;
    int attempts = 0;                        // failed tries
    std::optional<model::Timestamp> try_at;  // of a call: when its next try is due
    std::optional<std::string> upstream;     // of a call: store::shown_target()
    int retries = 0;                         // of a call: further tries after the first
    std::optional<std::chrono::milliseconds> time_limit;  // of a try
  };
  [[nodiscard]] model::Result<std::optional<Shown>> shown(const std::string& id) const;
  // The calls, timers and time-outs of questions of these sessions. One statement.
  [[nodiscard]] model::Result<std::vector<Shown>> of_sessions(
      const std::vector<std::int64_t>& sessions) const;

  // The id of the call or timer that the execution of this input waits for.
  [[nodiscard]] model::Result<std::optional<std::string>> of_execution(
      const std::string& input_id) const;

  // Whether its row exists, so that its result can still have effects. Cheap.
  [[nodiscard]] model::Result<bool> waits(const std::string& id) const;

  struct Lane {
    std::string project_id;
    std::string target;
    model::Timestamp due_at{};  // of its first call
  };
  // The next lane with calls, in the order of projects and targets: behind this target of the
  // project, or, without a target, behind all targets of the project.
  [[nodiscard]] model::Result<std::optional<Lane>> lane_behind(
      const std::string& project_id, const std::optional<std::string>& target) const;

  struct Due {
    std::string id;
    model::SessionKey session;  // empty: its key can't be read
    model::Timestamp due_at{};
  };
  struct Page {
    std::vector<Due> calls;
    std::optional<model::Timestamp> next;  // the next due time, if the page is not full
  };
  // The lane's calls that are due at `now`, earliest first, at most `limit`, behind `after`, the
  // last entry of the previous page. The caller knows which of them are under way.
  [[nodiscard]] model::Result<Page> due(const std::string& project_id, const std::string& target,
                                        model::Timestamp now, std::size_t limit,
                                        const Due* after = nullptr) const;

  // Marks do not block. `marked` is called on the Committer's thread once the mark is durable, but
  // not if the Committer stops before. A missing row is no error.
  //
  // The call is no longer due: its result is in the log, or its row can't be read. This and the
  // next function add the row of the try to the receipt of the call's input.
  void appended(const std::string& id, std::function<void()> marked,
                std::optional<ReceiptMark> row = {});
  // `attempts` tries have failed. The next try is due at `due_at`.
  void put_off(const std::string& id, model::Timestamp due_at, int attempts,
               std::function<void()> marked, std::optional<ReceiptMark> row = {});

  // Makes calls that are due after `latest` due at `now`. No retry waits that long, so the clock
  // was set back while no daemon ran.
  [[nodiscard]] model::Result<void> bring_forward(model::Timestamp latest, model::Timestamp now);
};

}  // namespace conversed::store
