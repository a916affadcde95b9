// Tools for designers: trials, graphs and tests of Flows.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "flows/bundle/loader.h"
#include "flows/error_codes.h"
#include "flows/tools/check.h"
#include "flows/tools/coverage.h"
#include "flows/tools/flow_test.h"
#include "flows/tools/flow_test_file.h"
#include "flows/tools/graph.h"
#include "flows/tools/match.h"
#include "flows/tools/node_pages.h"
#include "flows/tools/trial.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr const char* header = "conversed: 1\nproject: {name: P}\n";

tools::Trial try_event(Conversation& talk, std::vector<model::CallResult> answers) {
  const tools::Stage stage{.library = std::make_shared<MapLibrary>(talk.library),
                           .flow = talk.flow,
                           .assets = talk.assets,
                           .endpoint = talk.endpoint,
                           .limits = talk.limits};
  return tools::run_trial(stage, talk.session, talk.profile, talk.event(model::EventType::inject),
                          talk.now, std::move(answers));
}

TEST(Trial, AnswersCallsInOrderThenRefusesThem) {
  Conversation talk(
      "- httpRequest: {url: \"http://x.example/1\", storeIn: context.first}\n"
      "- say: \"{{context.first.n}}\"\n"
      "- httpRequest: {url: \"http://x.example/2\", onError: [{say: \"refused\"}]}\n"
      "- httpRequest: {url: \"http://x.example/3\"}\n");
  const auto trial = try_event(talk, {{.status = 200, .body = {{"n", 7}}}});
  Texts said;
  for (const auto& output : trial.done.outputs) said.push_back(output.text);
  EXPECT_EQ(said, (Texts{"7", "refused"}));
  ASSERT_EQ(trial.calls.size(), 3U);
  EXPECT_EQ(trial.calls[2], (json{{"method", "GET"}, {"server", "x.example"}}));
  EXPECT_NE(trial.done.error.find("a try makes no calls"), std::string::npos) << trial.done.error;
}

TEST(Trial, ShowsTheNodesOfTheTurnThatFails) {
  Conversation talk(
      "- addToContext: {n: 7}\n"
      "- {id: far, httpRequest: {url: \"http://x.example/{{context.n}}\"}}\n"
      "- say: \"{{context.n}}\"\n"
      "- {id: wrong, httpRequest: {url: \"{{context.missing.member}}\"}}\n");
  const auto trial = try_event(talk, {{.status = 200, .body = "secret"}});
  Texts lines;
  for (const auto& node : trial.nodes) {
    for (auto& line : lines_of(node)) lines.push_back(std::move(line));
  }
  ASSERT_FALSE(trial.nodes.empty());
  EXPECT_EQ(trial.nodes.back().address, "wrong") << testing::PrintToString(lines);
  EXPECT_EQ(trial.done.failed_at, "wrong");
  EXPECT_TRUE(trial.nodes.back().changes.empty()) << "the Turn has changed nothing";
  ASSERT_EQ(trial.nodes.back().evaluations.size(), 1U) << testing::PrintToString(lines);
  EXPECT_NE(trial.nodes.back().evaluations.front().error, "");
  EXPECT_NE(std::ranges::find(lines, "      context.n: nothing -> 7"), lines.end())
      << testing::PrintToString(lines);
  EXPECT_NE(std::ranges::find(lines, R"(      call {"method":"GET","server":"x.example"})"),
            lines.end())
      << testing::PrintToString(lines);
}

TEST(Trial, KeepsTheLastNodesAndTheBeginOfTheirValues) {
  Conversation talk("- {id: again, addToContext: {long: \"" + std::string(300, 'x') +
                    "{{context.long || ''}}\"}}\n- addToContext: {n: 1}\n- goTo: again\n");
  const auto trial = try_event(talk, {});
  EXPECT_EQ(trial.nodes.size(), 200U);
  EXPECT_EQ(trial.done.failed_at, "again");
  for (const auto& node : trial.nodes) {
    EXPECT_LT(to_json(node).dump().size(), 2'000U);
  }
}

TEST(Trial, HasTheEffectsOfATurnThatFails) {
  Conversation talk("- {id: pause, wait: true}\n- {id: again, say: Hi}\n- goTo: again\n");
  talk.endpoint.error_text = "Sorry.";
  ASSERT_TRUE(talk.say("Hello"));
  const auto trial = try_event(talk, {});
  EXPECT_EQ(trial.done.failed_at, "again") << trial.done.error;
  ASSERT_EQ(trial.done.outputs.size(), 1U);
  EXPECT_EQ(trial.done.outputs.front().text, "Sorry.");
  EXPECT_EQ(trial.waits_at, "pause");
}

TEST(Trial, StopsAtASleep) {
  Conversation talk("- say: Soon\n- {id: nap, sleep: 2h}\n- say: Later\n");
  const auto trial = try_event(talk, {});
  EXPECT_EQ(trial.done.error, "");
  ASSERT_EQ(trial.done.outputs.size(), 1U);
  EXPECT_EQ(trial.waits_at, "nap");
}

TEST(Trial, EndsAtALimitAndSaysWhich) {
  const auto error_of = [](const std::string& nodes) {
    // Each refused call leads to the next one.
    Conversation talk("- {id: again, say: Hi}\n" + nodes +
                      "- httpRequest: {url: \"http://x.example/\", onError: [{goTo: again}]}\n");
    const auto trial = try_event(talk, {});
    EXPECT_LE(trial.done.outputs.size(), 200U);
    EXPECT_LE(trial.calls.size(), 60U);
    return trial.done.error;
  };
  const std::string large(60'000, 'x');
  std::string many;
  std::string lines;
  for (int i = 0; i < 20; ++i) many += "- say: Hi\n";
  for (int i = 0; i < 20; ++i) lines += "- log: Hi\n";
  EXPECT_NE(error_of("").find("ended: the Flow runs more than 60 Turns"), std::string::npos);
  EXPECT_NE(error_of(many).find("says more than 200 outputs"), std::string::npos);
  EXPECT_NE(error_of(lines).find("logs more than 200 lines"), std::string::npos);
  EXPECT_NE(error_of("- say: " + large + "\n- say: " + large + "\n").find("bytes of outputs"),
            std::string::npos);
}

TEST(FlowGraph, DrawsNodesAndWays) {
  const auto flow = flow_of(
      "- {id: ask, question: \"Is \\\"this\\\" right?\"}\n- if: input.text\n"
      "  then: [{goTo: ask}]\n");
  EXPECT_EQ(tools::mermaid_of(*flow),
            "flowchart TD\n"
            "  start([Main])\n"
            "  n0[\"question id ask<br/>Is #34;this#34; right?\"]\n"
            "  n1[\"if<br/>input.text\"]\n"
            "  n2[\"goTo\"]\n"
            "  done([end])\n"
            "  start --> n0\n"
            "  n0 -.-> n1\n"
            "  n1 -->|\"then\"| n2\n"
            "  n1 -->|\"else\"| done\n"
            "  n2 --> n0\n");
  const auto dot = tools::dot_of(*flow);
  EXPECT_NE(dot.find("n1 -> done [label=\"else\"];"), std::string::npos);
  EXPECT_EQ(dot.find("\"this\""), std::string::npos) << "an unescaped quote would end the label";
}

TEST(FlowDocs, ListTheWordsOfYesAndNo) {
  for (const auto& [key, value, count] :
       {std::tuple("yes", true, std::size_t{12}), std::tuple("no", false, std::size_t{7})}) {
    const auto sentence = tools::description_of("question", key);
    std::size_t words = 0;
    for (auto open = sentence.find('`', sentence.find("instead of")); open != std::string::npos;
         open = sentence.find('`', open + 1)) {
      const auto close = sentence.find('`', open + 1);
      const auto word = sentence.substr(open + 1, close - open - 1);
      Conversation talk("- question: {text: q, type: yesNo, storeIn: context.ok}");
      ASSERT_TRUE(talk.say("x"));
      ASSERT_TRUE(talk.say(word));
      EXPECT_EQ(talk.session.context["ok"], value) << word;
      ++words;
      open = close;
    }
    EXPECT_EQ(words, count) << sentence;
  }
}

TEST(FlowGraph, KeepsTheMarksOfConditionsInMermaid) {
  const auto flow =
      flow_of("- if: context.n < 3 && context.n > 1\n  then: [{say: \"Hi {{context.a}} #1\"}]\n");
  const auto drawn = tools::mermaid_of(*flow);
  EXPECT_NE(drawn.find("<br/>context.n #lt; 3 #38;#38; context.n #gt; 1\"]"), std::string::npos)
      << drawn;
  EXPECT_NE(drawn.find("<br/>Hi #123;#123;context.a#125;#125; #35;1\"]"), std::string::npos)
      << drawn;
}

TEST(FlowGraph, NamesTheFlowAndTheUrlOfANode) {
  const auto flow = flow_of("- executeFlow: Sub\n- httpRequest: {url: \"http://x.example/a\"}\n");
  const auto graph = tools::graph_of(*flow);
  ASSERT_EQ(graph.boxes.size(), 2U);
  EXPECT_EQ(graph.boxes[0].text, "Sub");
  EXPECT_EQ(graph.boxes[1].text, "http://x.example/a");
}

TEST(FlowGraph, ShowsTextsInThePrimaryLocale) {
  const auto flow =
      flow_of("- say: {text: {de: Hallo, en: Hello}}\n- say: {text: [{de: a, en: b}]}");
  const auto graph = tools::graph_of(*flow, "en");
  EXPECT_EQ(graph.boxes[0].text, "Hello");
  EXPECT_EQ(graph.boxes[1].text, "b");
  EXPECT_EQ(tools::graph_of(*flow, "fr").boxes[0].text, "Hallo");
  EXPECT_NE(tools::mermaid_of(*flow, "en").find("Hello"), std::string::npos);
  EXPECT_NE(tools::dot_of(*flow, "en").find("Hello"), std::string::npos);
}

// The YAML examples on the pages for designers. Parts of a bundle get the header that they need.
TEST(FlowDocs, HaveExamplesThatLoad) {
  const Environment environment = [](std::string_view name) {
    return std::optional<std::string>(name == "HOOK_URL"    ? "https://example.com/hook"
                                      : name == "CRM_TOKEN" ? "token"
                                                            : "whsec_" + std::string(32, 'A'));
  };
  int bundles = 0;
  int test_files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(CONVERSED_SOURCE_DIR "/docs/flows")) {
    const std::string page = entry.path().filename().string();
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    constexpr std::string_view begin = "```yaml\n";
    for (auto at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
      const auto first = at + begin.size();
      const std::string block = text.substr(first, text.find("```", first) - first);
      if (block.starts_with("- ")) continue;  // a Node: NodeTypes.HaveExamplesThatLoad
      if (block.starts_with("bundle:")) {
        const auto loaded = tools::read_test_file(block, page);
        EXPECT_TRUE(loaded) << to_string(loaded.error());
        ++test_files;
        continue;
      }
      const auto loaded =
          load_bundle((block.starts_with("conversed:") ? "" : header) + block, page, environment);
      EXPECT_TRUE(loaded) << to_string(loaded.error());
      ++bundles;
      if (!block.starts_with("conversed:")) continue;
      for (const auto& finding : tools::check_bundle(block, page)) {
        // An example of all parts need not use them.
        EXPECT_NE(finding.problem.message.find("nothing uses"), std::string::npos)
            << to_string(finding);
      }
    }
  }
  EXPECT_EQ(bundles, 5);
  EXPECT_EQ(test_files, 3);
}

TEST(FlowTestFile, TellsThatAnInputIsATextOrAMapping) {
  const auto loaded = tools::read_test_file(
      "bundle: a.yaml\ntests: [{name: a, steps: [{user: 5}, {inject: true}]}]\n", "a.test.yaml");
  ASSERT_FALSE(loaded);
  ASSERT_EQ(loaded.error().size(), 2U);
  for (const auto& problem : loaded.error()) {
    EXPECT_EQ(problem.message, "expected a text in quotes, or a mapping");
  }
}

TEST(Match, ComparesNamedFieldsOnly) {
  EXPECT_FALSE(tools::difference({{"a", 1}, {"b", 2}}, {{"a", 1}, {"c", nullptr}}));
  EXPECT_EQ(tools::difference({{"a", {1, 2}}}, json{{"a", {1, 3}}}),
            "a[1]: expected 3, there is 2");
  EXPECT_FALSE(tools::difference({"order A-17"}, {"/A-[0-9]+/"}));
  EXPECT_EQ(tools::difference(json::array(), {"x"}), "expected 1 items, there are 0: []");
  EXPECT_EQ(tools::difference("a", "b"), "expected \"b\", there is \"a\"");
}

tools::SuiteResult run(const std::string& nodes, const std::string& tests,
                       std::string_view only = {}) {
  const std::string bundle = std::string(header) + "flows:\n- name: F\n  nodes:\n" + nodes;
  return tools::run_flow_tests(
      "bundle: b.yaml\n" + tests, "t.yaml",
      [&](const std::string& name) {
        EXPECT_EQ(name, "b.yaml");
        return std::optional(bundle);
      },
      only);
}

Texts failures(const tools::SuiteResult& suite) {
  Texts list;
  if (!suite.problems.empty()) list.push_back(to_string(suite.problems));
  for (const auto& test : suite.tests) {
    for (const auto& failure : test.failures) {
      list.push_back(std::to_string(failure.place.line) + ": " + failure.message);
    }
  }
  return list;
}

TEST(FlowTest, SaysWhichExpectationIsNotMet) {
  const auto suite = run("  - say: \"Hi {{input.text}}\"\n",
                         "tests:\n- name: good\n  steps:\n"
                         "  - {user: Ann, expect: {text: Hi Ann, node: \"\"}}\n"
                         "- name: bad\n  steps:\n  - user: Bob\n    expect: {text: [Hi Ann]}\n"
                         "  - {user: not run, expect: {text: x}}\n");
  EXPECT_FALSE(suite.passed());
  EXPECT_EQ(failures(suite), (Texts{"9: text: [0]: expected \"Hi Ann\", there is \"Hi Bob\""}));
}

TEST(FlowTest, FailsForCallsWithoutAStubAndTurnsThatFail) {
  EXPECT_EQ(failures(run("  - httpRequest: {url: \"http://e.example/\"}\n",
                         "tests:\n- {name: a, steps: [{user: x}]}\n")),
            (Texts{"3: no stub under 'calls' fits GET http://e.example/"}));
  const std::string endless = "  - {id: a, say: x}\n  - goTo: a\n";
  EXPECT_EQ(failures(run(endless, "tests:\n- {name: a, steps: [{user: x}]}\n")).size(), 1U);
  EXPECT_EQ(failures(run(endless,
                         "tests:\n- {name: a, steps: [{user: x, expect: {error: 100 times}}]}\n")),
            (Texts{}));
}

constexpr const char* greeting =
    "  - if: input.text == 'Ann'\n    then: [{say: Hi Ann}]\n    else: [{say: \"Who?\"}, {stop: "
    "true}]\n"
    "  - wait: true\n  - if: input.data.n\n    then: [{say: Bye}]\n";

TEST(FlowTest, ShowsTheDialogueAndTheNodesOfTheStepThatFails) {
  const auto suite = run(greeting,
                         "tests:\n- name: a\n  steps:\n  - user: Ann\n  - inject: {n: 1}\n"
                         "  - {user: Bob, expect: {text: Hi Bob}}\n"
                         "- {name: b, steps: [{user: Bob, expect: {text: \"Who?\"}}]}\n");
  ASSERT_EQ(suite.tests.size(), 2U);
  EXPECT_EQ(suite.tests[0].dialogue,
            (Texts{"> Ann", "< Hi Ann", "> /inject {\"n\":1}", "< Bye", "> Bob",
                   "  F: nodes[0] if: input.text == 'Ann'", "      input.text == 'Ann' = false",
                   "  F: nodes[0].else[0] say: Who?", "  F: nodes[0].else[1] stop", "< Who?"}));
  EXPECT_EQ(suite.tests[1].dialogue, (Texts{}));
}

TEST(FlowTest, ShowsAppendsToAListInTheTrace) {
  const auto suite =
      run("  - addToContext: {l: [1], o: {\"-\": 1}}\n"
          "  - addToContext: {l: [1, 2, 3], o: {\"-\": 2}}\n",
          "tests: [{name: a, steps: [{user: x, expect: {text: y}}]}]\n");
  ASSERT_EQ(suite.tests.size(), 1U);
  const auto& lines = suite.tests[0].dialogue;
  for (const char* line :
       {"      context.l[1]: nothing -> 2", "      context.l[2]: nothing -> 3"}) {
    EXPECT_NE(std::ranges::find(lines, line), lines.end()) << line;
  }
  EXPECT_NE(std::ranges::find(lines, "      context.o.-: 1 -> 2"), lines.end());
}

TEST(FlowTest, ShowsTextsInThePrimaryLocale) {
  const auto suite = tools::run_flow_tests(
      "bundle: b.yaml\ntests: [{name: a, steps: [{user: x, expect: {text: y}}]}]\n", "t.yaml",
      [](const std::string&) {
        return std::optional<std::string>(
            "conversed: 1\nproject: {name: P, locales: [en, de]}\n"
            "flows: [{name: F, nodes: [{say: {text: {de: Hallo, en: Hello}}}, {stop: true}, "
            "{id: b, say: {text: {de: Nie, en: Never}}}]}]\n");
      });
  ASSERT_EQ(suite.tests.size(), 1U);
  const auto& lines = suite.tests[0].dialogue;
  EXPECT_NE(std::ranges::find(lines, "  F: nodes[0] say: Hello"), lines.end());
  EXPECT_EQ(suite.coverage->report()[0].missed, (Texts{"b say: Never never runs"}));
  EXPECT_NE(suite.coverage->dot().find("Hello"), std::string::npos);
}

TEST(FlowTest, RefusesCodesThatNoErrorHas) {
  EXPECT_EQ(failures(run("  - say: x\n",
                         "calls: [{error: timeuot}, {error: refused}]\n"
                         "searches: [{error: knowledge_deletd}]\n"
                         "tests: [{name: a, steps: [{user: x}]}]\n")),
            (Texts{"t.yaml:2:17: calls[0].error: no call fails with the code 'timeuot'; did you "
                   "mean 'timeout'?\n"
                   "t.yaml:3:20: searches[0].error: no call fails with the code "
                   "'knowledge_deletd'; did you mean 'knowledge_deleted'?"}));
}

TEST(ErrorCodes, AreInTheHandbook) {
  std::string pages;
  for (const char* name : {"concepts.md", "nodes.md"}) {
    std::ifstream page(std::filesystem::path(CONVERSED_SOURCE_DIR) / "docs" / "flows" / name);
    std::stringstream text;
    text << page.rdbuf();
    pages += text.str();
  }
  for (const auto code : call_error_codes) {
    EXPECT_NE(pages.find("`" + std::string(code) + "`"), std::string::npos) << code;
  }
  EXPECT_NE(pages.find("`" + std::string(turn_error_code) + "`"), std::string::npos);
}

TEST(FlowTest, ShowsNoChangesOfATurnThatFails) {
  const auto suite = run("  - addToContext: {n: 1}\n  - {id: again, say: x}\n  - goTo: again\n",
                         "tests: [{name: a, steps: [{user: x}]}]\n");
  ASSERT_EQ(suite.tests.size(), 1U);
  const auto& lines = suite.tests[0].dialogue;
  EXPECT_NE(std::ranges::find(lines, "      context.n: nothing -> 1"), lines.end());
  EXPECT_EQ(std::ranges::find(lines, "      context.n: 1 -> nothing"), lines.end());
}

TEST(FlowTest, RunsOnlyTheTestsWhoseNameHasThePart) {
  const std::string tests =
      "tests:\n- {name: one, steps: [{user: a}]}\n- {name: another, steps: [{user: b}]}\n";
  const auto suite = run("  - say: x\n", tests, "other");
  ASSERT_EQ(suite.tests.size(), 1U);
  EXPECT_EQ(suite.tests[0].name, "another");
  EXPECT_TRUE(run("  - say: x\n", tests, "nobody").tests.empty());
}

TEST(Coverage, CountsNodesAndBranchesOfAllConversations) {
  const auto ann = run(greeting, "tests: [{name: a, steps: [{user: Ann}, {inject: {n: 0}}]}]\n");
  ASSERT_TRUE(ann.coverage);
  auto report = ann.coverage->report();
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(to_string(report[0]), "F: 4 of 7 Nodes, 2 of 4 branches");
  EXPECT_EQ(report[0].missed,
            (Texts{"nodes[0] if: else is never taken", "nodes[2] if: then is never taken",
                   "nodes[0].else[0] say: Who? never runs", "nodes[0].else[1] stop never runs",
                   "nodes[2].then[0] say: Bye never runs"}));
  const auto dot = ann.coverage->dot();
  EXPECT_NE(dot.find("f0_n0 -> f0_n3 [label=\"then\", color=\"#2e7d32\", penwidth=2];"),
            std::string::npos)
      << dot;
  EXPECT_NE(dot.find("label=\"F: 4 of 7 Nodes, 2 of 4 branches\""), std::string::npos) << dot;
  const auto bob =
      run(greeting, "tests: [{name: a, steps: [{user: Bob}, {user: Ann}, {inject: {n: 1}}]}]\n");
  ASSERT_TRUE(bob.coverage);
  auto both = *ann.coverage;
  both.add(*bob.coverage);
  EXPECT_EQ(to_string(both.report()[0]), "F: 7 of 7 Nodes, 4 of 4 branches");
  EXPECT_EQ(both.report()[0].missed, (Texts{}));
}

// The conversation goes through another Flow and waits there.
TEST(Coverage, FollowsTheWayBackFromAnotherFlow) {
  const auto suite =
      run("  - {executeFlow: Sub}\n  - say: Back\n- name: Sub\n  nodes:\n  - wait: true\n",
          "flow: F\ntests: [{name: a, steps: [{user: x}, {user: y, expect: {text: Back}}]}]\n");
  EXPECT_EQ(failures(suite), (Texts{}));
  const auto dot = suite.coverage->dot();
  EXPECT_NE(dot.find("f0_n0 -> f0_n1 [label=\"\", color=\"#2e7d32\", penwidth=2];"),
            std::string::npos)
      << dot;
}

constexpr const char* tones =
    "  - id: tone\n    split:\n    - {name: formal, share: 50, do: [{say: Good day}]}\n"
    "    - {name: casual, share: 50, do: [{say: Hi}]}\n";

TEST(FlowTest, SetsTheBranchesOfSplits) {
  const auto suite = run(tones,
                         "splits: {tone: formal}\ntests:\n"
                         "- {name: a, steps: [{user: x, expect: {text: Good day}}]}\n"
                         "- {name: b, splits: {tone: casual}, steps: [{user: x, expect: {text: "
                         "Hi}}]}\n"
                         "- {name: c, steps: [{user: x, expect: {text: Hi}}]}\n");
  EXPECT_EQ(failures(suite), (Texts{"6: text: [0]: expected \"Hi\", there is \"Good day\""}));
  EXPECT_EQ(suite.tests.back().dialogue,
            (Texts{"> x", "  F: tone split", "      branch = \"formal\"",
                   "  F: nodes[0].branches[\"formal\"].do[0] say: Good day", "< Good day"}));
  EXPECT_EQ(to_string(suite.coverage->report()[0]), "F: 3 of 3 Nodes, 2 of 2 branches");
}

TEST(FlowTest, RefusesBranchesThatNoSplitHas) {
  EXPECT_EQ(failures(run(tones,
                         "splits: {tome: formal}\ntests:\n"
                         "- {name: a, splits: {tone: informal}, steps: [{user: x}]}\n")),
            (Texts{"t.yaml:2:16: splits: no split has the id 'tome'; did you mean 'tone'?\n"
                   "t.yaml:4:28: splits: the split 'tone' has no branch 'informal'; did you mean "
                   "'formal'?"}));
}

TEST(FlowTest, RefusesABranchThatOnlyOneOfTwoSplitsHas) {
  const std::string other =
      "- name: G\n  nodes:\n  - id: tone\n    split: [{name: formal, share: 50}, {name: x, share: "
      "50}]\n";
  const auto choose = [&](const std::string& branch) {
    return failures(run(tones + other, "flow: F\nsplits: {tone: " + branch +
                                           "}\ntests: [{name: a, steps: [{user: x}]}]\n"));
  };
  EXPECT_EQ(choose("formal"), (Texts{}));
  EXPECT_EQ(choose("casual"), (Texts{"t.yaml:3:16: splits: the split 'tone' has no branch "
                                     "'casual'; known are formal"}));
}

TEST(FlowTest, SaysWhatIsWrongWithItsFile) {
  EXPECT_EQ(failures(run("  - say: x\n", "tests:\n- {name: a, stesp: []}\n")),
            (Texts{"t.yaml:3:3: tests[0]: 'steps' is missing\n"
                   "t.yaml:3:13: tests[0].stesp: unknown key 'stesp'; did you mean 'steps'?"}));
}

TEST(FlowTest, WithoutTestsIsNoSuccess) {
  const auto suite = run("  - say: x\n", "tests: []\n");
  EXPECT_FALSE(suite.passed());
  EXPECT_EQ(failures(suite), (Texts{"t.yaml:2:8: tests: there are no tests; write one"}));
}

TEST(FlowTest, RefusesInvalidPatterns) {
  EXPECT_EQ(
      failures(run("  - say: x\n",
                   "calls: [{url: \"/[/\"}]\n"
                   "tests:\n- name: a\n  steps:\n  - user: x\n"
                   "    expect: {text: [x, \"/[/\"], log: /(/, data: [{a: /+/}]}\n")),
      (Texts{"t.yaml:2:15: calls[0].url: not a regular expression: wrong at character 2\n"
             "t.yaml:7:24: tests[0].steps[0].expect.text[1]: not a regular expression: wrong at "
             "character 2\n"
             "t.yaml:7:37: tests[0].steps[0].expect.log: not a regular expression: wrong at "
             "character 2\n"
             "t.yaml:7:53: tests[0].steps[0].expect.data[0].a: not a regular expression: wrong "
             "at character 2"}));
}

TEST(FlowTest, WritesJUnit) {
  const auto suite = run("  - say: a\n",
                         "tests:\n- name: \"<one>\"\n  steps:\n"
                         "  - {user: x, expect: {text: b}}\n");
  const auto xml = tools::junit_of({suite});
  EXPECT_NE(xml.find("tests=\"1\" failures=\"1\" errors=\"0\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("name=\"&lt;one&gt;\""), std::string::npos);
  EXPECT_NE(xml.find("t.yaml:5: text: [0]: expected &quot;b&quot;"), std::string::npos);
  EXPECT_NE(xml.find("<system-out>&gt; x\n"), std::string::npos) << xml;
}

TEST(FlowTest, RunsTheConversationsOfRealFlows) {
  const std::filesystem::path folder(CONVERSED_SOURCE_DIR "/tests/flows");
  const auto read = [](const std::filesystem::path& path) -> std::optional<std::string> {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  std::size_t suites = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".test.yaml")) continue;
    if (name == "invoice.test.yaml") continue;  // its script needs the sandbox of conversectl
    ++suites;
    const auto suite =
        tools::run_flow_tests(read(entry.path()).value_or(""), name,
                              [&](const std::string& file) { return read(folder / file); });
    EXPECT_TRUE(suite.passed()) << name << "\n" << testing::PrintToString(failures(suite));
  }
  EXPECT_GE(suites, 10U);
}

}  // namespace
}  // namespace conversed::flows
