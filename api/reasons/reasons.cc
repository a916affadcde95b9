#include "api/reasons/reasons.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "api/live/assets_cache.h"
#include "api/reasons/page_rows.h"
#include "api/reasons/session_waits.h"
#include "flows/turn/follow_up.h"
#include "flows/turn/standing.h"
#include "queue/log.h"
#include "store/model/ids.h"
#include "store/shards/across_shards.h"
#include "store/store.h"
#include "store/text/quantity.h"

namespace conversed::api {

using model::Errc;
using model::fail;
using model::Reason;
using model::Result;
using model::Timestamp;
using model::Wait;
using model::Waits;
using store::DeliveryState;
using store::PendingDelivery;
using text::counted;
using Found = Reasons::Found;
using Kind = store::Timers::Kind;
using Shown = store::Calls::Shown;

namespace {

std::string without_dot(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

void append(Waits& waits, Waits more) {
  std::ranges::move(more, std::back_inserter(waits));
}

// A row that is gone is no error: the thing may have happened meanwhile.
template <typename T>
Result<std::optional<T>> if_any(Result<T> found) {
  if (found) return *std::move(found);
  if (found.error().code == Errc::not_found) return std::nullopt;
  return fail(std::move(found).error());
}

std::string tries(std::int64_t failed) {
  return std::to_string(failed) + (failed == 1 ? " failed try" : " failed tries");
}

std::string clock_text(int minutes) {
  const auto two = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return two(minutes / 60) + ':' + two(minutes % 60);
}

}  // namespace

Waits Reasons::of_daemon(const store::Shard& shard) const {
  if (!shard.healthy()) {
    return {{.reason = Reason::store_down,
             .subject = "The store refuses writes: " + without_dot(shard.failure()) + ".",
             .since = ports_.store_failing_since ? ports_.store_failing_since() : std::nullopt}};
  }
  if (const auto health = log_.health(); !health) {
    return {{.reason = Reason::log_down,
             .subject = "The log refuses events: " + without_dot(health.error().message) + ".",
             .since = ports_.log_failing_since ? ports_.log_failing_since() : std::nullopt}};
  }
  return {};
}

// The mark of the crash stays until the partition has another owner. Behind it, events run as
// usual.
Result<bool> Reasons::is_recovering(std::int32_t partition) const {
  auto below = store_.of(partition).attempts().left_below(partition);
  if (!below) return fail(below.error());
  if (*below == 0) return false;
  const auto ranges = log_.ranges();
  if (!ranges) return fail(ranges.error());
  return std::ranges::any_of(*ranges, [&](const queue::PartitionRange& range) {
    return range.partition == partition && range.committed < *below;
  });
}

Result<Waits> Reasons::of_partition(const model::SessionKey& key, Read& read) const {
  const auto partition = ports_.partition ? ports_.partition(key) : std::nullopt;
  if (!partition) return Waits();
  const auto number = std::to_string(partition->number);
  if (partition->owner.empty()) {
    return Waits{{.reason = Reason::partition_without_owner,
                  .subject = "No daemon owns partition " + number + " of the log, which has " +
                             name_of(key) + "."}};
  }
  const auto [known, is_new] = read.recovering.try_emplace(partition->number, false);
  if (is_new) {
    auto recovering = is_recovering(partition->number);
    if (!recovering) return fail(recovering.error());
    known->second = *recovering;
  }
  if (!known->second) return Waits();
  return Waits{{.reason = Reason::partition_recovering,
                .subject = "The daemon " + partition->owner + " recovers partition " + number +
                           " of the log: events that a crash may have interrupted run alone."}};
}

Result<std::chrono::milliseconds> Reasons::timers_ahead(Read& read) const {
  if (read.offset) return *read.offset;
  auto offset = store_.first().timers().offset();
  if (offset) read.offset = *offset;
  return offset;
}

Wait Reasons::of_running(const Shown& shown, const std::string& place,
                         std::chrono::milliseconds offset) const {
  if (shown.due_at) {
    return {.reason = Reason::asleep,
            .subject = place + " sleeps.",
            .expected_at = *shown.due_at - offset};
  }
  const auto since = ports_.calling_since ? ports_.calling_since(shown.id) : std::nullopt;
  return wait_of_call(shown, place, since, wall_.now(), offset);
}

Result<Waits> Reasons::of_execution(const model::Session& session, Read& read) const {
  store::Shard& shard = store_.of(session.key);
  auto waits = of_daemon(shard);
  auto partition = of_partition(session.key, read);
  if (!partition) return partition;
  append(waits, *std::move(partition));
  if (!session.execution) return waits;
  auto call = shard.calls().shown(session.execution->pending_call_id);
  if (!call) return fail(call.error());
  if (!*call) return waits;  // its result is in the log
  auto by = timers_ahead(read);
  if (!by) return fail(by.error());
  waits.push_back(of_running(**call, place_of(session), *by));
  return waits;
}

std::optional<Wait> Reasons::of_inbox(const model::SessionKey& key, std::int64_t size) const {
  if (size < static_cast<std::int64_t>(inbox_limit_)) return std::nullopt;
  return Wait{.reason = Reason::inbox_full,
              .subject = "The inbox of " + name_of(key) + " holds " + counted(size, "event") +
                         ", so further events are refused."};
}

std::optional<Wait> Reasons::of_share(const model::SessionKey& key) const {
  if (!ports_.waits_for_share || !ports_.waits_for_share(key)) return std::nullopt;
  return Wait{.reason = Reason::share_used_up,
              .subject = "Other sessions of the organisation use all workers of its share."};
}

std::optional<Wait> Reasons::of_quota(const model::SessionKey& key, Read& read) const {
  const auto endpoint = assets_.endpoint(key.endpoint_id);
  if (!endpoint || !ports_.quota_used_up) return std::nullopt;
  const auto [known, is_new] = read.quota_used_up.try_emplace((*endpoint)->organisation_id, false);
  if (is_new) known->second = ports_.quota_used_up(known->first);
  if (!known->second) return std::nullopt;
  return Wait{.reason = Reason::quota,
              .subject =
                  "The organisation has used up its injects of this month, so further "
                  "injects are refused."};
}

Result<Waits> Reasons::of_session(const model::Session& session) const {
  Read read;
  Waits waits;
  if (auto full = of_inbox(session.key, session.inbox_size)) waits.push_back(*std::move(full));
  auto execution = of_execution(session, read);
  if (!execution) return execution;
  append(waits, *std::move(execution));
  if (!waits.empty()) return waits;
  if (auto share = of_share(session.key)) return Waits{*std::move(share)};
  for (const auto& id : flows::time_outs_of(session)) {
    auto timer = if_any(store_.of(session.key).timers().get(id));
    if (!timer) return fail(timer.error());
    if (*timer) return Waits{wait_of_input(id, place_of(session), (*timer)->due_at)};
  }
  return of_idle(session.key, session.execution ? nullptr : &session.flow_state, read);
}

Result<std::vector<Waits>> Reasons::of_page(
    const std::vector<store::SessionSummary>& sessions) const {
  Read read;
  auto by = timers_ahead(read);
  if (!by) return fail(by.error());
  const auto rows = read_page_rows(store_, sessions);
  if (!rows) return fail(rows.error());
  std::vector<Waits> all;
  for (const auto& session : sessions) {
    const auto place = "The Flow of " + name_of(session.key);
    Waits& waits = all.emplace_back();
    if (auto full = of_inbox(session.key, session.inbox_size)) waits.push_back(*std::move(full));
    append(waits, of_daemon(store_.of(session.key)));
    auto partition = of_partition(session.key, read);
    if (!partition) return fail(partition.error());
    append(waits, *std::move(partition));
    if (const auto call = rows->running.find(session.row); call != rows->running.end()) {
      waits.push_back(of_running(call->second, place, *by));
    }
    if (!waits.empty()) continue;
    if (auto share = of_share(session.key)) {
      waits.push_back(*std::move(share));
    } else if (const auto asked = rows->questions.find(session.row);
               asked != rows->questions.end()) {
      waits.push_back(wait_of_input(asked->second.id, place, *asked->second.due_at - *by));
    } else {
      const auto state = rows->idle.find(session.row);
      waits = of_idle(session.key, state == rows->idle.end() ? nullptr : &state->second, read);
    }
  }
  return all;
}

Waits Reasons::of_idle(const model::SessionKey& key, const nlohmann::json* flow_state,
                       Read& read) const {
  Waits waits;
  if (auto quota = of_quota(key, read)) waits.push_back(*std::move(quota));
  auto wait = flow_state == nullptr ? std::nullopt : wait_without_timer(*flow_state);
  if (wait) waits.push_back(*std::move(wait));
  return waits;
}

Result<std::optional<Waits>> Reasons::of_session_and_outputs(const model::SessionKey& key) const {
  store::Shard& shard = store_.of(key);
  auto session = shard.sessions().load(key);
  if (!session) return fail(session.error());
  if (!*session) {
    auto waits = of_session(key);  // its first event may be in the log
    if (!waits) return fail(waits.error());
    return waits->empty() ? std::nullopt : std::optional(*std::move(waits));
  }
  auto waits = of_session(**session);
  if (!waits) return fail(waits.error());
  const auto next = shard.deliveries().list({.project_id = key.project_id, .session = key}, {}, 1,
                                            store_.timer_now());
  if (!next) return fail(next.error());
  if (next->rows.empty()) return *std::move(waits);
  auto outputs = of_first(next->rows.front());
  if (!outputs) return fail(outputs.error());
  const bool own_first = (*session)->execution.has_value();
  Waits& first = own_first ? *waits : *outputs;
  // A store that fails, for example, is a reason of both.
  for (auto& more : own_first ? *outputs : *waits) {
    if (std::ranges::find(first, more.reason, &Wait::reason) == first.end()) {
      first.push_back(std::move(more));
    }
  }
  return std::move(first);
}

Result<Waits> Reasons::of_session(const model::SessionKey& key) const {
  auto session = store_.of(key).sessions().load(key);
  if (!session) return fail(session.error());
  if (*session) return of_session(**session);
  model::Session none;
  none.key = key;
  return of_session(none);
}

Wait Reasons::behind_first(const PendingDelivery& delivery) {
  return {.reason = Reason::behind_output,
          .subject = "The output " + delivery.first_output_id + " of " + name_of(delivery.key) +
                     " goes first.",
          .since = delivery.created_at};
}

std::vector<SendingView> Reasons::sending_views(const std::vector<model::SessionKey>& keys) const {
  auto views = ports_.sending && !keys.empty() ? ports_.sending(keys) : std::vector<SendingView>();
  views.resize(keys.size());
  return views;
}

Result<Waits> Reasons::of_delivery(const PendingDelivery& delivery) const {
  if (delivery.state != DeliveryState::behind) return of_first(delivery);
  Waits waits{behind_first(delivery)};
  auto& deliveries = store_.of(delivery.key).deliveries();
  auto first = if_any(deliveries.get(delivery.first_output_id, store_.timer_now()));
  if (!first) return fail(first.error());
  if (!*first || (*first)->state == DeliveryState::behind) return waits;
  auto more = of_first(**first);
  if (!more) return more;
  append(waits, *std::move(more));
  return waits;
}

// Asks the service for all rows at once.
Result<std::vector<Waits>> Reasons::of_page(const std::vector<PendingDelivery>& deliveries) const {
  Read read;
  std::vector<model::SessionKey> keys;
  keys.reserve(deliveries.size());
  for (const auto& delivery : deliveries) keys.push_back(delivery.key);
  const auto views = sending_views(keys);
  std::vector<Waits> all;
  for (std::size_t i = 0; i < deliveries.size(); ++i) {
    if (deliveries[i].state == DeliveryState::behind) {
      all.push_back({behind_first(deliveries[i])});
      continue;
    }
    auto waits = of_first(deliveries[i], views[i], read);
    if (!waits) return fail(waits.error());
    all.push_back(*std::move(waits));
  }
  return all;
}

Result<Waits> Reasons::of_first(const PendingDelivery& delivery) const {
  Read read;
  return of_first(delivery, sending_views({delivery.key}).front(), read);
}

// The reasons of an output that is the next one of its session.
Result<Waits> Reasons::of_first(const PendingDelivery& delivery, const SendingView& sending,
                                Read& read) const {
  // Its own time, or that of its Endpoint if that is later.
  const auto next_try = std::max(delivery.due_at, sending.not_before);
  auto by = timers_ahead(read);
  if (!by) return fail(by.error());
  store::Shard& shard = store_.of(delivery.key);
  const auto [known, is_new] = read.health.try_emplace({&shard, delivery.key.endpoint_id});
  if (is_new) {
    auto stored = shard.endpoint_health().find(delivery.key.endpoint_id);
    if (!stored) return fail(stored.error());
    known->second = stored->value_or(store::EndpointFailure()).by_wall_clock(*by);
  }
  const auto& health = known->second;
  const auto endpoint = assets_.endpoint(delivery.key.endpoint_id);
  const auto webhook = "The webhook of the Endpoint " +
                       (endpoint ? (*endpoint)->name : delivery.key.endpoint_id) + " (" +
                       delivery.key.endpoint_id + ")";
  if (delivery.state == DeliveryState::paused) {
    return Waits{{.reason = Reason::endpoint_paused,
                  .subject = webhook +
                             " has failed for long, so the daemon has paused it; the last "
                             "error: " +
                             health.last_error + ".",
                  .since = health.paused_since,
                  .expected_at = std::max(next_try, std::optional(health.next_probe))}};
  }
  if (sending.since) {
    return Waits{{.reason = Reason::sending,
                  .subject = webhook + " has not answered the POST of this output yet.",
                  .since = sending.since}};
  }
  if (delivery.state == DeliveryState::waiting || health.failing_since) {
    const auto error = health.failing_since ? health.last_error : "it refused this output";
    return Waits{{.reason = Reason::delivery_failing,
                  .subject = webhook + " fails: " + error + "; " + tries(delivery.attempts) +
                             " of this output.",
                  .since = health.failing_since ? health.failing_since : delivery.created_at,
                  .expected_at = next_try}};
  }
  auto waits = of_daemon(shard);
  auto partition = of_partition(delivery.key, read);
  if (!partition) return partition;
  append(waits, *std::move(partition));
  return waits;
}

// Nothing: no `collect` has the event.
Result<std::optional<Waits>> Reasons::of_kept(const store::Receipt& receipt) const {
  const auto is_collected = [](const auto& row) { return row.body.contains("collected"); };
  const auto has_run = [](const auto& row) { return row.body.value("what", "") == "ran"; };
  if (std::ranges::none_of(receipt.rows, is_collected) ||
      std::ranges::any_of(receipt.rows, has_run)) {
    return std::nullopt;
  }
  auto session = store_.of(receipt.session).sessions().load(receipt.session);
  if (!session) return fail(session.error());
  if (!*session || !flows::keeps_event((*session)->flow_state, receipt.input_id)) {
    return std::nullopt;
  }
  auto waits = of_session(**session);
  if (!waits) return fail(waits.error());
  return *std::move(waits);
}

Result<Reasons::OpenSteps> Reasons::of_open_execution(const store::Receipt& receipt) const {
  OpenSteps open;
  if (receipt.waits_in_inbox) {
    auto found = of_event(receipt.input_id);
    if (!found) return fail(found.error());
    if (*found) open.execution = std::move((*found)->waits);
  } else if (receipt.runs) {
    Read read;
    auto session = store_.of(receipt.session).sessions().load(receipt.session);
    if (!session) return fail(session.error());
    const bool goes_on =
        *session && (*session)->execution && (*session)->execution->input_id == receipt.input_id;
    auto waits = goes_on ? of_execution(**session, read) : Waits();
    if (!waits) return fail(waits.error());
    open.execution = *std::move(waits);
  } else {
    auto waits = of_kept(receipt);
    if (!waits) return fail(waits.error());
    open.is_kept = waits->has_value();
    if (open.is_kept) open.execution = **std::move(waits);
  }
  return open;
}

// A session's outputs are delivered one after the other, so one of the receipt's outputs may be the
// next one.
Result<Reasons::OpenSteps> Reasons::of_open_steps(const store::Receipt& receipt) const {
  auto steps = of_open_execution(receipt);
  if (!steps) return steps;
  OpenSteps& open = *steps;
  const auto first = std::ranges::find_if(receipt.outputs, &store::Receipt::Output::pending);
  if (first == receipt.outputs.end()) return steps;
  auto& deliveries = store_.of(receipt.session).deliveries();
  auto delivery = if_any(deliveries.get(first->id, store_.timer_now()));
  if (!delivery) return fail(delivery.error());
  if (!*delivery) return steps;  // it was delivered meanwhile
  auto waits = of_delivery(**delivery);
  if (!waits) return fail(waits.error());
  open.outputs.emplace(first->seq, *waits);
  const bool is_behind = (*delivery)->state == DeliveryState::behind;
  if (!is_behind) waits->insert(waits->begin(), behind_first(**delivery));
  for (auto output = first + 1; output != receipt.outputs.end(); ++output) {
    if (!output->pending) continue;
    waits->front().since = output->created_at;
    open.outputs.emplace(output->seq, *waits);
  }
  return steps;
}

// Quiet hours put the follow-up off if it is due when they end.
Wait Reasons::wait_of_quiet_hours(const store::Timers::Row& timer) const {
  Wait wait{.reason = Reason::not_due, .expected_at = timer.due_at};
  const auto project = assets_.project(timer.session.project_id);
  if (!project || !(*project)->journey || !(*project)->journey->quiet_hours) return wait;
  const auto& quiet = (*project)->journey->quiet_hours;
  const auto before = timer.due_at - std::chrono::milliseconds(1);
  if (flows::past_quiet_hours(quiet, before) != timer.due_at) return wait;
  wait.reason = Reason::quiet_hours;
  wait.subject = "Quiet hours of the project, from " + clock_text(quiet->from) + " to " +
                 clock_text(quiet->to) + " in " + quiet->timezone + ", put this follow-up off.";
  return wait;
}

Result<Waits> Reasons::of_timer(const store::Timers::Row& timer) const {
  Read read;
  return of_timer(timer, read);
}

Result<std::vector<Waits>> Reasons::of_page(const std::vector<store::Timers::Row>& timers) const {
  Read read;
  std::vector<Waits> all;
  for (const auto& timer : timers) {
    auto waits = of_timer(timer, read);
    if (!waits) return fail(waits.error());
    all.push_back(*std::move(waits));
  }
  return all;
}

Result<Waits> Reasons::of_timer(const store::Timers::Row& timer, Read& read) const {
  if (timer.due_at <= wall_.now()) {
    auto waits = of_daemon(store_.of(timer.session));
    auto partition = of_partition(timer.session, read);
    if (!partition) return partition;
    append(waits, *std::move(partition));
    return waits;
  }
  Wait wait{.reason = Reason::not_due, .expected_at = timer.due_at};
  switch (timer.kind) {
    case Kind::sleep:
      wait.reason = Reason::asleep;
      wait.subject = "The Flow of " + name_of(timer.session) + " sleeps.";
      break;
    case Kind::question:
      if (flows::is_time_out_of_event(timer.id)) {
        return Waits{
            wait_of_input(timer.id, "The Flow of " + name_of(timer.session), timer.due_at)};
      }
      wait.reason = Reason::question;
      wait.subject = "A question to the user of " + name_of(timer.session) +
                     " waits for its answer, or for its time-out.";
      break;
    case Kind::schedule:
      wait.subject = "The scheduled inject for " + name_of(timer.session) + " comes at its time.";
      break;
    case Kind::journey:
    case Kind::follow_up:
      wait = wait_of_quiet_hours(timer);
      if (wait.subject.empty()) {
        wait.subject = "The follow-up of " + name_of(timer.session) + " comes at its time.";
      }
      break;
  }
  return Waits{std::move(wait)};
}

Waits Reasons::of_job(const model::Job& job) {
  if (job.state != model::JobState::queued) return {};
  return {{.reason = Reason::behind_jobs,
           .subject = "The job " + job.name + " waits for a worker.",
           .since = job.created_at}};
}

Result<std::optional<PendingDelivery>> Reasons::find_delivery(const std::string& output_id) const {
  return if_any(find_in_shards(store_.shards(), [&](store::Shard& shard) {
    return shard.deliveries().get(output_id, store_.timer_now());
  }));
}

Result<std::optional<Found>> Reasons::of_call(const std::string& id) const {
  auto call =
      find_in_shards(store_.shards(), [&](store::Shard& shard) { return shard.calls().find(id); });
  if (!call) return fail(call.error());
  if (!*call) return std::nullopt;
  const auto& key = (*call)->call.session;
  auto waits = of_session(key);
  if (!waits) return fail(waits.error());
  return Found{"call", key.project_id, *std::move(waits)};
}

Result<std::optional<Found>> Reasons::of_inbox_event(const store::Sessions::InInbox& event) const {
  const auto& key = event.key;
  auto session = store_.of(key).sessions().load(key);
  if (!session) return fail(session.error());
  const bool busy = *session && (*session)->busy();
  const auto ahead = event.ahead + (busy ? 1 : 0);
  Waits waits;
  if (ahead > 0) {
    const auto first = busy ? (*session)->execution->input_id : event.first_ahead;
    waits.push_back({.reason = Reason::behind_events,
                     .subject = counted(ahead, "earlier event") + " of " + name_of(key) +
                                (ahead == 1 ? " goes" : " go") + " first; the next one is " +
                                first + ".",
                     .since = event.since});
  }
  auto more = of_session(key);
  if (!more) return fail(more.error());
  append(waits, *std::move(more));
  return Found{"event", key.project_id, std::move(waits)};
}

// An event in an inbox, the input of a running execution, or one whose output waits.
Result<std::optional<Found>> Reasons::of_event(const std::string& id) const {
  auto inbox = find_in_shards(store_.shards(),
                              [&](store::Shard& shard) { return shard.sessions().in_inbox(id); });
  if (!inbox) return fail(inbox.error());
  if (*inbox) return of_inbox_event(**inbox);
  auto call = find_in_shards(store_.shards(),
                             [&](store::Shard& shard) { return shard.calls().of_execution(id); });
  if (!call) return fail(call.error());
  if (*call) {
    auto found = of_call(**call);
    if (!found) return found;
    if (*found) (*found)->kind = "event";
    return found;
  }
  auto output = find_in_shards(
      store_.shards(), [&](store::Shard& shard) { return shard.deliveries().of_input(id); });
  if (!output) return fail(output.error());
  if (!*output) return std::nullopt;
  auto delivery = find_delivery(**output);
  if (!delivery) return fail(delivery.error());
  if (!*delivery) return std::nullopt;
  auto waits = of_delivery(**delivery);
  if (!waits) return fail(waits.error());
  return Found{"event", (*delivery)->key.project_id, *std::move(waits)};
}

namespace {

// Adds how the deliveries of the receipt's outputs ended. `only`: of the output of this number.
void add_ends(const store::Receipt& receipt, std::optional<std::int64_t> only, Found& found) {
  std::map<std::int64_t, Found::Ending> endings;  // by the output's number
  for (const auto& row : receipt.rows) {
    const auto status = row.body.value("status", 0);
    const auto seq = row.body.value("seq", std::int64_t{0});
    if (row.body.value("what", "") != "delivery" || seq != only.value_or(seq)) continue;
    if (status >= 200 && status < 300) {
      found.delivered_at = row.written_at;
      endings.erase(seq);
    }
    if (row.body.contains("deadLetter")) {
      endings[seq] = {row.body.value("done", "givenUp"), row.body.value("by", ""),
                      row.body.value("deadLetter", ""), row.written_at};
    }
  }
  for (const auto& [seq, ending] : endings) {
    if (!found.ending || found.ending->at <= ending.at) found.ending = ending;
  }
}

}  // namespace

// An event that has run, or one of its outputs: their receipt tells the rest.
Result<std::optional<Found>> Reasons::of_receipt(const std::string& id) const {
  auto receipt = if_any(find_in_shards(store_.shards(), [&](store::Shard& shard) {
    return shard.receipts().get(id.substr(0, model::id_length));
  }));
  if (!receipt) return fail(receipt.error());
  if (!*receipt) return std::nullopt;
  const bool is_event = id == (*receipt)->input_id;
  const auto& outputs = (*receipt)->outputs;
  const auto output = std::ranges::find(outputs, id, &store::Receipt::Output::id);
  if (!is_event && output == outputs.end()) return std::nullopt;
  Found found{is_event ? "event" : "delivery", (*receipt)->session.project_id, {}};
  add_ends(**receipt, is_event ? std::nullopt : std::optional(output->seq), found);
  if (!is_event) return found;
  return of_event_that_ran(**receipt, std::move(found));
}

Result<std::optional<Found>> Reasons::of_event_that_ran(const store::Receipt& receipt,
                                                        Found found) const {
  if (found.ending) {
    auto& letters = store_.of(receipt.session).dead_letters();
    auto letter = if_any(letters.get(found.project_id, found.ending->dead_letter));
    if (!letter) return fail(letter.error());
    const bool is_new = *letter && (*letter)->state == store::DeadLetterState::fresh;
    if (is_new) return of_new_letter(**letter);
  }
  if (!receipt.runs) {
    auto kept = of_kept(receipt);
    if (!kept) return fail(kept.error());
    if (*kept) found.waits = **std::move(kept);
    return found;
  }
  // The result that the execution waits for is in the log.
  auto waits = of_session(receipt.session);
  if (!waits) return fail(waits.error());
  found.waits = *std::move(waits);
  return found;
}

Result<std::optional<Found>> Reasons::of_letter(const std::string& id) const {
  auto letter = find_in_shards(store_.shards(),
                               [&](store::Shard& shard) { return shard.dead_letters().of(id); });
  if (!letter) return fail(letter.error());
  if (!*letter) return std::nullopt;
  if ((*letter)->state == store::DeadLetterState::fresh) return of_new_letter(**letter);
  // The receipt of a settled output tells how it ended.
  if ((*letter)->id != id) {
    auto done = of_receipt(id);
    if (!done || *done) return done;
  }
  return Found{"deadLetter", (*letter)->key.project_id, {}};
}

Found Reasons::of_new_letter(const store::DeadLetter& letter) {
  Wait wait{.reason = Reason::dead_letter,
            .subject = "The dead letter " + letter.id + " says: " + letter.reason + ".",
            .since = letter.created_at};
  if (!letter.can_be_replayed()) wait.remedy = model::remedy_without_replay;
  return {"deadLetter", letter.key.project_id, {std::move(wait)}};
}

Result<Found> Reasons::of(const std::string& id) const {
  const auto with = [](std::string_view kind, const std::string& project,
                       Result<Waits> waits) -> Result<Found> {
    if (!waits) return fail(waits.error());
    return Found{kind, project, *std::move(waits)};
  };
  auto delivery = find_delivery(id);
  if (!delivery) return fail(delivery.error());
  if (*delivery) return with("delivery", (*delivery)->key.project_id, of_delivery(**delivery));
  auto timer = if_any(
      find_in_shards(store_.shards(), [&](store::Shard& shard) { return shard.timers().get(id); }));
  if (!timer) return fail(timer.error());
  if (*timer) return with("timer", (*timer)->session.project_id, of_timer(**timer));
  for (const auto find : {&Reasons::of_call, &Reasons::of_event, &Reasons::of_letter}) {
    auto found = (this->*find)(id);
    if (!found) return fail(found.error());
    if (*found) return **std::move(found);
  }
  auto job = if_any(store_.jobs().get(id));
  if (!job) return fail(job.error());
  if (*job) return Found{"job", (*job)->project_id, of_job(**job)};
  auto done = of_receipt(id);
  if (!done) return fail(done.error());
  if (*done) return **std::move(done);
  for (const auto& shard : store_.shards()) {
    if (!shard->healthy()) return Found{"", "", of_daemon(*shard)};
  }
  return Found{"", "", of_daemon(store_.first())};
}

}  // namespace conversed::api
