// Nodes that ask knowledge and language models.
#include "flows/nodes/agent_memory.h"
#include "flows/nodes/json_schema.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr const char* project =
    "connections:\n"
    "- {name: model, type: llm, fields: {baseUrl: \"https://llm.example.com/v1\"}}\n"
    "- {name: crm, type: httpBearer, fields: {token: t}}\n"
    "knowledgeStores: [{name: Manual, sources: [{name: FAQ, chunks: [{text: a}]}]}]\n";

struct Talk : Conversation {
  explicit Talk(const std::string& nodes) : Conversation(nodes, project) {
    assets.connection_ids = {{"model", "model-id"}};
  }

  Result<model::Effects> hits(const json& list) { return answer_call({{"hits", list}}); }
  Result<model::Effects> model_says(const std::string& text, std::int64_t tokens = 10) {
    return model_answers({{"role", "assistant"}, {"content", text}}, tokens);
  }
  Result<model::Effects> model_calls(const std::vector<std::pair<std::string, std::string>>& tools,
                                     std::int64_t tokens = 10) {
    json calls = json::array();
    for (const auto& [name, arguments] : tools) {
      calls.push_back({{"id", "id-" + name},
                       {"type", "function"},
                       {"function", {{"name", name}, {"arguments", arguments}}}});
    }
    return model_answers({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", calls}},
                         tokens);
  }
  Result<model::Effects> model_answers(const json& message, std::int64_t tokens) {
    auto made = event(model::EventType::call_result);
    made.result = model::CallResult{.call_id = session.execution->pending_call_id,
                                    .status = 200,
                                    .body = {{"choices", {{{"message", message}}}}},
                                    .error_code = "",
                                    .error_message = "",
                                    .model_tokens = tokens};
    return take(made);
  }
};

json body_of(const Result<model::Effects>& effects) {
  if (!effects || !effects->call || !effects->call->http) return nullptr;
  return json::parse(effects->call->http->body);
}
json messages_of(const Result<model::Effects>& effects) {
  const json body = body_of(effects);
  return body.is_object() ? body["messages"] : json("none");
}

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
      << "what is found is not evaluated";
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
  const auto bundle = load_bundle(std::string("conversed: 1\nproject: {name: T}\n") + project +
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
            Texts{"the Connection 'crm' is not of type llm"});
  EXPECT_EQ(problems("{llmPrompt: {connection: modle, prompt: p}}"),
            Texts{"there is no Connection 'modle'; did you mean 'model'?"});
  EXPECT_EQ(
      problems("{httpRequest: {connection: model, url: \"https://x.example.com\"}}"),
      Texts{"the Connection 'model' leads to a language model; llmPrompt and aiAgent take it"});
  EXPECT_EQ(problems("{llmPrompt: {connection: model, prompt: p, options: {messages: []}}}"),
            Texts{"'messages' can't be set here"});
}

TEST(KnowledgeAndModelNodes, ToolsAreCheckedWithTheBundle) {
  const auto agent = [](const std::string& rest) {
    return problems("{aiAgent: {connection: model, instructions: i, " + rest + "}}");
  };
  EXPECT_EQ(agent("tools: [{name: a, description: d}]"), Texts{});
  EXPECT_EQ(agent("tools: [{name: a b, description: d}]").size(), 1U);
  EXPECT_EQ(agent("tools: [{name: searchKnowledge, description: d}]").size(), 1U);
  EXPECT_EQ(agent("tools: [{name: a, description: d}, {name: a, description: d}]"),
            Texts{"the tool 'a' stands twice"});
  EXPECT_EQ(agent("tools: [{name: a, description: d, do: [{sya: x}]}]").size(), 1U);
  EXPECT_EQ(agent("tools: [{name: a, description: d, parameters: {type: text}}]"),
            Texts{"'type' is one of array, boolean, integer, null, number, object and string"});
  EXPECT_EQ(agent("tools: [{name: a, description: d, parameters: {type: string}}]"),
            Texts{"the parameters' type is object"});
  EXPECT_EQ(agent("tools: {}").size(), 1U);
  EXPECT_EQ(agent("knowledge: {store: Nowhere}").size(), 1U);
  EXPECT_EQ(agent("knowledge: {}").size(), 1U);
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
      << "what a model says is not evaluated";
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

TEST(LlmPromptNode, WhateverIsNoAnswerIsAnError) {
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

// --- aiAgent

constexpr const char* agent =
    "- aiAgent:\n"
    "    connection: model\n"
    "    instructions: You help.\n"
    "    memory: 6\n"
    "    maxTurns: 3\n"
    "    tokenBudget: 100\n"
    "    knowledge: {store: Manual, limit: 2}\n"
    "    tools:\n"
    "    - name: status\n"
    "      description: Tells how far an order is.\n"
    "      parameters: {type: object, properties: {id: {type: string}}, required: [id]}\n"
    "      storeIn: context.asked\n"
    "      do:\n"
    "      - say: \"looking up {{input.tool.arguments.id}}\"\n"
    "      - if: input.tool.arguments.id == \"A-1\"\n"
    "        then: [{addToContext: {state: shipped}}]\n"
    "        else: [{addToContext: {state: unknown}}]\n"
    "      result: {state: \"{{context.state}}\"}\n"
    "    - name: confirm\n"
    "      description: Asks whether that is so.\n"
    "      do: [{question: {text: \"Sure?\", type: yesNo, storeIn: context.sure}}]\n"
    "      result: \"{{context.sure}}\"\n"
    "    - {name: now, description: Tells the time., result: \"{{input.currentTime}}\"}\n"
    "    onError: [{say: \"{{input.error.code}}\"}]\n"
    "- say: after";

TEST(AiAgentNode, AnswersAndRemembers) {
  Talk talk(agent);
  const auto asked = talk.say("Hello");
  EXPECT_EQ(messages_of(asked), (json{{{"role", "system"}, {"content", "You help."}},
                                      {{"role", "user"}, {"content", "Hello"}}}));
  const json tools = body_of(asked)["tools"];
  ASSERT_EQ(tools.size(), 4U);
  EXPECT_EQ(tools[0]["function"]["name"], "status");
  EXPECT_EQ(tools[0]["function"]["parameters"]["required"], json{"id"});
  EXPECT_EQ(tools[3]["function"]["name"], "searchKnowledge");
  EXPECT_EQ(texts(talk.model_says("Hi {{context.x}}")), (Texts{"Hi {{context.x}}", "after"}));
  EXPECT_EQ(messages_of(talk.say("Again")),
            (json{{{"role", "system"}, {"content", "You help."}},
                  {{"role", "user"}, {"content", "Hello"}},
                  {{"role", "assistant"}, {"content", "Hi {{context.x}}"}},
                  {{"role", "user"}, {"content", "Again"}}}));
}

TEST(AiAgentNode, RunsToolsAsBranchesAndTellsTheirResults) {
  Talk talk(agent);
  (void)talk.say("Where are A-1 and B-2?");
  const auto after =
      talk.model_calls({{"status", R"({"id":"A-1"})"}, {"now", ""}, {"status", R"({"id":"B-2"})"}});
  EXPECT_EQ(texts(after), (Texts{"looking up A-1", "looking up B-2"}));
  const json messages = messages_of(after);
  ASSERT_EQ(messages.size(), 6U);
  EXPECT_EQ(messages[2]["tool_calls"].size(), 3U);
  EXPECT_EQ(messages[2]["tool_calls"][0]["function"]["arguments"], R"({"id":"A-1"})");
  EXPECT_EQ(messages[3], (json{{"role", "tool"},
                               {"tool_call_id", "id-status"},
                               {"content", R"({"state":"shipped"})"}}));
  EXPECT_EQ(messages[4]["content"], "2027-01-15T08:00:00.123Z");
  EXPECT_EQ(messages[5]["content"], R"({"state":"unknown"})");
  EXPECT_EQ(talk.session.context["asked"], (json{{"id", "B-2"}}));
  EXPECT_EQ(texts(talk.model_says("Shipped.")), (Texts{"Shipped.", "after"}));
}

TEST(AiAgentNode, TellsTheModelWhatIsWrongWithItsCalls) {
  Talk talk(agent);
  (void)talk.say("x");
  const auto after = talk.model_calls({{"nothing", "{}"},
                                       {"status", "{\"id\": "},
                                       {"status", R"({"id":7})"},
                                       {"status", "{}"},
                                       {"status", "[]"},
                                       {"searchKnowledge", "{}"}});
  Texts told;
  for (const auto& message : messages_of(after)) {
    if (message["role"] == "tool") told.push_back(message["content"]);
  }
  EXPECT_EQ(told, (Texts{"There is no such tool.", "The arguments are no JSON.",
                         "The arguments do not fit: id: expected string",
                         "The arguments do not fit: 'id' is missing",
                         "The arguments do not fit: expected object",
                         "The arguments do not fit: 'query' is missing"}));
  EXPECT_EQ(texts(after), Texts{}) << "no tool ran";
}

TEST(AiAgentNode, SearchesKnowledge) {
  Talk talk(agent);
  (void)talk.say("x");
  const auto asked = talk.model_calls({{"searchKnowledge", R"({"query":"returns"})"}});
  ASSERT_TRUE(asked && asked->call && asked->call->search);
  EXPECT_EQ(asked->call->search->text, "returns");
  EXPECT_EQ(asked->call->search->limit, 2U);
  const auto told = talk.hits({{{"text", "14 days"}}});
  EXPECT_EQ(messages_of(told).back()["content"], R"([{"text":"14 days"}])");
  const auto again = talk.model_calls({{"searchKnowledge", R"({"query":"y"})"}});
  ASSERT_TRUE(again && again->call && again->call->search);
  EXPECT_EQ(messages_of(talk.fail_call("knowledge_deleted", "gone", 0)).back()["content"],
            "The search failed.");
}

TEST(AiAgentNode, AToolMayAskTheUser) {
  Talk talk(agent);
  (void)talk.say("Cancel it");
  EXPECT_EQ(texts(talk.model_calls({{"confirm", "{}"}})), (Texts{"Sure?"}));
  EXPECT_FALSE(talk.session.busy());
  const auto told = talk.say("yes");
  EXPECT_EQ(messages_of(told).back()["content"], "true");
  EXPECT_EQ(texts(talk.model_says("Cancelled.")), (Texts{"Cancelled.", "after"}));
}

TEST(AiAgentNode, WhatWasInterruptedIsClosed) {
  Talk talk(
      "- {id: start, if: input.text == \"out\", then: [{say: out}, {stop: true}]}\n"
      "- aiAgent:\n"
      "    connection: model\n"
      "    instructions: i\n"
      "    tools: [{name: a, description: d, do: [{goTo: {node: start, wait: true}}]}]");
  (void)talk.say("x");
  (void)talk.model_calls({{"a", "{}"}, {"a", "{}"}});
  const auto asked = talk.say("y");
  const json messages = messages_of(asked);
  ASSERT_EQ(messages.size(), 6U) << messages;
  EXPECT_EQ(messages[3]["role"], "tool");
  EXPECT_EQ(messages[4]["role"], "tool");
  EXPECT_EQ(messages[5], (json{{"role", "user"}, {"content", "y"}}));
}

TEST(AiAgentNode, LimitsTurnsAndTokens) {
  Talk talk(agent);
  (void)talk.say("x");
  (void)talk.model_calls({{"now", "{}"}});
  (void)talk.model_calls({{"now", "{}"}});
  EXPECT_EQ(texts(talk.model_calls({{"now", "{}"}})), (Texts{"turn_limit", "after"}));
  EXPECT_EQ(messages_of(talk.say("y")).size(), 2U) << "what came to nothing is forgotten";
  EXPECT_EQ(texts(talk.model_calls({{"now", "{}"}}, 100)), (Texts{"token_limit", "after"}));
  (void)talk.say("z");
  EXPECT_EQ(texts(talk.fail_call("timeout", "slow", 0)), (Texts{"timeout", "after"}));
  EXPECT_EQ(messages_of(talk.say("z")).size(), 2U);
  EXPECT_EQ(texts(talk.model_says("ok", 1000)), (Texts{"ok", "after"})) << "an answer is an answer";
  EXPECT_EQ(texts(talk.inject({{"a", 1}})), (Texts{"no_prompt", "after"}));
}

TEST(AiAgentNode, MemoryIsBounded) {
  Talk talk(agent);
  for (int i = 0; i < 10; ++i) {
    (void)talk.say("q" + std::to_string(i));
    (void)talk.model_says("a" + std::to_string(i));
  }
  const json messages = messages_of(talk.say("last"));
  ASSERT_EQ(messages.size(), 8U) << "instructions, six that are remembered, and the new one";
  EXPECT_EQ(messages[1]["content"], "q7");
  for (int i = 0; i < 30; ++i) {
    (void)talk.model_says(std::string(20'000, 'a'));
    (void)talk.say(std::string(20'000, 'q'));
  }
  EXPECT_LT(talk.session.flow_state.dump().size(), 80'000U);
}

TEST(AiAgentNode, HostileAnswersAreBounded) {
  Talk talk(agent);
  (void)talk.say("x");
  std::vector<std::pair<std::string, std::string>> calls(1000, {"now", "{}"});
  const auto after = talk.model_calls(calls);
  EXPECT_EQ(messages_of(after).size(), 2U + 1 + 16);
  const auto deep = talk.model_calls({{"status", std::string(5000, '[')},
                                      {std::string(5000, 'n'), "{}"},
                                      {"status", "{\"id\":\"" + std::string(50'000, 'x') + "\"}"}});
  ASSERT_TRUE(deep) << deep.error().message;
  EXPECT_EQ(messages_of(deep).back()["content"], "The arguments are no JSON.");
}

TEST(AiAgentNode, BadStoredMemoryIsAnError) {
  Talk talk(agent);
  (void)talk.say("x");
  (void)talk.model_says("y");
  auto& stored = talk.session.flow_state["once"];
  ASSERT_EQ(stored.size(), 1U);
  const json good = *stored.begin();
  for (const json& patch :
       {json{{"messages", 1}}, json{{"messages", {1}}}, json{{"open", {1}}}, json{{"begin", 99}},
        json{{"turns", -1}}, json{{"tokens", nullptr}}, json{{"open", {{{"id", 1}}}}}}) {
    json bad = good;
    bad.merge_patch(patch);
    *stored.begin() = bad;
    EXPECT_EQ(talk.say("x").error().code, model::Errc::internal) << patch;
  }
}

TEST(AgentMemory, KeepsWholeExchangesOnly) {
  AgentMemory memory;
  memory.begin("q1", 10);
  memory.add_calls({.text = "", .tool_calls = {{"1", "a", "{}"}}});
  memory.answer_first("r");
  memory.end("a1", 10);
  memory.begin("q2", 10);
  memory.end("a2", 3);
  ASSERT_EQ(memory.messages().size(), 2U) << "three would begin with a tool's answer";
  EXPECT_EQ(memory.messages()[0]["content"], "q2");
  memory.begin("q3", 0);
  EXPECT_EQ(memory.messages().size(), 1U);
  const auto again = AgentMemory::load(memory.save());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->messages(), memory.messages());
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
