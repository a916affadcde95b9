// Nodes that move between Flows, remember, read slots and hand over.
#include "flows/regex.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

std::shared_ptr<const lexicon::Lexicon> two_cities() {
  return std::make_shared<const lexicon::Lexicon>(
      "l1", "Cities",
      std::vector<lexicon::Entry>{{"Paris", {"city of light"}, {"city"}, {}},
                                  {"Rome", {}, {"city"}, {}}});
}

// A Flow that uses the lexicon above.
struct Trip : Conversation {
  explicit Trip(const std::string& nodes) : Conversation("- say: x") {
    flow = named_flow("Trip", nodes, {"Cities"});
    library.lexicons["Cities"] = two_cities();
  }
};

TEST(SayNode, SaysAlternativesInOrderIfTold) {
  Conversation in_turn("- say: {text: [a, b], order: inTurn}");
  Conversation once("- say: {text: [a, b], order: oneByOne}");
  Texts turns;
  Texts singles;
  for (int i = 0; i < 4; ++i) {
    turns.push_back(texts(in_turn.say("x")).front());
    singles.push_back(texts(once.say("x")).front());
  }
  EXPECT_EQ(turns, (Texts{"a", "b", "a", "b"}));
  EXPECT_EQ(singles, (Texts{"a", "b", "b", "b"}));
}

TEST(SwitchNode, SwitchesOnTextTypeAndState) {
  Conversation talk(
      "- switch: {on: type, cases: {data: [{say: data}, {setState: busy}]}}\n"
      "- switch: {on: state, cases: {busy: [{say: busy}], default: [{say: fresh}]}}\n"
      "- switch: {on: text, ignoreCase: true, cases: {\"si\": [{say: yes}]}}");
  EXPECT_EQ(texts(talk.say("Sí!")), (Texts{"fresh", "yes"}));
  EXPECT_EQ(texts(talk.inject({{"a", 1}})), (Texts{"data", "busy"}));
}

TEST(StateNodes, KeepAWordForTheSession) {
  Conversation talk(
      "- say: \"{{input.state}}\"\n- if: input.text == \"reset\"\n  then: [{resetState: true}]\n"
      "  else: [{setState: \"{{input.text}}\"}]\n- say: \"{{input.state}}\"");
  EXPECT_EQ(texts(talk.say("a")), (Texts{"default", "a"}));
  EXPECT_EQ(texts(talk.say("reset")), (Texts{"a", "default"}));
  EXPECT_EQ(texts(talk.say("b")), (Texts{"default", "b"}));
  talk.now += std::chrono::hours(2);
  EXPECT_EQ(texts(talk.say("c")), (Texts{"default", "c"})) << "an expired session starts afresh";
}

TEST(IntervalNode, CountsPasses) {
  Conversation talk("- interval: {every: 3, do: [{say: third}], else: [{say: no}]}");
  Texts said;
  for (int i = 0; i < 6; ++i) said.push_back(texts(talk.say("x")).front());
  EXPECT_EQ(said, (Texts{"no", "no", "third", "no", "no", "third"}));
}

TEST(IntervalNode, KeepsATimeApart) {
  Conversation talk("- interval: {every: 10m, do: [{say: now}], else: [{say: no}]}");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"now"}));
  talk.now += std::chrono::minutes(9);
  EXPECT_EQ(texts(talk.say("x")), (Texts{"no"}));
  talk.now += std::chrono::minutes(1);
  EXPECT_EQ(texts(talk.say("x")), (Texts{"now"}));
}

TEST(ThinkNode, StartsAgainWithAnotherText) {
  Conversation talk(
      "- if: input.text == \"help\"\n  then: [{say: \"{{input.data.n}}\"}, {stop: true}]\n"
      "- think: {text: help, data: {n: 1}}");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"1"}));
  Conversation unread(  // no Node reads a member of the first input
      "- if: context.again\n"
      "  then: [{say: \"{{JSON.stringify([input.type, input.text, input.data])}}\"}, {stop: "
      "true}]\n"
      "- addToContext: {again: true}\n- think: {text: help, data: {n: 1}}");
  EXPECT_EQ(texts(unread.say("x")), (Texts{R"(["text","help",{"n":1}])"}));
  Conversation endless("- think: again");
  EXPECT_EQ(endless.say("x").error().code, model::Errc::too_large);
}

TEST(GoToNode, MayWaitBeforeItGoes) {
  Conversation talk("- say: a\n- goTo: {node: there, wait: true}\n- say: b\n- id: there\n  say: c");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"a"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"c"}));
}

TEST(ExecuteFlowNode, ComesBackAndSharesTheContext) {
  Conversation talk("- executeFlow: Sub\n- say: \"back {{context.n}}\"");
  talk.library.flows["Sub"] = {named_flow("Sub", "  - say: sub\n  - addToContext: {n: 7}")};
  EXPECT_EQ(texts(talk.say("x")), (Texts{"sub", "back 7"}));
}

TEST(ExecuteFlowNode, WaitsAndCallsInsideOfTheOtherFlow) {
  Conversation talk("- executeFlow: Sub\n- say: back");
  talk.library.flows["Sub"] = {named_flow("Sub",
                                          "  - question: {text: city, storeIn: context.city}\n"
                                          "  - httpRequest: {url: \"http://example.com/\"}\n"
                                          "  - say: \"{{context.city}}\"")};
  EXPECT_EQ(texts(talk.say("x")), (Texts{"city"}));
  ASSERT_TRUE(talk.say("Rome"));
  ASSERT_TRUE(talk.session.busy());
  // The execution is pinned to the version that it entered.
  talk.library.flows["Sub"].push_back(named_flow("Sub", "  - say: other"));
  EXPECT_EQ(texts(talk.answer_call({})), (Texts{"Rome", "back"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"other", "back"})) << "the next input takes the newest";
}

TEST(ExecuteFlowNode, WithoutReturnMovesTheConversation) {
  Conversation talk("- executeFlow: {flow: Sub, return: false}\n- say: never");
  talk.library.flows["Sub"] = {named_flow("Sub", "  - say: a\n  - wait: true\n  - say: b")};
  EXPECT_EQ(texts(talk.say("x")), (Texts{"a"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"b"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"a"}));
}

TEST(ExecuteFlowNode, RestartsWhenTheFlowItWaitedInIsGone) {
  Conversation talk("- say: main\n- executeFlow: Sub");
  talk.library.flows["Sub"] = {named_flow("Sub", "  - wait: true\n  - say: b")};
  EXPECT_EQ(texts(talk.say("x")), (Texts{"main"}));
  talk.library.flows["Sub"] = {named_flow("Sub", "  - say: new")};
  const auto effects = talk.say("x");
  EXPECT_EQ(texts(effects), (Texts{"main", "new"}));
  ASSERT_EQ(effects->log.size(), 1U);
  EXPECT_NE(effects->log[0].find("nodes[0] of the Flow 'Sub'"), std::string::npos);
}

TEST(ExecuteFlowNode, NamesAFlowThatIsNotThereAndStopsAtTheDepth) {
  Conversation missing("- executeFlow: Sub");
  EXPECT_EQ(missing.say("x").error().message,
            "Flow 'Main', Node nodes[0] (executeFlow): there is no Flow 'Sub'");
  Conversation deep("- executeFlow: Main");
  const auto effects = deep.say("x");
  ASSERT_FALSE(effects);
  EXPECT_NE(effects.error().message.find("more than 20 Flows"), std::string::npos);
}

TEST(ExecuteFlowNode, KeepsMemoriesOfFlowsApart) {
  Conversation talk("- once: [{say: main}]\n- executeFlow: Sub");
  talk.library.flows["Sub"] = {named_flow("Sub", "  - once: [{say: sub}]")};
  EXPECT_EQ(texts(talk.say("x")), (Texts{"main", "sub"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{}));
}

TEST(QuestionNode, TakesAKeyphraseThatNothingNegates) {
  Trip talk(
      "  - question: {text: \"City?\", type: keyphrase, slot: city, storeIn: context.city}\n"
      "  - say: \"{{context.city}}\"");
  EXPECT_EQ(texts(talk.say("hi")), (Texts{"City?"}));
  EXPECT_EQ(texts(talk.say("no idea")), (Texts{"City?"}));
  EXPECT_EQ(texts(talk.say("not Paris but rome")), (Texts{"Rome"}));
}

TEST(QuestionNode, RepromptsOneAfterTheOther) {
  Conversation talk(
      "- question: {text: q, type: email, reprompt: [r1, r2], maxAttempts: 4, onNoAnswer: []}\n- "
      "say: "
      "end");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"q"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"r1"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"r2"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"r2"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"end"}));
}

TEST(QuestionNode, LetsPeopleEscape) {
  Conversation talk(
      "- question: {text: q, type: number, storeIn: context.n, escape: [never mind],\n"
      "             escapeIf: input.data.back, onEscape: [{say: out}, {stop: true}]}\n- say: end");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"q"}));
  EXPECT_EQ(texts(talk.say("Never mind!")), (Texts{"out"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"q"}));
  EXPECT_EQ(texts(talk.inject({{"back", true}})), (Texts{"out"}));
  EXPECT_FALSE(talk.session.context.contains("n"));
}

TEST(QuestionNode, AsksAgainForWhatIsNotValid) {
  Conversation talk(
      "- question: {text: q, type: integer, validIf: \"input.answer >= 1 && input.answer <= 5\",\n"
      "             storeIn: context.n}\n- say: \"{{context.n}}\"");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"q"}));
  EXPECT_EQ(texts(talk.say("6")), (Texts{"q"}));
  EXPECT_EQ(texts(talk.say("4.0")), (Texts{"4"}));
}

TEST(QuestionNode, ReadsEveryType) {
  const std::vector<std::tuple<std::string, std::string, json>> answers{
      {"type: email", "mine is a@b.example", "a@b.example"},
      {"type: url", "www.b.example", "https://www.b.example"},
      {"type: phone", "+1 (555) 010-9999", "+15550109999"},
      {"type: date, timezone: Pacific/Kiritimati", "today", "2027-01-15"},
      {"type: date, timezone: Pacific/Pago_Pago", "today", "2027-01-14"},
      {"type: time", "2 pm", "14:00"},
      {"type: regex, pattern: '[A-Z]-[0-9]+'", " A-17 ", "A-17"},
      {"type: yesNo", "SÍ.", true},
      {"type: any", "x", "x"}};
  for (const auto& [type, text, stored] : answers) {
    Conversation talk("- question: {text: q, storeIn: context.a, " + type + "}\n- say: end");
    talk.now = model::from_unix_ms(1'800'000'000'000);  // 2027-01-15 08:00 UTC
    EXPECT_EQ(texts(talk.say("x")), (Texts{"q"})) << type;
    EXPECT_EQ(texts(talk.say(text)), (Texts{"end"})) << type;
    EXPECT_EQ(talk.session.context["a"], stored) << type;
  }
}

TEST(CopySlotsToContextNode, ReplacesAppendsOrKeeps) {
  Trip talk(
      "  - copySlotsToContext: {as: keyphrases}\n"
      "  - copySlotsToContext: {as: keyphrases, storeIn: context.all, mode: append}\n"
      "  - copySlotsToContext: {as: keyphrases, storeIn: context.first, mode: keep}\n"
      "  - copySlotsToContext: {slots: [other], storeIn: context.none}\n");
  ASSERT_TRUE(talk.say("Paris"));
  ASSERT_TRUE(talk.say("Rome"));
  ASSERT_TRUE(talk.say("nothing"));
  EXPECT_EQ(talk.session.context, json::parse(R"({"slots":{"city":["Rome"]},
      "all":{"city":["Paris","Rome"]},"first":{"city":["Paris"]}})"));
}

TEST(AddLexiconKeyphraseNode, TeachesTheSessionFromTheNextInputOn) {
  Trip talk(
      "  - say: \"{{input.slots.city[0].keyphrase}}\"\n"
      "  - addLexiconKeyphrase: {lexicon: Cities, keyphrase: \"{{input.data.name}}\",\n"
      "                          synonyms: [\"{{input.data.short}}\"], slots: [city]}");
  EXPECT_EQ(texts(talk.say("Springfield")), (Texts{""}));
  ASSERT_TRUE(talk.inject({{"name", "Springfield"}, {"short", "Spring"}}));
  EXPECT_EQ(texts(talk.say("to spring")), (Texts{"Springfield"}));
  talk.now += std::chrono::hours(2);
  EXPECT_EQ(texts(talk.say("Springfield")), (Texts{""}))
      << "other sessions do not know the keyphrase";
}

TEST(AddLexiconKeyphraseNode, HasALimit) {
  Trip talk("  - addLexiconKeyphrase: {lexicon: Cities, keyphrase: \"{{input.text}}\"}");
  talk.limits.keyphrases = 2;
  EXPECT_TRUE(talk.say("a"));
  EXPECT_TRUE(talk.say("b"));
  EXPECT_TRUE(talk.say("b"));
  EXPECT_EQ(talk.say("c").error().code, model::Errc::too_large);
}

TEST(RegexSlotFillerNode, FillsASlotWithMatches) {
  Conversation talk(
      "- regexSlotFiller: {pattern: '\\b([a-z])-(\\d+)\\b', slot: order, group: 2,\n"
      "                    storeIn: context.order}\n"
      "- say: \"{{input.slots.order.length}} {{input.slots.order[1].data.groups[0]}}\"");
  EXPECT_EQ(texts(talk.say("😀 A-17 and b-4")), (Texts{"2 b"}));
  EXPECT_EQ(talk.session.context["order"], "17");
}

TEST(RegexSlotFillerNode, PatternThatWouldTakeForEverFailsTheTurn) {
  Conversation talk(
      "- {id: fill, regexSlotFiller: {pattern: '(x+x+)+y', slot: s}}\n"
      "- say: \"{{input.slots.s.length}}.\"");
  const auto failed = talk.say(std::string(5000, 'x'));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, model::Errc::too_large);
  EXPECT_NE(failed.error().message.find("fill"), std::string::npos) << failed.error().message;
  EXPECT_NE(failed.error().message.find("steps"), std::string::npos) << failed.error().message;
  EXPECT_EQ(texts(talk.say("xxxy")), (Texts{"1."}));
}

// Matches found before that count against the same limit.
TEST(RegexSlotFillerNode, PatternThatTakesLongAtEachPlaceFailsTheTurn) {
  Conversation talk("- regexSlotFiller: {pattern: '(?:a?){14}b|', slot: s}");
  EXPECT_EQ(talk.say(std::string(4096, 'a')).error().code, model::Errc::too_large);
}

TEST(QuestionNode, PatternThatWouldTakeForEverFailsTheTurnAndTheQuestionWaitsOn) {
  Conversation talk(
      "- question: {text: q, type: regex, pattern: '(x+x+)+y', storeIn: context.a}\n- say: end");
  EXPECT_EQ(texts(talk.say("hi")), (Texts{"q"}));
  const auto before = talk.session;
  EXPECT_EQ(talk.say(std::string(4000, 'x')).error().code, model::Errc::too_large);
  talk.session = before;
  EXPECT_EQ(texts(talk.say("xxy")), (Texts{"end"}));
}

// Each search reads all of its text for each place at which a match may begin. In long texts this
// would take minutes in one Turn.
TEST(RegexSlotFillerNode, BoundsPatternsWithoutBacktracking) {
  Conversation talk(
      "- {id: again, regexSlotFiller: {pattern: '(?>.*)!', slot: s}}\n"
      "- {if: context.n != 30, then: [{addToContext: {n: \"{{(context.n || 0) + 1}}\"}}, "
      "{goTo: again}]}\n- say: \"{{input.slots.s}}.\"");
  EXPECT_EQ(texts(talk.say(std::string(200'000, 'a'))), (Texts{"."}));
}

TEST(Regex, SearchesTheBeginningOfLongTextsOnly) {
  const auto regex = Regex::compile("z", Regex::Case::kept);
  ASSERT_TRUE(regex);
  const std::size_t most = Regex::max_text_bytes;
  EXPECT_EQ(regex->find_all(std::string(most - 1, 'a') + "z", 1)->size(), 1U);
  EXPECT_EQ(regex->find_all(std::string(most, 'a') + "z", 1)->size(), 0U);
  EXPECT_EQ(regex->find_all(std::string(most, 'a') + "z", 1, 2 * most)->size(), 1U);
}

TEST(Regex, DoesNotCutWithinACharacter) {
  const auto regex = Regex::compile("[^a]", Regex::Case::kept);
  ASSERT_TRUE(regex);
  EXPECT_EQ(regex->find_all(std::string(Regex::max_text_bytes - 1, 'a') + "\u00e9", 1)->size(), 0U);
}

TEST(Regex, OfALongTextFitsNothing) {
  const auto regex = Regex::compile("a*", Regex::Case::kept);
  ASSERT_TRUE(regex);
  EXPECT_TRUE(*regex->fits(" " + std::string(Regex::max_text_bytes, 'a') + " "));
  EXPECT_FALSE(*regex->fits(std::string(Regex::max_text_bytes + 1, 'a')));
}

TEST(HandoverNode, TellsTheWebhookUntilAnInjectResumes) {
  Conversation talk(
      "- handover: {text: One moment., data: {why: \"{{input.text}}\"}}\n- say: back");
  auto effects = talk.say("help");
  EXPECT_EQ(texts(effects), (Texts{"One moment."}));
  EXPECT_EQ(effects->outputs[0].data,
            json::parse(R"({"handover":{"status":"requested","data":{"why":"help"}}})"));
  effects = talk.say("hello?");
  ASSERT_TRUE(effects);
  EXPECT_EQ(
      effects->outputs.at(0).data,
      json::parse(R"({"handover":{"status":"input","source":"user","text":"hello?","data":{}}})"));
  EXPECT_EQ(texts(talk.inject({{"event", "packed"}})), (Texts{""}))
      << "only the resuming inject ends the handover";
  effects = talk.inject({{"handover", "resume"}});
  EXPECT_EQ(texts(effects), (Texts{"", "back"}));
  EXPECT_EQ(effects->outputs[0].data, json::parse(R"({"handover":{"status":"ended"}})"));
}

TEST(ProfileNodes, RemoveAndReset) {
  Conversation talk(
      "- removeFromProfile: [name]\n- if: input.text == \"all\"\n  then:\n"
      "    - resetProfile: true");
  talk.profile.data = {{"name", "Ann"}, {"age", 7}};
  ASSERT_TRUE(talk.say("x"));
  EXPECT_EQ(talk.profile.data, (json{{"age", 7}}));
  ASSERT_TRUE(talk.say("all"));
  EXPECT_EQ(talk.profile.data, json::object());
}

TEST(SessionMemory, HasALimit) {
  Conversation talk("- once: [{say: a}]\n- once: [{say: b}]");
  talk.limits.memory_keys = 1;
  EXPECT_EQ(talk.say("x").error().code, model::Errc::too_large);
}

}  // namespace
}  // namespace conversed::flows
