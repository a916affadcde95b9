// Differences between versions of a Flow, and the Nodes that use a Connection.
#include <gtest/gtest.h>

#include "flows/tools/diff.h"
#include "flows/tools/usages.h"
#include "flows/turn/standing.h"
#include "tests/unit/flows/model_talk.h"

namespace conversed::flows::tools {
namespace {

using nlohmann::json;
using Kind = FlowChange::Kind;
using Lines = std::vector<std::string>;

json definition(const std::string& nodes) {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: T}\nflows:\n- name: F\n  nodes:\n" + nodes, "t.yaml", {});
  EXPECT_TRUE(bundle) << (bundle ? "" : to_string(bundle.error()));
  return bundle ? bundle->flows.front().definition : json();
}

// `changed nodes[1] question ask text`
Lines diff(const std::string& before, const std::string& after) {
  Lines lines;
  for (const auto& change : diff_flows(definition(before), definition(after))) {
    std::string line(to_string(change.kind));
    for (const std::string& part : {change.path, change.type, change.id}) {
      if (!part.empty()) line += " " + part;
    }
    if (!change.old_path.empty()) line += " from " + change.old_path;
    for (const auto& field : change.fields) line += " " + field.name;
    lines.push_back(line);
  }
  return lines;
}

TEST(FlowDiff, OfEqualVersionsIsEmpty) {
  EXPECT_EQ(diff("  - say: a\n", "  - say: a\n"), Lines());
}

TEST(FlowDiff, ANodeInsertedInFrontChangesNoOthers) {
  EXPECT_EQ(diff("  - say: a\n  - say: b\n", "  - say: new\n  - say: a\n  - say: b\n"),
            Lines{"added nodes[0] say"});
  EXPECT_EQ(diff("  - say: a\n  - say: b\n  - say: c\n", "  - say: a\n  - say: c\n"),
            Lines{"removed nodes[1] say"});
}

TEST(FlowDiff, SaysWhichFieldsOfANodeChanged) {
  const std::string before =
      "  - id: ask\n    question: {text: Where to, type: text, data: {a: 1, b: 2}}\n";
  const std::string after =
      "  - id: ask\n    question: {text: And when, type: date, data: {a: 1, b: 3}}\n";
  EXPECT_EQ(diff(before, after), Lines{"changed nodes[0] question ask data.b text type"});
  const auto changes = diff_flows(definition(before), definition(after));
  EXPECT_EQ(changes.at(0).fields.at(1).before, "Where to");
  EXPECT_EQ(changes.at(0).fields.at(1).after, "And when");
  EXPECT_EQ(diff("  - say: a\n", "  - say: b\n"), Lines{"changed nodes[0] say say"});
}

TEST(FlowDiff, GoesIntoBranches) {
  const std::string before =
      "  - if: context.a\n    then: [{say: x}, {say: z}]\n"
      "  - switch: {on: input.text, cases: {a: [{say: one}], b: [{stop: true}]}}\n";
  const std::string after =
      "  - if: context.a\n    then: [{say: x}, {say: y}, {say: z}]\n    else: [{stop: true}]\n"
      "  - switch: {on: input.text, cases: {a: [{say: two}], b: [{stop: true}]}}\n";
  EXPECT_EQ(diff(before, after), (Lines{"added nodes[0].then[1] say", "added nodes[0].else[0] stop",
                                        "changed nodes[1].cases[\"a\"][0] say say"}));
}

TEST(FlowDiff, ItsPathsAreTheAddressesOfNodes) {
  const auto after = definition(
      "  - if: context.a\n    then: [{say: x}]\n"
      "  - switch: {on: input.text, cases: {a b: [{say: one}]}, default: [{say: d}]}\n"
      "  - httpRequest: {url: \"http://x.example\", onError: [{say: e}]}\n"
      "  - once: [{say: o}]\n"
      "  - split: [{name: a, share: 50, do: [{say: s}]}, {name: b, share: 50}]\n");
  const auto flow = Flow::compile(after);
  ASSERT_TRUE(flow);
  auto before = after;
  before["nodes"] = json::array(
      {{{"if", "context.a"}},
       {{"switch", {{"on", "input.text"}, {"cases", {{"a b", json::array()}}}}}},
       {{"httpRequest", {{"url", "http://x.example"}}}},
       {{"once", json::array()}},
       {{"split", json::parse(R"([{"name": "a", "share": 50}, {"name": "b", "share": 50}])")}}});
  const auto changes = diff_flows(before, after);
  EXPECT_EQ(changes.size(), 6U);
  for (const auto& change : changes) {
    EXPECT_EQ(change.kind, Kind::added);
    EXPECT_NE((*flow)->find(change.path), end_of_flow) << change.path;
  }
}

TEST(FlowDiff, FindsAnAgentsToolsByTheirNames) {
  const auto agent = [](const std::string& tools) {
    auto flow = definition("  - say: a\n");
    flow["nodes"][0] = {{"aiAgent", {{"connection", "m"}, {"tools", json::parse(tools)}}}};
    return flow;
  };
  const auto before = agent(R"([{"name": "a", "do": [{"say": "x"}]}, {"name": "b"}])");
  const auto after = agent(R"([{"name": "new"}, {"name": "a", "do": [{"say": "y"}]}])");
  const auto changes = diff_flows(before, after);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].path, "nodes[0]");
  ASSERT_EQ(changes[0].fields.size(), 2U);
  EXPECT_EQ(changes[0].fields[0].name, "tools[1]");
  EXPECT_EQ(changes[0].fields[0].before, (json{{"name", "b"}}));
  EXPECT_EQ(changes[0].fields[1].name, "tools[0]");
  EXPECT_EQ(changes[0].fields[1].after, (json{{"name", "new"}}));
  EXPECT_EQ(changes[1].path, "nodes[0].tools[1].do[0]") << "like the Node's address";
  EXPECT_EQ(changes[1].old_path, "nodes[0].tools[0].do[0]");
  const auto turned = agent(R"([{"name": "b"}, {"name": "a", "do": [{"say": "x"}]}])");
  EXPECT_EQ(diff_flows(before, turned).at(0).fields.at(0).name, "tools[0].name");
}

TEST(FlowDiff, KnowsANodeThatMoved) {
  EXPECT_EQ(diff("  - id: a\n    say: one\n  - wait: true\n  - stop: true\n",
                 "  - wait: true\n  - stop: true\n  - id: a\n    say: one\n"),
            Lines{"moved nodes[2] say a from nodes[0]"});
  EXPECT_EQ(diff("  - id: a\n    say: one\n  - wait: true\n  - stop: true\n",
                 "  - wait: true\n  - stop: true\n  - id: a\n    say: two\n"),
            Lines{"moved nodes[2] say a from nodes[0] say"});
}

TEST(FlowDiff, TellsANewTypeOrIdAsAnotherNode) {
  EXPECT_EQ(diff("  - say: a\n", "  - log: a\n"),
            (Lines{"removed nodes[0] say", "added nodes[0] log"}));
  EXPECT_EQ(diff("  - id: a\n    say: x\n", "  - id: b\n    say: x\n"),
            (Lines{"removed nodes[0] say a", "added nodes[0] say b"}));
}

TEST(FlowDiff, TheFlowsOwnFieldsComeFirst) {
  auto before = definition("  - say: a\n");
  auto after = definition("  - say: b\n");
  after["lexicons"] = {"Cities"};
  const auto changes = diff_flows(before, after);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].path, "");
  EXPECT_EQ(changes[0].fields.at(0).name, "lexicons");
}

TEST(FlowDiff, AcceptsValuesThatAreNoFlow) {
  EXPECT_TRUE(diff_flows(nullptr, nullptr).empty());
  EXPECT_EQ(diff_flows(json::array({1}), json::object({{"nodes", 5}})).size(), 1U);
  EXPECT_EQ(diff_flows({{"nodes", {{{"nonsense", 1}}}}}, {{"nodes", json::array()}}).size(), 1U);
}

// Long lists get no table of both. The diff leaves out the equal Nodes at both ends and compares
// the rest place by place.
TEST(FlowDiff, OfLongListsIsBounded) {
  json before = definition("  - say: a\n");
  json after = before;
  for (int i = 0; i < 3000; ++i) {
    before["nodes"].push_back({{"say", "old " + std::to_string(i)}});
    after["nodes"].push_back({{"say", "new " + std::to_string(i)}});
  }
  EXPECT_EQ(diff_flows(before, after).size(), 3000U);
}

// --- Uses of a Connection ------------------------------------------------------------------------

constexpr const char* with_crm =
    "connections: [{name: crm, type: httpBearer, fields: {token: x}}]\n";
constexpr const char* call = "{connection: crm, url: \"http://x.example\"}";

TEST(ConnectionUses, AreFoundInBranches) {
  const auto flow = flow_of(std::string("- say: a\n- if: context.a\n  then:\n    - httpRequest: ") +
                                call + "\n- id: last\n  httpRequest: " + call +
                                "\n- httpRequest: {url: \"http://x.example\"}",
                            with_crm);
  const auto nodes = nodes_using(*flow, "crm");
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]->address, "last");
  EXPECT_EQ(nodes[1]->address, "nodes[1].then[0]");
  EXPECT_TRUE(nodes_using(*flow, "other").empty());
}

TEST(ConnectionUses, IncludeModelsAndAgentsTools) {
  const auto flow = flow_of(
      "- id: prompt\n  llmPrompt: {connection: model, prompt: p}\n"
      "- id: agent\n"
      "  aiAgent:\n"
      "    connection: model\n"
      "    instructions: i\n"
      "    tools:\n"
      "    - name: look\n"
      "      description: d\n"
      "      do:\n"
      "      - {id: sure, question: \"Sure?\"}\n"
      "      - httpRequest: {connection: crm, url: \"http://x.example\"}\n"
      "- {id: end, wait: true}",
      models_project);
  std::vector<std::string> at;
  for (const auto* slot : nodes_using(*flow, "model")) at.push_back(slot->address);
  EXPECT_EQ(at, (Lines{"prompt", "agent"}));
  const auto in_tool = nodes_using(*flow, "crm");
  ASSERT_EQ(in_tool.size(), 1U);
  EXPECT_EQ(in_tool[0]->address, "nodes[1].tools[0].do[1]");
  WaysToConnection to_model("model", {flow});
  EXPECT_TRUE(to_model.from(flow, flow->find("sure")))
      << "the agent runs again after this question";
  EXPECT_FALSE(to_model.from(flow, flow->find("end")));
  WaysToConnection to_crm("crm", {flow});
  EXPECT_TRUE(to_crm.from(flow, flow->find("agent"))) << "the model may ask for its tool";
  EXPECT_TRUE(to_crm.from_start("Main"));
}

TEST(ConnectionUses, LeadsFollowWaysAndEnteredFlows) {
  const auto user = flow_of(std::string("- id: ask\n  question: Which?\n- httpRequest: ") + call +
                                "\n- id: behind\n  wait: true\n- say: end",
                            with_crm);
  const auto caller =
      named_flow("Caller", "  - {id: in, executeFlow: Main}\n  - {id: out, wait: true}\n");
  const auto other = named_flow("Other", "  - say: nothing\n");
  WaysToConnection ways("crm", {other, caller, user});
  EXPECT_TRUE(ways.from_start("Main"));
  EXPECT_TRUE(ways.from_start("Caller"));
  EXPECT_FALSE(ways.from_start("Other"));
  EXPECT_FALSE(ways.from_start("none"));
  EXPECT_TRUE(ways.from(user, user->find("ask")));
  EXPECT_FALSE(ways.from(user, user->find("behind")));
  EXPECT_TRUE(ways.from(caller, caller->find("in")));
  EXPECT_FALSE(ways.after(caller, caller->find("in")));
  EXPECT_FALSE(ways.from(caller, end_of_flow));
}

TEST(Standings, TellWhereASessionWaitsAndWhatItIsPinnedTo) {
  Conversation talk("- id: in\n  executeFlow: Sub\n- say: end");
  talk.library.flows["Sub"] = {
      named_flow("Sub", "  - {id: ask, question: \"Which?\"}\n  - {id: nap, sleep: {for: 1h}}\n")};
  EXPECT_TRUE(standings(talk.session.flow_state, talk.session.execution).empty());
  ASSERT_TRUE(talk.say("hello"));
  auto found = standings(talk.session.flow_state, talk.session.execution);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].flow, "Main");
  EXPECT_EQ(found[0].at, "in");
  EXPECT_EQ(found[1].flow, "Sub");
  EXPECT_EQ(found[1].at, "ask");
  EXPECT_EQ(found[1].version, 0);
  ASSERT_TRUE(talk.say("this"));
  ASSERT_TRUE(talk.session.execution);
  EXPECT_EQ(talk.session.execution->entered, (std::vector<model::PinnedFlow>{{"Sub", 1}}));
  found = standings(talk.session.flow_state, talk.session.execution);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].version, 1);
  EXPECT_EQ(found[1].at, "nap");
  EXPECT_EQ(found[1].version, 1);
  ASSERT_TRUE(talk.fire_timer());
  EXPECT_TRUE(standings(talk.session.flow_state, talk.session.execution).empty());
  EXPECT_TRUE(standings({{"waiting", 5}}, std::nullopt).empty());
}

}  // namespace
}  // namespace conversed::flows::tools
