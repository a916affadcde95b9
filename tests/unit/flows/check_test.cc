// `flow check`: errors and warnings of bundles.
#include "flows/tools/check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace conversed::flows {
namespace {

using Texts = std::vector<std::string>;

// The findings. If the bundle has no Endpoints, each of its Flows gets one.
Texts check(const std::string& text) {
  std::string bundle = "conversed: 1\nproject: {name: P}\n" + text;
  const auto source = read_source(bundle, "p.yaml", {});
  if (source && source->find("endpoints") == nullptr) {
    bundle += "endpoints:\n";
    for (const auto& flow : source->find("flows")->items()) {
      const auto& name = flow.find("name")->text();
      bundle += "- {name: e" + name + ", flow: " + name + "}\n";
    }
  }
  Texts lines;
  for (const auto& finding : tools::check_bundle(bundle, "p.yaml")) {
    lines.push_back(to_string(finding));
    // Of an Endpoint that was added here.
    if (text.find("endpoints:") == std::string::npos &&
        lines.back().find("has no Nodes, so its users") != std::string::npos) {
      lines.pop_back();
    }
  }
  return lines;
}

// The messages of the warnings of a Flow with these Nodes.
Texts check_nodes(const std::string& nodes, const std::string& parts = "") {
  Texts found = check(parts + "flows:\n- name: F\n  nodes:\n" + nodes);
  for (auto& line : found) {
    EXPECT_NE(line.find(": warning: Flow 'F', "), std::string::npos) << line;
    line = line.substr(line.find(": ", line.find("Flow 'F', ")) + 2);
  }
  return found;
}

TEST(FlowCheck, FindsNothingInAGoodBundle) {
  EXPECT_EQ(check("flows:\n- {name: F, nodes: [{say: \"{{input.text}}\"}]}\n"), (Texts{}));
}

TEST(FlowCheck, GivesTheLoadersProblemsWithPlaceAndHint) {
  EXPECT_EQ(check("flows:\n- {name: F, nodes: [{sya: Hi}, {if: \"a +\"}]}\n").size(), 2U);
  EXPECT_EQ(check("flows:\n- {name: F, nodes: [{say: hello: you}]}\n"),
            (Texts{"p.yaml:4:32: error: is not valid YAML: end of map flow not found; a text with "
                   "': ' in it stands in quotes"}));
  EXPECT_EQ(check("flows:\n- name: F\n  nodes:\n  - executeFlow: Ordres\n"
                  "- {name: Orders, nodes: []}\n"),
            (Texts{"p.yaml:6:18: error: flows[0].nodes[0].executeFlow: there is no Flow 'Ordres'; "
                   "did you mean 'Orders'?"}));
}

TEST(FlowCheck, FindsNodesThatNothingLeadsTo) {
  EXPECT_EQ(check("flows:\n- name: F\n  nodes:\n  - if: input.text\n    then: [{stop: true}]\n"
                  "    else: [{stop: true}]\n  - say: never\n  - say: neither\n"),
            (Texts{"p.yaml:9:5: warning: Flow 'F', nodes[1]: nothing leads to this Node"}));
}

TEST(FlowCheck, FindsValuesThatChangeWhatARequestAsksFor) {
  const auto of_url = [](const std::string& url) {
    Texts found = check("flows:\n- name: F\n  nodes:\n  - httpRequest: {url: \"" + url + "\"}\n");
    for (auto& line : found) {
      const std::string place = "p.yaml:6:24: warning: Flow 'F', nodes[0]: ";
      EXPECT_TRUE(line.starts_with(place)) << line;
      line = line.substr(place.size(), line.find(';') - place.size());
    }
    return found;
  };
  const std::string path = "a value stands bare in the URL's path";
  const std::string query = "a value stands bare in the URL's query";
  const std::string host = "a value decides which host is asked";
  EXPECT_EQ(of_url("https://x.example/{{input.data.path}}/{{input.text}}"), (Texts{path, path}));
  EXPECT_EQ(of_url("https://x.example/{{encodeURIComponent(input.text) + input.text}}"),
            (Texts{path}));
  EXPECT_EQ(of_url("https://x.example/?a={{input.text}}"), (Texts{query}));
  EXPECT_EQ(of_url("{{input.data.url}}/{{input.text}}"), (Texts{host, path}));
  EXPECT_EQ(of_url("https://{{encodeURIComponent(input.text)}}.example"), (Texts{host}));
  EXPECT_EQ(of_url("https://x.example/{{ encodeURIComponent(input.text) }}?a={{encodeURIComponent("
                   "input.text)}}&b={{1 + 1}}"),
            (Texts{}));
}

TEST(FlowCheck, FindsCirclesWithoutAWayOut) {
  EXPECT_EQ(check("flows:\n- name: F\n  nodes:\n  - {id: a, say: x}\n  - goTo: a\n").size(), 1U);
  EXPECT_EQ(
      check("flows:\n- name: F\n  nodes:\n  - {id: a, say: x}\n  - wait: true\n  - goTo: a\n"),
      (Texts{}));
  EXPECT_EQ(check("flows:\n- name: F\n  nodes:\n  - {id: a, say: x}\n"
                  "  - {if: input.text, then: [{goTo: a}]}\n"),
            (Texts{}));
}

// The Flows at which a circle begins.
Texts circles(const std::string& flows) {
  Texts found;
  for (const auto& line : check(flows)) {
    const auto name = line.find("Flow '") + 6;
    EXPECT_NE(line.find("a circle without a way out"), std::string::npos) << line;
    found.push_back(line.substr(name, line.find("'", name) - name));
  }
  return found;
}

TEST(FlowCheck, FindsCirclesAcrossFlows) {
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{executeFlow: A}]}\n"), (Texts{"A"}));
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{say: a}, {executeFlow: B}]}\n"
                    "- {name: B, nodes: [{executeFlow: A}, {say: b}]}\n"),
            (Texts{"A", "B"}));
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{executeFlow: {flow: B, return: false}}]}\n"
                    "- {name: B, nodes: [{executeFlow: {flow: A, return: false}}]}\n"),
            (Texts{"A", "B"}));
  // B comes back to A, which then goes in a circle itself.
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{id: a, executeFlow: B}, {goTo: a}]}\n"
                    "- {name: B, nodes: [{say: b}]}\n"),
            (Texts{"A"}));
}

TEST(FlowCheck, FindsCirclesByThink) {
  const std::string endpoint = "endpoints: [{name: web, flow: A}]\n";
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{think: again}]}\n" + endpoint), (Texts{"A"}));
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{say: a}, {executeFlow: B}]}\n"
                    "- {name: B, nodes: [{think: again}]}\n" +
                    endpoint),
            (Texts{"A", "B"}));
  EXPECT_EQ(circles("flows:\n- name: A\n  nodes:\n"
                    "  - {if: input.text == 'b', then: [{think: c}]}\n" +
                    endpoint),
            (Texts{}));
}

TEST(FlowCheck, AllowsCirclesAcrossFlowsThatEndOrWait) {
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{executeFlow: B}]}\n"
                    "- {name: B, nodes: [{wait: true}, {executeFlow: A}]}\n"),
            (Texts{}));
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{executeFlow: B}]}\n"
                    "- name: B\n  nodes:\n  - {if: input.text, then: [{executeFlow: A}]}\n"),
            (Texts{}));
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{id: a, executeFlow: B}, {goTo: a}]}\n"
                    "- name: B\n  nodes:\n  - {if: input.text, then: [{stop: true}]}\n"),
            (Texts{}));
  EXPECT_EQ(circles("flows:\n- {name: A, nodes: [{executeFlow: B}]}\n- {name: B, nodes: []}\n"),
            (Texts{}));
}

TEST(FlowCheck, FindsNodesBehindAFlowThatNeverComesBack) {
  EXPECT_EQ(check("flows:\n- name: A\n  nodes:\n  - executeFlow: B\n  - say: never\n"
                  "- {name: B, nodes: [{stop: true}]}\n"),
            (Texts{"p.yaml:7:5: warning: Flow 'A', nodes[1]: nothing leads to this Node"}));
}

TEST(FlowCheck, FindsNamesThatNothingWrites) {
  const auto found = check(
      "flows:\n- name: F\n  nodes:\n  - addToContext: {count: \"{{input.txt}}\"}\n"
      "  - question: {text: \"{{context.conut}}\", storeIn: context.answer.first, onNoAnswer: "
      "[{stop: true}]}\n"
      "  - if: context.answer.first > context.count\n    then: []\n");
  EXPECT_EQ(found,
            (Texts{"p.yaml:6:27: warning: Flow 'F', nodes[0]: 'input.txt' is not a member of "
                   "input; did you mean 'text'?",
                   "p.yaml:7:22: warning: Flow 'F', nodes[1]: 'context.conut' is read, but "
                   "nothing writes it; did you mean 'count'?"}));
}

TEST(FlowCheck, FindsArgumentsThatNoNodeGives) {
  EXPECT_EQ(check("flows:\n- name: F\n  nodes:\n  - executeFlow: {flow: G, with: {count: 1}}\n"
                  "  - say: \"{{arguments.count}}\"\n"
                  "- name: G\n  nodes:\n  - say: \"{{arguments.count}} {{arguments.cuont}}\"\n"),
            (Texts{"p.yaml:7:10: warning: Flow 'F', nodes[1]: 'arguments.count' is read, but no "
                   "executeFlow of 'F' gives it; write it under its `with`",
                   "p.yaml:10:10: warning: Flow 'G', nodes[0]: 'arguments.cuont' is read, but no "
                   "executeFlow of 'G' gives it; write it under its `with`; did you mean "
                   "'count'?"}));
}

TEST(FlowCheck, KnowsThatAReturnEndsItsFlow) {
  EXPECT_EQ(check("flows:\n- name: A\n  nodes:\n  - executeFlow: B\n  - say: behind\n"
                  "- {name: B, nodes: [{return: 1}, {say: never}]}\n"),
            (Texts{"p.yaml:8:34: warning: Flow 'B', nodes[1]: nothing leads to this Node"}));
}

TEST(FlowCheck, FindsLoopsThatTakeEachOthersItems) {
  const std::string loops =
      "  - forEach: \"[[1]]\"\n    item: context.row\n    do:\n"
      "      - forEach: context.row\n        item: context.";
  EXPECT_EQ(
      check_nodes(loops + "row\n        do: [{say: x}]\n"),
      (Texts{"the forEach nodes[0] around it needs 'context.row', too; choose another place"}));
  EXPECT_EQ(check_nodes(loops + "cell\n        do: [{say: x}]\n"), (Texts{}));
}

TEST(FlowCheck, FindsFlowsThatTurnOffATimeOut) {
  const std::string flows =
      "flows:\n- name: F\n  nodes:\n"
      "  - {id: pay, waitForEvent: {if: input.event.text, onMessage: [{executeFlow: A}]}}\n"
      "- {name: A, nodes: [{executeFlow: B}]}\n";
  EXPECT_EQ(check(flows + "- {name: B, nodes: [{say: b}, {followUp: {after: 1h, flow: C}}]}\n"
                          "- {name: C, nodes: [{wait: true}]}\n"),
            (Texts{}));
  EXPECT_EQ(
      check(flows + "- {name: B, nodes: [{wait: true}]}\n"),
      (Texts{"p.yaml:6:78: warning: Flow 'F', pay: while the Flow 'A' waits for an input, the "
             "timeout is off; let it wait elsewhere"}));
}

TEST(FlowCheck, FindsTokensWithTheNameOfARoot) {
  EXPECT_EQ(check("tokens: [{label: arguments, script: x}]\n"
                  "flows: [{name: F, nodes: [{say: \"{{arguments}}\"}]}]\n"),
            (Texts{"p.yaml:3:18: warning: tokens: 'arguments' is a word of expressions, so only "
                   "'{{arguments}}' alone means this Token; choose another label"}));
}

TEST(FlowCheck, FindsUnusedPartsAndSlotsThatNothingFills) {
  const auto found = check(
      "connections: [{name: crm, type: httpBearer, fields: {token: t}}]\n"
      "lexicons: [{name: Cities, slots: [city], entries: []}]\n"
      "flows:\n- name: F\n  nodes:\n  - question: {text: q, type: keyphrase, slot: city}\n"
      "- {name: G, nodes: []}\nendpoints: [{name: e, flow: F}]\n");
  ASSERT_EQ(found.size(), 5U);
  EXPECT_NE(found[0].find("nothing uses the Connection 'crm'"), std::string::npos);
  EXPECT_NE(found[1].find("nothing uses the lexicon 'Cities'"), std::string::npos);
  EXPECT_NE(found[2].find("no entry of 'Cities' fills the slot 'city'"), std::string::npos);
  EXPECT_NE(found[3].find("no lexicon of this Flow fills the slot 'city'"), std::string::npos);
  EXPECT_NE(found[4].find("nothing uses the Flow 'G'"), std::string::npos);
}

TEST(FlowCheck, FindsSlotsOfALexiconThatNoEntryFills) {
  const auto check_slots = [](const std::string& slots, const std::string& entries,
                              const std::string& nodes = "") {
    return check("lexicons: [{name: City, slots: " + slots + ", entries: [" + entries +
                 "]}]\nflows:\n- {name: F, lexicons: [City], nodes: [" + nodes + "]}\n");
  };
  EXPECT_EQ(
      check_slots("[town, place]", "{mainKeyphrase: Bonn}, {mainKeyphrase: Ulm, slots: [place]}"),
      (Texts{"p.yaml:3:33: warning: lexicons: no entry of 'City' fills the slot 'town'; name it "
             "in the `slots` of its entries"}));
  EXPECT_EQ(check_slots("[City]", "{mainKeyphrase: Bonn}"), (Texts{}));
  EXPECT_EQ(check_slots("[town]", "",
                        "addLexiconKeyphrase: {lexicon: City, keyphrase: Ulm, slots: [town]}"),
            (Texts{}));
}

TEST(FlowCheck, FindsConditionsThatDoNotReadTheEvent) {
  EXPECT_EQ(
      check_nodes("  - waitForEvent: input.data.event == 'paid'\n"
                  "  - collect: {quiet: 1m, if: input.text == 'paid'}\n"),
      (Texts{
          "'input.data' is that of the current input, not of the event; write 'input.event.data'",
          "'input.text' is that of the current input, not of the event; write "
          "'input.event.text'"}));
  EXPECT_EQ(check_nodes("  - waitForEvent: input.event.data.event == 'paid'\n"
                        "  - waitForEvent: input.event.data.id == (input.data.id ?? 0)\n"),
            (Texts{}));
}

TEST(FlowCheck, TellsThatATestFileIsNoBundle) {
  Texts lines;
  for (const auto& finding : tools::check_bundle("bundle: p.yaml\ntests: []\n", "p.test.yaml")) {
    lines.push_back(to_string(finding));
  }
  EXPECT_EQ(lines, (Texts{"p.test.yaml:1:1: error: this is a test file: run it by `flow test`, and "
                          "check the bundle that it names"}));
}

TEST(FlowCheck, TakesTheFlowForErrorsForUsed) {
  EXPECT_EQ(check("flows:\n- {name: F, nodes: [{say: a}]}\n"
                  "- {name: G, nodes: [{say: \"{{input.error.message}}\"}]}\n"
                  "endpoints: [{name: e, flow: F, onError: G}]\n"),
            (Texts{}));
}

TEST(FlowCheck, ShowsWarningsBesideErrors) {
  EXPECT_EQ(check("flows:\n- name: F\n  nodes:\n  - say: \"{{input.txt}}\"\n"
                  "- {name: G, nodes: [{executeFlow: H}, {say: \"{{input.txt}}\"}]}\n"
                  "- {name: Broken, nodes: [{sya: \"{{input.txt}}\"}]}\n")
                .size(),
            4U);
  // The connections, and what the Flow writes, are unknown.
  EXPECT_EQ(check("connections: [{name: crm, type: httpBearer, fields: {token: t}}]\n"
                  "flows:\n- {name: F, nodes: [{say: \"{{context.a}}\"}]}\n"
                  "- {name: G, nodes: [{httpRequst: {connection: crm, storeIn: context.a}}]}\n")
                .size(),
            1U);
}

TEST(FlowCheck, FindsNamesThatAreNeitherARootNorAToken) {
  const std::string tokens =
      "tokens: [{label: opening hours, script: x}, {label: count-1, script: y}]\n";
  const std::string neither =
      "' is neither arguments, context, input, profile nor the label of a Token";
  EXPECT_EQ(
      check_nodes("  - say: \"{{contxt.a}}{{contxt.b}} {{opening huors}}\"\n"
                  "  - if: total > 3 && input.text\n    then: []\n",
                  tokens),
      (Texts{"'contxt" + neither + "; did you mean 'context'?",
             "'contxt" + neither + "; did you mean 'context'?",
             "'opening huors" + neither + "; did you mean 'opening hours'?", "'total" + neither}));
  EXPECT_EQ(check_nodes("  - say: \"{{opening hours}} {{count-1}} {{[1].map(n => n + 1)}}\"\n"
                        "  - if: typeof total == 'number'\n    then: []\n",
                        tokens),
            (Texts{}));
}

TEST(FlowCheck, FindsCallsThatAlwaysFail) {
  EXPECT_EQ(check_nodes("  - say: \"{{input.text.toUppercase()}} {{upper(input.text)}}\"\n"
                        "  - if: Math.maxx(1, 2)\n    then: []\n"),
            (Texts{"there is no method 'toUppercase'; did you mean 'toUpperCase'?",
                   "upper is not a function", "Math.maxx is not a function"}));
  EXPECT_EQ(check_nodes("  - say: \"{{input.text.trim().toUpperCase()}}{{[1].map(Number)}}\"\n"
                        "  - say: \"{{Date}} {{input.data.run?.()}}\"\n",
                        "tokens: [{label: Date, script: today}]\n"),
            (Texts{}));
}

TEST(FlowCheck, FindsSingleBraces) {
  const std::string tokens = "tokens: [{label: shopName, script: x}]\n";
  EXPECT_EQ(check_nodes("  - say: \"{input.text} {{input.text}} in {shopName}\"\n", tokens),
            (Texts{"'{input.text}' stays as it is written; write '{{input.text}}' for its value",
                   "'{shopName}' stays as it is written; write '{{shopName}}' for its value"}));
  EXPECT_EQ(check_nodes("  - say: \"{{ {a: 1}.a }} {x} {\\\"a\\\": 1} { }\"\n", tokens), (Texts{}));
}

TEST(FlowCheck, FindsExpressionsWithoutBraces) {
  EXPECT_EQ(check_nodes("  - addToContext: {count: context.count + 1, b: {c: [input.text]}}\n"),
            (Texts{"'context.count + 1' stays as it is written; write \"{{context.count + 1}}\" "
                   "for its value",
                   "'input.text' stays as it is written; write \"{{input.text}}\" for its value"}));
  EXPECT_EQ(check_nodes("  - say: input.text is empty\n  - say: \"{{input.text}} input.text\"\n"
                        "  - addToContext: {a: the context.b}\n"),
            (Texts{}));
}

TEST(FlowCheck, FindsConstantsThatMakeAConditionTrue) {
  EXPECT_EQ(
      check_nodes("  - if: input.text == 'nein' || 'no'\n    then: []\n"
                  "  - if: input.data.a && !(input.text == 'x' || input.text == 'y' || 3)\n"
                  "    then: []\n  - if: \"'a' || input.text\"\n    then: []\n"),
      (Texts{
          "'no' beside `||` is always true, so the comparison has no effect; write `input.text == "
          "'no'`",
          "3 beside `||` is always true, so the comparison has no effect; write `input.text == 3`",
          "'a' beside `||` is always true, so the comparison has no effect; write `input.text == "
          "'a'`"}));
  EXPECT_EQ(check_nodes("  - say: \"{{input.data.name || 'you'}}\"\n"
                        "  - if: (input.data.name || 'you') == 'you'\n    then: []\n"
                        "  - if: input.data.a || ''\n    then: []\n"
                        "  - switch: {on: input.data.a || 'b', cases: {b: []}}\n"),
            (Texts{}));
}

TEST(FlowCheck, NamesThePathThatANameMayMean) {
  EXPECT_EQ(check_nodes("  - addToContext: {name: Ann, cart.total: 3}\n"
                        "  - say: \"{{name}} {{total}}\"\n"),
            (Texts{"'name' is neither arguments, context, input, profile nor the label of a "
                   "Token; did you mean 'context.name'?",
                   "'total' is neither arguments, context, input, profile nor the label of a "
                   "Token; did you mean 'context.cart.total'?"}));
}

TEST(FlowCheck, FindsCodesThatNoErrorHas) {
  const std::string call = "  - httpRequest:\n      url: http://x.example\n      onError:\n";
  EXPECT_EQ(check_nodes(call + "      - {if: input.error.code == 'timeuot', then: []}\n"
                               "      - switch:\n          on: input.error.code\n"
                               "          cases: {refused: [], code_of: []}\n"),
            (Texts{"'input.error.code' is never 'timeuot'; did you mean 'timeout'?",
                   "'input.error.code' is never 'code_of'; did you mean 'code_off'?"}));
  EXPECT_EQ(check_nodes(call + "      - {if: input.error.code == 'turn_failed', then: []}\n"),
            (Texts{}));
}

TEST(FlowCheck, FindsAnIfWithoutBranches) {
  EXPECT_EQ(check_nodes("  - if: input.text\n  - if: input.text\n    else: []\n"),
            (Texts{"has no `then` and no `else`, so it does nothing; write one beside `if`"}));
}

TEST(FlowCheck, FindsEndpointsWhoseFlowHasNoNodes) {
  EXPECT_EQ(check("flows:\n- {name: F, nodes: []}\nendpoints:\n- {name: web, flow: F}\n"),
            (Texts{"p.yaml:6:21: warning: endpoints: the Flow 'F' has no Nodes, so its users get "
                   "no answer; add some"}));
}

TEST(FlowCheck, FindsValuesThatCanNotOccur) {
  EXPECT_EQ(check_nodes("  - if: input.source == 'inect' || 'user' === input.source\n    then: []\n"
                        "  - switch: {on: type, cases: {Text: [], image: []}}\n"
                        "  - if: input.channel != 'sms'\n    then: []\n"),
            (Texts{"'input.source' is never 'inect'; it is one of followUp, inject, timeOut, user",
                   "'input.type' is never 'image'; it is one of data, text",
                   "no Endpoint of the bundle is named 'sms', so 'input.channel' never is"}));
  const std::string state = "  - if: input.state == 'hapy'\n    then: []\n  - setState: happy\n";
  EXPECT_EQ(check_nodes(state),
            (Texts{"'input.state' is never 'hapy'; it is one of default, happy"}));
  EXPECT_EQ(check_nodes(state + "  - setState: \"{{input.text}}\"\n"), (Texts{}));
}

TEST(FlowCheck, FindsTextsThatAYesNoAnswerIsComparedWith) {
  const std::string ask =
      "  - question: {text: q, type: yesNo, storeIn: context.sure, onNoAnswer: [{stop: true}]}\n";
  EXPECT_EQ(
      check_nodes(ask + "  - if: context.sure == 'yes'\n    then: []\n"
                        "  - switch: {on: context.sure, cases: {\"yes\": [], \"true\": []}}\n"),
      (Texts{"'context.sure' is true or false, never the text 'yes'; write `context.sure` or "
             "`!context.sure`",
             "'context.sure' is never 'yes'; it is one of false, true"}));
  EXPECT_EQ(
      check_nodes(ask +
                  "  - if: context.sure == 'yes'\n    then: []\n  - addToContext: {sure: maybe}\n"),
      (Texts{}));
}

TEST(FlowCheck, FindsQuestionsWhoseMissingAnswerIsNeeded) {
  const std::string ask = "  - question: {text: q, storeIn: context.a.b";
  const std::string use = "  - say: \"{{context.a.b.length}}\"\n";
  const Texts ends{
      "the Node nodes[1] needs 'context.a.b', but without an answer the execution ends here and "
      "the user is told nothing; add onNoAnswer"};
  EXPECT_EQ(check_nodes(ask + "}\n" + use), ends);
  EXPECT_EQ(check_nodes(ask + "}\n  - say: \"{{context.a.c}}\"\n"), (Texts{}));
  const Texts says{
      "after onNoAnswer 'context.a.b' is null, and the Node nodes[1] says it; end onNoAnswer with "
      "a stop, or add an if"};
  EXPECT_EQ(check_nodes(ask + ", onNoAnswer: []}\n" + use), says);
  EXPECT_EQ(check_nodes(ask + ", onNoAnswer: [{say: Well.}]}\n" + use), says);
  for (const std::string goes_on :
       {"[{stop: true}]", "[{addToContext: {a.b: none}}]", "[{executeFlow: G}]"}) {
    const auto found = check("flows:\n- name: F\n  nodes:\n" + ask + ", onNoAnswer: " + goes_on +
                             "}\n" + use + "- {name: G, nodes: []}\n");
    EXPECT_EQ(found, (Texts{})) << goes_on;
  }
  EXPECT_EQ(check_nodes(ask + ", onNoAnswer: []}\n  - if: context.a.b\n    then: [{say: "
                              "\"{{context.a.b}}\"}]\n"),
            (Texts{}));
  EXPECT_EQ(check_nodes(ask + ", onNoAnswer: []}\n  - say: \"{{context.a.b ?? 'none'}}\"\n"),
            (Texts{}));
}

TEST(FlowCheck, RegardsTheOrderOfAQuestionAndItsReaders) {
  EXPECT_EQ(check_nodes("  - if: \"!profile.name\"\n    then: [{question: {text: q, storeIn: "
                        "profile.name}}]\n  - stop: true\n"),
            (Texts{}));
  EXPECT_EQ(check_nodes("  - say: \"{{context.a ?? 'new'}}\"\n"
                        "  - say: \"{{context.a}}\"\n"
                        "  - question: {text: q, storeIn: context.a}\n"),
            (Texts{}));
}

// A search for near words among all of them would take hours.
TEST(FlowCheck, TakesManyUnwrittenNamesBesideManyWrittenOnes) {
  std::string nodes = "  - addToContext: {first: 1";
  for (int i = 0; i < 20'000; ++i) nodes += ", written" + std::to_string(i) + ": 1";
  nodes += "}\n  - say: [x";
  for (int i = 0; i < 20'000; ++i) nodes += ", \"{{context.read" + std::to_string(i) + "}}\"";
  EXPECT_EQ(check("flows:\n- name: F\n  nodes:\n" + nodes + "]\n").size(), 201U);
}

TEST(FlowCheck, FindsABundleWithoutEndpoints) {
  EXPECT_EQ(check("flows:\n- {name: F, nodes: []}\nendpoints: []\n"),
            (Texts{"p.yaml:4:1: warning: flows: the bundle has no Endpoint, so no user reaches its "
                   "Flows; add `endpoints`"}));
  EXPECT_EQ(check("tokens: []\nendpoints: []\n"), (Texts{}));
}

// A warning about a good bundle would teach designers to ignore warnings.
TEST(FlowCheck, FindsNothingInTheBundlesOfTheSources) {
  const std::filesystem::path root(CONVERSED_SOURCE_DIR);
  std::vector<std::filesystem::path> files{root / "config/demo/shop.yaml"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "tests/flows")) {
    if (entry.path().string().ends_with(".flow.yaml")) files.push_back(entry.path());
  }
  EXPECT_GE(files.size(), 12U);
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const auto& finding : tools::check_bundle(text, path.filename().string())) {
      ADD_FAILURE() << to_string(finding);
    }
  }
}

}  // namespace
}  // namespace conversed::flows
