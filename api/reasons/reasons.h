#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/conversation/calls.h"
#include "store/conversation/dead_letters.h"
#include "store/conversation/deliveries.h"
#include "store/conversation/endpoint_health.h"
#include "store/conversation/receipts.h"
#include "store/conversation/sessions.h"
#include "store/conversation/timers.h"
#include "store/model/clock.h"
#include "store/model/job.h"
#include "store/model/reason.h"
#include "store/model/result.h"
#include "store/model/session.h"

namespace conversed::store {
class Shard;
class Store;
}  // namespace conversed::store
namespace conversed::queue {
class Log;
}

namespace conversed::api {

class AssetsCache;

// The place of a session in a cluster.
struct PartitionView {
  std::int32_t number = 0;
  std::string owner;  // a daemon's name; empty: none
};

// The next POST of a session, as this daemon knows it.
struct SendingView {
  std::optional<model::Timestamp> since{};       // when it began; none: none is under way here
  std::optional<model::Timestamp> not_before{};  // its Endpoint is put off until then
};

// The knowledge that services have in memory. An empty function: not known. Thread-safe.
struct ReasonPorts {
  // Of each session, in order.
  std::function<std::vector<SendingView>(const std::vector<model::SessionKey>&)> sending = {};
  // When the present attempt of the call began, if this daemon is making it.
  std::function<std::optional<model::Timestamp>(const std::string& call_id)> calling_since = {};
  // Whether the session's events wait although other sessions of its organisation run.
  std::function<bool(const model::SessionKey&)> waits_for_share = {};
  // The session's partition; none without a cluster.
  std::function<std::optional<PartitionView>(const model::SessionKey&)> partition = {};
  // Whether the organisation may accept no more injects this month.
  std::function<bool(const std::string& organisation_id)> quota_used_up = {};
  // When they began to fail.
  std::function<std::optional<model::Timestamp>()> store_failing_since = {};
  std::function<std::optional<model::Timestamp>()> log_failing_since = {};
};

// Finds out why something has not happened yet: from rows of the store, and from what the services
// know in memory. Writes nothing, and reads a bounded number of rows. Does not depend on HTTP.
// Thread-safe; blocks on the disk. Errors: those of the store.
class Reasons {
 public:
  // `inbox_limit`: the events that an inbox takes. All must outlive it. `wall`: the clock of due
  // times that operators see.
  Reasons(store::Store& store, AssetsCache& assets, queue::Log& log, const model::Clock& wall,
          std::size_t inbox_limit)
      : store_(store), assets_(assets), log_(log), wall_(wall), inbox_limit_(inbox_limit) {}

  // Set once, before the first question.
  void connect(ReasonPorts ports) { ports_ = std::move(ports); }

  // The thing with this id: an event, an output, a timer, a call, a job or a dead letter.
  struct Found {
    std::string_view kind;  // empty: no row has this id
    std::string project_id;
    model::Waits waits;
    std::optional<model::Timestamp> delivered_at = {};  // of the event's last output, or the output
    // How the delivery of that output ended, if the webhook has not accepted it since.
    struct Ending {
      std::string done;  // "givenUp", "dropped", "replayed" or "discarded"
      std::string by;    // the user; empty: the daemon
      std::string dead_letter;
      model::Timestamp at{};
    };
    std::optional<Ending> ending = {};
  };
  // If the store or the log is down, an unknown id counts as waiting: its event may be in the log.
  [[nodiscard]] model::Result<Found> of(const std::string& id) const;

  // Of a session: why its next event does not run. Empty: it would run now. It would also run if
  // the only reason is a question without a time-out (`expected_at`).
  [[nodiscard]] model::Result<model::Waits> of_session(const model::Session& session) const;
  // As above, for a session that may not be stored.
  [[nodiscard]] model::Result<model::Waits> of_session(const model::SessionKey& key) const;
  // The reasons of the session's next event and of its next output. The output stands first if the
  // session has no execution. None: there is no such session, and nothing keeps its first event
  // from running.
  [[nodiscard]] model::Result<std::optional<model::Waits>> of_session_and_outputs(
      const model::SessionKey& key) const;
  [[nodiscard]] model::Result<model::Waits> of_delivery(
      const store::PendingDelivery& delivery) const;
  [[nodiscard]] model::Result<model::Waits> of_timer(const store::Timers::Row& timer) const;
  [[nodiscard]] static model::Waits of_job(const model::Job& job);

  // The reasons of a receipt's open steps.
  struct OpenSteps {
    model::Waits execution{};  // or of the event's wait in the inbox, or in a `collect`
    bool is_kept = false;      // a `collect` has the event
    std::map<std::int64_t, model::Waits> outputs{};  // by their numbers
  };
  [[nodiscard]] model::Result<OpenSteps> of_open_steps(const store::Receipt& receipt) const;

  // The same for the rows of a page, in order, each with its own reasons only. Reads the calls,
  // timers and places of all sessions at once, and each Endpoint, partition and quota of the page
  // once.
  [[nodiscard]] model::Result<std::vector<model::Waits>> of_page(
      const std::vector<store::SessionSummary>& sessions) const;
  [[nodiscard]] model::Result<std::vector<model::Waits>> of_page(
      const std::vector<store::PendingDelivery>& deliveries) const;
  [[nodiscard]] model::Result<std::vector<model::Waits>> of_page(
      const std::vector<store::Timers::Row>& timers) const;

 private:
  // Rows that one question has read, or the questions of one page.
  struct Read {
    std::optional<std::chrono::milliseconds> offset{};
    // By shard and Endpoint.
    std::map<std::pair<const store::Shard*, std::string>, store::EndpointFailure> health{};
    std::map<std::int32_t, bool> recovering{};    // by partition
    std::map<std::string, bool> quota_used_up{};  // by organisation
  };
  // Of the daemon itself, and of the shard that has the thing.
  [[nodiscard]] model::Waits of_daemon(const store::Shard& shard) const;
  [[nodiscard]] model::Result<bool> is_recovering(std::int32_t partition) const;
  [[nodiscard]] model::Result<model::Waits> of_partition(const model::SessionKey& key,
                                                         Read& read) const;
  [[nodiscard]] std::vector<SendingView> sending_views(
      const std::vector<model::SessionKey>& keys) const;
  [[nodiscard]] model::Result<model::Waits> of_first(const store::PendingDelivery& delivery,
                                                     const SendingView& sending, Read& read) const;
  [[nodiscard]] model::Result<model::Waits> of_first(const store::PendingDelivery& delivery) const;
  // Of the receipt's execution, without its outputs.
  [[nodiscard]] model::Result<OpenSteps> of_open_execution(const store::Receipt& receipt) const;
  [[nodiscard]] model::Result<std::optional<model::Waits>> of_kept(
      const store::Receipt& receipt) const;
  [[nodiscard]] static model::Wait behind_first(const store::PendingDelivery& delivery);
  [[nodiscard]] model::Result<model::Waits> of_timer(const store::Timers::Row& timer,
                                                     Read& read) const;
  [[nodiscard]] model::Result<std::chrono::milliseconds> timers_ahead(Read& read) const;
  // Of the call or timer of an execution. `place`: the subject's first words.
  [[nodiscard]] model::Wait of_running(const store::Calls::Shown& shown, const std::string& place,
                                       std::chrono::milliseconds offset) const;
  [[nodiscard]] model::Result<model::Waits> of_execution(const model::Session& session,
                                                         Read& read) const;
  // Of a session without an execution. `flow_state`: null if it is not known.
  [[nodiscard]] model::Waits of_idle(const model::SessionKey& key, const nlohmann::json* flow_state,
                                     Read& read) const;
  [[nodiscard]] std::optional<model::Wait> of_inbox(const model::SessionKey& key,
                                                    std::int64_t size) const;
  [[nodiscard]] std::optional<model::Wait> of_share(const model::SessionKey& key) const;
  [[nodiscard]] std::optional<model::Wait> of_quota(const model::SessionKey& key, Read& read) const;
  [[nodiscard]] model::Result<std::optional<Found>> of_event(const std::string& id) const;
  [[nodiscard]] model::Result<std::optional<Found>> of_inbox_event(
      const store::Sessions::InInbox& event) const;
  [[nodiscard]] static Found of_new_letter(const store::DeadLetter& letter);
  [[nodiscard]] model::Result<std::optional<Found>> of_letter(const std::string& id) const;
  [[nodiscard]] model::Result<std::optional<Found>> of_receipt(const std::string& id) const;
  [[nodiscard]] model::Result<std::optional<Found>> of_event_that_ran(const store::Receipt& receipt,
                                                                      Found found) const;
  [[nodiscard]] model::Result<std::optional<store::PendingDelivery>> find_delivery(
      const std::string& output_id) const;
  [[nodiscard]] model::Result<std::optional<Found>> of_call(const std::string& id) const;
  [[nodiscard]] model::Wait wait_of_quiet_hours(const store::Timers::Row& timer) const;

  store::Store& store_;
  AssetsCache& assets_;
  queue::Log& log_;
  const model::Clock& wall_;
  const std::size_t inbox_limit_;
  ReasonPorts ports_;
};

}  // namespace conversed::api
