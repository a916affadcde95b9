// Hostile answers of language models: for any bytes of a model's server, the Turn ends with a
// value, an error or the next call. The stored state of the session is bounded and can be read
// again.
#include "store/model/json.h"
#include "tests/support/fuzzing.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

constexpr std::size_t most_state_bytes = 256 * 1024;

struct Agent : Conversation {
  Agent()
      : Conversation(
            "- aiAgent:\n"
            "    connection: model\n"
            "    instructions: i\n"
            "    prompt: p\n"
            "    knowledge: {store: Manual}\n"
            "    tools:\n"
            "    - name: status\n"
            "      description: d\n"
            "      parameters: {type: object, properties: {id: {type: string}}, required: [id]}\n"
            "      storeIn: context.asked\n"
            "      do: [{addToContext: {copy: \"{{input.tool.arguments.id}}\"}}]\n"
            "      result: \"{{context.copy}}\"\n"
            "    onError: [{say: \"{{input.error.message}}\"}]\n"
            "- llmPrompt: {connection: model, prompt: p, json: true, storeIn: context.a, onError: "
            "[{say: e}]}\n",
            "connections:\n"
            "- {name: model, type: llm, fields: {baseUrl: \"https://llm.example.com/v1\"}}\n"
            "knowledgeStores: [{name: Manual, sources: []}]\n") {
    assets.connection_ids = {{"model", "m"}};
  }
};

void converse(const std::vector<std::string>& answers) {
  Agent talk;
  for (const auto& answer : answers) {
    if (!talk.session.busy()) {
      ASSERT_TRUE(talk.say("x"));
    }
    // As the daemon reads an answer: text that is no JSON stays text.
    auto body = model::parse_json(answer, model::max_json_depth - 8);
    const auto effects = talk.answer_call(body ? *body : nlohmann::json("no JSON"));
    if (!effects) {
      ASSERT_NE(effects.error().code, model::Errc::internal) << effects.error().message;
      talk.session.execution.reset();
      continue;
    }
    ASSERT_LE(effects->outputs.size(), 2U);
    ASSERT_LT(talk.session.flow_state.dump().size(), most_state_bytes);
    if (effects->call && effects->call->http) {
      ASSERT_TRUE(nlohmann::json::accept(effects->call->http->body));
    }
  }
}

TEST(ModelAnswerFuzz, TheCorpusIsTaken) {
  for (const auto& entry : tests::read_corpus(CONVERSED_CORPUS)) {
    SCOPED_TRACE(entry.name);
    converse({entry.text, entry.text, entry.text});
  }
}

TEST(ModelAnswerFuzz, MutationsOfTheCorpusAreTaken) {
  tests::Mutator mutator(tests::read_corpus(CONVERSED_CORPUS), {"{",           "}",
                                                                "[",           "]",
                                                                "\"",          ":",
                                                                ",",           "null",
                                                                "1e308",       "\"content\"",
                                                                "\"message\"", "\\u0000",
                                                                "\\\"",        "\"id\"",
                                                                "{}",          "-1",
                                                                "true",        "\\ud83d",
                                                                "\"name\"",    "\"role\"",
                                                                "\"status\"",  "searchKnowledge",
                                                                "\"query\"",   "\xFF"});
  const tests::LastInput last("model_answer");
  tests::fuzz(200, [&] {
    std::vector<std::string> answers;
    std::string all;
    for (std::size_t count = 1 + mutator.below(5); count > 0; --count) {
      const std::string& text = mutator.entry().text;
      answers.push_back(mutator.below(3) == 0 ? text : mutator.mutate(text));
      all += answers.back() + "\n";
    }
    last.keep(all);
    SCOPED_TRACE(all);
    converse(answers);
  });
}

}  // namespace
}  // namespace conversed::flows
