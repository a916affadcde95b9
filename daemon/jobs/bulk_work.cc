#include "daemon/jobs/bulk_work.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "store/conversation/filters.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;
using model::Job;
using model::JobState;
using model::Result;
using nlohmann::json;
using store::DeadLetter;
using store::DeadLetters;
using store::Deliveries;
using store::Writer;

namespace {

constexpr std::size_t rows_a_step = 200;
// After this many leases a step of the job probably ends the daemon each time.
constexpr std::int64_t max_leases = 100;
constexpr std::chrono::milliseconds look_interval{60'000};  // while appends are awaited

// A row that has changed meanwhile. It needs nothing more.
bool is_settled(const model::Error& error) {
  return error.code == Errc::conflict || error.code == Errc::not_found;
}

int percent(std::int64_t first, std::int64_t at, std::int64_t last) {
  return last <= first ? 0 : static_cast<int>((at - first) * 100 / (last - first + 1));
}

class Work {
 public:
  Work(store::Store& store, const model::Clock& clock, const BulkWorkPorts& ports, const Job& job,
       JobHold& hold)
      : store_(store), clock_(clock), ports_(ports), job_(job), hold_(hold), data_(job.data) {}

  // Throws nlohmann's exceptions on data of another shape.
  Result<void> advance() {
    if (job_.state == JobState::cancelling) return finish(JobState::cancelled, "");
    if (job_.fencing_token > max_leases) {
      return finish(JobState::error,
                    "The job was begun " + std::to_string(max_leases) +
                        " times and never ended. The daemon's log has the reason.");
    }
    model::fault_point("job.before_step");
    const bool of_letters =
        job_.type == model::replay_dead_letters || job_.type == model::discard_dead_letters;
    return of_letters ? advance_letters() : advance_deliveries();
  }

  Result<void> finish(JobState state, const std::string& reason) {
    return store_.jobs().finish(job_.id, job_.fencing_token, state, reason);
  }

 private:
  using Change = std::function<Result<void>(Writer&)>;

  [[nodiscard]] bool has_begun() const { return data_.contains("last"); }

  // The walk goes from `first` to `last`.
  Result<void> begin(std::int64_t first, std::int64_t last) {
    data_["first"] = first;
    data_["last"] = last;
    data_["after"] = first - 1;
    data_["changed"] = 0;
    data_["skipped"] = 0;
    if (last == 0) return commit(0, true, {});
    return store_.jobs().step(job_.id, job_.fencing_token, {.data = data_});
  }

  // Makes the changes and stores the progress in one transaction.
  Result<void> commit(std::int64_t at, bool is_over, const std::vector<Change>& changes) {
    const json before = data_;
    auto written = store_.committer().write_and_wait([&](Writer& writer) -> Result<void> {
      data_ = before;
      data_["after"] = at;
      for (const auto& change : changes) {
        auto changed = change(writer);
        if (!changed && !is_settled(changed.error())) return changed;
        count(changed ? "changed" : "skipped");
      }
      auto kept = store_.jobs().step(
          writer, job_.id, job_.fencing_token,
          {.progress = percent(data_.at("first"), at, data_.at("last")), .data = data_});
      if (!kept || !is_over) return kept;
      return store_.jobs().finish(writer, job_.id, job_.fencing_token, JobState::done, "");
    });
    if (written) model::fault_point("job.after_step");
    return written;
  }

  void count(const char* name) { data_[name] = data_.at(name).get<std::int64_t>() + 1; }

  // ---- Dead letters

  Result<void> advance_letters() {
    if (!has_begun()) {
      const auto span = store_.dead_letters().span(job_.project_id);
      return span ? begin(span->first, span->last) : fail(span.error());
    }
    const auto filter = store::dead_letter_filter_from(job_.project_id, data_.at("filter"));
    if (!filter) return fail(filter.error());
    auto window =
        store_.dead_letters().window(*filter, data_.at("after"), data_.at("last"), rows_a_step);
    if (!window) return fail(window.error());
    if (window->last == 0) return commit(data_.at("last"), true, {});
    const bool replays = job_.type == model::replay_dead_letters;
    std::vector<Change> changes;
    std::map<std::string, std::deque<model::Event>> events;  // by session
    for (const DeadLetter& letter : window->letters) {
      if (!replays || letter.output_seq) {
        changes.push_back([this, &letter, replays](Writer& writer) {
          return replays ? replay_output(writer, letter)
                         : DeadLetters::discard(writer, letter.key.project_id, letter.id);
        });
        continue;
      }
      auto event = store::event_to_replay(letter, clock_.now());
      const Result<void> outcome = event ? Result<void>() : fail(event.error());
      changes.push_back([outcome](Writer&) { return outcome; });
      if (event) events[letter.key.encode()].push_back(*std::move(event));
    }
    if (auto appended = append(std::move(events)); !appended) return appended;
    model::fault_point("job.after_appends");
    return commit(window->last, false, changes);
  }

  Result<void> replay_output(Writer& writer, const DeadLetter& letter) {
    auto done = DeadLetters::replay_output(writer, letter.key.project_id, letter.id);
    if (done && ports_.deliver) {
      writer.on_commit([this_deliver = ports_.deliver, key = letter.key] { this_deliver(key); });
    }
    return done;
  }

  // Appends the next event of each session, and waits, until none is left: the events of a session
  // are in the log in their order, even if an append fails.
  Result<void> append(std::map<std::string, std::deque<model::Event>> events) {
    while (!events.empty()) {
      std::vector<model::Event> round;
      for (auto& [key, rest] : events) {
        round.push_back(std::move(rest.front()));
        rest.pop_front();
      }
      std::erase_if(events, [](const auto& each) { return each.second.empty(); });
      if (auto appended = append_round(std::move(round)); !appended) return appended;
    }
    return {};
  }

  // If the daemon stops meanwhile, the appends go on and their answers are dropped.
  Result<void> append_round(std::vector<model::Event> round) {
    struct Awaited {
      std::mutex mutex;
      JobHold* hold = nullptr;  // null: nothing waits any more
      std::size_t left = 0;
      Result<void> outcome;
    };
    const auto awaited = std::make_shared<Awaited>();
    awaited->hold = &hold_;
    awaited->left = round.size();
    for (auto& event : round) {
      ports_.append(std::move(event), [awaited](const Result<queue::Appended>& appended) {
        const std::lock_guard lock(awaited->mutex);
        if (!appended) awaited->outcome = fail(Errc::unavailable, appended.error().message);
        if (--awaited->left == 0 && awaited->hold != nullptr) awaited->hold->notify();
      });
    }
    for (;;) {
      {
        const std::lock_guard lock(awaited->mutex);
        if (awaited->left == 0) return awaited->outcome;
      }
      if (hold_.wait(look_interval)) continue;
      const std::lock_guard lock(awaited->mutex);
      awaited->hold = nullptr;
      return fail(Errc::unavailable, "the worker stops");
    }
  }

  // ---- Deliveries

  Result<void> advance_deliveries() {
    auto filter = store::delivery_filter_from(job_.project_id, data_.at("filter"));
    if (!filter) return fail(filter.error());
    if (!has_begun()) {
      const auto sessions = store_.deliveries().sessions(*filter);
      return sessions ? begin(sessions->first, sessions->last) : fail(sessions.error());
    }
    // Outputs that the job's own retries lead to are not its work.
    filter->created_before =
        std::min(filter->created_before.value_or(model::Timestamp::max()), job_.created_at);
    const Deliveries::Step after{data_.at("after"), data_.value("afterSeq", behind_all)};
    auto walked =
        store_.deliveries().walk(*filter, after, data_.at("last"), rows_a_step, store_.timer_now());
    if (!walked) return fail(walked.error());
    const bool drops = job_.type == model::drop_deliveries;
    std::vector<Change> changes;
    std::set<model::SessionKey> sessions;
    for (const auto& row : walked->rows) {
      // A retry concerns a whole session.
      if (!sessions.insert(row.key).second && !drops) continue;
      changes.push_back([drops, &row](Writer& writer) {
        return drops ? Deliveries::drop(writer, row) : Deliveries::retry(writer, row);
      });
    }
    if (walked->next) data_["afterSeq"] = walked->next->seq;
    auto done =
        commit(walked->next ? walked->next->session : after.session, !walked->next, changes);
    if (!done) return done;
    const auto& tell = drops ? ports_.deliver : ports_.retry;
    for (const auto& key : sessions) {
      if (tell) tell(key);
    }
    return {};
  }

  // Behind the outputs of the session before the first one.
  static constexpr std::int64_t behind_all = std::numeric_limits<std::int64_t>::max();

  store::Store& store_;
  const model::Clock& clock_;
  const BulkWorkPorts& ports_;
  const Job& job_;
  JobHold& hold_;
  json data_;
};

}  // namespace

Result<void> BulkWork::advance(const Job& job, JobHold& hold) {
  Work work(store_, clock_, ports_, job, hold);
  try {
    auto done = work.advance();
    if (done || done.error().code != Errc::internal) return done;
    return work.finish(JobState::error, done.error().message);
  } catch (const json::exception&) {
    return work.finish(JobState::error, "The data of the job can't be read.");
  }
}

}  // namespace conversed::daemon
