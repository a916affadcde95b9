// The Node waitForEvent, and the injects that a session keeps for it.
#include <gtest/gtest.h>

#include "flows/turn/follow_up.h"
#include "flows/turn/standing.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* pays = R"(
- if: input.source == "inject"
  then: [{stop: true}]
- id: pay
  waitForEvent:
    if: input.event.data.event == "paid"
    storeIn: context.paid
    timeout: 2h
    onTimeout: [{say: "late"}, {stop: true}]
- say: "paid {{context.paid.data.amount}} {{input.source}}"
)";

// The events that the session keeps.
Texts kept(const Conversation& talk) {
  Texts names;
  for (const auto& each : talk.session.flow_state.value("events", json::array())) {
    names.push_back(each["event"]["data"].value("event", ""));
  }
  return names;
}

TEST(WaitForEventNode, ContinuesWithTheEventThatFitsAndKeepsTheOthers) {
  Conversation talk(pays);
  const auto begun = talk.say("hi");
  EXPECT_EQ(texts(begun), Texts{});
  ASSERT_TRUE(begun->time_out);
  EXPECT_EQ(begun->time_out->id, "event1-e");
  EXPECT_EQ(begun->time_out->due_at, talk.now + 2h);
  EXPECT_TRUE(begun->time_out->is_time_out);
  EXPECT_FALSE(talk.session.busy());
  EXPECT_EQ(waits_for_event_until(talk.session.flow_state), talk.now + 2h);
  EXPECT_EQ(texts(talk.inject({{"event", "packed"}})), Texts{});
  EXPECT_EQ(kept(talk), Texts{"packed"});
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}, {"amount", 12}})), Texts{"paid 12 inject"});
  EXPECT_EQ(talk.session.context["paid"],
            (json{{"id", "event3"}, {"text", ""}, {"data", {{"event", "paid"}, {"amount", 12}}}}));
  EXPECT_EQ(kept(talk), Texts{"packed"});
  EXPECT_TRUE(time_outs_of(talk.session).empty());
  EXPECT_FALSE(waits_for_event_until(talk.session.flow_state));
}

TEST(WaitForEventNode, FindsAnEarlierEventOnce) {
  Conversation talk(pays);
  ASSERT_TRUE(talk.inject({{"event", "paid"}, {"amount", 12}}));
  ASSERT_TRUE(talk.inject({{"event", "paid"}, {"amount", 13}}));
  talk.now += 20min;
  EXPECT_EQ(texts(talk.say("hi")), Texts{"paid 12 user"});
  EXPECT_EQ(texts(talk.say("hi")), Texts{"paid 13 user"});
  EXPECT_EQ(texts(talk.say("hi")), Texts{});
  EXPECT_TRUE(kept(talk).empty());
}

TEST(WaitForEventNode, TakesTheInjectThatStartsItsFlow) {
  Conversation talk("- waitForEvent: input.event.data.event == \"paid\"\n- say: yes");
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}})), Texts{"yes"});
  EXPECT_EQ(texts(talk.inject({{"event", "packed"}})), Texts{});
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}})), Texts{"yes"});
  EXPECT_EQ(kept(talk), Texts{"packed"});
}

TEST(WaitForEventNode, LooksBackAsFarAsToldAndAtAllThatComesLater) {
  Conversation talk(
      "- if: input.source == \"inject\"\n  then: [{stop: true}]\n"
      "- waitForEvent: {if: input.event.data.event == \"paid\", lookBack: 5m}\n- say: yes");
  ASSERT_TRUE(talk.inject({{"event", "paid"}}));
  talk.now += 5min;
  EXPECT_EQ(texts(talk.say("hi")), Texts{});
  talk.now -= 1h;  // the clock was set
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}})), Texts{"yes"});
  EXPECT_EQ(kept(talk), Texts{"paid"}) << "the one that was too old";
}

TEST(WaitForEventNode, WithoutLookingBackWaitsForTheNextEvent) {
  Conversation talk(
      "- if: input.data.early\n  then: [{stop: true}]\n"
      "- waitForEvent: {if: input.event.data.event == \"paid\", lookBack: 0s}\n- say: yes");
  ASSERT_TRUE(talk.inject({{"event", "paid"}, {"early", true}}));
  talk.now -= 10ms;  // of a daemon whose clock is behind
  EXPECT_EQ(texts(talk.say("hi")), Texts{});
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}})), Texts{"yes"});
}

TEST(WaitForEventNode, TakesTheFirstOfSeveralWithItsName) {
  Conversation talk(R"(
- waitForEvent:
    any: {paid: "input.event.data.event == 'paid'", big: input.event.data.amount > 10}
- say: "{{input.event.name}} {{input.event.data.amount}}"
)");
  ASSERT_TRUE(talk.say("hi"));
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}, {"amount", 1}})), Texts{"paid 1"});
  ASSERT_TRUE(talk.say("hi"));
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}, {"amount", 11}})), Texts{"big 11"})
      << "the first by name";
}

TEST(WaitForEventNode, CollectsAllOfSeveralOverManyTurns) {
  Conversation talk(R"(
- id: all
  waitForEvent:
    all:
      a: input.event.data.event == 'a'
      b: input.event.data.event == 'b'
      c: input.event.data.n == 1
    storeIn: context.found
- say: done
)");
  ASSERT_TRUE(talk.inject({{"event", "b"}, {"n", 1}}));
  const auto timer = time_outs_of(talk.session);
  ASSERT_TRUE(talk.inject({{"event", "b"}, {"n", 2}}));
  ASSERT_TRUE(talk.inject({{"event", "x"}}));
  ASSERT_TRUE(talk.say("hello"));
  EXPECT_EQ(kept(talk), (Texts{"b", "b", "x"}));
  EXPECT_EQ(time_outs_of(talk.session), timer);
  EXPECT_EQ(texts(talk.inject({{"event", "a"}})), Texts{"done"});
  const auto& found = talk.session.context["found"];
  EXPECT_EQ(found.size(), 3U);
  EXPECT_EQ(found["a"]["id"], "event5");
  EXPECT_EQ(found["b"]["id"], "event1");
  EXPECT_EQ(found["c"]["id"], "event1") << "one event may fit several conditions";
  EXPECT_EQ(kept(talk), (Texts{"b", "x"}));
}

TEST(WaitForEventNode, NoInputExtendsItsTime) {
  Conversation talk(pays);
  ASSERT_TRUE(talk.say("hi"));
  talk.now += 1h;
  const auto message = talk.say("Hello?");
  EXPECT_EQ(texts(message), Texts{});
  EXPECT_FALSE(message->time_out);
  EXPECT_EQ(time_outs_of(talk.session), Texts{"event1-e"});
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{"late"});
  EXPECT_TRUE(time_outs_of(talk.session).empty());
}

TEST(WaitForEventNode, EndsTheExecutionWithoutABranchForTheTimeOut) {
  Conversation talk("- waitForEvent: \"false\"\n- say: never");
  const auto begun = talk.say("hi");
  ASSERT_TRUE(begun->time_out);
  EXPECT_EQ(begun->time_out->due_at, talk.now + 24h);
  EXPECT_EQ(texts(talk.let_question_time_out()), Texts{});
  EXPECT_TRUE(standings(talk.session.flow_state, talk.session.execution).empty());
}

constexpr const char* answers = R"(
- waitForEvent:
    if: input.event.data.event == "paid"
    timeout: 2h
    onMessage:
      - if: input.text == "leave"
        then: [{say: "left"}, {stop: true}]
      - executeFlow: Sub
      - say: "still"
- say: "paid"
)";

struct Answers : Conversation {
  Answers() : Conversation(answers) {
    library.flows["Sub"] = {named_flow("Sub", "  - question: {text: \"Yes?\", onNoAnswer: []}\n")};
  }
};

TEST(WaitForEventNode, MessageRunsItsBranchAndTheWaitGoesOn) {
  Answers talk;
  const auto until = talk.now + 2h;
  ASSERT_TRUE(talk.say("hi"));
  talk.now += 30min;
  EXPECT_EQ(texts(talk.say("Hello?")), Texts{"Yes?"});
  EXPECT_TRUE(time_outs_of(talk.session).empty()) << "it is renewed behind the question";
  talk.now += 30min;
  const auto back = talk.say("It's me.");
  EXPECT_EQ(texts(back), Texts{"still"});
  ASSERT_TRUE(back->time_out);
  EXPECT_EQ(back->time_out->due_at, until);
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}})), Texts{"paid"});
}

TEST(WaitForEventNode, FindsBehindItsBranchWhatCameMeanwhile) {
  Answers talk;
  ASSERT_TRUE(talk.say("hi"));
  ASSERT_TRUE(talk.say("Hello?"));
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}})), Texts{"Yes?"});
  EXPECT_EQ(texts(talk.say("It's me.")), (Texts{"still", "paid"}));
}

TEST(WaitForEventNode, WaitsAnewAfterItsBranchHasLeft) {
  Answers talk;
  ASSERT_TRUE(talk.say("hi"));
  EXPECT_EQ(texts(talk.say("leave")), Texts{"left"});
  EXPECT_TRUE(time_outs_of(talk.session).empty());
  talk.now += 10min;
  const auto begun = talk.say("hi");
  ASSERT_TRUE(begun->time_out);
  EXPECT_EQ(begun->time_out->due_at, talk.now + 2h);
}

TEST(WaitForEventNode, SessionDoesNotExpireWhileItWaits) {
  Conversation talk(pays);
  ASSERT_TRUE(talk.say("hi"));
  talk.now += 90min;
  EXPECT_FALSE(starts_afresh(talk.session, talk.endpoint, talk.now));
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}, {"amount", 3}})), Texts{"paid 3 inject"});
  ASSERT_TRUE(talk.inject({{"event", "packed"}}));
  talk.now += 31min;
  EXPECT_TRUE(starts_afresh(talk.session, talk.endpoint, talk.now));
  ASSERT_TRUE(talk.say("hi"));
  EXPECT_TRUE(kept(talk).empty()) << "a new conversation";
}

TEST(WaitForEventNode, KeepsItsPlaceInANewVersion) {
  Conversation talk(pays);
  ASSERT_TRUE(talk.say("hi"));
  talk.flow = flow_of(
      "- say: new\n- id: pay\n  waitForEvent: input.event.data.event == \"paid now\"\n- say: yes");
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}})), Texts{});
  EXPECT_EQ(time_outs_of(talk.session), Texts{"event1-e"});
  EXPECT_EQ(texts(talk.inject({{"event", "paid now"}})), Texts{"yes"});
}

TEST(UntakenEvents, AreTakenByNodesThatContinueBecauseOfThem) {
  const std::string rest = "- waitForEvent: \"false\"";
  const struct {
    std::string nodes;
    Texts left;
  } cases[]{
      {"- wait: true\n", {}},
      {"- {id: a, goTo: {node: b, wait: true}}\n- {id: b, log: x}\n", {}},
      {"- handover: {resumeIf: input.data.event == \"e\"}\n", {}},
      {"- handover: people\n", {"e"}},
      {"- question: {text: q, type: any}\n", {}},
      {"- question: {text: q, escapeIf: input.data.event == \"e\"}\n", {}},
      {"- question: {text: q}\n", {"e"}},
      {"- question: {text: q, maxAttempts: 1, onNoAnswer: []}\n", {"e"}},
  };
  for (const auto& [nodes, left] : cases) {
    Conversation talk(nodes + rest);
    ASSERT_TRUE(talk.say("hi")) << nodes;
    ASSERT_TRUE(talk.inject({{"event", "e"}})) << nodes;
    EXPECT_EQ(kept(talk), left) << nodes;
  }
}

TEST(UntakenEvents, AreKeptOnlyIfTheFlowOrOneThatItEntersWaitsForEvents) {
  Conversation plain("- say: x");
  ASSERT_TRUE(plain.inject({{"event", "e"}}));
  EXPECT_FALSE(plain.session.flow_state.contains("events"));
  Conversation enters("- if: \"false\"\n  then: [{executeFlow: Sub}]\n- say: x");
  enters.library.flows["Sub"] = {named_flow("Sub", "  - executeFlow: Main\n")};
  ASSERT_TRUE(enters.inject({{"event", "e"}}));
  EXPECT_TRUE(kept(enters).empty());
  enters.library.flows["Sub"].push_back(named_flow("Sub", "  - waitForEvent: \"false\"\n"));
  ASSERT_TRUE(enters.inject({{"event", "e"}}));
  EXPECT_EQ(kept(enters), Texts{"e"});
  ASSERT_TRUE(enters.say("no inject"));
  EXPECT_EQ(kept(enters), Texts{"e"});
}

TEST(UntakenEvents, AreBoundedAndTheOldestGoFirst) {
  Conversation talk(pays);
  ASSERT_TRUE(talk.inject({{"event", "first"}}));
  for (std::size_t i = 1; i < talk.limits.untaken_events; ++i) {
    ASSERT_TRUE(talk.inject({{"event", "more"}}));
  }
  EXPECT_EQ(kept(talk).front(), "first");
  const auto last = talk.inject({{"event", "last"}});
  ASSERT_TRUE(last);
  EXPECT_EQ(kept(talk).size(), talk.limits.untaken_events);
  EXPECT_EQ(kept(talk).front(), "more");
  EXPECT_EQ(kept(talk).back(), "last");
  ASSERT_EQ(last->log.size(), 1U);
  EXPECT_NE(last->log[0].find("drops the inject event1"), std::string::npos) << last->log[0];
  const std::string large(talk.limits.untaken_event_bytes - 200, 'x');
  ASSERT_TRUE(talk.inject({{"event", "large"}, {"x", large}}));
  EXPECT_EQ(kept(talk).back(), "large");
  EXPECT_LT(kept(talk).size(), 5U);
}

TEST(UntakenEvents, TooLargeOneFitsANodeThatWaits) {
  Conversation talk(pays);
  ASSERT_TRUE(talk.say("hi"));
  const std::string large(talk.limits.untaken_event_bytes, 'x');
  const auto other = talk.inject({{"event", "other"}, {"x", large}});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->log.size(), 1U);
  EXPECT_TRUE(kept(talk).empty());
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}, {"amount", 5}, {"x", large}})),
            Texts{"paid 5 inject"});
}

TEST(UntakenEvents, OfAWrongShapeAreAnError) {
  for (const char* events :
       {"3", "[3]", R"([{"n": 1, "at": 1}])", R"([{"n": "1", "event": {}}])"}) {
    Conversation talk(pays);
    ASSERT_TRUE(talk.say("hi"));
    talk.session.flow_state["events"] = json::parse(events);
    const auto taken = talk.inject({{"event", "paid"}});
    ASSERT_FALSE(taken) << events;
    EXPECT_EQ(taken.error().code, model::Errc::internal);
  }
}

// The Endpoint's Flow waits for an event while a follow-up's Flow waits.
struct Behind : Conversation {
  explicit Behind(const std::string& nodes = "  - question: {text: \"There?\", maxAttempts: 5}\n")
      : Conversation(pays) {
    library.flows["Asks"] = {named_flow("Asks", nodes + "  - say: thanks\n")};
    library.flows["Main"] = {flow};
    assets.flow_ids = {{"Asks", "asks"}, {"Main", "flow"}};
    EXPECT_TRUE(say("hi"));
    begun = ask();
  }

  Result<model::Effects> ask() {
    auto silence = event(model::EventType::follow_up);
    silence.follow_up.emplace().flow_id = "asks";
    return run(silence);
  }

  // Runs the Flow that the daemon chooses.
  Result<model::Effects> run(const model::Event& taken) {
    const auto turn = [&](bool is_asks) {
      return TurnInput{.flow = is_asks ? *library.flows["Asks"].back() : *flow,
                       .assets = assets,
                       .endpoint = endpoint,
                       .session = session,
                       .profile = profile,
                       .event = taken,
                       .now = now,
                       .limits = limits,
                       .flow_version = 1,
                       .library = &library,
                       .is_follow_up_flow = is_asks};
    };
    bool is_asks = taken.follow_up || waiting_flow(session, taken, endpoint) == "Asks";
    if (taken.type == model::EventType::inject && waits_for_event_behind(session.flow_state)) {
      const auto takes = takes_inject(turn(false));
      EXPECT_TRUE(takes);
      is_asks = takes && !*takes;
    }
    auto effects = run_turn(turn(is_asks));
    if (effects) session = effects->session;
    return effects;
  }
  Result<model::Effects> run_inject(json data) {
    auto made = event(model::EventType::inject);
    made.data = std::move(data);
    return run(made);
  }
  Result<model::Effects> run_message(std::string text) {
    auto made = event(model::EventType::user_message);
    made.text = std::move(text);
    return run(made);
  }
  Result<model::Effects> run_time_out() {
    auto made = event(model::EventType::time_out);
    made.claim = model::Claim{model::Claim::Kind::timer, time_outs_of(session).back()};
    return run(made);
  }

  Result<model::Effects> begun;
};

TEST(WaitForEventNode, BehindAFollowUpsFlowGetsTheEventAtOnce) {
  Behind talk;
  EXPECT_EQ(texts(talk.begun), Texts{"There?"});
  EXPECT_TRUE(waits_for_event_behind(talk.session.flow_state));
  EXPECT_EQ(texts(talk.run_inject({{"event", "paid"}, {"amount", 4}})), Texts{"paid 4 inject"});
  EXPECT_TRUE(time_outs_of(talk.session).empty());
}

TEST(WaitForEventNode, BehindAFollowUpsFlowLeavesItWhatDoesNotFit) {
  Behind talk;
  const auto before = talk.session.flow_state;
  EXPECT_EQ(texts(talk.run_inject({{"event", "packed"}})), Texts{"There?"});
  EXPECT_EQ(talk.session.flow_state["behind"], before["behind"]);
  EXPECT_EQ(kept(talk), Texts{"packed"});
  EXPECT_EQ(texts(talk.run_message("Yes")), Texts{"thanks"});
  EXPECT_EQ(talk.session.flow_state["waiting"], before["behind"]);
  EXPECT_EQ(texts(talk.run_inject({{"event", "paid"}, {"amount", 4}})), Texts{"paid 4 inject"});
}

TEST(WaitForEventNode, BehindAFollowUpsFlowLetsItsInjectEndIt) {
  for (const char* nodes : {"  - handover: people\n", "  - wait: true\n",
                            "  - waitForEvent: input.event.data.handover == 'resume'\n"}) {
    Behind talk(nodes);
    const auto resumed = talk.run_inject({{"handover", "resume"}});
    ASSERT_TRUE(resumed) << nodes;
    EXPECT_EQ(texts(resumed).back(), "thanks") << nodes;
    EXPECT_TRUE(kept(talk).empty()) << nodes;
    EXPECT_TRUE(waits_for_event_until(talk.session.flow_state)) << nodes;
  }
}

TEST(WaitForEventNode, BehindAFollowUpsFlowIsLeftWaitingIfItIsGone) {
  Behind talk;
  talk.flow = flow_of("- wait: true\n- waitForEvent: \"true\"\n- say: new");
  const auto before = talk.session.flow_state;
  EXPECT_EQ(texts(talk.run_inject({{"event", "paid"}})), Texts{"There?"});
  EXPECT_EQ(talk.session.flow_state["behind"], before["behind"]);
  EXPECT_EQ(talk.session.flow_state["followUpFlow"], "Asks");
}

TEST(WaitForEventNode, FindsAtItsTimeOutAnEventThatFitsOnlyNow) {
  Behind talk;
  EXPECT_EQ(texts(talk.run_inject({{"event", "paid now"}, {"amount", 4}})), Texts{"There?"});
  talk.flow = flow_of(
      "- {id: pay, waitForEvent: {if: input.event.data.event == \"paid now\", onTimeout: "
      "[{say: late}, {stop: true}]}}\n- say: \"{{input.event.data.amount}}\"");
  talk.now += 2h;
  EXPECT_EQ(texts(talk.run_time_out()), Texts{"4"});
  EXPECT_TRUE(kept(talk).empty());
}

TEST(WaitForEventNode, FindsWhatCameWhileAFollowUpsFlowAsked) {
  Behind talk;
  talk.session.flow_state = {{"v", 1}, {"executions", 1}};
  ASSERT_EQ(texts(talk.ask()), Texts{"There?"});
  ASSERT_FALSE(waits_for_event_until(talk.session.flow_state));
  EXPECT_EQ(texts(talk.run_inject({{"event", "paid"}, {"amount", 4}})), Texts{"There?"});
  EXPECT_EQ(texts(talk.run_message("Yes")), Texts{"thanks"});
  EXPECT_EQ(texts(talk.run_message("hi")), Texts{"paid 4 user"});
}

TEST(WaitForEventNode, GetsItsEventInAFlowThatNothingEntersAnyMore) {
  Conversation talk("- {id: sub, executeFlow: Sub}\n- say: back");
  talk.library.flows["Sub"] = {
      named_flow("Sub", "  - waitForEvent: input.event.data.event == 'paid'\n  - say: paid\n")};
  ASSERT_TRUE(talk.say("hi"));
  talk.flow = flow_of("- {id: sub, log: x}\n- say: back");
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}})), (Texts{"paid", "back"}));
}

TEST(WaitForEventNode, PassesOverAnEarlierEventThatCanNotBeStored) {
  Conversation talk(
      "- {id: ask, question: {text: q}}\n"
      "- waitForEvent: {if: \"input.event.data.event == 'paid'\", storeIn: context.paid}\n"
      "- say: \"paid {{context.paid.data.n}}\"");
  ASSERT_TRUE(talk.say("hi"));
  json deep = 1;
  for (std::size_t i = 0; i < talk.limits.value_depth; ++i) deep = {{"a", std::move(deep)}};
  ASSERT_TRUE(talk.inject({{"event", "paid"}, {"deep", deep}}));
  const auto answered = talk.say("an answer");
  EXPECT_EQ(texts(answered), Texts{});
  ASSERT_EQ(answered->log.size(), 1U);
  EXPECT_NE(answered->log[0].find("passes over injects up to event2: "), std::string::npos);
  EXPECT_NE(answered->log[0].find("nested deeper"), std::string::npos) << answered->log[0];
  EXPECT_TRUE(talk.say("again")->log.empty()) << "once";
  EXPECT_FALSE(talk.inject({{"event", "paid"}, {"deep", deep}})) << "a new one fails itself";
  EXPECT_EQ(kept(talk), Texts{"paid"});
  EXPECT_EQ(texts(talk.inject({{"event", "paid"}, {"n", 2}})), Texts{"paid 2"});
}

TEST(WaitForEventNode, LeavesAContextThatIsFullAsItWas) {
  Conversation talk(
      "- {id: ask, question: {text: q}}\n"
      "- waitForEvent: {if: \"true\", storeIn: context.a.paid}\n- say: \"{{context.a.paid.id}}\"");
  ASSERT_TRUE(talk.say("hi"));
  talk.session.context["x"] = std::string(talk.limits.context_bytes - 5'000, 'x');
  const auto before = talk.session.context;
  ASSERT_TRUE(talk.inject({{"x", std::string(10'000, 'x')}}));
  ASSERT_TRUE(talk.inject({{"x", 1}}));
  const auto answered = talk.say("an answer");
  EXPECT_EQ(texts(answered), Texts{"event3"});
  EXPECT_EQ(answered->log.size(), 1U);
  talk.session.context.erase("a");
  EXPECT_EQ(talk.session.context, before);
}

TEST(WaitForEventNode, HoldsItsSessionOnlyUntilItsTimeIsOver) {
  Conversation talk(pays);
  ASSERT_TRUE(talk.say("hi"));
  talk.now += 2h + 30min;  // an operator has canceled the timer
  EXPECT_FALSE(starts_afresh(talk.session, talk.endpoint, talk.now));
  EXPECT_TRUE(starts_afresh(talk.session, talk.endpoint, talk.now + 1ms));
}

TEST(UntakenEvents, AreKeptForAFlowThatCanNotBeReadNow) {
  struct FailingLibrary final : Library {
    model::Result<FoundFlow> flow(const std::string&, std::int64_t) const override {
      return model::fail(model::Errc::unavailable, "the disk is full");
    }
    model::Result<std::shared_ptr<const lexicon::Lexicon>> find_lexicon(
        const std::string&) const override {
      return model::fail(model::Errc::unavailable, "the disk is full");
    }
  };
  const FailingLibrary failing;
  Conversation talk("- if: \"false\"\n  then: [{executeFlow: Sub}]\n- say: x");
  auto made = talk.event(model::EventType::inject);
  const auto effects = run_turn({.flow = *talk.flow,
                                 .assets = talk.assets,
                                 .endpoint = talk.endpoint,
                                 .session = talk.session,
                                 .profile = talk.profile,
                                 .event = made,
                                 .now = talk.now,
                                 .limits = talk.limits,
                                 .flow_version = 1,
                                 .library = &failing});
  EXPECT_EQ(texts(effects), Texts{"x"});
  EXPECT_EQ(effects->session.flow_state["events"].size(), 1U);
}

TEST(UntakenEvents, AreWorkThatTheTurnPaysFor) {
  Conversation talk("- if: \"false\"\n  then: [{executeFlow: Sub}]\n- say: x");
  constexpr int flows = 60;
  json nodes = json::array();
  for (int i = 0; i < flows; ++i) nodes.push_back({{"executeFlow", "F" + std::to_string(i)}});
  for (int i = 0; i < flows; ++i) {
    const auto name = i == 0 ? "Sub" : "F" + std::to_string(i);
    auto flow = Flow::compile(json{{"name", name}, {"nodes", nodes}});
    ASSERT_TRUE(flow);
    talk.library.flows[name] = {*flow};
  }
  EXPECT_TRUE(talk.inject(1));
  talk.limits.turn_steps = std::size_t{flows} * flows;
  const auto poor = talk.inject(1);
  ASSERT_FALSE(poor);
  EXPECT_EQ(poor.error().code, model::Errc::too_large);
  EXPECT_TRUE(talk.say("no inject"));
}

TEST(WaitForEventNode, NamesWhatIsWrong) {
  const auto problems = [](const std::string& node) {
    const auto bundle = load_bundle(
        "conversed: 1\nproject: {name: T}\nflows:\n- name: F\n  nodes:\n  - waitForEvent: " + node +
            "\n",
        "t.yaml", {});
    return bundle ? std::string() : to_string(bundle.error());
  };
  const struct {
    std::string node;
    std::string message;
  } cases[]{
      {"{timeout: 1h}", "t.yaml:6:19: flows[0].nodes[0].waitForEvent: a waitForEvent has one of"},
      {"{if: \"true\", any: {a: \"true\"}}", "has one of 'if', 'any' and 'all'"},
      {"{any: {}}", "t.yaml:6:25: flows[0].nodes[0].waitForEvent.any: the mapping is empty"},
      {"{all: {a b: \"true\"}}", "'a b' is no name of an event"},
      {"{all: {a: \"1 +\"}}", "flows[0].nodes[0].waitForEvent.all.a: "},
      {"{any: [a]}", "expected a mapping"},
      {"{if: \"true\", timeout: 31d}", "too long"},
      {"{if: \"true\", lookback: 1h}", "did you mean 'lookBack'?"},
      {"{if: \"true\", onMessage: [{say: a}, {question: b}]}",
       "t.yaml:6:54: flows[0].nodes[0].waitForEvent.onMessage: the Node nodes[0].onMessage[1] "
       "waits"},
  };
  for (const auto& [node, message] : cases) {
    EXPECT_NE(problems(node).find(message), std::string::npos) << node << "\n" << problems(node);
  }
  std::string many = "{any: {";
  for (int i = 0; i < 21; ++i) many += "e" + std::to_string(i) + ": \"true\", ";
  EXPECT_NE(problems(many + "}}").find("more than 20 events"), std::string::npos);
}

}  // namespace
}  // namespace conversed::flows
