// From the rows of a receipt to a waterfall of steps.
#include "api/operations/receipt_steps.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "store/model/names.h"

namespace conversed::api {
namespace {

using model::Timestamp;
using nlohmann::json;
using ReceiptRow = store::Receipt::Row;
using StepWhat = ReceiptStep::What;
using WaitCause = ReceiptStep::Cause;

constexpr model::Names<StepWhat, 6> step_names{{{
    {StepWhat::accepted, "accepted"},
    {StepWhat::waited, "waited"},
    {StepWhat::turn, "turn"},
    {StepWhat::ran, "ran"},
    {StepWhat::call, "call"},
    {StepWhat::delivery, "delivery"},
}}};

constexpr model::Names<WaitCause, 11> cause_names{{{
    {WaitCause::none, ""},
    {WaitCause::queue, "queue"},
    {WaitCause::recovery, "recovery"},
    {WaitCause::session, "session"},
    {WaitCause::commit, "commit"},
    {WaitCause::call, "call"},
    {WaitCause::sleep, "sleep"},
    {WaitCause::collect, "collect"},
    {WaitCause::retry, "retry"},
    {WaitCause::connection, "connection"},
    {WaitCause::output, "output"},
}}};

std::string_view receipt_row_kind(const ReceiptRow& row) {
  return row.body.at("what").get_ref<const std::string&>();
}

// When the row's work began: the first one of several equal tries.
Timestamp receipt_row_begin(const ReceiptRow& row) {
  const auto at = row.body.value("at", model::to_unix_ms(row.written_at));
  return model::from_unix_ms(row.body.value("since", at));
}

std::chrono::microseconds receipt_row_length(const ReceiptRow& row) {
  const auto at = row.body.value("at", std::int64_t{0});
  return std::chrono::microseconds(row.body.value("us", std::int64_t{0})) +
         std::chrono::milliseconds(at - row.body.value("since", at));
}

Timestamp receipt_row_end(const ReceiptRow& row) {
  return receipt_row_begin(row) +
         std::chrono::duration_cast<std::chrono::milliseconds>(receipt_row_length(row));
}

// The row's members that a step shows.
json receipt_row_details(const ReceiptRow& row) {
  json details = row.body;
  for (const char* name : {"what", "at", "since", "us", "accepted", "recovery", "recorded"})
    details.erase(name);
  return details;
}

json merged_details(json details, const json& more) {
  details.update(more);
  return details;
}

// Walks through the rows of one receipt.
class ReceiptWaterfall {
 public:
  ReceiptWaterfall(const store::Receipt& receipt, bool is_kept)
      : receipt_(receipt), is_kept_(is_kept), delivered_(receipt.delivered_before) {}

  std::vector<ReceiptStep> steps() {
    auto rows = receipt_.rows;
    if (!rows.empty()) accept(rows.front());
    // A mark may be committed after the Turn that took the call's result.
    std::ranges::stable_sort(rows, {}, receipt_row_begin);
    for (const ReceiptRow& row : rows) take(row);
    open_steps();
    std::ranges::stable_sort(steps_, {}, &ReceiptStep::from);
    return std::move(steps_);
  }

 private:
  // A delivery of one output.
  struct Track {
    Timestamp at{};  // the end of its last step
    bool tried = false;
    json next{};  // of the last try
  };

  void accept(const ReceiptRow& first) {
    const auto accepted = first.body.find("accepted");
    if (accepted == first.body.end()) {
      at_ = receipt_row_begin(first);  // the first rows are gone
      return;
    }
    at_ = model::from_unix_ms(accepted->at("at").get<std::int64_t>());
    json details = *accepted;
    details.erase("at");
    details.erase("recorded");
    steps_.push_back({StepWhat::accepted, WaitCause::none, at_, std::chrono::microseconds(0),
                      std::move(details)});
  }

  void take(const ReceiptRow& row) {
    const auto kind = receipt_row_kind(row);
    if (kind == "waits") return take_wait(row);
    if (kind == "turn") return take_turn(row);
    if (kind == "ran") return take_run(row);
    if (kind == "call") return take_call(row);
    take_delivery(row);
  }

  void wait(WaitCause cause, Timestamp from, Timestamp until, json details = json::object()) {
    if (until <= from) return;
    steps_.push_back({StepWhat::waited, cause, from, until - from, std::move(details)});
  }
  void wait_on(WaitCause cause, Timestamp from, json details = json::object()) {
    steps_.push_back({StepWhat::waited, cause, from, std::nullopt, std::move(details)});
  }

  void take_wait(const ReceiptRow& row) {
    wait(WaitCause::queue, at_, row.written_at);
    at_ = row.written_at;
    next_cause_ = WaitCause::session;
    next_details_ = receipt_row_details(row);
  }

  void take_turn(const ReceiptRow& row) {
    auto details = receipt_row_details(row);
    if (row.body.contains("recovery")) {
      next_cause_ = WaitCause::recovery;
    } else if (next_cause_ == WaitCause::queue && details.contains("behind")) {
      next_cause_ = WaitCause::session;
      next_details_ = {{"behind", details["behind"]}};
    }
    details.erase("behind");
    wait(next_cause_, at_, receipt_row_begin(row), std::move(next_details_));
    if (const auto range = row.body.find("outputs"); range != row.body.end()) {
      details["outputs"] = outputs_of(*range, row.written_at);
    }
    const bool waits = details.contains("waitsFor");
    next_details_ = waits ? json{{"waitsFor", details["waitsFor"]}} : json::object();
    const bool sleeps = waits && details["waitsFor"].contains("until");
    next_cause_ = sleeps ? WaitCause::sleep : waits ? WaitCause::call : WaitCause::queue;
    steps_.push_back({StepWhat::turn, WaitCause::none, receipt_row_begin(row),
                      receipt_row_length(row), std::move(details)});
    wait(WaitCause::commit, receipt_row_end(row), row.written_at);
    at_ = row.written_at;
  }

  // A `collect` has kept the event until the Turn of another input.
  void take_run(const ReceiptRow& row) {
    wait(WaitCause::collect, at_, receipt_row_begin(row));
    steps_.push_back({StepWhat::ran, WaitCause::none, receipt_row_begin(row),
                      receipt_row_length(row), receipt_row_details(row)});
    at_ = std::max(at_, receipt_row_begin(row));
  }

  void take_call(const ReceiptRow& row) {
    wait(next_cause_, at_, receipt_row_begin(row), next_details_);
    steps_.push_back({StepWhat::call, WaitCause::none, receipt_row_begin(row),
                      receipt_row_length(row), receipt_row_details(row)});
    at_ = receipt_row_end(row);
    const bool again = row.body.contains("next");
    next_cause_ = again ? WaitCause::retry : WaitCause::queue;
    next_details_ = again ? json{{"next", row.body["next"]}} : json::object();
  }

  // The Turn's outputs. `range`: the first number, and how many.
  json outputs_of(const json& range, Timestamp written_at) {
    json outputs = json::array();
    const auto first = range.at(0).get<std::int64_t>();
    const auto end = first + range.at(1).get<std::int64_t>();
    for (const auto& output : receipt_.outputs) {
      if (output.seq < first || output.seq >= end) continue;
      tracks_[output.seq] = {.at = written_at};
      outputs.push_back({{"_id", output.id}, {"seq", output.seq}, {"pending", output.pending}});
    }
    return outputs;
  }

  // Deliveries of a session go one after the other.
  void wait_untried(model::Timestamp at, model::Timestamp until, const json& output) {
    if (delivered_ > at) {
      wait(WaitCause::output, at, std::min(delivered_, until), output);
      at = std::min(delivered_, until);
    }
    wait(WaitCause::connection, at, until, output);
  }

  void take_delivery(const ReceiptRow& row) {
    const auto seq = row.body.at("seq").get<std::int64_t>();
    auto [track, is_new] = tracks_.try_emplace(seq, Track{.at = receipt_row_begin(row)});
    auto& [at, tried, next] = track->second;
    const auto begin = receipt_row_begin(row);
    const json output{{"seq", seq}};
    const auto done = row.body.value("done", "");
    if (!done.empty()) {
      // Only a dropped output has waited until now.
      if (done == "dropped" && tried) {
        wait(WaitCause::retry, at, begin, output);
      } else if (done == "dropped") {
        wait_untried(at, begin, output);
      }
      forget_next_try(seq);
      steps_.push_back({StepWhat::delivery, WaitCause::none, begin, std::chrono::microseconds(0),
                        receipt_row_details(row)});
      track->second = {.at = begin};
      return;
    }
    if (tried) {
      wait(WaitCause::retry, at, begin, merged_details(output, next));
    } else {
      wait_untried(at, begin, output);
    }
    steps_.push_back({StepWhat::delivery, WaitCause::none, begin, receipt_row_length(row),
                      receipt_row_details(row)});
    tried = true;
    next = row.body.contains("next") ? json{{"next", row.body["next"]}} : json::object();
    at = receipt_row_end(row);
    delivered_ = std::max(delivered_, at);
  }

  // The try that the last one announced is not made.
  void forget_next_try(std::int64_t seq) {
    const auto is_try = [&](const ReceiptStep& step) {
      return step.what == StepWhat::delivery && step.details.value("seq", std::int64_t{0}) == seq;
    };
    const auto last = std::find_if(steps_.rbegin(), steps_.rend(), is_try);
    if (last != steps_.rend()) last->details.erase("next");
  }

  void open_steps() {
    if (receipt_.waits_in_inbox || receipt_.runs) {
      wait_on(next_cause_, at_, std::move(next_details_));
    } else if (is_kept_) {
      wait_on(WaitCause::collect, at_);
    }
    for (const auto& output : receipt_.outputs) {
      if (!output.pending) {
        forget_next_try(output.seq);
        continue;
      }
      const auto track = tracks_.find(output.seq);
      const auto [at, tried, next] =
          track == tracks_.end() ? Track{.at = output.created_at} : track->second;
      const auto cause = tried              ? WaitCause::retry
                         : output.is_behind ? WaitCause::output
                                            : WaitCause::connection;
      wait_on(cause, at, merged_details({{"seq", output.seq}}, tried ? next : json::object()));
    }
  }

  const store::Receipt& receipt_;
  const bool is_kept_;  // by a `collect`
  std::vector<ReceiptStep> steps_;
  Timestamp at_{};  // the end of the execution's last step
  WaitCause next_cause_ = WaitCause::queue;
  json next_details_ = json::object();
  std::map<std::int64_t, Track> tracks_;  // by the output's number
  Timestamp delivered_;                   // the end of the last try of any output
};

}  // namespace

std::string_view to_string(ReceiptStep::What what) {
  return step_names.name_of(what);
}

std::string_view to_string(ReceiptStep::Cause cause) {
  return cause_names.name_of(cause);
}

std::vector<ReceiptStep> steps_of(const store::Receipt& receipt, bool is_kept) {
  return ReceiptWaterfall(receipt, is_kept).steps();
}

}  // namespace conversed::api
