// Texts by locale, and the session's locale.
#include "flows/local_text.h"

#include <gtest/gtest.h>

#include "flows/bundle/loader.h"
#include "flows/journey.h"
#include "flows/tools/check.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

const std::string greeting =
    "- say: {text: {en: \"Hello {{input.text}}\", de: \"Hallo {{input.text}}\"}}\n";

json in_locale(std::string_view locale) {
  return {{"locale", locale}};
}

Result<model::Effects> say_in(Conversation& talk, std::string_view locale, std::string text = "x") {
  auto event = talk.event(model::EventType::user_message);
  event.text = std::move(text);
  event.data = in_locale(locale);
  return talk.take(event);
}

// The problems of a bundle with this Flow.
std::string text_problems_of(const std::string& nodes, const std::string& rest = "") {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: T, locales: [en, de, de-AT]}\nflows:\n"
      "- {name: Main, nodes: " +
          nodes + "}\n" + rest,
      "b.yaml", {});
  return bundle ? "" : to_string(bundle.error());
}

TEST(Locales, MatchByNameOrLanguage) {
  const std::vector<std::string> known{"en", "de", "pt-BR", "zh-Hant"};
  EXPECT_EQ(matching_locale("de", known), "de");
  EXPECT_EQ(matching_locale("de-AT", known), "de");
  EXPECT_EQ(matching_locale("DE_at", known), "de");
  EXPECT_EQ(matching_locale("pt_br", known), "pt-BR");
  EXPECT_EQ(matching_locale("zh-Hant-TW", known), "zh-Hant");
  EXPECT_EQ(matching_locale("pt", known), "");
  EXPECT_EQ(matching_locale("fr", known), "");
  EXPECT_EQ(matching_locale("", known), "");
  EXPECT_EQ(matching_locale("de" + std::string(40, '-'), known), "");
}

TEST(Locales, TextFallsBackToLanguageThenPrimaryThenFirst) {
  const json texts{{"de", "Hallo"}, {"en", "Hello"}, {"de-AT", "Servus"}};
  const auto text = [](const json& value, std::string_view locale, std::string_view primary) {
    const std::string* found = Wording{.locale = locale, .primary = primary}.text_of(value);
    return found == nullptr ? "none" : *found;
  };
  EXPECT_EQ(text(texts, "de-AT", "en"), "Servus");
  EXPECT_EQ(text(texts, "de-CH", "en"), "Hallo");
  EXPECT_EQ(text(texts, "fr", "en"), "Hello");
  EXPECT_EQ(text(texts, "fr", "it"), "Hallo");
  EXPECT_EQ(text("Hi", "fr", "en"), "Hi");
  EXPECT_EQ(text({{"en", 1}}, "en", "en"), "none");
  EXPECT_EQ(text(json::object(), "en", "en"), "none");
  EXPECT_EQ(text(5, "en", "en"), "none");
}

TEST(Locales, SessionRemembersTheInputsLocale) {
  Conversation talk(greeting + "- say: \"{{input.locale}}\"");
  EXPECT_EQ(texts(talk.say("a")), (Texts{"Hello a", "en"}));
  EXPECT_EQ(texts(say_in(talk, "de-AT", "b")), (Texts{"Hallo b", "de"}));
  EXPECT_EQ(texts(talk.say("c")), (Texts{"Hallo c", "de"}));
  EXPECT_EQ(texts(say_in(talk, "fr", "d")), (Texts{"Hallo d", "de"}))
      << "the project has no French";
  EXPECT_EQ(texts(talk.inject(in_locale("en"))), (Texts{"Hello ", "en"}));
  talk.now += std::chrono::hours(1);
  EXPECT_EQ(texts(say_in(talk, "de")), (Texts{"Hallo x", "de"}));
  talk.now += std::chrono::hours(1);
  EXPECT_EQ(texts(talk.say("e")), (Texts{"Hello e", "en"})) << "a new session";
}

TEST(Locales, ProfileComesBeforeTheInput) {
  Conversation talk("- if: input.text == \"Deutsch\"\n  then: [{updateProfile: {locale: de}}]\n" +
                    greeting + "- say: \"{{input.locale}}\"");
  EXPECT_EQ(texts(say_in(talk, "en", "Hi")), (Texts{"Hello Hi", "en"}));
  EXPECT_EQ(texts(say_in(talk, "en", "Deutsch")), (Texts{"Hallo Deutsch", "de"})) << "at once";
  EXPECT_EQ(texts(say_in(talk, "en", "Hi")), (Texts{"Hallo Hi", "de"}));
  talk.now += std::chrono::hours(1);
  EXPECT_EQ(texts(talk.say("Hi")), (Texts{"Hallo Hi", "de"})) << "in each session of the user";
  talk.profile.data["locale"] = "fr";
  EXPECT_EQ(texts(talk.say("Hi")), (Texts{"Hello Hi", "en"}));
  talk.profile.data["locale"] = 3;
  EXPECT_EQ(texts(talk.say("Hi")), (Texts{"Hello Hi", "en"}));
}

TEST(Locales, RemovedProfileGivesTheInputsLocaleBack) {
  for (const std::string remove : {"removeFromProfile: locale", "resetProfile: true"}) {
    Conversation talk(greeting + "- " + remove + "\n" + greeting);
    talk.profile.data["locale"] = "de";
    EXPECT_EQ(texts(talk.say("a")), (Texts{"Hallo a", "Hello a"})) << remove;
  }
}

TEST(Locales, HoldOverTheTurnsOfAnExecution) {
  Conversation talk("- sleep: 1s\n" + greeting);
  ASSERT_TRUE(say_in(talk, "de"));
  EXPECT_EQ(texts(talk.fire_timer()), Texts{"Hallo x"});
  EXPECT_EQ(talk.session.flow_state["locale"], "de");
}

TEST(Locales, QuestionAsksAndAsksAgainInTheSessionsLocale) {
  Conversation talk(
      "- question:\n"
      "    text: {en: \"How many?\", de: \"Wie viele?\"}\n"
      "    type: integer\n"
      "    reprompt: [{en: Once more., de: Noch einmal.}, \"1, 2, 3\"]\n"
      "    maxAttempts: 4\n"
      "- followUp: {after: 1m, text: {en: Still there., de: Noch da.}}\n"
      "- handover: {text: {en: A colleague comes., de: Ein Kollege kommt.}}\n");
  EXPECT_EQ(texts(say_in(talk, "de")), Texts{"Wie viele?"});
  EXPECT_EQ(texts(talk.say("x")), Texts{"Noch einmal."});
  EXPECT_EQ(texts(talk.say("x")), Texts{"1, 2, 3"});
  const auto effects = talk.say("3");
  EXPECT_EQ(texts(effects), Texts{"Ein Kollege kommt."});
  ASSERT_EQ(effects->follow_ups.size(), 1U);
  EXPECT_EQ(effects->follow_ups.front().text, "Noch da.");
}

TEST(Locales, ButtonsCardsImagesAndFilesChooseTheirTexts) {
  Conversation talk(
      "- addToContext: {more: [{text: {en: More, de: Mehr}}]}\n"
      "- say:\n"
      "    quickReplies: [{text: {en: \"Yes, {{input.text}}\", de: \"Ja, {{input.text}}\"}, value: "
      "1}, Ok]\n"
      "    cards:\n"
      "      - title: {en: Cheese, de: Käse}\n"
      "        text: {en: Hard, de: Hart}\n"
      "        image: {url: \"https://a.example/i\", alt: {en: Wheel, de: Laib}}\n"
      "        buttons: \"{{context.more}}\"\n"
      "    file: {url: {en: \"https://a.example/en\", de: \"https://a.example/de\"}, name: {en: "
      "Menu, de: Karte}}\n"
      "    text: Hi\n");
  const auto effects = say_in(talk, "de", "Ann");
  ASSERT_TRUE(effects) << effects.error().message;
  EXPECT_EQ(effects->outputs.front().data,
            (json{{"quickReplies",
                   {{{"text", "Ja, Ann"}, {"value", 1}}, {{"text", "Ok"}, {"value", "Ok"}}}},
                  {"cards",
                   {{{"title", "Käse"},
                     {"text", "Hart"},
                     {"image", {{"url", "https://a.example/i"}, {"alt", "Laib"}}},
                     {"buttons", {{{"text", "Mehr"}, {"value", "Mehr"}}}}}}},
                  {"file", {{"url", "https://a.example/de"}, {"name", "Karte"}}}}));
}

TEST(Locales, ChoiceTakesTheButtonThatTheUserReads) {
  Conversation talk(
      "- question:\n"
      "    text: Sure?\n"
      "    type: choice\n"
      "    quickReplies: [{text: {en: Yes, de: Ja}, value: 1}, {text: {en: No, de: Nein}, value: "
      "0}]\n"
      "    storeIn: context.sure\n");
  ASSERT_TRUE(say_in(talk, "de"));
  ASSERT_TRUE(talk.say("nein!"));
  EXPECT_EQ(talk.session.context["sure"], 0);
}

TEST(Locales, NumbersHaveTheMarksOfTheSession) {
  for (const auto& [locale, text] : {std::pair("de", "1.000,5"), std::pair("en", "1,000.5")}) {
    Conversation talk("- question: {text: q, type: number, storeIn: context.n}");
    ASSERT_TRUE(say_in(talk, locale));
    ASSERT_TRUE(talk.say(text));
    EXPECT_EQ(talk.session.context["n"], 1000.5) << locale;
  }
}

TEST(Locales, JourneySpeaksTheSessionsLocale) {
  const auto flow = follow_up_flow({{"text", {{"en", "There?"}, {"de", "Da?"}}}}, "Follow-up");
  ASSERT_TRUE(flow) << flow.error().message;
  Conversation talk("- say: Hi");
  ASSERT_TRUE(say_in(talk, "de"));
  auto compiled = Flow::compile(*flow);
  ASSERT_TRUE(compiled);
  talk.flow = *compiled;
  EXPECT_EQ(texts(talk.say("", model::EventType::follow_up)), Texts{"Da?"});
}

TEST(Locales, ProblemsNameTheKnownOnes) {
  EXPECT_EQ(text_problems_of("[{say: {text: {en: Hello, fr: Salut}}}]"),
            "b.yaml:4:49: flows[0].nodes[0].say.text.fr: the project has no locale 'fr'; known are "
            "en, de, de-AT");
  EXPECT_EQ(text_problems_of("[{say: {text: {en: Hello, DE: Hallo, de_at: Servus}}}]"),
            "b.yaml:4:49: flows[0].nodes[0].say.text.DE: the project has no locale 'DE'; did you "
            "mean 'de'?\n"
            "b.yaml:4:60: flows[0].nodes[0].say.text.de_at: the project has no locale 'de_at'; did "
            "you mean 'de-AT'?");
  EXPECT_EQ(text_problems_of("[{say: {text: {de: Hallo}}}]"),
            "b.yaml:4:37: flows[0].nodes[0].say.text: has no text for the primary locale 'en'; "
            "write one");
  EXPECT_EQ(text_problems_of("[{say: {text: [Hi, {}]}}]"),
            "b.yaml:4:42: flows[0].nodes[0].say.text[1]: the mapping is empty; write a text for "
            "each locale, such as `en: Hello`");
  EXPECT_EQ(text_problems_of("[{say: {text: {en: 3}}}]"),
            "b.yaml:4:42: flows[0].nodes[0].say.text.en: expected a text, not a number; put it in "
            "quotes");
  EXPECT_EQ(text_problems_of("[{say: {text: {en: \"{{1 +}}\"}}}]").find("b.yaml:4:42: "), 0U);
  EXPECT_EQ(text_problems_of("[{say: {text: Hi, quickReplies: [{text: {de: Ja}}]}}]"),
            "b.yaml:4:63: flows[0].nodes[0].say.quickReplies[0].text: has no text for the primary "
            "locale 'en'; write one");
  EXPECT_EQ(text_problems_of("[{say: {file: {url: {en: \"javascript:1\"}}}}]"),
            "b.yaml:4:48: flows[0].nodes[0].say.file.url.en: expected a URL that begins with "
            "https://, http://, mailto: or tel:");
  EXPECT_EQ(text_problems_of("[]", "proactive: {journey: {after: 1m, text: {en: \"\", fr: Là}}}"),
            "b.yaml:5:45: proactive.journey.text.en: the text is empty; write one\n"
            "b.yaml:5:49: proactive.journey.text.fr: the project has no locale 'fr'; known are en, "
            "de, de-AT");
  EXPECT_EQ(text_problems_of("[{say: {en: Hello, de: Hallo}}]"),
            "b.yaml:4:30: flows[0].nodes[0].say: a mapping is the Node's config; write the texts "
            "by locale as `say: {text: {..}}`\n"
            "b.yaml:4:30: flows[0].nodes[0].say: 'text' is missing");
  EXPECT_EQ(text_problems_of("[{say: {text: {en: Hello, de: Hallo, de-AT: Servus}}}]"), "");
}

TEST(Locales, CheckWarnsOfAMissingOneAndOfUnknownOnesInConditions) {
  Texts lines;
  for (const auto& finding : tools::check_bundle(
           "conversed: 1\nproject: {name: T, locales: [en, de, de-AT, it]}\nflows:\n- name: Main\n"
           "  nodes:\n  - say: {text: {en: Hello, de: Hallo}}\n"
           "  - if: input.locale == \"fr\"\n    then: [{say: Salut}]\n"
           "  - switch: {on: input.locale, cases: {it: [{say: Ciao}], es: [{say: Hola}]}}\n"
           "endpoints: [{name: web, flow: Main}]\n",
           "b.yaml")) {
    lines.push_back(to_string(finding));
  }
  EXPECT_EQ(lines,
            (Texts{"b.yaml:6:17: warning: Flow 'Main', nodes[0]: the text has none for the locale "
                   "'it', whose users read that of 'en'",
                   "b.yaml:7:9: warning: Flow 'Main', nodes[1]: 'input.locale' is never 'fr'; it "
                   "is one of de, de-AT, en, it",
                   "b.yaml:9:5: warning: Flow 'Main', nodes[2]: 'input.locale' is never 'es'; it "
                   "is one of de, de-AT, en, it"}));
}

TEST(Locales, ExportsImportAgain) {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: T, locales: [en, de]}\nflows:\n- name: Main\n  nodes:\n"
      "  - say: {text: [{en: Hello, de: Hallo}], image: {url: {en: \"https://a.example\"}}}\n"
      "proactive: {journey: {after: 1m, text: {en: There., de: Da.}}}\n",
      "b.yaml", {});
  ASSERT_TRUE(bundle) << to_string(bundle.error());
  const auto again = load_bundle(write_bundle(*bundle).text, "again.yaml", {});
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->flows.front().definition, bundle->flows.front().definition);
  EXPECT_EQ(again->proactive, bundle->proactive);
  EXPECT_EQ(again->locales, bundle->locales);
}

TEST(Locales, StoredFlowOfOtherLocalesCompilesAndSpeaks) {
  const auto flow = Flow::compile(
      {{"name", "Main"}, {"nodes", {{{"say", {{"text", {{"fr", "Salut"}, {"it", "Ciao"}}}}}}}}});
  ASSERT_TRUE(flow) << to_string(flow.error());
  Conversation talk("- say: x");
  talk.flow = *flow;
  EXPECT_EQ(texts(talk.say("a")), Texts{"Salut"});
}

}  // namespace
}  // namespace conversed::flows
