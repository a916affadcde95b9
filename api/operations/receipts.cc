// GET /management/receipts/{receiptId}: what happened to an event, step by step.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/receipt_steps.h"
#include "api/operations/why.h"
#include "api/reasons/reasons.h"
#include "api/replies.h"
#include "store/shards/across_shards.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using namespace openapi;

constexpr std::size_t most_receipt_events = 20;  // of one trace or Idempotency-Key

// Why an open step goes on. Null if that can't be read.
json waits_of_step(const ReceiptStep& step, const Result<Reasons::OpenSteps>& open) {
  if (!open) return nullptr;
  const auto seq = step.details.find("seq");
  if (seq == step.details.end()) return waits_json(open->execution);
  const auto found = open->outputs.find(seq->get<std::int64_t>());
  return waits_json(found == open->outputs.end() ? model::Waits() : found->second);
}

json receipt_step_json(const ReceiptStep& step) {
  json shown = step.details;
  shown["what"] = to_string(step.what);
  if (step.cause != ReceiptStep::Cause::none) shown["cause"] = to_string(step.cause);
  shown["fromMs"] = model::to_unix_ms(step.from);
  shown["micros"] = step.took ? json(step.took->count()) : json(nullptr);
  return shown;
}

const Shape<store::Receipt>& receipt_shape() {
  using store::Receipt;
  static const auto shape =
      session_shape(&Receipt::session)
          .with("", {{"_id", text(1), &Receipt::input_id},
                     {"traceId", text(), &Receipt::trace_id},
                     {"previous", nullable_id(), null_if_empty(&Receipt::previous)},
                     {"othersWaiting", integer(0), &Receipt::others}});
  return shape;
}

Result<Response> show_receipt(const Call& call, SessionServices& services) {
  const std::string text(call.parameters["receiptId"]);
  const auto& shards = services.store.shards();
  const auto key = receipt_key(call.principal->organisation_id, text);
  const auto find = [&](const std::string& project_id) -> Result<std::vector<std::string>> {
    // The events of a trace may be in several shards. Ids begin with the time.
    const auto of_shard = [&](store::Shard& shard) {
      return shard.receipts().find(project_id, text, key, most_receipt_events);
    };
    auto events = merge_shards(shards, most_receipt_events, of_shard, std::less<>());
    if (events && events->empty()) return model::fail(Errc::not_found, "");
    return events;
  };
  constexpr std::string_view missing = "there is no receipt of such an event";
  auto events = find_in_projects(services.store, call, find, missing);
  if (!events) return model::fail(events.error());
  auto receipt = find_in_shards(
      shards, [&](store::Shard& shard) { return shard.receipts().get(events->front()); });
  if (!receipt && receipt.error().code == Errc::not_found) {
    return model::fail(Errc::not_found, std::string(missing));
  }
  if (!receipt) return model::fail(store_error(receipt.error()));
  json body = receipt_shape()(*receipt);
  events->erase(events->begin());
  body["others"] = *events;
  json& steps = body["steps"] = json::array();
  body["state"] = "ended";
  const auto open = services.reasons.of_open_steps(*receipt);
  for (const auto& step : steps_of(*receipt, open && open->is_kept)) {
    steps.push_back(receipt_step_json(step));
    if (const auto by = step.details.find("by"); by != step.details.end()) {
      const auto user =
          services.store.accounts().user(call.principal->organisation_id, by->get<std::string>());
      if (user) steps.back()["sender"] = user->email;
    }
    if (step.took) continue;
    body["state"] = "open";
    steps.back()["waits"] = waits_of_step(step, open);
  }
  return ok(body);
}

Schema receipt_names_of(std::initializer_list<ReceiptStep::What> all) {
  std::vector<std::string_view> names;
  for (const auto what : all) names.push_back(to_string(what));
  return one_of(names);
}

Schema receipt_names_of(std::initializer_list<ReceiptStep::Cause> all) {
  std::vector<std::string_view> names;
  for (const auto cause : all) names.push_back(to_string(cause));
  return one_of(names);
}

Schema receipt_change_schema() {
  constexpr auto may = Need::optional;
  return object(
      {{"path", described("`context` or `profile`: it was emptied.", text(1))},
       {"bytes", described("About.", integer(0))},
       {"removed", boolean(), may},
       {"value", described("Behind the Turn, if it is small.", anything()), may},
       {"bytesBefore",
        described("About; of the value before the Turn. 0: there was none. Missing: not known, "
                  "because an earlier write of the Turn may have changed it.",
                  integer(0)),
        may},
       {"before", described("The value before the Turn, if it is small.", anything()), may}});
}

Schema receipt_what_schema() {
  using W = ReceiptStep::What;
  return receipt_names_of({W::accepted, W::waited, W::turn, W::ran, W::call, W::delivery});
}

Schema receipt_cause_schema() {
  using C = ReceiptStep::Cause;
  return described(
      "Why it waited: `queue` in the log and for a worker, `recovery` alone after a crash, "
      "`session` behind other events of its session, `commit` for the store, `call` for a "
      "connection to the upstream, `sleep`, `collect` for more events, `retry`, "
      "`connection` to the webhook, `output` behind the session's output before.",
      receipt_names_of({C::queue, C::recovery, C::session, C::commit, C::call, C::sleep, C::collect,
                        C::retry, C::connection, C::output}));
}

Schema receipt_done_schema() {
  return described("What the operator `by` did with the output.",
                   one_of({"dropped", "replayed", "discarded"}));
}

Schema receipt_step_schema() {
  constexpr auto may = Need::optional;
  const auto unix_ms = described("Unix time in milliseconds.", integer(0));
  const auto step = object({
      {"what", receipt_what_schema()},
      {"cause", receipt_cause_schema(), may},
      {"fromMs", unix_ms},
      {"micros",
       described("How long it took, in microseconds. Null: it goes on.", nullable(integer(0)))},
      // accepted
      {"type", text(1), may},
      {"daemon", text(1), may},
      {"by", described("The user of the API that sent it.", text(1)), may},
      {"sender", described("The e-mail address of this user.", text(1)), may},
      {"text", described("The beginning of its text.", text()), may},
      {"claim",
       described("The schedule, follow-up, timer or dead letter that it comes from.", text(1)),
       may},
      {"position", described("Epoch, partition and offset in the log.", list_of(integer(0), 3)),
       may},
      // waited
      {"behind", described("Events of its session before it.", integer(0)), may},
      {"blockedBy", described("The call or timer that its session waited for.", text(1)), may},
      {"waitsFor", described("The call or timer that it waits for.", free_object()), may},
      {"waits",
       described("Of a step that goes on. Null: they can't be read.", nullable(waits_schema())),
       may},
      {"next", described("When the next try is due: Unix time in milliseconds.", integer(0)), may},
      // turn
      {"event", described("What the execution waited for.", text(1)), may},
      {"flow", text(1), may},
      {"version", integer(0), may},
      {"nodes", described("The Nodes that ran, in order, by address.", list_of(text())), may},
      {"nodesRun", integer(0), may},
      {"branches",
       described("The branches that Nodes chose, such as `nodes[0] = long`.", list_of(text(1))),
       may},
      {"changes", described("By their last writes.", list_of(receipt_change_schema())), may},
      {"changesLeftOut", described("How many more variables changed.", integer(1)), may},
      {"outputs", list_of(object({{"_id", text(1)}, {"seq", integer(1)}, {"pending", boolean()}})),
       may},
      {"collected",
       described("True: a `collect` kept the event. The step `ran` tells when it ran.", boolean()),
       may},
      {"eventsRun",
       described("How many collected events ran in this Turn, without its own.", integer(1)), may},
      {"events", described("The first of them.", list_of(text())), may},
      {"followUps",
       described("When planned follow-ups are due: Unix times in milliseconds.",
                 list_of(integer(0))),
       may},
      {"deadLetter", id(), may},
      {"reason", text(), may},
      {"ended", described("Why nothing ran.", text(1)), may},
      // ran
      {"turnOf", described("The event in whose Turn it ran, with others.", text(1)), may},
      // call, delivery
      {"id", described("The call's.", text(1)), may},
      {"to", described("The host, without its path.", text(1)), may},
      {"seq", described("The output's number in its session.", integer(1)), may},
      {"try", integer(1), may},
      {"tries", described("Tries in a row with this outcome; `try` is the last one.", integer(2)),
       may},
      {"status", described("Of HTTP; 0: there was no answer.", integer(0)), may},
      {"error", text(), may},
      {"done", receipt_done_schema(), may},
      {"answer", described("The first 200 bytes of the answer to a try that failed.", text()), may},
  });
  return named("ReceiptStep", step);
}

Description describe_show_receipt() {
  const auto receipt = with_members(
      receipt_shape().schema(),
      {{"others", described("Further events of the trace or Idempotency-Key.", list_of(id()))},
       {"state", described("`open` while a step goes on.", one_of({"open", "ended"}))},
       {"steps", list_of(receipt_step_schema())}});
  return {.summary = "Show what happened to an event",
          .details =
              "The event has this id; or it is the id of one of its outputs (`webhook-id`), "
              "its trace id, or the Idempotency-Key of its request.",
          .answers = {json_answer("The steps of the event, in the order of their begin. Each gap "
                                  "between two steps is a step, too, with its cause.",
                                  named("Receipt", receipt))}};
}

}  // namespace

Operations receipts_operations() {
  static constexpr Operation rows[] = {
      for_operators("showReceipt", Method::get, "/management/receipts/{receiptId}",
                    Role::conversation_admin, show_receipt, describe_show_receipt, Audited::views),
  };
  return rows;
}

}  // namespace conversed::api
