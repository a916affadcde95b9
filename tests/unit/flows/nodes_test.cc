#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

TEST(SayNode, RendersItsTextAndGoesOn) {
  Conversation talk("- say: \"Hello {{input.text}}\"\n- say: {text: Bye, data: {n: \"{{1+1}}\"}}");
  const auto effects = talk.say("Ann");
  EXPECT_EQ(texts(effects), (Texts{"Hello Ann", "Bye"}));
  EXPECT_TRUE(effects->outputs[0].data.is_null());
  EXPECT_EQ(effects->outputs[1].data, (json{{"n", 2}}));
}

TEST(SayNode, GivesAnEmptyTextForAMissingValue) {
  Conversation talk("- say: \"{{input.data.a.b.c}}\"");
  EXPECT_EQ(texts(talk.say("x")), (Texts{""}));
}

TEST(SayNode, ExpandsALabelToTheTokensScript) {
  Conversation talk("- say: \"Welcome to {{shopName}}\"");
  talk.assets.tokens["shopName"] = "The Shop";
  EXPECT_EQ(texts(talk.say("x")), (Texts{"Welcome to The Shop"}));
}

TEST(SayNode, ChoosesAmongAlternativesByTheEventAlone) {
  Conversation talk("- say: [one, two, three]");
  std::set<std::string> seen;
  for (int i = 0; i < 60; ++i) seen.insert(texts(talk.say("x")).front());
  EXPECT_EQ(seen, (std::set<std::string>{"one", "two", "three"}));
}

TEST(SayNode, SendsQuickRepliesAsData) {
  Conversation talk("- say: {text: Hi, quickReplies: [Orders, {text: Help, value: help me}]}");
  const auto effects = talk.say("x");
  ASSERT_TRUE(effects);
  EXPECT_EQ(effects->outputs.at(0).data,
            json::parse(R"({"quickReplies":[{"text":"Orders","value":"Orders"},
                                            {"text":"Help","value":"help me"}]})"));
}

TEST(SayNode, ShowsButtonsCardsImagesAndFiles) {
  Conversation talk(
      "- say:\n    data: {theme: dark}\n    image: \"https://x.example/{{input.text}}.png\"\n"
      "    file: {url: \"https://x.example/a.pdf\", name: a}\n    cards:\n"
      "      - title: One\n        image: {url: \"https://x.example/1.png\", alt: first}\n"
      "        buttons: [Order, {text: Call, url: \"tel:+491234\"}]\n      - {title: Two, text: "
      "t}\n");
  const auto effects = talk.say("x");
  ASSERT_EQ(texts(effects), (Texts{""}));
  EXPECT_EQ(effects->outputs[0].data, json::parse(R"({"theme": "dark",
      "image": {"url": "https://x.example/x.png"},
      "file": {"url": "https://x.example/a.pdf", "name": "a"},
      "cards": [{"title": "One", "image": {"url": "https://x.example/1.png", "alt": "first"},
                 "buttons": [{"text": "Order", "value": "Order"},
                             {"text": "Call", "url": "tel:+491234"}]},
                {"title": "Two", "text": "t"}]})"));
}

TEST(SayNode, MakesButtonsAndCardsOfAnExpression) {
  Conversation talk(
      "- say:\n    text: a\n    quickReplies: \"{{input.data.list}}\"\n"
      "    cards: \"{{input.data.list.map(x => ({title: 'T' + x, image: null}))}}\"\n"
      "    image: \"{{input.data.image}}\"\n");
  const auto effects = talk.inject({{"list", {1, "b"}}});
  ASSERT_EQ(texts(effects), (Texts{"a"}));
  EXPECT_EQ(effects->outputs[0].data, json::parse(R"({
      "quickReplies": [{"text": "1", "value": 1}, {"text": "b", "value": "b"}],
      "cards": [{"title": "T1"}, {"title": "Tb"}]})"));
}

TEST(SayNode, FailsForPartsOfAnotherForm) {
  const auto error = [](const std::string& part, const json& value) {
    Conversation talk("- say: {text: a, " + part + ": \"{{input.data.v}}\"}\n");
    const auto effects = talk.inject({{"v", value}});
    return effects ? std::string() : effects.error().message;
  };
  const std::string node = "Flow 'Main', Node nodes[0] (say): expected ";
  const std::string link = "a URL that begins with https://, http://, mailto: or tel: as ";
  EXPECT_EQ(error("quickReplies", "a"), node + "a list as the buttons");
  EXPECT_EQ(error("quickReplies", json::parse(R"([{"value": 1}])")),
            node + "a text, or a mapping with a text, as a button");
  EXPECT_EQ(error("quickReplies", json::parse(R"([{"text": "a", "url": "javascript:x"}])")),
            node + link + "the url of a button");
  EXPECT_EQ(error("cards", json::parse(R"([{"text": "a"}])")),
            node + "a mapping with a title as a card");
  EXPECT_EQ(error("image", "data:text/html,x"), node + link + "the url of an image or file");
  EXPECT_EQ(error("file", json{{"name", "a"}}), node + link + "the url of an image or file");
}

TEST(QuestionNode, TakesOneOfItsQuickReplies) {
  Conversation talk(
      "- question:\n    text: size?\n    type: choice\n    storeIn: context.size\n"
      "    quickReplies: [Small, {text: Größe L, value: 3}, {text: Help, url: "
      "\"https://x.example\"}]\n"
      "    onNoAnswer: [{say: none}]\n- say: \"{{context.size}}\"\n");
  const auto answer = [&](const std::string& text) {
    EXPECT_EQ(texts(talk.say("hi")), (Texts{"size?"}));
    auto said = texts(talk.say(text));
    if (said == Texts{"size?"}) {
      talk.say("small");
      return std::string("asks again");
    }
    return said.back();
  };
  EXPECT_EQ(answer("small!"), "Small");
  EXPECT_EQ(answer("größe l"), "3");
  EXPECT_TRUE(talk.session.context["size"].is_number());
  EXPECT_EQ(answer("3"), "3");
  EXPECT_EQ(answer("Help"), "asks again");
  EXPECT_EQ(answer("smal"), "asks again");
  EXPECT_EQ(answer(""), "asks again");
}

TEST(IfNode, TakesOneWayAndGoesOnBehindBoth) {
  Conversation talk(
      "- if: input.text == \"a\"\n  then: [{say: A}]\n  else: [{say: B}]\n- say: end");
  EXPECT_EQ(texts(talk.say("a")), (Texts{"A", "end"}));
  EXPECT_EQ(texts(talk.say("b")), (Texts{"B", "end"}));
}

TEST(IfNode, TakesAConditionThatFailsForFalse) {
  Conversation talk("- if: context.no.such.thing\n  then: [{say: A}]\n- say: end");
  EXPECT_EQ(texts(talk.say("a")), (Texts{"end"}));
}

TEST(SwitchNode, ComparesTextsNumbersAndBooleans) {
  Conversation talk(
      "- switch: {on: input.data.v, cases: {\"yes\": [{say: Y}], \"2\": [{say: two}], "
      "\"true\": [{say: T}]}, default: [{say: D}]}\n- say: end");
  EXPECT_EQ(texts(talk.inject({{"v", "yes"}})), (Texts{"Y", "end"}));
  EXPECT_EQ(texts(talk.inject({{"v", 2}})), (Texts{"two", "end"}));
  EXPECT_EQ(texts(talk.inject({{"v", true}})), (Texts{"T", "end"}));
  EXPECT_EQ(texts(talk.inject({{"v", json::array()}})), (Texts{"D", "end"}));
  EXPECT_EQ(texts(talk.inject(json::object())), (Texts{"D", "end"}));
}

TEST(OnceNode, RunsItsNodesAtTheFirstPassOfASession) {
  Conversation talk("- once: [{say: first}]\n  else: [{say: again}]");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"first"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"again"}));
  talk.now += std::chrono::hours(2);
  EXPECT_EQ(texts(talk.say("x")), (Texts{"first"})) << "an expired session starts afresh";
}

TEST(ContextNodes, KeepTypesAndSeeEachOther) {
  Conversation talk(
      "- addToContext: {count: \"{{(context.count || 0) + 1}}\", cart.items: [a, "
      "\"{{input.text}}\"]}"
      "\n- say: \"{{context.count}}\"");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"1"}));
  EXPECT_EQ(texts(talk.say("y")), (Texts{"2"}));
  EXPECT_EQ(talk.session.context, json::parse(R"({"count":2,"cart":{"items":["a","y"]}})"));
}

TEST(ContextNodes, MakeAllValuesBeforeTheFirstIsWritten) {
  Conversation talk(
      "- addToContext: {a: 1, b: 2}\n"
      "- addToContext: {a: \"{{context.b}}\", b: \"{{context.a}}\"}");
  talk.say("x");
  EXPECT_EQ(talk.session.context, (json{{"a", 2}, {"b", 1}}));
}

TEST(ContextNodes, RemoveTheNamedValues) {
  Conversation talk("- addToContext: {a: 1, b: {c: 2, d: 3}}\n- removeFromContext: [a, b.c, nope]");
  talk.say("x");
  EXPECT_EQ(talk.session.context, json::parse(R"({"b":{"d":3}})"));
}

TEST(ContextNodes, ResetEmptiesTheContext) {
  Conversation talk("- addToContext: {a: 1}\n- resetContext: true\n- say: \"{{context.a}}.\"");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"."}));
  EXPECT_EQ(talk.session.context, json::object());
}

TEST(UpdateProfileNode, ChangesTheProfileAndNothingElseDoes) {
  Conversation talk(
      "- say: \"{{profile.name}}\"\n- if: input.text\n  then:\n"
      "    - updateProfile: {name: \"{{input.text}}\"}\n- say: \"{{profile.name}}\"");
  talk.profile.data = {{"name", "Bob"}};
  EXPECT_FALSE(talk.inject({{"a", 1}})->profile);
  const auto effects = talk.say("Ann");
  EXPECT_EQ(texts(effects), (Texts{"Bob", "Ann"}));
  ASSERT_TRUE(effects->profile);
  EXPECT_EQ(effects->profile->data, (json{{"name", "Ann"}}));
}

TEST(GoToNode, LoopsUntilTheTurnsLimit) {
  Conversation talk(
      "- id: top\n  addToContext: {n: \"{{(context.n || 0) + 1}}\"}\n"
      "- if: context.n < 5\n  then: [{goTo: top}]\n- say: \"{{context.n}}\"");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"5"}));
  Conversation endless("- id: top\n  say: x\n- goTo: top");
  const auto effects = endless.say("x");
  ASSERT_FALSE(effects);
  EXPECT_EQ(effects.error().code, model::Errc::too_large);
  EXPECT_EQ(effects.error().message,
            "Flow 'Main', Node top (say): runs more than 100 times in one Turn");
}

TEST(StopNode, EndsTheExecution) {
  Conversation talk("- say: a\n- stop: true\n- say: b");
  EXPECT_EQ(texts(talk.say("x")), (Texts{"a"}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"a"}));
}

TEST(WaitNode, GoesOnWithTheNextInput) {
  Conversation talk("- say: \"1 {{input.text}}\"\n- wait: true\n- say: \"2 {{input.text}}\"");
  EXPECT_EQ(texts(talk.say("a")), (Texts{"1 a"}));
  EXPECT_EQ(texts(talk.say("b")), (Texts{"2 b"}));
  EXPECT_EQ(texts(talk.say("c")), (Texts{"1 c"}));
}

TEST(QuestionNode, StoresTheAnswerAndGoesOn) {
  Conversation talk(
      "- question: {text: \"City?\", storeIn: context.city}\n- say: \"{{context.city}}!\"");
  EXPECT_EQ(texts(talk.say("hi")), (Texts{"City?"}));
  EXPECT_EQ(texts(talk.say("Paris")), (Texts{"Paris!"}));
  EXPECT_EQ(texts(talk.say("hi")), (Texts{"City?"}));
}

TEST(QuestionNode, AsksAgainAndGivesUpWithNull) {
  Conversation talk(
      "- addToContext: {n: old}\n"
      "- question: {text: \"How many?\", type: number, storeIn: context.n, "
      "reprompt: \"Sorry?\", maxAttempts: 2, onNoAnswer: [{say: never mind}]}\n"
      "- say: end");
  EXPECT_EQ(texts(talk.say("hi")), (Texts{"How many?"}));
  EXPECT_EQ(texts(talk.say("many")), (Texts{"Sorry?"}));
  EXPECT_EQ(texts(talk.say("lots")), (Texts{"never mind", "end"}));
  EXPECT_TRUE(talk.session.context["n"].is_null());
}

TEST(QuestionNode, EndsTheExecutionAfterTheLastAttemptWithoutABranch) {
  const std::string ask = "question: {text: \"How many?\", type: number, storeIn: context.n, ";
  Conversation talk("- executeFlow: Sub\n- say: never");
  talk.library.flows["Sub"] = {
      named_flow("Sub", "  - {id: ask, " + ask + "maxAttempts: 2}}\n  - say: never")};
  EXPECT_EQ(texts(talk.say("hi")), (Texts{"How many?"}));
  EXPECT_EQ(texts(talk.say("many")), (Texts{"How many?"}));
  EXPECT_EQ(texts(talk.say("lots")), (Texts{}));
  EXPECT_TRUE(talk.session.context.at("n").is_null());
  EXPECT_EQ(texts(talk.say("hi")), (Texts{"How many?"})) << "the Flow starts at its beginning";
}

TEST(QuestionNode, GoesOnWithNullByAnEmptyBranch) {
  Conversation talk(
      "- question: {text: q, type: number, storeIn: context.n, maxAttempts: 1, onNoAnswer: []}\n"
      "- say: \"{{context.n === null}}\"");
  EXPECT_EQ(texts(talk.say("hi")), (Texts{"q"}));
  EXPECT_EQ(texts(talk.say("many")), (Texts{"true"}));
}

TEST(QuestionNode, ReadsNumbersWholeOrNotAtAll) {
  const std::vector<std::pair<std::string, json>> cases{{"12", 12},
                                                        {" +7 ", 7},
                                                        {"-3.5", -3.5},
                                                        {"1e3", 1000.0},
                                                        {"12 pieces", nullptr},
                                                        {"", nullptr},
                                                        {"+-1", nullptr},
                                                        {"1e999", nullptr},
                                                        {"inf", nullptr},
                                                        {"0x10", nullptr},
                                                        {"99999999999999999999", 1e20}};
  for (const auto& [text, expected] : cases) {
    Conversation talk("- question: {text: q, type: number, storeIn: context.n, maxAttempts: 1}");
    talk.say("hi");
    talk.say(text);
    EXPECT_EQ(talk.session.context["n"], expected) << text;
  }
}

TEST(QuestionNode, ReadsYesAndNo) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, json>>{
           {"Yes!", true}, {" NO. ", false}, {"nein", false}, {"ja", true}, {"maybe", nullptr}}) {
    Conversation talk("- question: {text: q, type: yesNo, storeIn: profile.ok, maxAttempts: 1}");
    talk.say("hi");
    talk.say(text);
    EXPECT_EQ(talk.profile.data["ok"], expected) << text;
  }
  Conversation own(
      "- question: {text: q, type: yesNo, yes: [Si], no: [No], storeIn: context.ok, "
      "maxAttempts: 1}");
  own.say("hi");
  own.say("si");
  EXPECT_EQ(own.session.context["ok"], true);
}

TEST(SleepNode, EndsTheTurnAndGoesOnWithItsTimer) {
  Conversation talk("- say: \"a {{input.text}}\"\n- sleep: 5s\n- say: \"b {{input.text}}\"");
  const auto effects = talk.say("x");
  EXPECT_EQ(texts(effects), (Texts{"a x"}));
  ASSERT_TRUE(effects->call && effects->call->due_at);
  EXPECT_EQ(*effects->call->due_at, talk.now + std::chrono::seconds(5));
  EXPECT_FALSE(effects->call->http);
  const auto later = talk.fire_timer();
  EXPECT_EQ(texts(later), (Texts{"b x"}));
  EXPECT_EQ(later->outputs[0].id, "event1-2") << "numbers continue over the Turns of an execution";
  EXPECT_EQ(later->outputs[0].seq, 2);
  EXPECT_EQ(later->outputs[0].input_id, "event1");
}

TEST(LogNode, WritesALineAndCutsItBetweenCharacters) {
  Conversation talk("- log: \"{{'ä'.repeat(600)}}\"\n- log: \"{{input.text}}\"");
  const auto effects = talk.say("x");
  ASSERT_TRUE(effects);
  EXPECT_EQ(effects->log.at(0).size(), 1000U);
  EXPECT_EQ(effects->log.at(1), "x");
}

constexpr auto connections =
    "connections: [{name: crm, type: httpBearer, fields: {token: secret}}]\n";

TEST(HttpRequestNode, EndsTheTurnWithACallAndStoresItsAnswer) {
  Conversation talk(
      "- httpRequest: {connection: crm, method: POST, url: \"https://x.example/{{input.text}}\", "
      "headers: {X-A: \"{{input.userId}}\"}, body: {q: \"{{input.data}}\"}, storeIn: "
      "context.order, "
      "timeout: 8s, retries: 2}\n- say: \"{{context.order.id}}\"",
      connections);
  talk.assets.connection_ids["crm"] = "connectionid";
  const auto effects = talk.say("a b\r\n");
  ASSERT_TRUE(effects) << effects.error().message;
  ASSERT_TRUE(effects->call && effects->call->http);
  const auto& call = *effects->call->http;
  EXPECT_EQ(call.method, "POST");
  EXPECT_EQ(call.url, "https://x.example/a%20b%0D%0A");
  EXPECT_EQ(call.body, R"({"q":{}})");
  EXPECT_EQ(call.headers, (std::vector<std::pair<std::string, std::string>>{
                              {"X-A", "ann"}, {"Content-Type", "application/json"}}));
  EXPECT_EQ(call.connection_id, "connectionid");
  EXPECT_EQ(call.timeout, std::chrono::seconds(8));
  EXPECT_EQ(call.retries, 2);
  EXPECT_EQ(call.idempotency_key, "event1-c1");
  EXPECT_EQ(effects->call->id, "event1-c1");
  EXPECT_EQ(texts(talk.answer_call({{"id", 7}})), (Texts{"7"}));
  EXPECT_EQ(talk.session.context["order"], (json{{"id", 7}}));
}

TEST(HttpRequestNode, TakesTheErrorBranchWhenTheCallFails) {
  Conversation talk(
      "- httpRequest: {url: \"http://x.example\", onError: [{say: "
      "\"{{input.error.code}} {{input.error.status}} {{input.error.message}}\"}]}\n"
      "- say: \"end {{input.text}}\"");
  talk.say("x");
  EXPECT_EQ(texts(talk.fail_call("status", "answered 500", 500)),
            (Texts{"status 500 answered 500", "end x"}));
}

TEST(HttpRequestNode, FailsTheExecutionWithoutAnErrorBranch) {
  Conversation talk("- httpRequest: {url: \"http://x.example\"}");
  talk.say("x");
  const auto effects = talk.fail_call("timeout", "no answer in 10s", 0);
  ASSERT_FALSE(effects);
  EXPECT_EQ(effects.error().code, model::Errc::bad_upstream);
  EXPECT_EQ(effects.error().message,
            "Flow 'Main', Node nodes[0] (httpRequest): timeout: no answer in 10s");
}

TEST(HttpRequestNode, FailsAtOnceWhenItsConnectionIsDeleted) {
  const std::string node = "- httpRequest: {connection: crm, url: \"http://x.example\"";
  Conversation talk(node + "}", connections);
  const auto effects = talk.say("x");
  ASSERT_FALSE(effects);
  EXPECT_NE(effects.error().message.find("the Connection 'crm' does not exist any more"),
            std::string::npos);
  Conversation caught(node + ", onError: [{say: \"{{input.error.code}}\"}]}", connections);
  EXPECT_EQ(texts(caught.say("x")), (Texts{"connection_deleted"}));
}

TEST(HttpRequestNode, RefusesAnInvalidUrlOrHeader) {
  Conversation url(
      "- httpRequest: {url: \"{{input.text}}\", onError: [{say: \"{{input.error.code}}\"}]}");
  for (const std::string bad :
       {"", "ftp://x", "http://", "http://u:p@x/", "//x", "http://x:99999/"}) {
    EXPECT_EQ(texts(url.say(bad)), (Texts{"invalid_url"})) << bad;
  }
  Conversation header(
      "- httpRequest: {url: \"http://x\", headers: {A: \"{{input.text}}\"}, "
      "onError: [{say: \"{{input.error.code}}\"}]}");
  EXPECT_EQ(texts(header.say("a\r\nHost: evil")), (Texts{"invalid_header"}));
}

TEST(HttpRequestNode, NoValueClimbsOutOfItsPlaceInThePath) {
  const std::string before = "- httpRequest: {url: \"https://crm.example.com/orders/";
  const std::string behind = "\", onError: [{say: \"{{input.error.code}}\"}]}";
  Conversation bare(before + "{{input.text}}" + behind);
  for (const std::string bad : {"../admin/users", "..", ".", "%2e%2E/admin", "..\\admin",
                                "a/..%2fadmin", "17?admin=true", "17#"}) {
    EXPECT_EQ(texts(bare.say(bad)), (Texts{"invalid_url"})) << bad;
  }
  Conversation encoded(before + "{{encodeURIComponent(input.text)}}/items" + behind);
  for (const std::string bad : {"..", ".", "../admin", "%2e%2e", "..;x"}) {
    EXPECT_EQ(texts(encoded.say(bad)), (Texts{"invalid_url"})) << bad;
  }
  EXPECT_EQ(encoded.say("a?b#c/d..")->call->http->url,
            "https://crm.example.com/orders/a%3Fb%23c%2Fd../items");
}

TEST(HttpRequestNode, NoValueAddsASegmentToThePath) {
  const std::string failed = ", onError: [{say: \"{{input.error.code}}\"}]}";
  Conversation bare("- httpRequest: {url: \"https://crm.example.com/orders/{{input.text}}\"" +
                    failed);
  EXPECT_EQ(texts(bare.say("1/cancel")), (Texts{"invalid_url"}));
  EXPECT_EQ(texts(bare.say("/cancel")), (Texts{"invalid_url"}));
  EXPECT_EQ(bare.say("1")->call->http->url, "https://crm.example.com/orders/1");
  Conversation encoded(
      "- httpRequest: {url: "
      "\"https://crm.example.com/orders/{{encodeURIComponent(input.text)}}\"}");
  EXPECT_EQ(encoded.say("1/cancel")->call->http->url, "https://crm.example.com/orders/1%2Fcancel");
}

TEST(HttpRequestNode, AValueMayBeTheWholeUrl) {
  Conversation whole("- httpRequest: {url: \"{{input.text}}\"}");
  EXPECT_EQ(whole.say("https://crm.example.com/orders/1?a=b&c=d")->call->http->url,
            "https://crm.example.com/orders/1?a=b&c=d");
  Conversation begin("- httpRequest: {url: \"{{input.text}}/items/{{input.data.id}}\"}");
  EXPECT_EQ(begin.say("https://crm.example.com/orders")->call->http->url,
            "https://crm.example.com/orders/items/");
}

TEST(HttpRequestNode, NoValueAddsAParameterToTheQuery) {
  Conversation talk(
      "- httpRequest: {url: \"https://crm.example.com/?id={{input.text}}&admin=false\", onError: "
      "[{say: \"{{input.error.code}}\"}]}");
  EXPECT_EQ(texts(talk.say("1&admin=true")), (Texts{"invalid_url"}));
  EXPECT_EQ(texts(talk.say("1#")), (Texts{"invalid_url"}));
  EXPECT_EQ(talk.say("../a?b")->call->http->url, "https://crm.example.com/?id=../a?b&admin=false");
  Conversation whole("- httpRequest: {url: \"https://crm.example.com/?{{input.text}}\"}");
  EXPECT_EQ(whole.say("a=1&b=2")->call->http->url, "https://crm.example.com/?a=1&b=2");
}

TEST(HttpRequestNode, GivesEachCallOfAnExecutionItsOwnKey) {
  Conversation talk(
      "- httpRequest: {url: \"http://x.example/1\"}\n"
      "- httpRequest: {url: \"http://x.example/2\"}\n- say: done");
  EXPECT_EQ(talk.say("x")->call->id, "event1-c1");
  EXPECT_EQ(talk.answer_call(nullptr)->call->id, "event1-c2");
  EXPECT_EQ(texts(talk.answer_call(nullptr)), (Texts{"done"}));
}

}  // namespace
}  // namespace conversed::flows
