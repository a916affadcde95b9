// A Turn has one budget for all its work. It ends whatever a Flow computes and however the work is
// spread over its Nodes.
#include "flows/expression/turn_budget.h"

#include "flows/regex.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using expression::TurnBudget;
using model::Errc;

constexpr std::size_t few_steps = 200'000;

// Within the limit on Nodes, a Turn of each would take seconds to minutes.
const std::map<std::string, std::string>& endless_flows() {
  static const std::map<std::string, std::string> flows = [] {
    const std::string numbers = "[0,1,2,3,4,5,6,7,8,9]";
    const std::string many = numbers + ".flatMap(a => " + numbers + ").flatMap(b => " + numbers +
                             ").map(c => c * c).length";
    std::string entries;
    for (int i = 0; i < 100; ++i) {
      entries += (i > 0 ? ", k" : "k") + std::to_string(i) + ": \"{{" + many + "}}\"";
    }
    const std::string text(20'000, 'x');
    const auto looped = [](const std::string& node) {
      return "- id: first\n  " + node + "\n- goTo: first\n";
    };
    return std::map<std::string, std::string>{
        {"assignments", looped("addToContext: {" + entries + "}")},
        {"texts", looped("log: \"{{" + many + "}}\"")},
        {"conditions", looped("if: \"" + many + " > 1e9\"\n  then: [{say: x}]")},
        {"literal texts", looped("log: \"" + text + text + text + text + "{{1}}\"")},
        {"constants", looped("addToContext: {big: {a: \"" + text + "\", b: \"" + text + "\"}}")},
        {"regular expressions",
         looped("regexSlotFiller: {pattern: \"(?>.*)x\", slot: s, ignoreCase: false}")},
        {"keyphrases", looped("executeFlow: Sub")},
        {"measuring",
         "- addToContext: {a: \"{{'a'.repeat(90000)}}\", b: \"{{'b'.repeat(90000)}}\"}\n" +
             looped("addToContext: {a: \"{{context.b}}\", b: \"{{context.a}}\"}")},
    };
  }();
  return flows;
}

Conversation conversation_of(const std::string& name) {
  Conversation talk(endless_flows().at(name));
  talk.limits.turn_steps = few_steps;
  if (name == "keyphrases") {
    std::string phrase = "y";
    for (int i = 0; i < 500; ++i) phrase += " y";
    talk.library.lexicons["Cities"] = std::make_shared<const lexicon::Lexicon>(
        "l1", "Cities",
        std::vector<lexicon::Entry>{
            {.main_keyphrase = phrase, .keyphrases = {}, .slots = {}, .data = {}}});
    talk.library.flows["Sub"] = {named_flow("Sub", "  - log: x\n", {"Cities"})};
  }
  return talk;
}

std::string message_for(const std::string& name) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "y ";
  return name == "regular expressions" ? std::string(4'000, 'y') : text;
}

TEST(TurnBudget, EverythingThatATurnDoesSpendsFromOneBudget) {
  for (const auto& [name, nodes] : endless_flows()) {
    SCOPED_TRACE(name);
    auto talk = conversation_of(name);
    const auto effects = talk.say(message_for(name));
    ASSERT_FALSE(effects);
    EXPECT_EQ(effects.error().code, Errc::too_large);
    EXPECT_NE(effects.error().message.find("the Turn takes more than 200000 steps"),
              std::string::npos)
        << effects.error().message;
  }
}

TEST(TurnBudget, TheSameTurnFailsAtTheSameStep) {
  for (const auto& [name, nodes] : endless_flows()) {
    SCOPED_TRACE(name);
    const auto first = conversation_of(name).say(message_for(name));
    const auto second = conversation_of(name).say(message_for(name));
    ASSERT_FALSE(first);
    ASSERT_FALSE(second);
    EXPECT_EQ(first.error().message, second.error().message);
  }
}

TEST(TurnBudget, ANewTurnHasAnotherBudget) {
  Conversation talk(
      "- id: ask\n  addToContext: {n: \"{{'x'.repeat(20000).split('').length}}\"}\n"
      "- say: \"{{context.n}}\"\n- wait: true\n- goTo: ask\n");
  talk.limits.turn_steps = 60'000;
  for (int turn = 0; turn < 5; ++turn) EXPECT_EQ(texts(talk.say("go")), Texts{"20000"});
}

TEST(TurnBudget, AllValuesThatATurnMakesAreBounded) {
  std::string nodes = "- addToContext:\n";
  for (int i = 0; i < 20; ++i) {
    nodes += "    k" + std::to_string(i) + ": \"{{'x'.repeat(200000)}}\"\n";
  }
  Conversation talk(nodes);
  talk.limits.turn_bytes = 1'000'000;
  const auto effects = talk.say("go");
  ASSERT_FALSE(effects);
  EXPECT_NE(effects.error().message.find("the Turn makes more than 1000000 bytes"),
            std::string::npos)
      << effects.error().message;
}

// After the budget is spent, Nodes make their outputs and calls of empty texts.
TEST(TurnBudget, ATurnWhoseLastNodeSpendsTheRestHasNoEffects) {
  Conversation talk("- say: \"{{'x'.repeat(90000).split('').length}}\"\n");
  talk.limits.turn_steps = 10'000;
  EXPECT_FALSE(talk.say("go"));
}

TEST(TurnBudget, TheClockEndsATurnBetweenNodes) {
  Conversation talk("- id: first\n  log: x\n- goTo: first\n");
  int looks = 0;
  talk.is_overdue = [&] { return ++looks == 5; };
  const auto effects = talk.say("go");
  ASSERT_FALSE(effects);
  EXPECT_EQ(effects.error().code, Errc::too_large);
  EXPECT_NE(effects.error().message.find("takes too long"), std::string::npos);
  EXPECT_EQ(looks, 5);
}

TEST(TurnBudget, AnExceptionShowsTheNodeThatThrewIt) {
  Conversation talk("- id: first\n  log: x\n- id: second\n  log: x\n");
  auto message = talk.event(model::EventType::user_message);
  message.text = "go";
  int looks = 0;
  TurnPlace failed_at;
  const auto run = [&] {
    return run_turn({.flow = *talk.flow,
                     .assets = talk.assets,
                     .endpoint = talk.endpoint,
                     .session = talk.session,
                     .profile = talk.profile,
                     .event = message,
                     .now = talk.now,
                     .limits = talk.limits,
                     .flow_version = 7,
                     .library = &talk.library,
                     .is_overdue = [&]() -> bool {
                       if (++looks == 2) throw std::runtime_error("a defect");
                       return false;
                     },
                     .failed_at = &failed_at});
  };
  EXPECT_THROW((void)run(), std::runtime_error);
  EXPECT_EQ(failed_at.flow, talk.flow->name());
  EXPECT_EQ(failed_at.version, 7);
  EXPECT_EQ(failed_at.node, "second");
}

TEST(TurnBudget, TheClockEndsAnExpression) {
  Conversation talk("- if: \"'x'.repeat(90000).split('').length > 0\"\n  then: [{say: x}]\n");
  int looks = 0;
  talk.is_overdue = [&] { return ++looks > 1; };  // the first look is the Node's
  EXPECT_FALSE(talk.say("go"));
  EXPECT_EQ(looks, 2);
}

TEST(TurnBudget, SmallValuesAddUpToSteps) {
  TurnBudget budget(1, 1'000);
  EXPECT_TRUE(budget.charge(31));
  EXPECT_TRUE(budget.charge(31));
  EXPECT_FALSE(budget.charge(2));
  EXPECT_EQ(budget.lack(), TurnBudget::Lack::steps);
}

TEST(TurnBudget, ASpentBudgetStaysSpent) {
  TurnBudget budget(100, 1'000);
  EXPECT_TRUE(budget.step(90));
  EXPECT_FALSE(budget.step(11));
  EXPECT_EQ(budget.lack(), TurnBudget::Lack::steps);
  EXPECT_FALSE(budget.step(1));
  EXPECT_FALSE(budget.charge(1));
}

TEST(TurnBudget, ASpentBudgetEndsARegularExpression) {
  const auto regex = Regex::compile("(a|aa)+$", Regex::Case::kept);
  ASSERT_TRUE(regex);
  TurnBudget budget(2'000, 0);
  const auto found =
      regex->find_all(std::string(500, 'a') + "b", 1, Regex::max_text_bytes, &budget);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::too_large);
}

}  // namespace
}  // namespace conversed::flows
