// Generated histories of sessions beside a simple model of what has to be said: messages, injects,
// silences, events that are appended twice, records that are delivered again, clocks that jump.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "tests/unit/daemon/follow_up_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

constexpr int max_per_session = 2;
constexpr int steps_in_a_history = 12;
constexpr auto session_expiry = 30min;
constexpr auto silence = 20min;
constexpr auto expiry = 4h;
constexpr auto node_silence = 1h;
constexpr auto node_expiry = 2h;

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
  Texts said;

  void on_message(const Event& event, const std::string& text) {
    pending.clear();
    on_input(event, text);
    const bool has_own = text == "later" || text == "bye";
    if (has_own || sent >= max_per_session) return;
    pending[event.id + "-f0"] = {event.accepted_at + silence, event.accepted_at + expiry, true,
                                 "Still there?"};
  }
  void on_input(const Event& event, const std::string& text) {
    // An expired session begins anew, and so does what is counted in it.
    if (event.accepted_at - last_activity > session_expiry) sent = 0;
    last_activity = std::max(last_activity, event.accepted_at);
    if (text == "bye") pending.clear();
    if (text == "later") {
      pending[event.id + "-f1"] = {event.accepted_at + node_silence,
                                   event.accepted_at + node_expiry, false, "As you wished, later"};
    }
    said.push_back("echo " + text);
  }
  void on_due(const std::string& id, model::Timestamp now) {
    const auto found = pending.find(id);
    if (found == pending.end()) return;
    const Pending it = found->second;
    pending.erase(found);
    if (now >= it.expires || (it.of_journey && sent >= max_per_session)) return;
    if (it.of_journey) ++sent;
    last_activity = std::max(last_activity, now);
    said.push_back(it.text);
  }
};

class FollowUpHistories : public FollowUpWorld {
 protected:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }

  std::string any_text() {
    static const Texts words{"hi", "hello", "later", "bye"};
    return words[below(words.size())];
  }

  // Puts events into the log, and some of its records into one run; others come again.
  void append_and_run(const std::vector<Event>& events) {
    std::vector<queue::LogRecord> records;
    for (const auto& made : events) {
      records.push_back(record(made));
      if (made.type == EventType::user_message) {
        model_.on_message(made, *made.text);
      } else if (made.type == EventType::inject) {
        model_.on_input(made, *made.text);
      } else {
        model_.on_due(made.claim->id, clock_.now());
      }
    }
    for (std::size_t at = 0; at < records.size();) {
      const std::size_t count = 1 + below(records.size() - at);
      const std::vector<queue::LogRecord> part(
          records.begin() + static_cast<std::ptrdiff_t>(at),
          records.begin() + static_cast<std::ptrdiff_t>(at + count));
      Chain chain = build(part);
      if (chain.changes) {
        ASSERT_EQ(commit(chain), Outcome::committed);
      }
      // The daemon died before the log knew: the records come again.
      if (chance(4)) {
        ASSERT_FALSE(build(part).changes);
      }
      at += count;
    }
  }

  // What is due is in the log, maybe twice, before or behind what somebody says just now.
  void look_at_the_clock() {
    std::vector<Event> events;
    for (const auto& follow_up : waiting()) {
      if (follow_up.due_at > clock_.now()) continue;
      events.push_back(due_event(follow_up));
      if (chance(4)) events.push_back(due_event(follow_up));
    }
    if (chance(3)) {
      const auto at = events.begin() + static_cast<std::ptrdiff_t>(below(events.size() + 1));
      events.insert(at, message(any_text()));
    }
    append_and_run(events);
  }

  void compare() {
    ASSERT_EQ(texts(), model_.said);
    std::map<std::string, model::Timestamp> stored;
    for (const auto& follow_up : waiting()) stored[follow_up.id] = follow_up.due_at;
    std::map<std::string, model::Timestamp> expected;
    for (const auto& [id, pending] : model_.pending) expected[id] = pending.due;
    ASSERT_EQ(stored, expected);
  }

  void step() {
    switch (below(6)) {
      case 0:
        return append_and_run({message(any_text())});
      case 1:
        return append_and_run({event(any_text())});
      case 2:
        clock_.advance(std::chrono::minutes(1 + below(90)));
        break;
      case 3:
        clock_.advance(silence);
        break;
      case 4:
        if (chance(4)) clock_.advance(chance(2) ? 24h : -24h);
        break;
      default:
        return append_and_run({message(any_text()), event(any_text()), message("hi")});
    }
    look_at_the_clock();
  }

  void history(const std::string& name) {
    key_ = session("quiet", name);
    model_ = {};
    for (int i = 0; i < steps_in_a_history; ++i) {
      step();
      ASSERT_NO_FATAL_FAILURE(compare());
    }
    // In the end whatever waits comes, or has expired.
    clock_.advance(48h);
    append_and_run({});
    std::vector<Event> rest;
    for (const auto& follow_up : waiting()) rest.push_back(due_event(follow_up));
    append_and_run(rest);
    ASSERT_NO_FATAL_FAILURE(compare());
    ASSERT_TRUE(waiting().empty());
  }

  std::mt19937 random_;
  Model model_;
};

TEST_F(FollowUpHistories, EveryFollowUpThatHasToComeComesOnceAndNoOther) {
  const bool nightly = std::getenv("CONVERSED_NIGHTLY") != nullptr;
  const int histories = nightly ? 100'000 : 10'000;
  const char* given = std::getenv("CONVERSED_TEST_SEED");
  const auto seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                                     : std::random_device{}();
  random_.seed(seed);
  for (int i = 0; i < histories; ++i) {
    SCOPED_TRACE("CONVERSED_TEST_SEED=" + std::to_string(seed) + ", history " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(history("s" + std::to_string(i)));
  }
}

}  // namespace
}  // namespace conversed::daemon
