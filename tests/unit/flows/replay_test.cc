// Replays of recorded conversations on another version.
#include "flows/tools/replay.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "flows/bundle/loader.h"
#include "flows/turn/request_mark.h"

namespace conversed::flows {
namespace {

using nlohmann::json;
using tools::Exchange;
using tools::Replay;
using Outcome = tools::Replay::Outcome;
using Texts = std::vector<std::string>;

constexpr std::int64_t begin_ms = 1'800'000'000'000;

std::string mark_of(const std::string& method, const std::string& url) {
  model::PendingCall call;
  call.http.emplace();
  call.http->method = method;
  call.http->url = url;
  return request_mark(call);
}

// A recorded conversation, as the daemon gives it.
class Tape {
 public:
  // A Turn that began an execution: its members, then the texts that it said.
  Tape& input(const std::string& id, std::int64_t second, const std::string& text,
              const Texts& said, const json& more = json::object()) {
    json turn{{"inputId", id},
              {"event", "userMessage"},
              {"acceptedAtMs", begin_ms + second * 1000},
              {"text", text}};
    if (turns_.empty()) turn["begins"] = true;
    turn.update(more);
    return add(std::move(turn), second, said);
  }
  // One that continued it.
  Tape& result(const std::string& input, std::int64_t second, const std::string& call,
               const json& body, const Texts& said, const json& more = json::object()) {
    json turn{{"inputId", input},
              {"event", "callResult"},
              {"result", {{"id", call}, {"answer", {{"status", 200}, {"body", body}}}}}};
    turn.update(more);
    return add(std::move(turn), second, said);
  }
  Tape& add(json turn, std::int64_t second, const Texts& said) {
    turn["atMs"] = begin_ms + second * 1000;
    if (!said.empty()) {
      turn["said"] = {next_output_, said.size()};
      for (const auto& text : said) {
        turn["outputs"].push_back({{"text", text}, {"data", nullptr}});
        ++next_output_;
      }
    }
    turns_.push_back(std::move(turn));
    return *this;
  }

  [[nodiscard]] json item() const {
    return {{"endpointId", std::string(24, 'e')},
            {"endpoint", "web"},
            {"URLToken", std::string(64, 'a')},
            {"userId", "ann"},
            {"sessionId", "s"},
            {"notWhole", nullptr},
            {"turns", turns_}};
  }
  [[nodiscard]] tools::Recording recording() const {
    auto read = tools::recording_from(item(), std::string(24, 'p'));
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : tools::Recording();
  }

 private:
  json turns_ = json::array();
  std::int64_t next_output_ = 1;
};

// Replays the tape on a Flow, up to an hour after its begin.
Replay on(const std::string& nodes, const Tape& tape) {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: P, locales: [en]}\nflows:\n"
      "- name: Main\n  nodes:\n" +
          nodes + "endpoints: [{name: web, flow: Main}]\n",
      "p.yaml", {});
  if (!bundle) {
    ADD_FAILURE() << to_string(bundle.error());
    return {};
  }
  const auto stage = tools::stage_of(*bundle, "web", "");
  EXPECT_TRUE(stage);
  return tools::replay(*stage, tape.recording(), model::from_unix_ms(begin_ms + 3'600'000));
}

Texts texts_of(const std::vector<tools::Said>& all) {
  Texts texts;
  for (const auto& said : all) texts.push_back(said.text);
  return texts;
}

json wait_for(const std::string& id, const std::string& method, const std::string& url) {
  return {{"waitsFor", {{"id", id}, {"to", "x.example"}, {"request", mark_of(method, url)}}}};
}

TEST(RequestMark, TellsRequestsApartByWhatTheyAskFor) {
  EXPECT_EQ(mark_of("GET", "http://x.example/a"), mark_of("GET", "http://x.example/a"));
  EXPECT_NE(mark_of("GET", "http://x.example/a"), mark_of("GET", "http://x.example/b"));
  EXPECT_NE(mark_of("GET", "http://x.example/a"), mark_of("PUT", "http://x.example/a"));
  EXPECT_EQ(mark_of("GET", "").size(), 16U);
  model::PendingCall call;
  EXPECT_EQ(request_mark(call), "") << "of a timer";
  call.search.emplace();
  call.search->store = "ab";
  call.search->sources = {"c"};
  const auto mark = request_mark(call);
  call.search.emplace();
  call.search->store = "a";
  call.search->sources = {"bc"};
  EXPECT_NE(request_mark(call), mark);

  model::PendingCall one;
  one.code.emplace().script = "return 1;";
  model::PendingCall two;
  two.code.emplace().script = "return 2;";
  EXPECT_EQ(request_mark(one).size(), 16U);
  EXPECT_NE(request_mark(one), request_mark(two));
}

TEST(Recording, KnowsWhatIsNotRecorded) {
  Tape tape;
  tape.input("a", 0, "1", {"x"}, {{"changesProfile", true}});
  tape.input("b", 1, "2", {"x"}, {{"profileVersion", 1}});
  tape.input("c", 2, "3", {"x"}, {{"profileVersion", 2}});
  tape.input("d", 3, "4", {"x"}, {{"profileVersion", 2}, {"missing", "an input of 20000 bytes"}});
  auto item = tape.item();
  item["turns"].push_back(item["turns"].back());
  item["turns"].back().erase("missing");
  item["turns"].back()["said"] = {9, 1};
  const auto recording = tools::recording_from(item, "p");
  ASSERT_TRUE(recording) << recording.error().message;
  Texts missing;
  for (const auto& turn : recording->turns) missing.push_back(turn.missing);
  EXPECT_EQ(missing, (Texts{"", "", "another session of the user has changed the profile",
                            "an input of 20000 bytes is not recorded",
                            "an event without a receipt came in between"}));
  item["turns"] = "none";
  EXPECT_FALSE(tools::recording_from(item, "p"));
}

TEST(Replay, OfTheSameFlowSaysTheSame) {
  Tape tape;
  tape.input("a", 0, "hi", {"1: hi at 2027-01-15T08:00:00.000Z"});
  tape.input("b", 60, "ho", {"2: ho at 2027-01-15T08:01:00.000Z"});
  const auto replay =
      on("  - addToContext: {n: \"{{(context.n || 0) + 1}}\"}\n"
         "  - say: \"{{context.n}}: {{input.text}} at {{input.currentTime}}\"\n",
         tape);
  EXPECT_EQ(replay.outcome, Outcome::same) << replay.reason;
  ASSERT_EQ(replay.exchanges.size(), 2U);
  EXPECT_EQ(texts_of(replay.exchanges[1].replayed), (Texts{"2: ho at 2027-01-15T08:01:00.000Z"}));
  EXPECT_EQ(replay.exchanges[1].input, "> ho");
}

TEST(Replay, ShowsTheDialogueFromTheFirstDifferenceOn) {
  Tape tape;
  tape.input("a", 0, "hi", {"hi"});
  tape.input("b", 1, "price", {"It is 5.", "Bye."});
  tape.input("c", 2, "hi", {"hi"});
  const auto replay =
      on("  - if: input.text == \"price\"\n"
         "    then: [{say: \"It is 6.\"}]\n"
         "    else: [{say: \"{{input.text}}\"}]\n",
         tape);
  EXPECT_EQ(replay.outcome, Outcome::different);
  EXPECT_EQ(replay.first, 1U);
  ASSERT_EQ(replay.exchanges.size(), 3U);
  EXPECT_EQ(texts_of(replay.exchanges[1].recorded), (Texts{"It is 5.", "Bye."}));
  EXPECT_EQ(texts_of(replay.exchanges[1].replayed), (Texts{"It is 6."}));
  EXPECT_FALSE(replay.exchanges[2].differs());
}

// A replay begins with the profile and the follow-ups of the day that the conversation found.
TEST(Replay, BeginsWithTheRecordedProfile) {
  Tape tape;
  tape.input("a", 0, "hi", {"Hello Ann"}, {{"profile", {{"name", "Ann"}}}, {"profileVersion", 3}});
  EXPECT_EQ(on("  - say: \"Hello {{profile.name}}\"\n", tape).outcome, Outcome::same);
}

TEST(Replay, AnswersEachCallByItsRequestInTheRecordedOrder) {
  Tape tape;
  const auto x = wait_for("a-c1", "GET", "http://x.example/x");
  const auto y = wait_for("a-c2", "GET", "http://x.example/y");
  const auto x_again = wait_for("a-c3", "GET", "http://x.example/x");
  tape.input("a", 0, "hi", {}, x);
  tape.result("a", 1, "a-c1", {{"n", 1}}, {}, y);
  tape.result("a", 2, "a-c2", {{"n", 2}}, {}, x_again);
  tape.result("a", 3, "a-c3", {{"n", 3}}, {"1 2 3"});
  const std::string first = "  - httpRequest: {url: \"http://x.example/x\", storeIn: context.x}\n";
  const std::string second = "  - httpRequest: {url: \"http://x.example/y\", storeIn: context.y}\n";
  const std::string third = "  - httpRequest: {url: \"http://x.example/x\", storeIn: context.z}\n";
  const std::string say = "  - say: \"{{context.x.n}} {{context.y.n}} {{context.z.n}}\"\n";
  EXPECT_EQ(on(first + second + third + say, tape).outcome, Outcome::same);
  const auto swapped = on(second + first + third + say, tape);
  EXPECT_EQ(swapped.outcome, Outcome::same) << swapped.reason;
  EXPECT_EQ(texts_of(swapped.exchanges[0].replayed), (Texts{"1 2 3"}));
}

TEST(Replay, EndsAtACallThatTheRecordingLacks) {
  Tape tape;
  tape.input("a", 0, "hi", {"hello"});
  tape.input("b", 1, "order", {"looking"}, wait_for("b-c1", "GET", "http://x.example/orders"));
  tape.result("b", 2, "b-c1", {{"state", "shipped"}}, {"shipped"});
  tape.input("c", 3, "bye", {"bye"});
  const auto replay = on(
      "  - if: input.text == \"order\"\n"
      "    then:\n"
      "      - say: looking\n"
      "      - {id: ask, httpRequest: {url: \"http://x.example/v2/orders\", storeIn: context.o}}\n"
      "      - say: \"{{context.o.state}}\"\n"
      "    else: [{say: hello}]\n",
      tape);
  EXPECT_EQ(replay.outcome, Outcome::different);
  ASSERT_EQ(replay.exchanges.size(), 2U) << "the replay can't go on";
  EXPECT_EQ(replay.first, 1U);
  EXPECT_EQ(replay.exchanges[1].note,
            "a call that the recording lacks: GET x.example, at the Node ask");
  EXPECT_EQ(texts_of(replay.exchanges[1].recorded), (Texts{"looking", "shipped"}));
  EXPECT_EQ(texts_of(replay.exchanges[1].replayed), (Texts{"looking"}));
}

TEST(Replay, SaysWhyItCanNotCompare) {
  const std::string nodes =
      "  - say: \"{{input.text}}\"\n"
      "  - httpRequest: {url: \"http://x.example/x\", storeIn: context.x}\n"
      "  - say: found\n";
  Tape large;
  large.input("a", 0, "hi", {"hi"}, wait_for("a-c1", "GET", "http://x.example/x"));
  large.result("a", 1, "a-c1", nullptr, {"found"},
               {{"result", {{"id", "a-c1"}, {"bytes", 1'000'000}}}});
  const auto replay = on(nodes, large);
  EXPECT_EQ(replay.outcome, Outcome::not_comparable);
  EXPECT_EQ(replay.reason, "an answer of x.example is too large to be recorded");

  Tape different;
  different.input("a", 0, "hi", {"ho"}, wait_for("a-c1", "GET", "http://x.example/x"));
  different.result("a", 1, "a-c1", nullptr, {"found"}, {{"result", {{"id", "a-c1"}}}});
  EXPECT_EQ(on(nodes, different).outcome, Outcome::different) << "before the answer that lacks";

  Tape late;
  late.input("a", 0, "hi", {"hi"}, {{"begins", false}});
  EXPECT_EQ(on(nodes, late).reason, "its first event is not recorded");

  Tape pruned;
  pruned.input("a", 0, "hi", {}, {{"said", {1, 1}}});
  EXPECT_EQ(on("  - say: hi\n", pruned).reason, "its outputs are no longer kept");
}

// The session still waits in the recording, and so it does in the replay.
TEST(Replay, OfAnUnfinishedExecutionIsTheSameSoFar) {
  Tape tape;
  tape.input("a", 0, "hi", {"wait"}, wait_for("a-c1", "GET", "http://x.example/x"));
  const auto replay =
      on("  - say: wait\n  - httpRequest: {url: \"http://x.example/x\"}\n  - say: found\n", tape);
  EXPECT_EQ(replay.outcome, Outcome::same) << replay.reason;
}

TEST(Replay, TakesAFailureForADifferenceUnlessBothFail) {
  Tape good;
  good.input("a", 0, "hi", {"hi"});
  Tape bad;
  bad.input("a", 0, "hi", {}, {{"failure", "it went in circles"}});
  const std::string fails = "  - {id: again, goTo: again}\n";
  const auto failed = on(fails, good);
  EXPECT_EQ(failed.outcome, Outcome::different);
  EXPECT_NE(failed.exchanges[0].replayed_failure, "");
  EXPECT_EQ(on(fails, bad).outcome, Outcome::same);
  EXPECT_EQ(on("  - say: hi\n", bad).outcome, Outcome::different);
}

TEST(Replay, RunsTimersAtTheirRecordedTimes) {
  Tape tape;
  tape.input("a", 0, "hi", {"sleeps"},
             {{"waitsFor", {{"id", "a-c1"}, {"until", begin_ms + 10'000}}}});
  tape.add({{"inputId", "a"}, {"event", "timer"}, {"timer", "a-c1"}, {"eventId", "t1"}}, 11,
           {"1800000011000"});
  const std::string flow = "  - say: sleeps\n  - sleep: {for: TIME}\n  - say: \"{{Date.now()}}\"\n";
  const auto with = [&](const std::string& time) {
    auto nodes = flow;
    return on(nodes.replace(nodes.find("TIME"), 4, time), tape);
  };
  EXPECT_EQ(with("10s").outcome, Outcome::same);
  EXPECT_EQ(with("10m").outcome, Outcome::same) << "it ends when the recorded one ended";
}

TEST(Replay, RunsAFollowUpAsRecordedAndANewOneAtItsTime) {
  const json follow_up{{"event", "followUp"}, {"claim", "a-f1"}};
  Tape tape;
  tape.input("a", 0, "hi", {"hi"}, {{"followUps", {begin_ms + 60'000}}});
  tape.input("b", 61, "Still there?", {"Still there?"}, follow_up);
  tape.input("c", 120, "yes", {"yes"}, {{"followUps", {begin_ms + 180'000}}});
  const std::string say = "  - say: \"{{input.text}}\"\n";
  const auto same = on(say + "  - followUp: {after: 1m, text: \"Still there?\"}\n", tape);
  EXPECT_EQ(same.outcome, Outcome::same) << "the last one is planned in the recording, too";
  const auto other = on(say + "  - followUp: {after: 1m, text: \"Hello?\"}\n", tape);
  EXPECT_EQ(other.outcome, Outcome::different);
  EXPECT_EQ(texts_of(other.exchanges[1].replayed), (Texts{"Hello?"}));
  const auto none = on(say, tape);
  EXPECT_EQ(none.exchanges[1].note, "nothing waits for this time");
  const auto later = on(say + "  - followUp: {after: 10m, text: \"Still there?\"}\n", tape);
  EXPECT_EQ(later.outcome, Outcome::different) << "the last one fires within the hour";
  EXPECT_EQ(later.exchanges.back().input, "(follow-up)");
  EXPECT_EQ(texts_of(later.exchanges.back().replayed), (Texts{"Still there?"}));
}

TEST(Replay, DropsTheFollowUpThatWasTooMany) {
  Tape tape;
  tape.input("a", 0, "hi", {"hi"}, {{"followUps", {begin_ms + 60'000}}});
  tape.input("b", 61, "Still there?", {},
             {{"event", "followUp"}, {"claim", "a-f1"}, {"ended", "it came too late"}});
  const auto replay = on("  - say: hi\n  - followUp: {after: 1m, text: \"Still there?\"}\n", tape);
  EXPECT_EQ(replay.outcome, Outcome::same) << replay.exchanges.back().input;
}

TEST(Replay, ComparesNoOutputsThatTheUserWithdrew) {
  Tape tape;
  tape.input("a", 0, "hi", {"hi"}, {{"followUps", {begin_ms + 60'000}}});
  tape.input("b", 61, "Still there?", {},
             {{"event", "followUp"}, {"claim", "a-f1"}, {"said", {2, 1}}});
  const auto replay = on("  - say: hi\n  - followUp: {after: 1m, text: \"Still there?\"}\n", tape);
  EXPECT_EQ(replay.outcome, Outcome::same) << replay.reason;
}

}  // namespace
}  // namespace conversed::flows
