// Compares generated histories of sessions with a simple model of the expected outputs. The
// histories contain messages, injects, silences, quiet hours, clocks set by a day, schedulers that
// append twice, late or after a message, follow-up Flows with a call, deliveries that begin or are
// withdrawn, records that come again, workers with the same records in hand, and restarts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <future>
#include <latch>
#include <map>
#include <random>
#include <thread>

#include "tests/unit/daemon/follow_up_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

constexpr const char* journey =
    R"({after: 20m, flow: Nudge, maxPerSession: 2, maxPerDay: 3, expiresAfter: 4h,
        quietHours: {from: "02:00", to: "04:00", timezone: UTC}})";
constexpr int max_per_session = 2;
constexpr int max_per_day = 3;
constexpr auto quiet_from = 2h;
constexpr auto quiet_to = 4h;
constexpr auto session_expiry = 30min;
constexpr auto silence = 20min;
constexpr auto expiry = 4h;
constexpr auto node_silence = 1h;
constexpr auto node_expiry = 2h;

constexpr int rounds_in_a_history = 10;
constexpr std::size_t workers = 3;
constexpr std::size_t histories_at_once = 100;  // they share a clock and restarts only

// The expected state of a session. The model knows no claims, rows or positions. Times are the wall
// clock's, except in `Pending`, which has the clock of timers.
struct Model {
  struct Pending {
    model::Timestamp due;
    model::Timestamp expires;
    bool of_journey;
    std::string text;
  };
  struct Said {
    std::string text;
    bool withdrawable;
  };
  bool hooked = false;  // its outputs go to a webhook
  std::map<std::string, Pending> pending;
  int sent = 0;
  int today = 0;  // the follow-ups on `day`
  std::chrono::sys_days day;
  model::Timestamp last_activity{};
  bool slow = false;        // the follow-up Flow makes a call
  std::string call;         // the pending call of that Flow
  std::deque<Event> inbox;  // the events that wait for the call's result
  std::vector<Said> said;

  model::Timestamp now{};
  std::chrono::milliseconds ahead{};  // the clock of timers minus `now`

  // Called in log order. Runs at `now`.
  void on_event(const Event& event) {
    if (event.type == EventType::call_result) {
      if (event.claim->id != call) return;
      call.clear();
      said.push_back({"And now?", hooked});
      return drain();
    }
    if (event.type == EventType::follow_up && !pending.contains(event.claim->id)) return;
    if (event.type == EventType::user_message) {
      cancel();
      call.clear();
    }
    inbox.push_back(event);
    drain();
  }

 private:
  void drain() {
    while (call.empty() && !inbox.empty()) {
      Event event = std::move(inbox.front());
      inbox.pop_front();
      // An event accepted while the clock was ahead counts as accepted now.
      event.accepted_at = std::min(event.accepted_at, now);
      if (event.type == EventType::follow_up) {
        on_due(event);
      } else {
        if (event.type == EventType::user_message) cancel();
        on_input(event);
      }
    }
  }
  void cancel() {
    pending.clear();
    std::erase_if(said, [](const Said& one) { return one.withdrawable; });
  }

  static model::Timestamp past_quiet(model::Timestamp time) {
    const auto midnight = std::chrono::floor<std::chrono::days>(time);
    const auto of_day = time - midnight;
    return of_day >= quiet_from && of_day < quiet_to ? midnight + quiet_to : time;
  }
  bool allows(model::Timestamp time) const {
    return sent < max_per_session &&
           (std::chrono::floor<std::chrono::days>(time) != day || today < max_per_day);
  }

  void on_input(const Event& event) {
    if (event.accepted_at - last_activity > session_expiry) {  // the session restarts
      sent = 0;
      slow = false;
    }
    last_activity = std::max(last_activity, event.accepted_at);
    if (event.text == "bye") cancel();
    if (event.text == "slow") slow = true;
    if (event.text == "later") {
      pending[event.id + "-f1"] = {past_quiet(now + node_silence) + ahead,
                                   now + node_expiry + ahead, false, "As you wished, later"};
    }
    said.push_back({"echo " + *event.text, false});
    const bool has_own = event.text == "later" || event.text == "bye";
    if (has_own || event.type != EventType::user_message) return;
    const auto due = past_quiet(now + silence);
    if (!allows(due)) return;
    pending[event.id + "-f0"] = {due + ahead, now + expiry + ahead, true, "Still there?"};
  }

  void on_due(const Event& event) {
    const auto found = pending.find(event.claim->id);
    if (found == pending.end()) return;
    Pending it = found->second;
    pending.erase(found);
    if (now + ahead >= it.expires || (it.of_journey && !allows(now))) return;
    if (const auto later = past_quiet(now); later > now) {
      it.due = later + ahead;
      pending[event.claim->id + "q"] = it;
      return;
    }
    last_activity = std::max(last_activity, event.accepted_at);
    said.push_back({it.text, hooked});
    if (!it.of_journey) return;
    ++sent;
    const auto on = std::chrono::floor<std::chrono::days>(now);
    today = on == day ? today + 1 : 1;
    day = on;
    if (slow) call = event.id + "-c1";
  }
};

using Records = std::vector<queue::LogRecord>;

// One session with its partition of the log.
struct History {
  model::SessionKey key;
  Model model;
  std::deque<std::pair<Event, queue::LogRecord>> log;  // records that no worker has taken yet
  std::vector<Records> runs;  // the records that workers take in this round
  std::int64_t next_offset = 0;
  bool contested = false;  // two workers have them in this round
};

class FollowUpHistories : public FollowUpWorld {
 protected:
  void SetUp() override {
    FollowUpWorld::SetUp();
    set_up(journey);
    timer_clock_ = &unset_clock_;
  }
  void TearDown() override { timer_clock_ = nullptr; }

  std::size_t below(std::size_t bound) { return random_() % bound; }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }

  Event said_by_somebody() {
    static const Texts words{"hi", "hello", "later", "slow", "bye"};
    return event(words[below(words.size())],
                 chance(3) ? EventType::inject : EventType::user_message);
  }

  // --- The steps of a round ---------------------------------------------------------------------

  void move_the_clock() {
    switch (below(8)) {
      case 0:
        return clock_.advance(24h);
      case 1:
        return clock_.advance(-24h);
      case 2:
        return pass_by(24h);
      case 3:
        return;
      case 4:
        return pass_by(silence);
      default:
        return pass_by(std::chrono::minutes(1 + below(90)));
    }
  }
  void pass_by(std::chrono::milliseconds time) {
    steady_ += time;
    clock_.advance(time);
  }

  // Restarts as after a kill: nothing is written to the store before.
  void restart() {
    cache_.reset();
    store_.reset();
    auto opened = store::Store::open(store_settings(), clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    store_->committer().start();
    cache_ = std::make_unique<api::AssetsCache>(store_->assets());
  }

  // Appends the due follow-ups, once or twice, before or after new messages. Sometimes the
  // scheduler is late and appends none.
  void append(History& history) {
    key_ = history.key;
    std::vector<Event> events;
    if (!chance(6)) {
      for (const auto& follow_up : waiting()) {
        if (follow_up.due_at > timers_.now()) continue;
        events.push_back(due_event(follow_up));
        if (chance(4)) events.push_back(due_event(follow_up));
      }
    }
    const std::string call = history.model.call;
    if (!call.empty() && !chance(3)) events.push_back(result_of(call));
    for (auto more = below(3); more > 0; --more) {
      const auto at = static_cast<std::ptrdiff_t>(below(events.size() + 1));
      events.insert(events.begin() + at, said_by_somebody());
    }
    for (auto& made : events) append(history, std::move(made));
  }

  // Cuts the log, or a part of it, into the runs of the workers.
  void hand_out(History& history, bool whole) {
    history.runs.clear();
    history.contested = chance(8);
    history.model.now = clock_.now();
    history.model.ahead = unset_clock_.offset();
    while (!history.log.empty() && (whole || !chance(6))) {
      auto& run = history.runs.emplace_back();
      for (auto left = 1 + below(history.log.size()); left > 0; --left) {
        history.model.on_event(history.log.front().first);
        run.push_back(std::move(history.log.front().second));
        history.log.pop_front();
      }
    }
  }

  // --- Workers ----------------------------------------------------------------------------------

  TurnBatch build_for(const History& history, const Records& records) {
    auto batch = build_turn_batch(context(), {.key = history.key, .records = records});
    EXPECT_TRUE(batch) << batch.error().message;
    return batch ? std::move(*batch) : TurnBatch{};
  }

  // Builds and commits until the records' effects are committed, by this worker or another one.
  void run_again(const History& history, const Records& records) {
    for (TurnBatch batch = build_for(history, records); batch.changes;
         batch = build_for(history, records)) {
      if (commit_now(batch) == Outcome::committed) return;
    }
  }

  void drain(const History& history) {
    for (TurnBatch batch = build_for(history, {}); batch.changes; batch = build_for(history, {})) {
      (void)commit_now(batch);
    }
  }

  // The run of this number of each of the worker's sessions, in few transactions.
  void run_all(const std::vector<const History*>& mine, std::size_t number) {
    struct Submitted {
      const History* history;
      Outcome outcome = Outcome::committed;
    };
    std::deque<Submitted> submitted;
    std::vector<TurnBatch> batches;
    for (const History* history : mine) {
      if (number >= history->runs.size()) continue;
      TurnBatch batch = build_for(*history, history->runs[number]);
      if (!batch.changes) continue;
      submitted.push_back({history});
      batches.push_back(std::move(batch));
    }
    std::latch committed(static_cast<std::ptrdiff_t>(batches.size()));
    for (std::size_t i = 0; i < batches.size(); ++i) {
      store_->committer().submit(std::move(batches[i].commit),
                                 [&, i](Outcome outcome, const auto&) {
                                   submitted[i].outcome = outcome;
                                   committed.count_down();
                                 });
    }
    committed.wait();
    for (const auto& [history, outcome] : submitted) {
      if (outcome != Outcome::committed) {
        EXPECT_TRUE(history->contested);
        run_again(*history, history->runs[number]);
      }
    }
    // The inbox continues as the lane's next run.
    for (const History* history : mine) {
      if (number < history->runs.size()) drain(*history);
    }
  }

  void work(std::size_t worker, const std::vector<History>& histories, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<const History*> mine;
    std::size_t most_runs = 0;
    for (std::size_t i = 0; i < histories.size(); ++i) {
      const bool own = i % workers == worker;
      if (!own && !(histories[i].contested && (i + 1) % workers == worker)) continue;
      mine.push_back(&histories[i]);
      most_runs = std::max(most_runs, histories[i].runs.size());
    }
    for (std::size_t number = 0; number < most_runs; ++number) {
      run_all(mine, number);
      // The worker ends before the log commits: the records come again.
      for (const History* history : mine) {
        if (number >= history->runs.size() || random() % 4 != 0) continue;
        if (history->contested) {
          // The other worker may have left events in the inbox. They continue now.
          run_again(*history, history->runs[number]);
        } else {
          EXPECT_FALSE(build_for(*history, history->runs[number]).changes);
        }
      }
    }
  }

  void work_all(const std::vector<History>& histories) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < workers; ++i) {
      threads.emplace_back([this, i, &histories, seed = static_cast<unsigned>(random_())] {
        work(i, histories, seed);
      });
    }
  }

  // --- Comparison with the model -----------------------------------------------------------------

  void compare(History& history) {
    const auto outputs = store_->first().outbox().outputs(history.key, 0, 1000);
    ASSERT_TRUE(outputs);
    Texts stored_texts;
    Texts expected_texts;
    for (const auto& output : *outputs) stored_texts.push_back(output.text);
    for (const auto& said : history.model.said) expected_texts.push_back(said.text);
    ASSERT_EQ(stored_texts, expected_texts);
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      auto& said = history.model.said[i];
      if (said.withdrawable && chance(3)) {
        begin_delivery(history, (*outputs)[i]);
        said.withdrawable = false;
      }
    }

    key_ = history.key;
    std::map<std::string, model::Timestamp> stored;
    for (const auto& follow_up : waiting()) stored[follow_up.id] = follow_up.due_at;
    std::map<std::string, model::Timestamp> expected;
    for (const auto& [id, pending] : history.model.pending) expected[id] = pending.due;
    ASSERT_EQ(stored, expected);
  }

  void begin_delivery(const History& history, const model::Output& output) {
    std::promise<model::Result<void>> begun;
    store_->first().outbox().begin_delivery(history.key, output,
                                            [&](auto done) { begun.set_value(done); });
    EXPECT_TRUE(begun.get_future().get());
  }

  enum class Take { some, all };
  void run_and_compare(std::vector<History>& histories, Take take) {
    for (auto& history : histories) hand_out(history, take == Take::all);
    work_all(histories);
    for (auto& history : histories) {
      SCOPED_TRACE(history.key.session_id);
      ASSERT_NO_FATAL_FAILURE(compare(history));
    }
  }

  void run_histories(std::size_t count, const std::string& name) {
    std::vector<History> histories(count);
    for (std::size_t i = 0; i < count; ++i) {
      histories[i].model.hooked = i % 2 == 1;
      histories[i].key =
          session(histories[i].model.hooked ? "hooked" : "quiet", name + std::to_string(i));
      histories[i].key.user_id = histories[i].key.session_id;
    }
    for (int i = 0; i < rounds_in_a_history; ++i) {
      SCOPED_TRACE("round " + std::to_string(i));
      move_the_clock();
      if (chance(6)) {
        ASSERT_NO_FATAL_FAILURE(restart());
      }
      for (auto& history : histories) append(history);
      ASSERT_NO_FATAL_FAILURE(run_and_compare(histories, Take::some));
    }
    // In the end every pending follow-up comes or has expired: no message arms a new one.
    ASSERT_NO_FATAL_FAILURE(run_and_compare(histories, Take::all));
    for (auto& history : histories) {
      key_ = history.key;
      const std::string call = history.model.call;
      if (!call.empty()) append(history, result_of(call));
    }
    ASSERT_NO_FATAL_FAILURE(run_and_compare(histories, Take::all));
    pass_by(48h);
    for (auto& history : histories) append_due(history);
    ASSERT_NO_FATAL_FAILURE(run_and_compare(histories, Take::all));
    for (const auto& history : histories) ASSERT_TRUE(history.model.pending.empty());
  }

  void append_due(History& history) {
    key_ = history.key;
    for (const auto& follow_up : waiting()) append(history, due_event(follow_up));
  }

  void append(History& history, Event made) {
    next_offset_ = history.next_offset++;
    auto entry = record(made);
    history.log.emplace_back(std::move(made), std::move(entry));
  }

  std::mt19937 random_;
  std::chrono::milliseconds steady_{0};
  TimerClock unset_clock_{clock_, [this] { return steady_; }};
};

TEST_F(FollowUpHistories, EveryExpectedFollowUpComesOnceAndNoOther) {
  const bool nightly = std::getenv("CONVERSED_NIGHTLY") != nullptr;
  const std::size_t histories = nightly ? 100'000 : 500;
  const char* given = std::getenv("CONVERSED_TEST_SEED");
  const auto seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                                     : std::random_device{}();
  random_.seed(seed);
  for (std::size_t done = 0; done < histories; done += histories_at_once) {
    SCOPED_TRACE("CONVERSED_TEST_SEED=" + std::to_string(seed) + ", histories from " +
                 std::to_string(done));
    ASSERT_NO_FATAL_FAILURE(run_histories(histories_at_once, "s" + std::to_string(done) + "-"));
  }
}

}  // namespace
}  // namespace conversed::daemon
