#include <algorithm>
#include <iostream>
#include <random>
#include <set>

#include "flows/input_members.h"
#include "flows/node_types.h"
#include "flows/turn/turn.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using model::Errc;
using model::EventType;
using nlohmann::json;

json facts(const model::Effects& effects) {
  json outputs = json::array();
  for (const auto& output : effects.outputs) {
    outputs.push_back({output.id, output.seq, output.input_id, output.text, output.data,
                       output.trace_id, model::to_unix_ms(output.created_at)});
  }
  return {{"outputs", outputs},
          {"context", effects.session.context},
          {"flow_state", effects.session.flow_state},
          {"execution", effects.session.execution ? effects.session.execution->state : json()},
          {"call", effects.call ? json(effects.call->id) : json()},
          {"http", effects.call && effects.call->http ? to_json(*effects.call->http) : json()},
          {"profile", effects.profile ? effects.profile->data : json()},
          {"log", effects.log}};
}

TEST(Turn, NumbersItsOutputsOnFromTheSession) {
  Conversation talk("- say: a\n- say: b");
  talk.session.last_output_seq = 41;
  const auto effects = talk.say("x");
  ASSERT_TRUE(effects);
  EXPECT_EQ(effects->outputs[0].seq, 42);
  EXPECT_EQ(effects->outputs[1].seq, 43);
  EXPECT_EQ(effects->outputs[1].id, "event1-2");
  EXPECT_EQ(effects->outputs[1].trace_id, std::string(32, 'b'));
  EXPECT_EQ(effects->session.last_output_seq, 43);
}

TEST(Turn, ShowsItsInputToTheFlow) {
  Conversation talk("- say: \"{{input}}\"");
  auto event = talk.event(EventType::follow_up);
  event.text = "hi";
  const auto effects = talk.take(event);
  const json shown = json::parse(texts(effects).front());
  EXPECT_EQ(shown, (json{{"text", "hi"},
                         {"data", json::object()},
                         {"type", "text"},
                         {"state", "default"},
                         {"slots", json::object()},
                         {"sessionId", "s1"},
                         {"userId", "ann"},
                         {"URLToken", std::string(64, 'a')},
                         {"channel", "web"},
                         {"currentTime", "2027-01-15T08:00:00.123Z"},
                         {"execution", 1},
                         {"locale", "en"},
                         {"traceId", std::string(32, 'b')},
                         {"inputId", "event1"},
                         {"source", "followUp"}}));
  // Nodes add the others.
  std::set<std::string_view> expected(input_members.begin(), input_members.end());
  for (const auto* added : {"error", "tool", "answer", "event", "events"}) expected.erase(added);
  std::set<std::string_view> names;
  for (const auto& [name, value] : shown.items()) names.insert(name);
  EXPECT_EQ(names, expected);
}

// The noted changes: each place with its value before the Turn and behind it.
Texts changes_of(const Result<model::Effects>& effects) {
  Texts all;
  for (const auto& each : effects->notes.changes) {
    const auto before = !each.bytes_before        ? "unknown"
                        : *each.bytes_before == 0 ? "none"
                                                  : each.before.value_or("large");
    all.push_back(each.path + ": " + before + " -> " +
                  (each.removed ? "removed" : each.value.value_or("large")));
  }
  return all;
}

TEST(Turn, NotesTheValuesBeforeAndBehindIt) {
  Conversation talk(
      "- addToContext: {n: \"{{(context.n || 0) + 1}}\", text: \"{{'x'.repeat(300)}}\"}\n"
      "- updateProfile: {seen: \"{{context.n}}\"}\n- addToContext: {n: \"{{context.n + 1}}\"}\n");
  EXPECT_EQ(changes_of(talk.say("x")), (Texts{"context.text: none -> large",
                                              "profile.seen: none -> 1", "context.n: none -> 2"}));
  talk.profile.data["seen"] = "by another session";
  EXPECT_EQ(changes_of(talk.say("x")),
            (Texts{"profile.seen: \"by another session\" -> 3", "context.n: 2 -> 4"}))
      << "the write of the same text is no change";
}

TEST(Turn, NotesNoValueBeforeItThatItMayHaveChanged) {
  Conversation talk(
      "- addToContext: {a: {b: 1}, list: [1, 2, 3]}\n- addToContext: {a.b: 2}\n"
      "- removeFromContext: ['list[0]', 'list[1]']\n- resetContext: true\n- addToContext: {c: 1}\n"
      "- updateProfile: {a.b: 1}\n");
  const Texts all{"context.a: none -> {\"b\":1}",
                  "context.list: none -> [1,2,3]",
                  "context.a.b: unknown -> 2",
                  "context.list[0]: unknown -> removed",
                  "context.list[1]: unknown -> removed",
                  "context: unknown -> removed",
                  "context.c: unknown -> 1",
                  "profile.a.b: none -> 1"};
  EXPECT_EQ(changes_of(talk.say("x")), all);
}

TEST(Turn, NotesTheContextThatAnExpiredSessionLoses) {
  Conversation talk("- addToContext: {n: \"{{(context.n || 0) + 1}}\"}\n");
  ASSERT_TRUE(talk.say("x"));
  talk.now += std::chrono::hours(1);
  EXPECT_EQ(changes_of(talk.say("x")),
            (Texts{"context: {\"n\":1} -> removed", "context.n: unknown -> 1"}));
}

TEST(Turn, StartsAfreshWhenTheSessionHasExpiredAndNotBefore) {
  Conversation talk(
      "- addToContext: {n: \"{{(context.n || 0) + 1}}\"}\n- say: \"{{context.n}}\"\n"
      "- wait: true\n- say: waited");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"1"}));
  talk.now += std::chrono::minutes(30);
  EXPECT_EQ(texts(talk.say("x")), (Texts{"waited"}))
      << "the session expires after the expiry, not at it";
  EXPECT_EQ(texts(talk.say("x")), (Texts{"2"}));
  talk.now += std::chrono::minutes(30) + std::chrono::milliseconds(1);
  const auto effects = talk.say("x");
  EXPECT_EQ(texts(effects), (Texts{"1"}));
  EXPECT_EQ(effects->outputs[0].seq, 4) << "the numbers of outputs continue";
  EXPECT_EQ(effects->session.started_at, talk.now);
  EXPECT_EQ(effects->session.last_activity_at, talk.now);
}

TEST(Turn, RestartsAFlowWhoseWaitingNodeIsGone) {
  Conversation talk("- say: one\n- id: ask\n  wait: true\n- say: two");
  talk.say("x");
  talk.flow = flow_of("- say: new");
  const auto effects = talk.say("x");
  EXPECT_EQ(texts(effects), (Texts{"new"}));
  ASSERT_EQ(effects->log.size(), 1U);
  EXPECT_NE(effects->log[0].find("the Node ask at which it waited is gone"), std::string::npos);
}

TEST(Turn, FindsTheWaitingNodeByItsIdInANewVersion) {
  Conversation talk("- say: one\n- id: ask\n  wait: true\n- say: two");
  talk.say("x");
  talk.flow = flow_of("- say: new\n- say: newer\n- id: ask\n  wait: true\n- say: three");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"three"}));
}

TEST(Turn, GoesOnInThePinnedVersionOnly) {
  Conversation talk("- say: one\n- sleep: 1s\n- say: two");
  talk.say("x");
  const auto pinned = talk.flow;
  talk.flow = flow_of("- say: new");
  const auto wrong = talk.fire_timer();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::internal);
  talk.flow = pinned;
  EXPECT_EQ(texts(talk.fire_timer()), (Texts{"two"}));
}

TEST(Turn, KeepsThePinOfItsExecution) {
  Conversation talk("- sleep: 1s");
  auto event = talk.event(EventType::inject);
  event.claim = model::Claim{model::Claim::Kind::keyed_event, event.id};
  const auto effects = run_turn({.flow = *talk.flow,
                                 .assets = talk.assets,
                                 .endpoint = talk.endpoint,
                                 .session = {},
                                 .profile = talk.profile,
                                 .event = event,
                                 .now = talk.now,
                                 .limits = talk.limits,
                                 .flow_version = 7});
  ASSERT_TRUE(effects && effects->session.execution);
  EXPECT_EQ(effects->session.execution->flow_id, "flow");
  EXPECT_EQ(effects->session.execution->flow_version, 7);
  EXPECT_TRUE(effects->session.execution->keyed);
}

TEST(Turn, RefusesEventsThatTheSessionDoesNotWaitFor) {
  Conversation talk("- httpRequest: {url: \"http://x.example\"}");
  auto result = talk.event(EventType::call_result);
  EXPECT_EQ(talk.take(result).error().code, Errc::conflict) << "no execution waits";
  talk.say("x");
  EXPECT_EQ(talk.say("y").error().code, Errc::conflict) << "the session is busy";
  EXPECT_EQ(talk.take(result).error().code, Errc::invalid_argument) << "the event has no result";
  result.result = model::CallResult{};
  result.result->call_id = "another";
  EXPECT_EQ(talk.take(result).error().code, Errc::conflict) << "the result of another call";
  EXPECT_EQ(talk.fire_timer().error().code, Errc::internal)
      << "the session waits for a result, not for a timer";
  EXPECT_TRUE(talk.answer_call(nullptr));
}

TEST(Turn, TakesBadStoredStateForAnError) {
  const std::vector<json> bad{
      1,
      "x",
      json::array(),
      json::object(),
      {{"v", 2}, {"executions", 1}},
      {{"v", 1}, {"executions", -1}},
      {{"v", 1}, {"executions", 1}, {"once", 3}},
      {{"v", 1}, {"executions", 1}, {"waiting", "ask"}},
      {{"v", 1}, {"executions", 1}, {"waiting", {{"at", 1}}}},
      {{"v", 1}, {"executions", 1}, {"keyphrases", 3}},
      {{"v", 1}, {"executions", 1}, {"keyphrases", {{"L", {"word"}}}}},
      {{"v", 1}, {"executions", 1}, {"waiting", {{"at", "a"}, {"flow", "Main"}, {"callers", 3}}}},
      {{"v", 1},
       {"executions", 1},
       {"waiting", {{"at", "a"}, {"flow", "Main"}, {"callers", json::object()}}}},
      {{"v", 1},
       {"executions", 1},
       {"waiting", {{"at", "a"}, {"flow", "Main"}, {"callers", nullptr}}}},
      {{"v", 1}, {"executions", 18446744073709551615ULL}}};
  for (const auto& state : bad) {
    Conversation talk("- say: a");
    talk.say("x");
    talk.session.flow_state = state;
    const auto effects = talk.say("x");
    ASSERT_FALSE(effects) << state;
    EXPECT_EQ(effects.error().code, Errc::internal) << state;
  }
  Conversation asked("- question: {text: q}");
  asked.say("x");
  asked.session.flow_state["waiting"]["state"] = "nonsense";
  EXPECT_EQ(asked.say("").error().code, Errc::internal);
  Conversation shapeless("- say: a");
  shapeless.say("x");
  shapeless.session.context = 5;
  EXPECT_EQ(shapeless.say("x").error().code, Errc::internal);
}

TEST(Turn, TakesABadStoredExecutionForAnError) {
  Conversation talk("- sleep: 1s");
  talk.say("x");
  const json good = talk.session.execution->state;
  for (const auto& [name, unused] : good.items()) {
    for (const json& bad : {json(), json(-1), json("nowhere"), json::array()}) {
      talk.session.execution->state = good;
      talk.session.execution->state[name] = bad;
      EXPECT_FALSE(talk.fire_timer()) << name << " " << bad;
    }
    talk.session.execution->state = good;
    talk.session.execution->state.erase(name);
    EXPECT_FALSE(talk.fire_timer()) << name;
  }
  talk.session.execution->state = good;
  EXPECT_TRUE(talk.fire_timer());
}

TEST(TurnLimits, EndARunawayFlowWithItsNodesAddress) {
  Conversation outputs("- say: a\n- say: b\n- id: c\n  say: c");
  outputs.limits.outputs_per_turn = 2;
  EXPECT_EQ(outputs.say("x").error().message,
            "Flow 'Main', Node c (say): more than 2 outputs in one Turn");
  Conversation nodes("- say: a\n- say: b\n- id: c\n  say: c");
  nodes.limits.nodes_per_turn = 2;
  EXPECT_EQ(nodes.say("x").error().message,
            "Flow 'Main', Node c (say): more than 2 Nodes in one Turn");
  Conversation large("- say: \"{{'x'.repeat(100)}}\"");
  large.limits.output_bytes = 99;
  EXPECT_EQ(large.say("x").error().code, Errc::too_large);
  Conversation call(
      "- httpRequest: {method: POST, url: \"http://x.example\", body: \"{{'x'.repeat(100)}}\"}");
  call.limits.call_bytes = 99;
  EXPECT_EQ(call.say("x").error().code, Errc::too_large);
  Conversation sleeper("- id: top\n  sleep: 1s\n- goTo: top");
  sleeper.limits.turns_per_execution = 2;
  sleeper.say("x");
  EXPECT_TRUE(sleeper.fire_timer());
  EXPECT_EQ(sleeper.fire_timer().error().code, Errc::too_large);
}

TEST(TurnLimits, BoundTheContextsSizeAndDepth) {
  Conversation wide("- addToContext: {text: \"{{'x'.repeat(1000)}}\"}");
  wide.limits.context_bytes = 1024;
  EXPECT_TRUE(wide.say("x"));
  EXPECT_TRUE(wide.say("x")) << "a replaced value does not count";
  wide.limits.context_bytes = 1000;
  EXPECT_EQ(wide.say("x").error().code, Errc::too_large);
  Conversation deep("- addToContext: {a: \"{{ {inner: context.a} }}\"}");
  Result<model::Effects> effects;
  int turns = 0;
  while ((effects = deep.say("x")) && turns < 1000) ++turns;
  EXPECT_LT(turns, 60);
  EXPECT_EQ(effects.error().code, Errc::too_large);
  Conversation profile("- updateProfile: {text: \"{{'x'.repeat(1000)}}\"}");
  profile.limits.profile_bytes = 1000;
  EXPECT_EQ(profile.say("x").error().code, Errc::too_large);
}

TEST(FailureEffects, LeaveNoExecutionAndSayTheErrorText) {
  Conversation talk("- sleep: 1s");
  talk.endpoint.error_text = "Sorry.";
  talk.say("x");
  auto timer = talk.event(EventType::timer);
  const auto effects = failure_effects(talk.session, talk.endpoint, timer, talk.now);
  EXPECT_FALSE(effects.session.busy());
  ASSERT_EQ(effects.outputs.size(), 1U);
  EXPECT_EQ(effects.outputs[0].text, "Sorry.");
  EXPECT_EQ(effects.outputs[0].id, "event1-error");
  EXPECT_EQ(effects.outputs[0].seq, 1);
  talk.endpoint.error_text = "";
  EXPECT_TRUE(failure_effects(talk.session, talk.endpoint, timer, talk.now).outputs.empty());
}

// Random Flows of all Nodes that end by themselves. Two runs have to agree.
std::string random_nodes(std::mt19937_64& random, int depth, const std::string& indent) {
  const auto draw = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  std::string text;
  const int count = 1 + draw(4);
  for (int i = 0; i < count; ++i) {
    const std::string inner = indent + "    ";
    switch (draw(depth > 0 ? 9 : 7)) {
      case 0:
        text += indent + "- say: [\"{{Math.random()}}\", \"b {{input.text}}\"]\n";
        break;
      case 1:
        text += indent + "- addToContext: {n: \"{{(context.n || 0) + 1}}\"}\n";
        break;
      case 2:
        text += indent + "- question: {text: \"n?\", type: number, storeIn: context.q}\n";
        break;
      case 3:
        text += indent + "- sleep: 1s\n";
        break;
      case 4:
        text += indent + "- httpRequest: {url: \"http://x.example/{{context.n}}\", onError: []}\n";
        break;
      case 5:
        text += indent + "- wait: true\n";
        break;
      case 6:
        text += indent + "- updateProfile: {seen: \"{{input.text}}\"}\n";
        break;
      case 7:
        text += indent + "- if: context.n % 2 == 0\n" + indent + "  then:\n" +
                random_nodes(random, depth - 1, inner) + indent + "  else:\n" +
                random_nodes(random, depth - 1, inner);
        break;
      default:
        text += indent + "- once:\n" + random_nodes(random, depth - 1, inner);
    }
  }
  return text;
}

TEST(TurnProperty, TheSameInputGivesEqualEffectsAndNumbersHaveNoGaps) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    Conversation talk(random_nodes(random, 2, ""));
    ASSERT_NE(talk.flow, nullptr);
    std::set<std::string> ids;
    std::int64_t seq = 0;
    for (int turn = 0; turn < 20; ++turn) {
      Conversation twin = talk;
      const std::string text = random() % 2 == 0 ? "12" : "x";
      const auto step = [&](Conversation& who) {
        if (!who.session.busy()) return who.say(text);
        const auto* node =
            who.flow->slot(who.flow->find(who.session.execution->state["at"].get<std::string>()))
                .node.get();
        if (node->awaits() == Node::Awaits::timer) return who.fire_timer();
        return text == "x" ? who.fail_call("timeout", "t", 0) : who.answer_call({{"a", 1}});
      };
      const auto first = step(talk);
      const auto second = step(twin);
      ASSERT_TRUE(first) << first.error().message;
      ASSERT_EQ(facts(*first), facts(*second));
      for (const auto& output : first->outputs) {
        EXPECT_EQ(output.seq, ++seq);
        EXPECT_TRUE(ids.insert(output.id).second) << output.id;
      }
      if (first->call) {
        EXPECT_TRUE(ids.insert(first->call->id).second) << first->call->id;
      }
    }
  }
}

TEST(Flow, GivesEveryNodeAStableAddress) {
  const auto flow = flow_of(
      "- say: a\n- if: \"true\"\n  then:\n    - say: b\n    - id: named\n      say: c\n"
      "- switch: {on: input.text, cases: {\"a b\": [{say: d}]}}");
  std::set<std::string> addresses;
  for (const auto& slot : flow->slots()) addresses.insert(slot.address);
  EXPECT_EQ(addresses, (std::set<std::string>{"nodes[0]", "nodes[1]", "nodes[1].then[0]", "named",
                                              "nodes[2]", "nodes[2].cases[\"a b\"][0]"}));
  EXPECT_EQ(flow->find("nodes[1].then[1]"), end_of_flow) << "its id replaces its path";
}

TEST(Flow, CompilesFromTheStoreWithoutPlaces) {
  const auto flow = Flow::compile_text(R"({"name":"F","nodes":[{"if":"1 +"},{"goTo":"x"}]})");
  ASSERT_FALSE(flow);
  ASSERT_EQ(flow.error().size(), 2U);
  EXPECT_EQ(flow.error()[0].path, "nodes[0].if");
  EXPECT_EQ(to_string(flow.error()[1]), "nodes[1].goTo: no Node of this Flow has the id 'x'");
  EXPECT_FALSE(Flow::compile_text("{"));
  EXPECT_FALSE(Flow::compile_text(std::string(100'000, '[')));
  EXPECT_FALSE(Flow::compile_text("[]"));
}

TEST(Flow, WithoutNodesSaysNothing) {
  auto flow = Flow::compile_text(R"({"name":"F","nodes":[]})");
  ASSERT_TRUE(flow);
  Conversation talk("- say: x");
  talk.flow = *flow;
  EXPECT_EQ(texts(talk.say("x")), Texts{});
}

}  // namespace
}  // namespace conversed::flows
