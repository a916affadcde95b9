// The agent: its memory, its tools, its limits.
#include "flows/nodes/agent_memory.h"
#include "flows/nodes/knowledge_answer.h"
#include "tests/unit/flows/model_talk.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

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
  EXPECT_EQ(told, (Texts{"There is no such tool.", "The arguments are not JSON.",
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

TEST(AiAgentNode, InterruptedToolCallsAreClosed) {
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
  EXPECT_EQ(texts(talk.model_says("ok", 1000)), (Texts{"ok", "after"}))
      << "the last answer counts even over the limit";
  EXPECT_EQ(texts(talk.inject({{"a", 1}})), (Texts{"no_prompt", "after"}));
}

TEST(AiAgentNode, MemoryIsBounded) {
  Talk talk(agent);
  for (int i = 0; i < 10; ++i) {
    (void)talk.say("q" + std::to_string(i));
    (void)talk.model_says("a" + std::to_string(i));
  }
  const json messages = messages_of(talk.say("last"));
  ASSERT_EQ(messages.size(), 8U) << "the instructions, six remembered messages, and the new one";
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
  EXPECT_EQ(messages_of(deep).back()["content"], "The arguments are not JSON.");
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
  ASSERT_EQ(memory.messages().size(), 2U) << "a third would be a tool's answer without its call";
  EXPECT_EQ(memory.messages()[0]["content"], "q2");
  memory.begin("q3", 0);
  EXPECT_EQ(memory.messages().size(), 1U);
  const auto again = AgentMemory::load(memory.save());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->messages(), memory.messages());
}

TEST(AiAgentNode, AToolKeepsItsArgumentsAfterItsQuestion) {
  Talk talk(
      "- aiAgent:\n"
      "    connection: model\n"
      "    instructions: i\n"
      "    tools:\n"
      "    - name: cancel\n"
      "      description: d\n"
      "      parameters: {type: object, properties: {id: {type: string}}, required: [id]}\n"
      "      do:\n"
      "      - question: {text: \"Cancel {{input.tool.arguments.id}}?\", type: yesNo, storeIn: "
      "context.a}\n"
      "      - question: {text: \"Why {{input.tool.arguments.id}}?\", storeIn: context.b}\n"
      "      - say: \"{{input.tool.name}} {{input.tool.arguments.id}}\"\n"
      "      result: \"{{input.tool.arguments.id}} {{context.b}}\"\n"
      "- say: \"[{{input.tool.name}}]\"");
  (void)talk.say("Cancel A-1");
  EXPECT_EQ(texts(talk.model_calls({{"cancel", R"({"id":"A-1"})"}})), (Texts{"Cancel A-1?"}));
  EXPECT_EQ(texts(talk.say("yes")), (Texts{"Why A-1?"}));
  const auto told = talk.say("late");
  EXPECT_EQ(texts(told), (Texts{"cancel A-1"}));
  EXPECT_EQ(messages_of(told).back()["content"], "A-1 late");
  EXPECT_EQ(texts(talk.model_says("ok")), (Texts{"ok", "[]"}))
      << "after the agent there are no arguments";
}

TEST(AiAgentNode, NamesTheConnectionThatWasDeletedUnderItsCall) {
  Talk talk(
      "- aiAgent: {connection: model, instructions: i, onError: [{say: \"{{input.error.code}}: "
      "{{input.error.message}}\"}]}");
  (void)talk.say("x");
  EXPECT_EQ(texts(talk.fail_call("connection_deleted", "gone", 0)),
            (Texts{"connection_deleted: the Connection 'model' does not exist any more"}));
  EXPECT_EQ(messages_of(talk.say("y")).size(), 2U) << "what came to nothing is forgotten";
}

TEST(AiAgentNode, SearchesTheStoreThatTheModelNames) {
  Talk talk(
      "- aiAgent:\n"
      "    connection: model\n"
      "    instructions: i\n"
      "    knowledge:\n"
      "    - {store: Manual, description: How things work., limit: 2}\n"
      "    - {store: Prices, sources: [List]}");
  const json tool = body_of(talk.say("x"))["tools"][0]["function"];
  EXPECT_EQ(tool["description"],
            "Searches one of these:\nManual: How things work.\n"
            "Prices: Searches the knowledge of Prices.");
  EXPECT_EQ(tool["parameters"]["properties"]["store"]["enum"], (json{"Manual", "Prices"}));
  const auto asked = talk.model_calls({{"searchKnowledge", R"({"query":"q"})"},
                                       {"searchKnowledge", R"({"query":"q","store":"Price"})"},
                                       {"searchKnowledge", R"({"query":"q","store":"Prices"})"}});
  ASSERT_TRUE(asked && asked->call && asked->call->search);
  EXPECT_EQ(asked->call->search->store, "Prices");
  EXPECT_EQ(asked->call->search->sources, Texts{"List"});
  EXPECT_EQ(asked->call->search->limit, 5U);
  const json messages = messages_of(talk.hits({{{"text", "9 euros"}}}));
  ASSERT_EQ(messages.size(), 6U);
  EXPECT_EQ(messages[3]["content"], "The arguments do not fit: 'store' is missing");
  EXPECT_EQ(messages[4]["content"],
            R"(The arguments do not fit: store: expected one of ["Manual","Prices"])");
  EXPECT_EQ(messages[5]["content"], R"([{"text":"9 euros"}])");
}

TEST(AiAgentNode, TellsTheModelWholeHits) {
  Talk talk(agent);
  (void)talk.say("x");
  (void)talk.model_calls({{"searchKnowledge", R"({"query":"q"})"}});
  const auto hit = [](const std::string& id, std::size_t bytes) {
    return json{{"id", id}, {"text", std::string(bytes, 'a')}};
  };
  const auto told_of = [&](const json& hits) {
    const std::string told = messages_of(talk.hits(hits)).back()["content"];
    EXPECT_LE(told.size(), 16U * 1024);
    return json::parse(told, nullptr, false);
  };
  const json told = told_of({hit("1", 9000), hit("2", 9000), hit("3", 5000)});
  ASSERT_EQ(told.size(), 2U) << told;
  EXPECT_EQ(told[1], hit("3", 5000)) << "a hit without room is left out, later hits are kept";
  (void)talk.model_calls({{"searchKnowledge", R"({"query":"q"})"}});
  const json cut = told_of({hit("1", 50'000), hit("2", 50'000)});
  ASSERT_EQ(cut.size(), 1U) << cut;
  EXPECT_GT(cut[0]["text"].get<std::string>().size(), 16'000U);
}

TEST(KnowledgeAnswer, NeverGrowsBeyondItsBounds) {
  json hits = json::array();
  for (std::size_t i = 0; i < 30; ++i)
    hits.push_back({{"text", "é\n\"" + std::string(i * 7, 'x')}});
  for (std::size_t most = 2; most < 3000; ++most) {
    const std::string told = hits_text(hits, most);
    ASSERT_LE(told.size(), most);
    ASSERT_TRUE(json::parse(told, nullptr, false).is_array()) << told;
  }
}

}  // namespace
}  // namespace conversed::flows
