// The Node collect: one Turn of a burst of injects.
#include <gtest/gtest.h>

#include "flows/turn/follow_up.h"
#include "flows/turn/standing.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* gathers = R"(
- if: input.source == "user" && !context.open
  then: [{say: hi}, {stop: true}]
- id: burst
  collect:
    quiet: 10s
    if: input.event.data.n
    maxEvents: 3
    maxWait: 25s
    storeIn: context.burst
    timeout: 1h
    onTimeout: [{say: nothing}, {stop: true}]
- say: "{{input.source}}: {{input.events.map(event => event.data.n).join(' ')}}"
)";

struct Burst : Conversation {
  explicit Burst(const std::string& nodes = gathers) : Conversation(nodes) {}
  Result<model::Effects> add(int n) { return inject({{"n", n}}); }
};

// The injects that the session keeps, and no Node has taken.
std::size_t untaken(const Conversation& talk) {
  return talk.session.flow_state.value("events", json::array()).size();
}

TEST(CollectNode, EachEventBeginsTheQuietTimeAnew) {
  Burst talk;
  const auto first = talk.add(1);
  EXPECT_EQ(texts(first), Texts{});
  ASSERT_TRUE(first->time_out);
  EXPECT_EQ(first->time_out->id, "event1-b");
  EXPECT_EQ(first->time_out->due_at, talk.now + 10s);
  EXPECT_TRUE(first->time_out->is_time_out);
  EXPECT_FALSE(talk.session.busy());
  EXPECT_EQ(waits_for_event_until(talk.session.flow_state), talk.now + 10s);
  EXPECT_EQ(collects_until(talk.session.flow_state), talk.now + 10s);
  EXPECT_EQ(untaken(talk), 0U);
  talk.now += 9s;
  const auto second = talk.add(2);
  EXPECT_EQ(second->time_out->due_at, talk.now + 10s);
  EXPECT_EQ(time_outs_of(talk.session), Texts{"event2-b"}) << "the earlier timer is obsolete";
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 1 2"});
  EXPECT_TRUE(time_outs_of(talk.session).empty());
  EXPECT_FALSE(collects_until(talk.session.flow_state));
}

TEST(CollectNode, EventsHaveIdTextDataAndTimeInTheirOrder) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  talk.now += 1s;
  auto second = talk.event(model::EventType::inject);
  second.text = "with words";
  second.data = {{"n", 2}};
  ASSERT_TRUE(talk.take(second));
  ASSERT_TRUE(talk.let_question_time_out());
  EXPECT_EQ(talk.session.context["burst"], json::parse(R"([
      {"id": "event1", "text": "", "data": {"n": 1}, "time": "2027-01-15T08:00:00.123Z"},
      {"id": "event2", "text": "with words", "data": {"n": 2}, "time": "2027-01-15T08:00:01.123Z"}
    ])"));
}

TEST(CollectNode, LastEventOfTheCountContinuesAtOnce) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  ASSERT_TRUE(talk.add(2));
  const auto last = talk.add(3);
  EXPECT_EQ(texts(last), Texts{"inject: 1 2 3"});
  EXPECT_FALSE(last->time_out);
  EXPECT_TRUE(time_outs_of(talk.session).empty());
  EXPECT_EQ(texts(talk.add(4)), Texts{}) << "a new burst";
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 4"});
}

TEST(CollectNode, KeptEventsWriteNoProfileThatTheBurstIsStoredIn) {
  Burst talk("- collect: {quiet: 10s, storeIn: profile.burst}\n- say: done");
  const auto kept = talk.add(1);
  ASSERT_TRUE(kept);
  EXPECT_FALSE(kept->profile) << "a check of the size is no write";
  EXPECT_TRUE(kept->notes.changes.empty());
  const auto last = talk.let_question_time_out();
  ASSERT_TRUE(last->profile);
  EXPECT_EQ(last->profile->data.at("burst").size(), 1U);
  ASSERT_EQ(last->notes.changes.size(), 1U);
  EXPECT_EQ(last->notes.changes.front().bytes_before, 0U) << "the first write of the path";
}

TEST(CollectNode, WaitsNoLongerThanItsMaximum) {
  Burst talk("- collect: {quiet: 10s, maxWait: 25s}\n- say: \"{{input.events.length}}\"");
  const auto end = talk.now + 25s;
  ASSERT_TRUE(talk.add(1));
  for (int n = 2; n < 5; ++n) {
    talk.now += 8s;
    const auto more = talk.add(n);
    ASSERT_TRUE(more && more->time_out) << texts(more).front();
    EXPECT_EQ(more->time_out->due_at, std::min(talk.now + 10s, end));
  }
  talk.now = end;
  EXPECT_EQ(texts(talk.add(5)), Texts{"5"}) << "it is the first in the log";
}

TEST(CollectNode, EventThatDoesNotFitExtendsNothingAndStays) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  talk.now += 9s;
  const auto other = talk.inject({{"other", true}});
  EXPECT_EQ(texts(other), Texts{});
  EXPECT_FALSE(other->time_out);
  EXPECT_EQ(time_outs_of(talk.session), Texts{"event1-b"});
  EXPECT_EQ(untaken(talk), 1U);
  talk.now += 5s;  // the time-out is late
  EXPECT_EQ(texts(talk.inject({{"other", true}})), Texts{}) << "the burst has its own Turn";
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 1"});
  EXPECT_EQ(untaken(talk), 2U);
}

TEST(CollectNode, EventBeforeALateTimeOutJoinsTheBurst) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  talk.now += 15s;
  const auto more = talk.add(2);
  EXPECT_EQ(texts(more), Texts{});
  EXPECT_EQ(more->time_out->due_at, talk.now + 10s);
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 1 2"});
}

TEST(CollectNode, ManyOtherInjectsLoseNoEvent) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  for (std::size_t i = 0; i < 2 * talk.limits.untaken_events; ++i) {
    ASSERT_TRUE(talk.inject({{"other", true}}));
  }
  EXPECT_EQ(untaken(talk), talk.limits.untaken_events);
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 1"});
}

TEST(CollectNode, ContinuesWhenItsEventsAreLarge) {
  Burst talk;
  const std::string half((32 << 10) + 1, 'x');
  ASSERT_TRUE(talk.inject({{"n", 1}, {"x", half}}));
  EXPECT_EQ(texts(talk.inject({{"n", 2}, {"x", half}})), Texts{"inject: 1 2"});
  EXPECT_EQ(texts(talk.inject({{"n", 3}, {"x", half + half}})), Texts{"inject: 3"})
      << "one that is larger alone is a burst";
}

TEST(CollectNode, LooksBackForEarlierEventsUpToItsCount) {
  Burst talk(
      "- if: input.source == \"inject\"\n  then: [{stop: true}]\n"
      "- collect: {quiet: 10s, maxEvents: 3}\n"
      "- say: \"{{input.events.map(event => event.data.n).join(' ')}}\"\n");
  for (int n = 1; n <= 5; ++n) ASSERT_TRUE(talk.add(n));
  EXPECT_EQ(untaken(talk), 5U);
  EXPECT_EQ(texts(talk.say("go")), Texts{"1 2 3"});
  EXPECT_EQ(texts(talk.say("go")), Texts{}) << "it may not be quiet yet";
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"4 5"});
  ASSERT_TRUE(talk.add(6));
  talk.now += 10s;
  EXPECT_EQ(texts(talk.say("go")), Texts{"6"}) << "it was quiet before the Node";
  ASSERT_TRUE(talk.add(7));
  talk.now += 1h;
  talk.session.last_activity_at = talk.now;
  EXPECT_EQ(texts(talk.say("go")), Texts{}) << "too old";
}

TEST(CollectNode, WithoutAnEventTheTimeOutRunsItsBranch) {
  Burst talk;
  const auto begun = talk.inject({{"other", true}});
  ASSERT_TRUE(begun->time_out);
  EXPECT_EQ(begun->time_out->id, "event1-e");
  EXPECT_EQ(begun->time_out->due_at, talk.now + 1h);
  EXPECT_FALSE(collects_until(talk.session.flow_state));
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"nothing"});
  Conversation plain("- collect: 5s\n- say: \"{{input.events.length}}\"");
  ASSERT_TRUE(plain.say("hi"));
  EXPECT_EQ(texts(plain.let_question_time_out()), Texts{});
  EXPECT_TRUE(standings(plain.session.flow_state, plain.session.execution).empty());
}

TEST(CollectNode, MessageExtendsNothing) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  talk.now += 9s;
  const auto message = talk.say("Hello?");
  EXPECT_EQ(texts(message), Texts{});
  EXPECT_FALSE(message->time_out);
  EXPECT_EQ(time_outs_of(talk.session), Texts{"event1-b"});
}

struct Answering : Burst {
  Answering()
      : Burst(R"(
- collect:
    quiet: 10s
    onMessage:
      - if: input.text == "leave"
        then: [{say: left}, {stop: true}]
      - executeFlow: Sub
      - say: still
- say: "{{input.source}}: {{input.events.map(event => event.data.n).join(' ')}}"
)") {
    library.flows["Sub"] = {named_flow("Sub", "  - question: {text: \"Yes?\", onNoAnswer: []}\n")};
  }
};

TEST(CollectNode, MessageRunsItsBranchAndTheBurstHasItsOwnTurn) {
  Answering talk;
  ASSERT_TRUE(talk.add(1));
  EXPECT_EQ(texts(talk.say("Hello?")), Texts{"Yes?"});
  EXPECT_TRUE(time_outs_of(talk.session).empty()) << "it is renewed behind the question";
  EXPECT_EQ(texts(talk.add(2)), Texts{"Yes?"});
  talk.now += 1min;
  const auto back = talk.say("It's me.");
  EXPECT_EQ(texts(back), Texts{"still"});
  ASSERT_TRUE(back->time_out);
  EXPECT_EQ(back->time_out->due_at, talk.now) << "its time is over";
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 1 2"});
}

TEST(CollectNode, EventsThatABranchLeavesRunTheNextTime) {
  Answering talk;
  ASSERT_TRUE(talk.add(1));
  EXPECT_EQ(texts(talk.say("leave")), Texts{"left"});
  EXPECT_TRUE(time_outs_of(talk.session).empty());
  ASSERT_TRUE(talk.add(2));
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 1 2"});
}

TEST(CollectNode, EventsStayIfTheirTurnFails) {
  Burst talk(
      "- collect: 10s\n- id: loop\n  if: input.events.length > 1\n"
      "  then: [{goTo: loop}]\n- say: \"{{input.events[0].data.n}}\"");
  ASSERT_TRUE(talk.add(1));
  ASSERT_TRUE(talk.add(2));
  auto over = talk.event(model::EventType::time_out);
  over.claim = model::Claim{model::Claim::Kind::timer, time_outs_of(talk.session).at(0)};
  const auto before = talk.session;
  ASSERT_FALSE(talk.take(over));
  talk.session = failure_effects(before, talk.endpoint, over, talk.now).session;
  EXPECT_TRUE(time_outs_of(talk.session).empty());
  EXPECT_TRUE(keeps_event(talk.session.flow_state, "event1"));
  EXPECT_FALSE(starts_afresh(talk.session, talk.endpoint, talk.now + 24h)) << "nor is it lost";
  const auto message = talk.say("Hello?");
  ASSERT_TRUE(message) << "the message has its own Turn";
  ASSERT_TRUE(message->time_out) << "which sets the timer again";
  talk.flow = flow_of("- collect: 10s\n- say: \"{{input.events[1].data.n}}\"");
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"2"});
  EXPECT_FALSE(keeps_event(talk.session.flow_state, "event1"));
}

TEST(CollectNode, EventThatCanNotBeStoredFailsItself) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  json deep = 1;
  for (std::size_t i = 0; i < talk.limits.value_depth; ++i) deep = {{"a", std::move(deep)}};
  const auto refused = talk.inject({{"n", 2}, {"deep", deep}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("nested deeper"), std::string::npos);
  ASSERT_TRUE(talk.add(3));
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 1 3"});
}

TEST(CollectNode, PassesOverAnEarlierEventThatCanNotBeStored) {
  Burst talk(
      "- {id: ask, question: {text: q, maxAttempts: 9}}\n"
      "- collect: {quiet: 10s, storeIn: context.burst}\n"
      "- say: \"{{context.burst.map(event => event.data.n).join(' ')}}\"");
  ASSERT_TRUE(talk.say("hi"));
  json deep = 1;
  for (std::size_t i = 0; i < talk.limits.value_depth; ++i) deep = {{"a", std::move(deep)}};
  ASSERT_TRUE(talk.add(1));
  ASSERT_TRUE(talk.inject({{"n", 2}, {"deep", deep}}));
  ASSERT_TRUE(talk.add(3));
  const auto answered = talk.say("an answer");
  ASSERT_EQ(answered->log.size(), 1U);
  EXPECT_NE(answered->log[0].find("passes over injects up to event3: "), std::string::npos);
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"1 3"});
}

TEST(CollectNode, SessionDoesNotExpireWhileItWaits) {
  Burst talk("- collect: {quiet: 2h, maxWait: 1d}\n- say: \"{{input.events.length}}\"");
  ASSERT_TRUE(talk.add(1));
  talk.now += 119min;
  EXPECT_FALSE(starts_afresh(talk.session, talk.endpoint, talk.now));
  ASSERT_TRUE(talk.add(2));
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"2"});
}

TEST(CollectNode, KeepsItsEventsInANewVersion) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  talk.flow = flow_of(
      "- say: new\n- {id: burst, collect: {quiet: 1m, maxEvents: 2}}\n"
      "- say: \"{{input.events.length}}\"");
  EXPECT_EQ(texts(talk.inject({{"other", true}})), Texts{"2"});
}

TEST(CollectNode, ThatIsGoneLeavesItsEventsToOthers) {
  Burst talk;
  ASSERT_TRUE(talk.inject({{"n", 1}}));
  ASSERT_TRUE(talk.inject({{"other", true}}));
  ASSERT_TRUE(talk.inject({{"n", 2}}));
  talk.flow = flow_of(
      "- {id: other, collect: {quiet: 10s, if: \"true\"}}\n"
      "- say: \"{{input.events.map(event => event.data.n).join(' ')}}\"");
  const auto begun = talk.inject({{"n", 3}});
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->log.size(), 1U) << "the Flow starts again";
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"1  2 3"});
}

TEST(CollectNode, AnotherNodeAtItsPlaceGivesItsEventsBack) {
  Burst talk("- collect: 10s\n- say: \"{{input.events.length}}\"");
  ASSERT_TRUE(talk.add(1));
  talk.flow = flow_of(
      "- question: {text: \"Well?\", timeout: 1h, onTimeout: [{say: wrong}], onNoAnswer: []}\n"
      "- waitForEvent: {if: input.event.data.n, storeIn: context.taken}\n"
      "- say: \"{{context.taken.data.n}}\"");
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{}) << "the time of the burst is not its";
  EXPECT_TRUE(keeps_event(talk.session.flow_state, "event1"));
  EXPECT_EQ(texts(talk.say("Hello")), Texts{"1"}) << "the Node behind it looks back";
  EXPECT_FALSE(keeps_event(talk.session.flow_state, "event1"));
}

TEST(CollectNode, TakesAnEventBehindAFollowUpsFlow) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  talk.session.flow_state["behind"] = talk.session.flow_state["waiting"];
  talk.session.flow_state["waiting"] = {{"flow", "Nudge"}, {"at", "nodes[0]"}};
  talk.session.flow_state["followUpFlow"] = "Nudge";
  ASSERT_TRUE(waits_for_event_behind(talk.session.flow_state));
  const auto takes = [&](json data) {
    auto made = talk.event(model::EventType::inject);
    made.data = std::move(data);
    const auto taken = takes_inject({.flow = *talk.flow,
                                     .assets = talk.assets,
                                     .endpoint = talk.endpoint,
                                     .session = talk.session,
                                     .profile = talk.profile,
                                     .event = made,
                                     .now = talk.now,
                                     .limits = talk.limits,
                                     .flow_version = 1,
                                     .library = &talk.library});
    EXPECT_TRUE(taken);
    return taken && *taken;
  };
  EXPECT_FALSE(takes({{"other", true}}));
  EXPECT_TRUE(takes({{"n", 2}}));
  ASSERT_TRUE(talk.add(2));
  EXPECT_FALSE(waits_for_event_behind(talk.session.flow_state)) << "the follow-up's Flow has ended";
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"timeOut: 1 2"});
}

TEST(CollectNode, TellsReceiptsWhatItKeepsAndWhatRuns) {
  Burst talk;
  const auto first = talk.add(1);
  EXPECT_TRUE(first->notes.keeps_event);
  EXPECT_TRUE(first->notes.events.empty());
  EXPECT_TRUE(keeps_event(talk.session.flow_state, "event1"));
  EXPECT_FALSE(talk.inject({{"other", true}})->notes.keeps_event);
  EXPECT_FALSE(keeps_event(talk.session.flow_state, "event2"));
  ASSERT_TRUE(talk.add(2));
  const auto last = talk.add(3);
  EXPECT_FALSE(last->notes.keeps_event) << "it runs itself";
  EXPECT_EQ(last->notes.events, (Texts{"event1", "event3"}));
}

TEST(CollectNode, ReadsStoredStateOfAnyShape) {
  Burst talk;
  ASSERT_TRUE(talk.add(1));
  const json places[]{nullptr,
                      1,
                      "x",
                      json::array({1}),
                      {{"from", -1}, {"until", "x"}},
                      {{"from", 1}, {"until", 1}, {"events", 3}},
                      {{"from", 1}, {"until", 1}, {"events", {1, nullptr, {{"n", "x"}}}}}};
  for (const auto& place : places) {
    auto other = talk;
    other.session.flow_state["once"]["burst"] = place;
    EXPECT_TRUE(other.add(2)) << place;
    EXPECT_FALSE(keeps_event(other.session.flow_state, "event1")) << place;
    EXPECT_TRUE(other.let_question_time_out()) << place;
  }
  EXPECT_FALSE(keeps_event({{"once", 1}}, "event1"));
  EXPECT_FALSE(keeps_event({{"once", {{"burst", {{"events", {{{"event", 1}}}}}}}}}, "event1"));
}

TEST(CollectNode, NamesWhatIsWrong) {
  const auto problems = [](const std::string& node) {
    const auto bundle = load_bundle(
        "conversed: 1\nproject: {name: T}\nflows:\n- name: F\n  nodes:\n  - collect: " + node +
            "\n",
        "t.yaml", {});
    return bundle ? std::string() : to_string(bundle.error());
  };
  const struct {
    std::string node;
    std::string message;
  } cases[]{
      {"{if: \"true\"}", "'quiet' is missing"},
      {"{quiet: 2d}", "too long"},
      {"{quiet: 10ms}", "too short"},
      {"{quiet: 10s, maxWait: 9s}",
       "t.yaml:6:36: flows[0].nodes[0].collect.maxWait: 'maxWait' is "
       "shorter than 'quiet'"},
      {"10m", "'maxWait' is shorter than 'quiet'"},
      {"{quiet: 10s, maxEvents: 101}", "100"},
      {"{quiet: 10s, maxevents: 10}", "did you mean 'maxEvents'?"},
      {"{quiet: 10s, if: \"1 +\"}", "flows[0].nodes[0].collect.if: "},
      {"{quiet: 10s, onMessage: [{collect: 3s}]}", "waits for another input"},
  };
  for (const auto& [node, message] : cases) {
    EXPECT_NE(problems(node).find(message), std::string::npos) << node << "\n" << problems(node);
  }
}

}  // namespace
}  // namespace conversed::flows
