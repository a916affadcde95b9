// Nodes with branches that the session, a list or another Flow decides on.
#include <algorithm>
#include <iterator>
#include <set>

#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr const char* halves =
    "- id: tone\n  split:\n"
    "  - {name: a, share: 50, do: [{say: a}]}\n  - {name: b, share: 50, do: [{say: b}]}\n";

// The messages of a Flow's problems.
Texts problems_of(const std::string& node) {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: P}\nflows:\n- name: F\n  nodes:\n  - " + node + "\n", "b.yaml",
      {});
  Texts messages;
  if (bundle) return messages;
  for (const auto& problem : bundle.error()) {
    messages.push_back(problem.path.substr(std::string("flows[0].nodes[0].").size()) + ": " +
                       problem.message);
  }
  return messages;
}

// The sessions, of a thousand, that the split leads to its branch `a`.
std::set<int> sessions_of_a(const std::string& nodes) {
  Conversation talk(nodes);
  std::set<int> found;
  for (int i = 0; i < 1000; ++i) {
    auto event = talk.event(model::EventType::user_message);
    event.text = "x";
    event.session.session_id = "s" + std::to_string(i);
    talk.session = {};
    if (texts(talk.take(event)).front() == "a") found.insert(i);
  }
  return found;
}

TEST(SplitNode, TakesTheSameBranchAtEachVisit) {
  Conversation talk(halves);
  const auto first = texts(talk.say("x"));
  for (int i = 0; i < 20; ++i) {
    if (i == 10) talk.now += std::chrono::hours(2);  // the session begins anew
    EXPECT_EQ(texts(talk.say("x")), first);
  }
}

TEST(SplitNode, DividesSessionsByTheShares) {
  const auto half = sessions_of_a(halves);
  EXPECT_GT(half.size(), 430U);
  EXPECT_LT(half.size(), 570U);
  const auto few = sessions_of_a(
      "- split: [{name: a, share: 10, do: [{say: a}]}, {name: b, share: 90, do: [{say: b}]}]\n");
  EXPECT_GT(few.size(), 60U);
  EXPECT_LT(few.size(), 140U);
  EXPECT_EQ(
      sessions_of_a("- split: [{name: a, share: 0, do: [{say: a}]}, {name: b, share: 100, do: "
                    "[{say: b}]}]\n")
          .size(),
      0U);
}

TEST(SplitNode, NewSharesMoveFewSessions) {
  const auto before = sessions_of_a(halves);
  const auto more = sessions_of_a(
      "- id: tone\n  split:\n"
      "  - {name: b, share: 40, do: [{say: b}]}\n  - {name: a, share: 60, do: [{say: a}]}\n");
  EXPECT_GT(more.size(), before.size());
  EXPECT_TRUE(std::ranges::includes(more, before)) << "the order of the branches does not matter";
  const auto of_y = [](int x, int y, int z) {
    const auto branch = [](const char* name, int share, const char* text) {
      return std::string("  - {name: ") + name + ", share: " + std::to_string(share) +
             ", do: [{say: " + text + "}]}\n";
    };
    return sessions_of_a("- id: tone\n  split:\n" + branch("x", x, "other") + branch("y", y, "a") +
                         branch("z", z, "other"));
  };
  const auto thirds = of_y(33, 33, 34);
  const auto other = of_y(43, 33, 24);
  std::vector<int> moved;
  std::ranges::set_symmetric_difference(thirds, other, std::back_inserter(moved));
  EXPECT_LT(moved.size(), 120U) << "the share of this branch is the same";
}

TEST(SplitNode, TwoOfThemDivideIndependently) {
  const auto other = sessions_of_a(
      "- id: other\n  split:\n"
      "  - {name: a, share: 50, do: [{say: a}]}\n  - {name: b, share: 50, do: [{say: b}]}\n");
  std::vector<int> both;
  std::ranges::set_intersection(sessions_of_a(halves), other, std::back_inserter(both));
  EXPECT_GT(both.size(), 180U);
  EXPECT_LT(both.size(), 320U);
}

TEST(SplitNode, StoresAndNotesItsBranchAndGoesOn) {
  Conversation talk(
      "- split: {branches: [{name: a, share: 0}, {name: the rest, share: 100}], storeIn: "
      "context.way}\n- say: \"{{context.way}}\"\n");
  const auto effects = talk.say("x");
  EXPECT_EQ(texts(effects), (Texts{"the rest"}));
  EXPECT_EQ(effects->notes.nodes, "nodes[0]\nnodes[1]\n");
  EXPECT_EQ(effects->notes.branches, (Texts{"nodes[0] = the rest"}));
  EXPECT_EQ(effects->notes.nodes_run, 2U);
}

TEST(SplitNode, RefusesWrongBranches) {
  EXPECT_EQ(problems_of("split: [{name: a, share: 50}]"),
            (Texts{"split: a split has 2 to 20 branches, each {name, share, do}"}));
  EXPECT_EQ(problems_of("split: [{name: a, share: 50}, {name: b, share: 40}]"),
            (Texts{"split: the shares are percent of the sessions; their sum is 90 instead of "
                   "100"}));
  EXPECT_EQ(problems_of("split: [{name: a, share: 50%}, {name: a, share: 50, od: []}]"),
            (Texts{"split[0].share: expected a whole number from 0 to 100",
                   "split[1]: the branch 'a' is there twice; rename one",
                   "split[1].od: unknown key 'od'; did you mean 'do'?"}));
}

TEST(SplitNode, NotesItsBranchWithTheNameOfAnEnteredFlow) {
  Conversation talk("- executeFlow: Sub");
  talk.library.flows["Sub"] = {
      named_flow("Sub", "  - split: [{name: a, share: 0}, {name: b, share: 100}]")};
  const auto effects = talk.say("x");
  EXPECT_EQ(effects->notes.nodes, "nodes[0]\nSub: nodes[0]\n");
  EXPECT_EQ(effects->notes.branches, (Texts{"Sub: nodes[0] = b"}));
}

TEST(SplitNode, NotesItsBranchesBehindManyNodesEachOnce) {
  std::string nodes;
  for (std::size_t i = 0; i < model::TurnNotes::most_nodes; ++i) nodes += "- say: x\n";
  Conversation talk(nodes +
                    "- id: way\n  split: [{name: a, share: 0}, {name: b, share: 100}]\n"
                    "- addToContext: {n: \"{{(context.n || 0) + 1}}\"}\n"
                    "- if: context.n < 3\n  then: [{goTo: way}]\n");
  const auto effects = talk.say("x");
  EXPECT_EQ(std::ranges::count(effects->notes.nodes, '\n'), model::TurnNotes::most_nodes);
  EXPECT_TRUE(effects->notes.nodes.ends_with("\nnodes[52]\n")) << "where the Turn has ended";
  EXPECT_EQ(effects->notes.branches, (Texts{"way = b"}));
}

constexpr const char* each_asks =
    "- id: each\n  forEach: input.data.items\n  item: context.item\n  index: context.n\n  do:\n"
    "    - {id: ask, question: {text: \"{{context.n}} {{context.item}}?\", storeIn: context.a}}\n"
    "    - say: \"{{context.item}}={{context.a}}\"\n"
    "- say: end\n";

json items(const std::string& list) {
  return {{"items", json::parse(list)}};
}

TEST(ForEachNode, AsksAndCallsForEachItem) {
  Conversation talk(
      "- forEach: input.data.items\n  item: context.item\n  index: context.n\n  do:\n"
      "    - question: {text: \"{{context.n}} {{context.item}}?\", storeIn: context.a}\n"
      "    - httpRequest: {url: \"http://example.com/\", storeIn: context.b}\n"
      "    - say: \"{{context.item}}={{context.a}}{{context.b}}\"\n"
      "- say: end\n");
  EXPECT_EQ(texts(talk.inject(items(R"(["a", "b"])"))), (Texts{"0 a?"}));
  EXPECT_EQ(texts(talk.say("1")), (Texts{}));
  EXPECT_EQ(texts(talk.answer_call("x")), (Texts{"a=1x", "1 b?"}));
  EXPECT_EQ(texts(talk.say("2")), (Texts{}));
  EXPECT_EQ(texts(talk.answer_call("y")), (Texts{"b=2y", "end"}));
  EXPECT_EQ(talk.session.context, (json{{"a", "2"}, {"b", "y"}}));
  EXPECT_EQ(talk.session.flow_state.dump().find("loops"), std::string::npos);
}

TEST(ForEachNode, ReadsItsListOnce) {
  Conversation talk(
      "- addToContext: {list: [1, 2]}\n- forEach: context.list\n  item: context.item\n  do:\n"
      "    - addToContext: {list: \"{{[...context.list, context.item + 2]}}\"}\n"
      "- say: \"{{context.list}}\"\n");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"[1,2,3,4]"}));
}

TEST(ForEachNode, GoesOnInANewVersionOfItsFlow) {
  Conversation talk(each_asks);
  EXPECT_EQ(texts(talk.inject(items(R"(["a", "b", "c"])"))), (Texts{"0 a?"}));
  const auto second = std::string("- say: new\n") + each_asks;
  talk.flow = flow_of(second);
  EXPECT_EQ(texts(talk.say("1")), (Texts{"a=1", "1 b?"}));
  // With another id and another place it is still the loop around the question.
  talk.flow = flow_of("- forEach: \"[9]\"\n  item: context.i\n  do:\n" +
                      std::string("    - {id: ask, question: {text: again}}\n    - say: "
                                  "\"{{context.i}}\"\n- say: done\n"));
  EXPECT_EQ(texts(talk.say("2")), (Texts{"", "again"}));
  EXPECT_EQ(talk.session.context["i"], "c");
}

TEST(ForEachNode, AroundANewLoopEndsBehindTheCurrentItem) {
  Conversation talk(each_asks);
  EXPECT_EQ(texts(talk.inject(items(R"(["a", "b"])"))), (Texts{"0 a?"}));
  talk.flow = flow_of(
      "- forEach: \"[1, 2]\"\n  item: context.outer\n  do:\n"
      "    - id: each\n      forEach: \"[3, 4]\"\n      item: context.item\n      do:\n"
      "        - {id: ask, question: {text: \"{{context.item}}?\"}}\n- say: end\n");
  EXPECT_EQ(texts(talk.say("1")), (Texts{"b?"}));
  EXPECT_EQ(texts(talk.say("2")), (Texts{"end"}));
}

TEST(ForEachNode, GoesOnOrIsLeftByAGoTo) {
  const std::string nodes =
      "- id: each\n  forEach: input.data.items\n  item: context.item\n  do:\n"
      "    - if: context.item == 'skip'\n      then: [{goTo: each}]\n"
      "    - if: context.item == 'leave'\n      then: [{goTo: out}]\n"
      "    - say: \"{{context.item}}\"\n"
      "- say: end\n- id: out\n  wait: true\n- say: \"{{context.item}}\"\n";
  Conversation talk(nodes);
  EXPECT_EQ(texts(talk.inject(items(R"(["a", "skip", "b"])"))), (Texts{"a", "b", "end"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{""}));
  EXPECT_EQ(texts(talk.inject(items(R"(["a", "leave", "b"])"))), (Texts{"a"}));
  EXPECT_EQ(talk.session.flow_state.dump().find("loops"), std::string::npos);
  EXPECT_EQ(texts(talk.say("x")), (Texts{"leave"}));
  EXPECT_EQ(texts(talk.inject(items(R"(["c"])"))), (Texts{"c", "end"}));
}

TEST(ForEachNode, EndsWhenAGoToLeavesItAndIsNotContinuedFromOutside) {
  Conversation talk(
      "- forEach: \"['a', 'b']\"\n  item: context.item\n  do:\n"
      "    - if: \"!context.left\"\n      then: [{goTo: out}]\n"
      "    - id: inside\n      say: \"{{context.item}}\"\n- say: end\n- stop: true\n"
      "- id: out\n  addToContext: {left: true}\n- goTo: inside\n");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"a", "end"}));
}

TEST(ForEachNode, StandsInsideOfAnother) {
  Conversation talk(
      "- forEach: \"[[1, 2], [], [3]]\"\n  item: context.row\n  index: context.r\n  do:\n"
      "    - forEach: context.row\n      item: context.cell\n      do:\n"
      "        - {question: {text: \"{{context.r}}:{{context.cell}}\", storeIn: context.a}}\n"
      "    - say: row\n- say: end\n");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"0:1"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"0:2"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"row", "row", "2:3"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"row", "end"}));
}

TEST(ForEachNode, OfAFlowThatEntersItselfIsAnotherInEachRun) {
  Conversation talk(
      "- addToContext: {depth: \"{{(context.depth ?? 0) + 1}}\"}\n"
      "- forEach: \"['a', 'b']\"\n  item: context.item\n  do:\n"
      "    - say: \"{{context.depth}}{{context.item}}\"\n    - wait: true\n"
      "    - if: context.depth < 2\n      then: [{executeFlow: Main}]\n");
  Texts said;
  for (int i = 0; i < 5; ++i) {
    for (auto& text : texts(talk.say("x"))) said.push_back(std::move(text));
  }
  EXPECT_EQ(said, (Texts{"1a", "2a", "2b", "2b"}));
}

TEST(ForEachNode, FailsForWhatIsNoShortList) {
  const auto error = [](const std::string& list) {
    Conversation talk("- forEach: \"" + list + "\"\n  item: context.i\n  do: [{say: x}]\n");
    const auto effects = talk.say("x");
    return effects ? "" : effects.error().message;
  };
  const std::string node = "Flow 'Main', Node nodes[0] (forEach): ";
  EXPECT_EQ(error("'a'"), node + "expected a list, not a value of the type string");
  EXPECT_EQ(error("context.none"),
            node + "there is no list; write `?? []` behind it if it may be missing");
  EXPECT_EQ(error("context.none.b"), node + "the list: column 14: can't read 'b' of undefined");
  EXPECT_EQ(error("context.none ?? []"), "");
  EXPECT_EQ(error("'0123456789'.repeat(5).split('')"), "");
  EXPECT_EQ(error("('0123456789'.repeat(5) + 'x').split('')"),
            node + "the list has more than 50 items; take some of them by `.slice(0, n)`");
}

TEST(ForEachNode, LimitsWhatItsListsTake) {
  Conversation talk(
      "- forEach: \"[input.text]\"\n  item: context.i\n  do:\n"
      "    - forEach: \"[input.text]\"\n      item: context.j\n      do: [{say: x}]\n");
  talk.limits.frame_bytes = 1000;
  EXPECT_EQ(texts(talk.say(std::string(450, 'x'))), (Texts{"x"}));
  const auto effects = talk.say(std::string(500, 'x'));
  ASSERT_FALSE(effects);
  EXPECT_EQ(effects.error().code, model::Errc::too_large);
  EXPECT_NE(effects.error().message.find("nodes[0].do[0] (forEach): the lists of loops and the "
                                         "arguments of Flows take more than 1000 bytes"),
            std::string::npos)
      << effects.error().message;
}

TEST(ForEachNode, TakesBadStoredStateForAnError) {
  for (const char* stored :
       {"5", "[5]", "[{}]", R"([{"at": "each", "next": -1, "list": []}])",
        R"([{"at": "each", "next": 1, "list": {}}])", R"([{"at": 1, "next": 1, "list": []}])"}) {
    Conversation talk(each_asks);
    ASSERT_TRUE(talk.inject(items(R"(["a", "b"])")));
    ASSERT_TRUE(talk.session.flow_state["waiting"]["loops"].is_array());
    talk.session.flow_state["waiting"]["loops"] = json::parse(stored);
    const auto effects = talk.say("x");
    ASSERT_FALSE(effects) << stored;
    EXPECT_EQ(effects.error().code, model::Errc::internal) << stored;
  }
  Conversation talk(each_asks);
  ASSERT_TRUE(talk.inject(items(R"(["a", "b"])")));
  talk.session.flow_state["waiting"]["loops"][0]["next"] = 7;
  EXPECT_EQ(texts(talk.say("x")), (Texts{"a=x", "end"}));
}

TEST(ForEachNode, RefusesWrongKeys) {
  EXPECT_EQ(problems_of("{forEach: context.a, item: context.b, index: context.b, do: [{say: x}]}"),
            (Texts{"index: the item and its number need two places; choose another"}));
  EXPECT_EQ(problems_of("{forEach: context.a, item: context.b, do: []}"),
            (Texts{"do: the list is empty; write a Node"}));
  EXPECT_EQ(
      problems_of("{forEach: 5, item: input.b, od: [{say: x}]}"),
      (Texts{"forEach: expected a text, not a number; put it in quotes", "forEach: 'do' is missing",
             "item: column 1: a place to store to begins with 'context.' or 'profile.'",
             "od: unknown key 'od' beside 'forEach'; did you mean 'do'?"}));
}

TEST(ExecuteFlowNode, GivesArgumentsAndStoresWhatReturns) {
  Conversation talk(
      "- executeFlow: {flow: Sub, with: {n: \"{{1 + 1}}\", who: {name: Ann}}, storeIn: context.r}\n"
      "- say: \"{{context.r.twice}} {{arguments.n}}.\"\n");
  talk.library.flows["Sub"] = {
      named_flow("Sub",
                 "  - say: \"{{arguments.who.name}} {{arguments.none}}\"\n"
                 "  - return: {value: {twice: \"{{arguments.n * 2}}\"}}\n  - say: never\n")};
  EXPECT_EQ(texts(talk.say("x")), (Texts{"Ann ", "4 ."}));
}

TEST(ExecuteFlowNode, KeepsArgumentsWhileItsFlowAsksAndCalls) {
  Conversation talk(
      "- executeFlow: {flow: Sub, with: {n: \"{{input.text}}\"}, storeIn: context.r}\n"
      "- say: \"{{context.r}}\"\n");
  const std::string nodes =
      "  - {id: ask, question: \"{{arguments.n}}?\"}\n"
      "  - httpRequest: {url: \"http://example.com/\", storeIn: context.b}\n"
      "  - return: \"{{arguments.n + context.b}}\"\n";
  talk.library.flows["Sub"] = {named_flow("Sub", nodes)};
  EXPECT_EQ(texts(talk.say("a")), (Texts{"a?"}));
  talk.library.flows["Sub"].push_back(named_flow("Sub", "  - say: new\n" + nodes));
  talk.flow = flow_of(
      "- executeFlow: {flow: Sub, with: {n: other}, storeIn: context.new}\n"
      "- say: \"{{context.new}}\"\n");
  EXPECT_EQ(texts(talk.say("x")), (Texts{}));
  EXPECT_EQ(texts(talk.answer_call("b")), (Texts{"ab"})) << "the newest version says where";
}

TEST(ExecuteFlowNode, StoresNullWithoutAReturn) {
  Conversation talk(
      "- addToContext: {r: 1}\n- executeFlow: {flow: Sub, storeIn: context.r}\n"
      "- say: \"{{context.r === null}}\"\n");
  for (const char* nodes : {"  - say: sub\n", "  - return:\n", "  - return: {}\n"}) {
    talk.library.flows["Sub"] = {named_flow("Sub", nodes)};
    EXPECT_EQ(texts(talk.say("x")).back(), "true") << nodes;
  }
}

TEST(ExecuteFlowNode, GivesEachRunOfARecursiveFlowItsOwnArguments) {
  Conversation talk("- say: x");
  talk.flow = named_flow("Fact",
                         "  - if: arguments.n == null\n    then:\n"
                         "      - executeFlow: {flow: Fact, with: {n: 5}, storeIn: context.r}\n"
                         "      - say: \"{{context.r}}\"\n      - stop: true\n"
                         "  - if: arguments.n < 2\n    then: [{return: 1}]\n"
                         "  - executeFlow: {flow: Fact, with: {n: \"{{arguments.n - 1}}\"}, "
                         "storeIn: context.r}\n"
                         "  - return: \"{{arguments.n * context.r}}\"\n");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"120"}));
}

TEST(ExecuteFlowNode, WithoutReturnGivesArgumentsButStoresNothing) {
  Conversation talk("- executeFlow: {flow: Sub, with: {n: 1}, return: false}\n");
  talk.library.flows["Sub"] = {
      named_flow("Sub", "  - wait: true\n  - say: \"{{arguments.n}}\"\n  - return: 5\n")};
  EXPECT_EQ(texts(talk.say("x")), (Texts{}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"1"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{})) << "the Flow had ended";
  EXPECT_EQ(problems_of("executeFlow: {flow: F, return: false, storeIn: context.a}"),
            (Texts{"executeFlow.storeIn: nothing comes back with `return: false`; remove one"}));
  EXPECT_EQ(problems_of("executeFlow: {flow: F, with: [1]}"),
            (Texts{"executeFlow.with: expected a mapping, not a list"}));
}

TEST(ExecuteFlowNode, LimitsArguments) {
  Conversation talk("- executeFlow: {flow: Sub, with: {a: \"{{input.text}}\"}}\n");
  talk.library.flows["Sub"] = {named_flow("Sub", "  - say: x\n")};
  talk.limits.frame_bytes = 1000;
  EXPECT_EQ(texts(talk.say(std::string(900, 'x'))), (Texts{"x"}));
  const auto effects = talk.say(std::string(1000, 'x'));
  ASSERT_FALSE(effects);
  EXPECT_EQ(effects.error().code, model::Errc::too_large);
}

TEST(ExecuteFlowNode, TakesBadStoredArgumentsForAnError) {
  Conversation talk("- executeFlow: {flow: Sub, with: {a: 1}}\n");
  talk.library.flows["Sub"] = {named_flow("Sub", "  - wait: true\n")};
  ASSERT_TRUE(talk.say("x"));
  ASSERT_EQ(talk.session.flow_state["waiting"]["arguments"], (json{{"a", 1}}));
  talk.session.flow_state["waiting"]["arguments"] = "a";
  const auto effects = talk.say("x");
  ASSERT_FALSE(effects);
  EXPECT_EQ(effects.error().code, model::Errc::internal);
}

TEST(ReturnNode, EndsTheExecutionInTheFlowOfAnEndpoint) {
  Conversation talk("- say: a\n- if: input.text == 'end'\n  then: [{return: 1}]\n- say: b\n");
  EXPECT_EQ(texts(talk.say("end")), (Texts{"a"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"a", "b"}));
}

TEST(ReturnNode, LeavesTheLoopsOfItsFlowOnly) {
  Conversation talk(
      "- forEach: \"[1, 2]\"\n  item: context.i\n  do:\n"
      "    - executeFlow: {flow: Sub, storeIn: context.r}\n"
      "    - say: \"{{context.i}}{{context.r}}\"\n");
  talk.library.flows["Sub"] = {named_flow(
      "Sub",
      "  - forEach: \"['a', 'b']\"\n    item: context.j\n    do: [{wait: true}, {return: "
      "\"{{context.j}}\"}]\n")};
  EXPECT_EQ(texts(talk.say("x")), (Texts{}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"1a"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"2a"}));
  EXPECT_EQ(talk.session.flow_state.dump().find("loops"), std::string::npos);
}

}  // namespace
}  // namespace conversed::flows
