// Nodes that ask knowledge stores and language models. agent_test.cc tests the agent.
#include "flows/nodes/json_schema.h"
#include "tests/unit/flows/model_talk.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

// --- searchKnowledge

constexpr const char* search =
    "- searchKnowledge:\n"
    "    store: Manual\n"
    "    sources: [FAQ]\n"
    "    limit: 2\n"
    "    storeIn: context.hits\n"
    "    onFound: [{say: \"{{context.hits[0].text}}\"}]\n"
    "    onNothing: [{say: nothing}]\n"
    "    onError: [{say: \"{{input.error.code}}\"}]\n"
    "- say: after";

TEST(SearchKnowledgeNode, AsksOutsideTheTurnAndStoresTheHits) {
  Talk talk(search);
  const auto asked = talk.say("returns?");
  ASSERT_TRUE(asked && asked->call && asked->call->search);
  EXPECT_FALSE(asked->call->http);
  EXPECT_FALSE(asked->call->due_at);
  EXPECT_EQ(asked->call->search->store, "Manual");
  EXPECT_EQ(asked->call->search->sources, Texts{"FAQ"});
  EXPECT_EQ(asked->call->search->text, "returns?");
  EXPECT_EQ(asked->call->search->limit, 2U);
  EXPECT_EQ(texts(talk.hits({{{"text", "14 days {{input.text}}"}}})),
            (Texts{"14 days {{input.text}}", "after"}))
      << "texts of hits are not evaluated";
  EXPECT_EQ(talk.session.context["hits"][0]["text"], "14 days {{input.text}}");
}

TEST(SearchKnowledgeNode, GoesItsWaysWithoutHitsAndOnErrors) {
  Talk talk(search);
  (void)talk.say("x");
  EXPECT_EQ(texts(talk.hits(json::array())), (Texts{"nothing", "after"}));
  EXPECT_EQ(talk.session.context["hits"], json::array());
  (void)talk.say("x");
  EXPECT_EQ(texts(talk.fail_call("knowledge_deleted", "gone", 0)),
            (Texts{"knowledge_deleted", "after"}));
  (void)talk.say("x");
  EXPECT_EQ(texts(talk.answer_call("no hits at all")), (Texts{"nothing", "after"}));
  Talk strict("- searchKnowledge: {store: Manual, query: q, storeIn: context.h}");
  (void)strict.say("x");
  EXPECT_EQ(strict.fail_call("knowledge_deleted", "gone", 0).error().code,
            model::Errc::bad_upstream);
}

TEST(SearchKnowledgeNode, CutsLongQuestions) {
  Talk talk("- searchKnowledge: {store: Manual, storeIn: context.h}");
  const auto asked = talk.say(std::string(10'000, 'x'));
  EXPECT_EQ(asked->call->search->text.size(), 4096U);
}

Texts problems(const std::string& nodes) {
  const auto bundle =
      load_bundle(std::string("conversed: 1\nproject: {name: T}\n") + models_project +
                      "flows: [{name: F, nodes: [" + nodes + "]}]\n",
                  "t.yaml", {});
  Texts list;
  if (bundle) return list;
  for (const auto& problem : bundle.error()) list.push_back(problem.message);
  return list;
}

TEST(KnowledgeAndModelNodes, NamesAreCheckedWithTheBundle) {
  EXPECT_EQ(problems("{searchKnowledge: {store: Manul, storeIn: context.h}}"),
            Texts{"there is no knowledge store 'Manul'; did you mean 'Manual'?"});
  EXPECT_EQ(problems("{searchKnowledge: {store: Manual, sources: [FAX], storeIn: context.h}}"),
            Texts{"the knowledge store 'Manual' has no source 'FAX'; did you mean 'FAQ'?"});
  EXPECT_EQ(problems("{searchKnowledge: {store: Manual, sorces: [FAQ]}}").size(), 2U);
  EXPECT_EQ(problems("{llmPrompt: {connection: crm, prompt: p}}"),
            Texts{"the Connection 'crm' is not of type llm; name one that is"});
  EXPECT_EQ(problems("{llmPrompt: {connection: modle, prompt: p}}"),
            Texts{"there is no Connection 'modle'; did you mean 'model'?"});
  EXPECT_EQ(problems("{httpRequest: {connection: model, url: \"https://x.example.com\"}}"),
            Texts{"the Connection 'model' leads to a language model; use llmPrompt or aiAgent"});
  EXPECT_EQ(problems("{llmPrompt: {connection: model, prompt: p, options: {messages: []}}}"),
            Texts{"'messages' is set by the Node; remove it"});
}

TEST(KnowledgeAndModelNodes, ToolsAreCheckedWithTheBundle) {
  const auto agent = [](const std::string& rest) {
    return problems("{aiAgent: {connection: model, instructions: i, " + rest + "}}");
  };
  EXPECT_EQ(agent("tools: [{name: a, description: d}]"), Texts{});
  EXPECT_EQ(agent("tools: [{name: a b, description: d}]").size(), 1U);
  EXPECT_EQ(agent("tools: [{name: searchKnowledge, description: d}]").size(), 1U);
  EXPECT_EQ(agent("tools: [{name: a, description: d}, {name: a, description: d}]"),
            Texts{"the tool 'a' is used twice; rename one"});
  EXPECT_EQ(agent("tools: [{name: a, description: d, do: [{sya: x}]}]").size(), 1U);
  EXPECT_EQ(agent("tools: [{name: a, description: d, parameters: {type: text}}]"),
            Texts{"'type' is one of array, boolean, integer, null, number, object and string"});
  EXPECT_EQ(agent("tools: [{name: a, description: d, parameters: {type: string}}]"),
            Texts{"the type of the parameters must be object"});
  EXPECT_EQ(agent("tools: {}").size(), 1U);
  EXPECT_EQ(agent("knowledge: {store: Nowhere}").size(), 1U);
  EXPECT_EQ(agent("knowledge: {}").size(), 1U);
  EXPECT_EQ(agent("knowledge: [{store: Manual}, {store: Prices}]"), Texts{});
  EXPECT_EQ(agent("knowledge: [{store: Manual}, {store: Manual}]"),
            Texts{"the knowledge store 'Manual' is used twice; rename one"});
  EXPECT_EQ(agent("knowledge: [{store: Manual}, {store: Nowhere}]").size(), 1U);
}

// --- llmPrompt

TEST(LlmPromptNode, AsksTheConnectionsModelAndSaysTheAnswer) {
  Talk talk(
      "- llmPrompt: {connection: model, instructions: \"Be {{input.text}}.\", prompt: "
      "\"{{input.text}}\", maxTokens: 7, options: {temperature: 0.2}, timeout: 3s, retries: 4}");
  const auto asked = talk.say("kind");
  ASSERT_TRUE(asked && asked->call && asked->call->http);
  const auto& call = *asked->call->http;
  EXPECT_TRUE(call.to_model);
  EXPECT_EQ(call.method, "POST");
  EXPECT_EQ(call.url, "/chat/completions");
  EXPECT_EQ(call.connection_id, "model-id");
  EXPECT_EQ(call.timeout, std::chrono::seconds(3));
  EXPECT_EQ(call.retries, 4);
  EXPECT_EQ(body_of(asked), (json{{"messages",
                                   {{{"role", "system"}, {"content", "Be kind."}},
                                    {{"role", "user"}, {"content", "kind"}}}},
                                  {"max_tokens", 7},
                                  {"temperature", 0.2}}));
  EXPECT_EQ(texts(talk.model_says("Hello {{context.secret}} ${x}")),
            (Texts{"Hello {{context.secret}} ${x}"}))
      << "the model's text is not evaluated";
}

TEST(LlmPromptNode, StoresTextsAndJson) {
  Talk talk("- llmPrompt: {connection: model, model: big, prompt: p, storeIn: context.a}");
  EXPECT_EQ(body_of(talk.say("x"))["model"], "big");
  EXPECT_EQ(texts(talk.model_says("yes")), Texts{});
  EXPECT_EQ(talk.session.context["a"], "yes");
  Talk wants(
      "- llmPrompt: {connection: model, prompt: p, json: true, storeIn: context.a, onError: "
      "[{say: \"{{input.error.code}}\"}]}");
  EXPECT_EQ(body_of(wants.say("x"))["response_format"]["type"], "json_object");
  EXPECT_EQ(texts(wants.model_says("```json\n{\"n\": 1}\n```")), Texts{});
  EXPECT_EQ(wants.session.context["a"], (json{{"n", 1}}));
  for (const std::string bad :
       {"sure: {\"n\": 1}", "```", "``````", "```\n```", "{\"a\":1,\"a\":2}"}) {
    (void)wants.say("x");
    EXPECT_EQ(texts(wants.model_says(bad)), (Texts{"invalid_answer"})) << bad;
  }
  (void)wants.say("x");
  EXPECT_EQ(texts(wants.model_says(std::string(40, '[') + std::string(40, ']'))),
            (Texts{"invalid_answer"}));
}

TEST(LlmPromptNode, CutsLongAnswersBetweenCharacters) {
  Talk talk("- llmPrompt: {connection: model, prompt: p, storeIn: context.a, say: true}");
  (void)talk.say("x");
  std::string answer = "x";
  for (int i = 0; i < 20'000; ++i) answer += "é";
  const auto said = texts(talk.model_says(answer));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said.front().size(), 16U * 1024 - 1);
  EXPECT_TRUE(answer.starts_with(said.front()));
  EXPECT_EQ(talk.session.context["a"], said.front());
}

TEST(LlmPromptNode, AnInvalidAnswerIsAnError) {
  Talk talk(
      "- llmPrompt: {connection: model, prompt: p, onError: [{say: \"{{input.error.code}}\"}]}");
  for (const json& body :
       {json(), json("x"), json::array(), json::object(), json{{"choices", json::array()}},
        json{{"choices", {1}}}, json{{"choices", {json::object()}}},
        json{{"choices", {{{"message", 1}}}}}, json{{"choices", {{{"message", {{"content", 5}}}}}}},
        json{{"choices", {{{"message", {{"content", ""}}}}}}},
        json{{"choices", {{{"message", {{"tool_calls", {{{"function", 1}}}}}}}}}}}) {
    (void)talk.say("x");
    EXPECT_EQ(texts(talk.answer_call(body)), (Texts{"invalid_answer"})) << body;
  }
  (void)talk.say("x");
  EXPECT_EQ(
      texts(talk.answer_call(
          {{"choices", {{{"message", {{"content", {{{"type", "text"}, {"text", "a"}}, 7}}}}}}}})),
      (Texts{"a"}))
      << "content in parts";
  (void)talk.say("x");
  EXPECT_EQ(texts(talk.fail_call("status", "429", 429)), (Texts{"status"}));
  talk.assets.connection_ids.clear();
  EXPECT_EQ(texts(talk.say("x")), (Texts{"connection_deleted"}));
}

// --- JSON Schema

TEST(JsonSchema, SaysWhereAValueDoesNotFit) {
  const json schema = json::parse(R"({"type": "object", "required": ["id"],
    "additionalProperties": false, "properties": {
      "id": {"type": "string", "minLength": 2, "maxLength": 3},
      "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 5},
      "kind": {"enum": ["a", 1]}, "only": {"const": true},
      "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "boolean"}}}})");
  ASSERT_FALSE(schema_problem(schema));
  const std::vector<std::pair<const char*, std::optional<std::string>>> rows{
      {R"({"id": "äö"})", {}},
      {R"({"id": "ab", "n": 2.0, "kind": 1, "only": true, "list": [true]})", {}},
      {R"({"id": "ab", "n": null})", {}},
      {R"([])", "expected object"},
      {R"({})", "'id' is missing"},
      {R"({"id": "abcd"})", "id: expected a length of 3 or less"},
      {R"({"id": "a"})", "id: expected a length of 2 or more"},
      {R"({"id": "ab", "n": 1.5})", R"(n: expected one of ["integer","null"])"},
      {R"({"id": "ab", "n": 0})", "n: expected 1 or more"},
      {R"({"id": "ab", "n": 6})", "n: expected 5 or less"},
      {R"({"id": "ab", "kind": "b"})", R"(kind: expected one of ["a",1])"},
      {R"({"id": "ab", "only": 1})", "only: expected true"},
      {R"({"id": "ab", "list": []})", "list: expected a length of 1 or more"},
      {R"({"id": "ab", "list": [true, 1]})", "list[1]: expected boolean"},
      {R"({"id": "ab", "other": 1})", "there is no 'other'"}};
  for (const auto& [value, wrong] : rows) EXPECT_EQ(misfit(json::parse(value), schema), wrong);
  for (const char* bad : {"1", R"({"type": "text"})", R"({"type": []})", R"({"required": "id"})",
                          R"({"properties": []})", R"({"properties": {"a": 1}})",
                          R"({"items": {"type": 5}})", R"({"minLength": -1})", R"({"enum": []})"}) {
    EXPECT_TRUE(schema_problem(json::parse(bad))) << bad;
  }
}

}  // namespace
}  // namespace conversed::flows
