#include "daemon/jobs/bulk_work.h"

#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>

#include "daemon/jobs/await_answers.h"
#include "store/conversation/filters.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;
using model::Job;
using model::JobState;
using model::Result;
using nlohmann::json;
using std::chrono::milliseconds;
using store::DeadLetter;
using store::DeadLetters;
using store::Deliveries;
using store::Writer;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr std::size_t letters_examined = 200;
// The changes of a step are one transaction, which the writes of all projects wait for.
constexpr std::size_t changes_a_step = 25;
// A step examines further pages while no row fits.
constexpr int pages_a_step = 50;
constexpr milliseconds longest_rest{1'000};
constexpr std::size_t most_reasons = 10;

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
    if (job_.fencing_token - data_.value("lease", std::int64_t{0}) > JobHold::max_leases) {
      return finish(JobState::error,
                    "The job was begun " + std::to_string(JobHold::max_leases) +
                        " times without progress. The daemon's log has the reason.");
    }
    data_["lease"] = job_.fencing_token;
    model::fault_point("job.before_step");
    const bool of_letters =
        job_.type == model::replay_dead_letters || job_.type == model::discard_dead_letters;
    auto advanced = of_letters ? advance_letters() : advance_deliveries();
    // Another shard may be away, or move a partition. That does not count against the job.
    const bool is_elsewhere =
        !advanced && at_shard() > 0 &&
        (advanced.error().code == Errc::unavailable || advanced.error().code == Errc::timed_out);
    if (is_elsewhere) return put_off(advanced.error());
    return advanced ? rest() : advanced;
  }

  Result<void> finish(JobState state, const std::string& reason) {
    return store_.jobs().finish(job_.id, job_.fencing_token, state, reason);
  }

 private:
  using Change = std::function<Result<void>(Writer&)>;

  [[nodiscard]] bool has_begun() const { return data_.contains("last"); }

  // The shard that the walk has reached.
  [[nodiscard]] std::size_t at_shard() const { return data_.value("shard", std::size_t{0}); }
  [[nodiscard]] store::Shard& shard() const { return *store_.shards().at(at_shard()); }

  // The walk through the shard goes from `first` to `last`.
  Result<void> begin(std::int64_t first, std::int64_t last) {
    data_["first"] = first;
    data_["last"] = last;
    data_["after"] = first - 1;
    if (at_shard() == 0) {
      data_["changed"] = 0;
      data_["skipped"] = 0;
    }
    if (last == 0) return commit(0, true, {});
    return store_.jobs().step(job_.id, job_.fencing_token, {.data = data_});
  }

  // Makes the changes and stores the progress, in the first shard by one transaction. In another
  // shard the changes come first. A crash in between makes them again, and counts them as skipped.
  // `rest` follows.
  Result<void> commit(std::int64_t at, bool walked_shard, const std::vector<Change>& changes) {
    const auto begin = SteadyClock::now();
    const bool in_first = at_shard() == 0;
    const bool is_over = walked_shard && at_shard() + 1 == store_.shards().size();
    const json before = data_;
    const auto make = [&](Writer& writer) {
      data_ = before;
      return make_changes(writer, changes);
    };
    if (!in_first) {
      if (auto made = shard().committer().write_and_wait(make); !made) {
        data_ = before;
        return made;
      }
    }
    auto written =
        store_.committer().write_and_wait([&, made = data_](Writer& writer) -> Result<void> {
          data_ = made;
          if (auto done = in_first ? make(writer) : Result<void>(); !done) return done;
          data_["after"] = at;
          const int progress = progress_at(at);
          if (walked_shard && !is_over) enter_next_shard();
          auto kept = store_.jobs().step(writer, job_.id, job_.fencing_token,
                                         {.progress = progress, .data = data_});
          if (!kept || !is_over) return kept;
          return store_.jobs().finish(writer, job_.id, job_.fencing_token, JobState::done, "");
        });
    if (!written) return written;
    model::fault_point("job.after_step");
    if (!is_over) took_ = SteadyClock::now() - begin;
    return {};
  }

  Result<void> make_changes(Writer& writer, const std::vector<Change>& changes) {
    for (const auto& change : changes) {
      auto changed = change(writer);
      if (!changed && !is_settled(changed.error())) return changed;
      count(changed ? "changed" : "skipped");
      if (!changed) count_reason(changed.error().message);
    }
    return {};
  }

  [[nodiscard]] int progress_at(std::int64_t row) const {
    const auto walked = static_cast<int>(at_shard()) * 100;
    return (walked + percent(data_.at("first"), row, data_.at("last"))) /
           static_cast<int>(store_.shards().size());
  }

  void enter_next_shard() {
    data_["shard"] = at_shard() + 1;
    for (const char* name : {"first", "last", "after", "afterSeq"}) data_.erase(name);
  }

  // Waits about as long as the commit took: other writers get half of the time. A notification of
  // the job's own change ends a wait early.
  Result<void> rest() {
    const auto end = SteadyClock::now() + std::min<SteadyClock::duration>(took_, longest_rest);
    for (auto now = SteadyClock::now(); now < end; now = SteadyClock::now()) {
      if (!hold_.wait(std::chrono::ceil<milliseconds>(end - now))) {
        return fail(Errc::unavailable, "the worker stops");
      }
    }
    return {};
  }

  // Why rows were skipped, and how many for each reason.
  void count_reason(const std::string& reason) {
    json& reasons = data_["reasons"];
    if (reasons.is_null()) reasons = json::object();
    if (!reasons.contains(reason) && reasons.size() >= most_reasons) return;
    reasons[reason] = reasons.value(reason, std::int64_t{0}) + 1;
  }

  [[nodiscard]] std::string by() const { return data_.value("by", ""); }

  void count(const char* name) { data_[name] = data_.at(name).get<std::int64_t>() + 1; }

  // ---- Dead letters

  Result<void> advance_letters() {
    if (!has_begun()) {
      const auto span = shard().dead_letters().span(job_.project_id);
      return span ? begin(span->first, span->last) : fail(span.error());
    }
    const auto filter = store::dead_letter_filter_from(job_.project_id, data_.at("filter"));
    if (!filter) return fail(filter.error());
    const auto window_behind = [&](std::int64_t row) {
      return shard().dead_letters().window(*filter, row, data_.at("last"), letters_examined);
    };
    auto window = window_behind(data_.at("after"));
    for (int n = 1; n < pages_a_step && window && window->letters.empty() && window->last > 0;
         ++n) {
      auto next = window_behind(window->last);
      if (!next) break;  // the progress so far is stored
      window = std::move(next);
    }
    if (!window) return fail(window.error());
    if (window->last == 0) return commit(data_.at("last"), true, {});
    auto& letters = window->letters;
    if (letters.size() > changes_a_step) {
      letters.erase(letters.begin() + changes_a_step, letters.end());
      window->last = letters.back().row;
    }
    const bool replays = job_.type == model::replay_dead_letters;
    std::vector<Change> changes;
    std::map<std::string, std::deque<model::Event>> events;  // by session
    for (const DeadLetter& letter : letters) {
      if (!replays || letter.output_seq) {
        changes.emplace_back([this, &letter, replays](Writer& writer) {
          return replays ? replay_output(writer, letter)
                         : DeadLetters::discard(writer, letter.key.project_id, letter.id, by());
        });
        continue;
      }
      auto event = store::event_to_replay(letter, clock_.now());
      changes.emplace_back(
          [outcome = event ? Result<void>() : fail(event.error())](Writer&) { return outcome; });
      if (event) events[letter.key.encode()].push_back(*std::move(event));
    }
    if (auto appended = append(std::move(events)); !appended) return put_off(appended.error());
    model::fault_point("job.after_appends");
    return commit(window->last, false, changes);
  }

  // A log that fails does not count against the job: the rescuer takes it up until the log works.
  Result<void> put_off(const model::Error& error) {
    if (error.code != Errc::too_large && error.code != Errc::bad_upstream) {
      auto kept = store_.jobs().step(job_.id, job_.fencing_token, {.data = data_});
      if (!kept) return kept;
    }
    return fail(error);
  }

  Result<void> replay_output(Writer& writer, const DeadLetter& letter) {
    auto done = DeadLetters::replay_output(writer, letter.key.project_id, letter.id, by());
    if (done && ports_.deliver) {
      writer.on_commit([this_deliver = ports_.deliver, key = letter.key] { this_deliver(key); });
    }
    return done;
  }

  // Appends the next event of each session and waits, until no event is left. So the log has the
  // events of a session in their order, even if an append fails.
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
    const auto answers =
        await_answers<Result<queue::Appended>>(hold_, round.size(), [&](const auto& done) {
          for (auto& event : round) ports_.append(std::move(event), done);
        });
    if (!answers) return fail(answers.error());
    const auto failed = std::ranges::find_if(*answers, [](const auto& each) { return !each; });
    return failed == answers->end() ? Result<void>() : fail(failed->error());
  }

  // ---- Deliveries

  Result<void> advance_deliveries() {
    auto filter = store::delivery_filter_from(job_.project_id, data_.at("filter"));
    if (!filter) return fail(filter.error());
    if (!has_begun()) {
      const auto sessions = shard().deliveries().sessions(*filter);
      return sessions ? begin(sessions->first, sessions->last) : fail(sessions.error());
    }
    // Outputs that the job's own retries lead to are not its work.
    filter->created_before =
        std::min(filter->created_before.value_or(model::Timestamp::max()), job_.created_at);
    const Deliveries::Step after{data_.at("after"), data_.value("afterSeq", behind_all)};
    const auto walked = walk(*filter, after);
    if (!walked) return fail(walked.error());
    if (walked->next) {
      const auto seq = next_seq(*std::move(filter), *walked);
      if (!seq) return fail(seq.error());
      data_["afterSeq"] = *seq;
    }
    std::vector<Change> changes;
    std::vector<model::SessionKey> sessions;
    for (const auto& row : walked->rows) {
      const bool begins_session = sessions.empty() || sessions.back() != row.key;
      if (begins_session) sessions.push_back(row.key);
      // A retry concerns a whole session.
      if (begins_session || drops()) changes.push_back(change_of(row));
    }
    auto done =
        commit(walked->next ? walked->next->session : after.session, !walked->next, changes);
    if (!done) return done;
    const auto& tell = drops() ? ports_.deliver : ports_.retry;
    for (const auto& key : sessions) {
      if (tell) tell(key);
    }
    return {};
  }

  [[nodiscard]] bool drops() const { return job_.type == model::drop_deliveries; }

  [[nodiscard]] Change change_of(const store::PendingDelivery& row) const {
    if (drops()) {
      return [this, &row](Writer& writer) { return Deliveries::drop(writer, row, by()); };
    }
    return [&row](Writer& writer) { return Deliveries::retry(writer, row); };
  }

  // The outputs behind `place` that fit. Pages without such outputs are passed by.
  Result<Deliveries::Walked> walk(const Deliveries::Filter& filter, const Deliveries::Step& place) {
    const auto page_behind = [&](const Deliveries::Step& from) {
      return shard().deliveries().walk(filter, from, data_.at("last"), changes_a_step,
                                       store_.timer_now());
    };
    auto walked = page_behind(place);
    for (int n = 1; n < pages_a_step && walked && walked->rows.empty() && walked->next; ++n) {
      auto next = page_behind(*walked->next);
      if (!next) break;  // the progress so far is stored
      walked = std::move(next);
    }
    return walked;
  }

  // The next step begins behind the output with this number, in the session where `walked` ends.
  Result<std::int64_t> next_seq(Deliveries::Filter filter, const Deliveries::Walked& walked) {
    if (drops() || walked.rows.empty()) return walked.next->seq;
    // The walk passes by the other outputs of a retried session.
    filter.session = walked.rows.back().key;
    const auto retried = shard().deliveries().sessions(filter);
    if (!retried) return fail(retried.error());
    return retried->last == walked.next->session ? behind_all : walked.next->seq;
  }

  // A number behind all outputs of a session.
  static constexpr std::int64_t behind_all = std::numeric_limits<std::int64_t>::max();

  store::Store& store_;
  const model::Clock& clock_;
  const BulkWorkPorts& ports_;
  const Job& job_;
  JobHold& hold_;
  json data_;
  SteadyClock::duration took_{0};  // the commit that `rest` follows
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
