// Nodes with branches that the session, a list or another Flow decides on.
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

TEST(SplitNode, ANewShareMovesOnlyTheSessionsThatItMust) {
  const auto before = sessions_of_a(halves);
  const auto more = sessions_of_a(
      "- id: tone\n  split:\n"
      "  - {name: a, share: 60, do: [{say: a}]}\n  - {name: b, share: 40, do: [{say: b}]}\n");
  EXPECT_GT(more.size(), before.size());
  EXPECT_TRUE(std::ranges::includes(more, before));
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
  EXPECT_EQ(effects->notes.nodes, (Texts{"nodes[0]", "nodes[0] = the rest", "nodes[1]"}));
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
  EXPECT_EQ(talk.say("x")->notes.nodes, (Texts{"nodes[0]", "Sub: nodes[0]", "Sub: nodes[0] = b"}));
}

}  // namespace
}  // namespace conversed::flows
