// Generated histories of sessions beside a simple model of what has to be said: messages, injects,
// silences, clocks that jump by a day, schedulers that append twice, late, or after a message,
// records that are delivered again, workers that have the same records in hand, restarts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <latch>
#include <map>
#include <random>
#include <thread>

#include "tests/unit/daemon/follow_up_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

constexpr int max_per_session = 2;
constexpr auto session_expiry = 30min;
constexpr auto silence = 20min;
constexpr auto expiry = 4h;
constexpr auto node_silence = 1h;
constexpr auto node_expiry = 2h;

constexpr int rounds_in_a_history = 10;
constexpr std::size_t workers = 3;
constexpr std::size_t histories_at_once = 500;  // they share a clock and restarts, and nothing else

// What a session is expected to come to. Knows nothing of claims, rows and positions.
struct Model {
  struct Pending {
    model::Timestamp due;
    model::Timestamp expires;
    bool of_journey;
    std::string text;
  };
  std::map<std::string, Pending> pending;
  int sent = 0;
  model::Timestamp last_activity{};
  Texts said;  // since it was last compared

  // In log order; `now` is when it runs.
  void on_event(const Event& event, model::Timestamp now) {
    if (event.type == EventType::user_message) {
      on_message(event);
    } else if (event.type == EventType::inject) {
      on_input(event);
    } else {
      on_due(event, now);
    }
  }
  void on_message(const Event& event) {
    pending.clear();
    on_input(event);
    const bool has_own = event.text == "later" || event.text == "bye";
    if (has_own || sent >= max_per_session) return;
    pending[event.id + "-f0"] = {event.accepted_at + silence, event.accepted_at + expiry, true,
                                 "Still there?"};
  }
  void on_input(const Event& event) {
    // An expired session begins anew, and so does what is counted in it.
    if (event.accepted_at - last_activity > session_expiry) sent = 0;
    last_activity = std::max(last_activity, event.accepted_at);
    if (event.text == "bye") pending.clear();
    if (event.text == "later") {
      pending[event.id + "-f1"] = {event.accepted_at + node_silence,
                                   event.accepted_at + node_expiry, false, "As you wished, later"};
    }
    said.push_back("echo " + *event.text);
  }
  void on_due(const Event& event, model::Timestamp now) {
    const auto found = pending.find(event.claim->id);
    if (found == pending.end()) return;
    const Pending it = found->second;
    pending.erase(found);
    if (now >= it.expires || (it.of_journey && sent >= max_per_session)) return;
    if (it.of_journey) ++sent;
    last_activity = std::max(last_activity, event.accepted_at);
    said.push_back(it.text);
  }
};

using Records = std::vector<queue::LogRecord>;

// One session with its partition of the log.
struct History {
  model::SessionKey key;
  Model model;
  std::deque<std::pair<Event, queue::LogRecord>> log;  // what no worker has taken yet
  std::vector<Records> runs;                           // what workers take in this round
  std::int64_t next_offset = 0;
  std::int64_t compared = 0;  // the outputs so far
  bool contested = false;     // two workers have it in this round
};

class FollowUpHistories : public FollowUpWorld {
 protected:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }

  Event said_by_somebody() {
    static const Texts words{"hi", "hello", "later", "bye"};
    return event(words[below(words.size())],
                 chance(3) ? EventType::inject : EventType::user_message);
  }

  // --- What happens in a round ------------------------------------------------------------------

  void move_the_clock() {
    switch (below(8)) {
      case 0:
        return clock_.advance(24h);
      case 1:
        return clock_.advance(-24h);
      case 2:
        return clock_.advance(0ms);
      case 3:
      case 4:
        return clock_.advance(silence);
      default:
        return clock_.advance(std::chrono::minutes(1 + below(90)));
    }
  }

  // As after a kill: nothing is said to the store before.
  void restart() {
    cache_.reset();
    store_.reset();
    auto opened = store::Store::open({.data_dir = folder_.path()}, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    store_->committer().start();
    cache_ = std::make_unique<api::AssetsCache>(store_->assets());
  }

  // What is due is in the log, maybe twice, before or behind what somebody says just now; or its
  // scheduler is late.
  void append(History& history) {
    key_ = history.key;
    std::vector<Event> events;
    if (!chance(6)) {
      for (const auto& follow_up : waiting()) {
        if (follow_up.due_at > clock_.now()) continue;
        events.push_back(due_event(follow_up));
        if (chance(4)) events.push_back(due_event(follow_up));
      }
    }
    for (auto more = below(3); more > 0; --more) {
      const auto at = static_cast<std::ptrdiff_t>(below(events.size() + 1));
      events.insert(events.begin() + at, said_by_somebody());
    }
    for (auto& made : events) append(history, std::move(made));
  }

  // Cuts the log, maybe not to its end, into what workers are to take at once.
  void hand_out(History& history, bool whole) {
    history.runs.clear();
    history.contested = chance(8);
    while (!history.log.empty() && (whole || !chance(6))) {
      auto& run = history.runs.emplace_back();
      for (auto left = 1 + below(history.log.size()); left > 0; --left) {
        history.model.on_event(history.log.front().first, clock_.now());
        run.push_back(std::move(history.log.front().second));
        history.log.pop_front();
      }
    }
  }

  // --- Workers ----------------------------------------------------------------------------------

  Chain build_for(const History& history, const Records& records) {
    auto chain = build_chain(context(), {.key = history.key, .records = records, .refused = {}});
    EXPECT_TRUE(chain) << chain.error().message;
    return chain ? std::move(*chain) : Chain{};
  }

  // Until another worker, or this one, has committed what the records come to.
  void run_again(const History& history, const Records& records) {
    for (Chain chain = build_for(history, records); chain.changes;
         chain = build_for(history, records)) {
      if (commit(chain) == Outcome::committed) return;
    }
  }

  // The runs of this number of all the worker's sessions, in few transactions.
  void run_all(const std::vector<const History*>& mine, std::size_t number) {
    struct Submitted {
      const History* history;
      Outcome outcome = Outcome::committed;
    };
    std::deque<Submitted> submitted;
    std::vector<Chain> chains;
    for (const History* history : mine) {
      if (number >= history->runs.size()) continue;
      Chain chain = build_for(*history, history->runs[number]);
      if (!chain.changes) continue;
      submitted.push_back({history});
      chains.push_back(std::move(chain));
    }
    std::latch committed(static_cast<std::ptrdiff_t>(chains.size()));
    for (std::size_t i = 0; i < chains.size(); ++i) {
      store_->committer().submit(std::move(chains[i].unit), [&, i](Outcome outcome) {
        submitted[i].outcome = outcome;
        committed.count_down();
      });
    }
    committed.wait();
    for (const auto& [history, outcome] : submitted) {
      if (outcome == Outcome::committed) continue;
      EXPECT_TRUE(history->contested);
      run_again(*history, history->runs[number]);
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
      // Its worker died before the log knew: the records come again.
      for (const History* history : mine) {
        if (number >= history->runs.size() || random() % 4 != 0) continue;
        EXPECT_FALSE(build_for(*history, history->runs[number]).changes);
      }
    }
  }

  void work_all(const std::vector<History>& histories) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < workers; ++i) {
      threads.emplace_back([this, i, &histories, seed = static_cast<unsigned>(random_())] { work(i, histories, seed); });
    }
  }

  // --- The model beside it ----------------------------------------------------------------------

  void compare(History& history) {
    const auto outputs = store_->outbox().outputs(history.key, history.compared, 1000);
    ASSERT_TRUE(outputs);
    Texts said;
    for (const auto& output : *outputs) said.push_back(output.text);
    ASSERT_EQ(said, history.model.said);
    if (!outputs->empty()) history.compared = outputs->back().seq;
    history.model.said.clear();

    key_ = history.key;
    std::map<std::string, model::Timestamp> stored;
    for (const auto& follow_up : waiting()) stored[follow_up.id] = follow_up.due_at;
    std::map<std::string, model::Timestamp> expected;
    for (const auto& [id, pending] : history.model.pending) expected[id] = pending.due;
    ASSERT_EQ(stored, expected);
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
      histories[i].key = session("quiet", name + std::to_string(i));
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
    // In the end whatever waits comes, or has expired: nothing is said that would arm anew.
    clock_.advance(48h);
    ASSERT_NO_FATAL_FAILURE(run_and_compare(histories, Take::all));
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
};

TEST_F(FollowUpHistories, EveryFollowUpThatHasToComeComesOnceAndNoOther) {
  const bool nightly = std::getenv("CONVERSED_NIGHTLY") != nullptr;
  const std::size_t histories = nightly ? 100'000 : 10'000;
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
