// Each question to the model, or to knowledge, ends the Turn. A tool's Nodes run like others, and
// the Node behind the last of them is the agent again.
#include <algorithm>
#include <set>

#include "flows/nodes/agent_memory.h"
#include "flows/nodes/chat.h"
#include "flows/nodes/json_schema.h"
#include "flows/nodes/knowledge_answer.h"
#include "store/model/json.h"

namespace conversed::flows {
namespace {

using model::Errc;
using nlohmann::json;

constexpr const char* knowledge_tool = "searchKnowledge";
constexpr const char* input_tool = "tool";  // the member of `input`
constexpr int default_max_tokens = 1000;
constexpr int default_memory = 20;
constexpr int default_turns = 8;
constexpr int default_budget = 50'000;
constexpr std::size_t max_argument_depth = 16;
constexpr std::size_t max_tools = 64;
constexpr std::size_t max_stores = 16;
constexpr std::size_t compared_a_step = 32;  // names or choices of a schema

struct Tool {
  std::string name;
  std::string description;
  json parameters;                             // a JSON Schema of an object
  std::optional<expression::Path> store_in{};  // where the arguments go
  std::optional<NodeIndex> first{};            // of its Nodes, if it has any
  std::optional<expression::JsonTemplate> result{};
  std::size_t width = 0;  // of the schema
};

// One of the stores that the agent may search.
struct AgentKnowledge {
  NodeConfig::Knowledge knowledge;
  std::string description;
  int limit = 5;
};

struct Agent {
  expression::Template instructions;
  std::optional<expression::Template> prompt;  // none: the input's text
  std::vector<Tool> tools;
  NodeIndex tools_begin = end_of_flow;  // the Nodes of all tools are in [begin, end)
  NodeIndex tools_end = end_of_flow;
  std::vector<AgentKnowledge> knowledge;
  std::size_t memory = 0;   // messages of earlier exchanges
  std::int64_t turns = 0;   // the most requests to the model in one exchange
  std::int64_t budget = 0;  // the most tokens of one exchange
  Sink sink;
  Chat chat;
};

json tool_for_model(const std::string& name, const std::string& description, json parameters) {
  return {{"type", "function"},
          {"function",
           {{"name", name}, {"description", description}, {"parameters", std::move(parameters)}}}};
}

// With several stores the model names one.
json knowledge_parameters(const std::vector<AgentKnowledge>& stores) {
  json parameters = {
      {"type", "object"},
      {"properties",
       {{"query", {{"type", "string"}, {"description", "What to look for, in some words."}}}}},
      {"required", {"query"}}};
  if (stores.size() < 2) return parameters;
  json& store = parameters["properties"]["store"];
  store = {{"type", "string"}, {"enum", json::array()}};
  for (const auto& each : stores) store["enum"].push_back(each.knowledge.store);
  parameters["required"].push_back("store");
  return parameters;
}

std::string knowledge_description(const std::vector<AgentKnowledge>& stores) {
  if (stores.size() == 1) return stores.front().description;
  std::string description = "Searches one of these:";
  for (const auto& each : stores) {
    description += "\n" + each.knowledge.store + ": " + each.description;
  }
  return description;
}

// The store that fitting arguments name.
const AgentKnowledge& store_of(const std::vector<AgentKnowledge>& stores, const json& arguments) {
  const auto name = arguments.find("store");
  if (stores.size() < 2 || name == arguments.end()) return stores.front();
  const auto found =
      std::ranges::find_if(stores, [&](const auto& each) { return each.knowledge.store == *name; });
  return found == stores.end() ? stores.front() : *found;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

class AiAgentNode final : public Node {
 public:
  explicit AiAgentNode(Agent agent)
      : agent_(std::move(agent)), knowledge_parameters_(knowledge_parameters(agent_.knowledge)) {}

  Result<Step> run(Turn& turn) const override {
    auto memory = recall(turn);
    if (!memory) return model::fail(memory.error());
    if (comes_back(turn) && !memory->open().empty()) {
      memory->answer_first(result_of_tool(turn, memory->open().front().name));
      turn.input_object().erase(input_tool);
      return go_on(turn, std::move(*memory));
    }
    std::string prompt = agent_.prompt ? agent_.prompt->render(turn.scope()) : turn.input_text();
    if (prompt.empty()) {
      return agent_.chat.on_error.failed(turn, "no_prompt", "there is nothing to ask the model");
    }
    turn.input_object().erase(input_tool);  // of a tool that never came back
    memory->begin(std::string(text::cut(prompt, max_answer_bytes)), agent_.memory);
    return ask(turn, std::move(*memory));
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    auto memory = recall(turn);
    if (!memory) return model::fail(memory.error());
    if (!memory->open().empty()) {  // the result is that of a search
      memory->answer_first(result.error_code.empty()
                               ? hits_text(hits_of(result.body), max_answer_bytes)
                               : "The search failed.");
      return go_on(turn, std::move(*memory));
    }
    memory->tokens += result.model_tokens;
    if (!result.error_code.empty()) {
      if (auto over = give_up(turn, std::move(*memory)); !over) return model::fail(over.error());
      return agent_.chat.on_error.failed(turn, result, agent_.chat.connection);
    }
    auto answer = read_answer(result.body);
    if (!answer) {
      return fail(turn, std::move(*memory), "invalid_answer", "the model gave no answer",
                  result.status);
    }
    if (!answer->tool_calls.empty()) {
      memory->add_calls(*answer);
      return go_on(turn, std::move(*memory));
    }
    memory->end(answer->text, agent_.memory);
    if (auto kept = keep(turn, *memory); !kept) return model::fail(kept.error());
    return step_after(agent_.sink.take(turn, answer->text, answer->text));
  }

  Awaits awaits() const override { return Awaits::call_result; }

 private:
  // Whether one of the tools' Nodes led here.
  bool comes_back(const Turn& turn) const {
    const NodeIndex from = turn.came_from();
    return from != end_of_flow && from >= agent_.tools_begin && from < agent_.tools_end;
  }

  static Result<AgentMemory> recall(Turn& turn) {
    auto stored = turn.memory();
    if (!stored) return model::fail(stored.error());
    auto memory = AgentMemory::load(**stored);
    if (!memory) return turn.failure(Errc::internal, "what it remembers can't be read");
    return std::move(*memory);
  }
  static Result<void> keep(Turn& turn, const AgentMemory& memory) {
    auto stored = turn.memory();
    if (!stored) return model::fail(stored.error());
    **stored = memory.save();
    return {};
  }

  // Ends the exchange without an answer.
  static Result<void> give_up(Turn& turn, AgentMemory memory) {
    memory.give_up();
    return keep(turn, memory);
  }
  Result<Step> fail(Turn& turn, AgentMemory memory, std::string_view code,
                    const std::string& message, int status = 0) const {
    if (auto over = give_up(turn, std::move(memory)); !over) return model::fail(over.error());
    return agent_.chat.on_error.failed(turn, code, message, status);
  }

  const Tool* find_tool(const std::string& name) const {
    const auto found = std::ranges::find(agent_.tools, name, &Tool::name);
    return found == agent_.tools.end() ? nullptr : &*found;
  }

  std::string result_of_tool(Turn& turn, const std::string& name) const {
    const Tool* tool = find_tool(name);
    if (tool == nullptr || !tool->result) return "done";
    return text_of(tool->result->value(turn.scope()));
  }

  // The error is told to the model.
  static tl::expected<json, std::string> read_arguments(const ToolCall& call, const json& schema) {
    auto arguments =
        model::parse_json(call.arguments.empty() ? "{}" : call.arguments, max_argument_depth);
    if (!arguments) return tl::unexpected<std::string>("The arguments are no JSON.");
    if (auto wrong = misfit(*arguments, schema)) {
      return tl::unexpected<std::string>("The arguments do not fit: " + *wrong);
    }
    return std::move(*arguments);
  }

  // Runs the tools that the model asked for; then asks the model again.
  Result<Step> go_on(Turn& turn, AgentMemory memory) const {
    while (!memory.open().empty()) {
      const ToolCall call = memory.open().front();
      const bool searches = !agent_.knowledge.empty() && call.name == knowledge_tool;
      const Tool* tool = find_tool(call.name);
      if (tool == nullptr && !searches) {
        memory.answer_first("There is no such tool.");
        continue;
      }
      // Pays for reading them and for comparing each value with the schema.
      const std::size_t width = tool == nullptr ? 0 : tool->width;
      if (!turn.budget().step(call.arguments.size() * (1 + width / compared_a_step))) break;
      auto arguments = read_arguments(call, searches ? knowledge_parameters_ : tool->parameters);
      if (!arguments) {
        memory.answer_first(arguments.error());
        continue;
      }
      if (searches) {
        if (auto kept = keep(turn, memory); !kept) return model::fail(kept.error());
        const auto& store = store_of(agent_.knowledge, *arguments);
        return AskKnowledge{knowledge_query(
            store.knowledge, (*arguments)["query"].get_ref<const std::string&>(), store.limit)};
      }
      if (auto started = start(turn, *tool, std::move(*arguments)); !started) {
        return model::fail(started.error());
      }
      if (tool->first) {
        return step_after(keep(turn, memory), Jump{*tool->first});
      }
      memory.answer_first(result_of_tool(turn, tool->name));
      turn.input_object().erase(input_tool);
    }
    return ask(turn, std::move(memory));
  }

  static Result<void> start(Turn& turn, const Tool& tool, json arguments) {
    turn.input_object()[input_tool] = {{"name", tool.name}, {"arguments", arguments}};
    return tool.store_in ? turn.assign(*tool.store_in, std::move(arguments)) : Result<void>();
  }

  Result<Step> ask(Turn& turn, AgentMemory memory) const {
    if (memory.turns >= agent_.turns) {
      return fail(
          turn, std::move(memory), "turn_limit",
          "the model was asked " + std::to_string(agent_.turns) + " times and came to no answer");
    }
    if (memory.tokens >= agent_.budget) {
      return fail(turn, std::move(memory), "token_limit",
                  "the model took more than " + std::to_string(agent_.budget) +
                      " tokens and came to no answer");
    }
    if (memory.too_large()) {
      return fail(turn, std::move(memory), "too_large",
                  "what the tools told the model is too much");
    }
    ++memory.turns;
    json body = {{"messages", json::array()}};
    json& messages = body["messages"];
    messages.push_back(message_of("system", agent_.instructions.render(turn.scope())));
    for (const auto& message : memory.messages()) messages.push_back(message);
    if (json tools = tools_for_model(); !tools.empty()) body["tools"] = std::move(tools);
    if (auto kept = keep(turn, memory); !kept) return model::fail(kept.error());
    auto step = agent_.chat.ask(turn, std::move(body));
    if (step && !std::holds_alternative<CallUpstream>(*step)) {
      if (auto over = give_up(turn, std::move(memory)); !over) return model::fail(over.error());
    }
    return step;
  }

  json tools_for_model() const {
    json tools = json::array();
    for (const auto& tool : agent_.tools) {
      tools.push_back(tool_for_model(tool.name, tool.description, tool.parameters));
    }
    if (!agent_.knowledge.empty()) {
      tools.push_back(tool_for_model(knowledge_tool, knowledge_description(agent_.knowledge),
                                     knowledge_parameters_));
    }
    return tools;
  }

  const Agent agent_;
  const json knowledge_parameters_;
};

// The names of tools that servers accept.
bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

json read_parameters(const Fields& fields) {
  const auto found = fields.find("parameters");
  json schema = found ? found->value().to_json() : json{{"type", "object"}};
  if (!found) return schema;
  if (auto wrong = schema_problem(schema)) {
    found->problem(*wrong);
    return {{"type", "object"}};
  }
  if (!schema.contains("type")) schema["type"] = "object";
  if (schema["type"] != "object") found->problem("the type of the parameters must be object");
  return schema;
}

Tool read_tool(NodeConfig& config, const View& view, std::size_t index,
               std::set<std::string>& names) {
  const Fields fields(view, {"name", "description", "parameters", "storeIn", "do", "result"});
  Tool tool{.name = fields.text("name"),
            .description = fields.text("description"),
            .parameters = read_parameters(fields)};
  tool.width = schema_width(tool.parameters);
  if (const auto name = fields.find("name"); name && !tool.name.empty()) {
    if (!is_tool_name(tool.name) || tool.name == knowledge_tool) {
      name->problem("a tool's name is 1 to 64 letters, digits, `_` or `-`, and not " +
                    std::string(knowledge_tool));
    } else if (!names.insert(tool.name).second) {
      name->problem("the tool '" + tool.name + "' is used twice; rename one");
    }
  }
  if (const auto place = fields.find("storeIn")) tool.store_in = config.path_at(*place);
  if (const auto result = fields.find("result")) tool.result = config.json_template_at(*result);
  if (const auto nodes = fields.find("do")) {
    const auto first = config.loop(*nodes, "tools[" + std::to_string(index) + "].do");
    if (first != config.here()) tool.first = first;
  }
  return tool;
}

std::vector<Tool> read_tools(NodeConfig& config) {
  std::vector<Tool> tools;
  const auto list = config.find("tools");
  if (!list) return tools;
  if (!list->expect_list("a list of tools")) return tools;
  if (list->value().items().size() > max_tools) {
    list->problem("at most " + std::to_string(max_tools) + " tools are allowed");
    return tools;
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->value().items().size(); ++i) {
    tools.push_back(read_tool(config, list->item(i), i, names));
  }
  return tools;
}

AgentKnowledge read_store(NodeConfig& config, const View& view) {
  const Fields fields(view, {"store", "sources", "description", "limit"});
  AgentKnowledge store{.knowledge = config.knowledge_at(fields),
                       .description = fields.optional_text("description")};
  if (store.description.empty()) {
    store.description = "Searches the knowledge of " + store.knowledge.store + ".";
  }
  if (const auto limit = fields.find("limit")) {
    store.limit = static_cast<int>(limit->integer(1, max_knowledge_hits).value_or(store.limit));
  }
  return store;
}

// One store, or a list of them.
std::vector<AgentKnowledge> read_knowledge(NodeConfig& config) {
  std::vector<AgentKnowledge> stores;
  const auto found = config.find("knowledge");
  if (!found) return stores;
  if (!found->value().is_array()) return {read_store(config, *found)};
  if (found->value().items().size() > max_stores) {
    found->problem("at most " + std::to_string(max_stores) + " knowledge stores are allowed");
    return stores;
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < found->value().items().size(); ++i) {
    const View item = found->item(i);
    auto store = read_store(config, item);
    if (!store.knowledge.store.empty() && !names.insert(store.knowledge.store).second) {
      item.problem("the knowledge store '" + store.knowledge.store + "' is used twice; rename one");
    }
    stores.push_back(std::move(store));
  }
  return stores;
}

NodePtr create_ai_agent(NodeConfig& config) {
  const NodeIndex begin = config.nodes_so_far();
  auto tools = read_tools(config);
  const NodeIndex end = config.nodes_so_far();
  return std::make_unique<const AiAgentNode>(
      Agent{.instructions = config.text_template("instructions"),
            .prompt = config.optional_template("prompt"),
            .tools = std::move(tools),
            .tools_begin = begin,
            .tools_end = end,
            .knowledge = read_knowledge(config),
            .memory = static_cast<std::size_t>(config.integer("memory", default_memory, 0, 200)),
            .turns = config.integer("maxTurns", default_turns, 1, 50),
            .budget = config.integer("tokenBudget", default_budget, 1, 10'000'000),
            .sink = Sink::read(config),
            .chat = Chat::read(config, default_max_tokens)});
}

constexpr auto ai_agent_fields = with_chat_fields(
    {{"instructions", "template", "The system message: the agent's role and rules. Required."},
     {"prompt", "template", "The user's message. Default: the input's text."},
     {"tools", "list",
      "Up to 64 tools, each `{name, description, parameters, storeIn, do, result}`. `parameters` "
      "is "
      "a JSON Schema of an object; arguments that do not fit are refused. The Nodes of `do` read "
      "the arguments in `input.tool.arguments`, also behind a question; `storeIn` stores them. The "
      "model is told `result`, a JSON template that is evaluated after `do`. Default `done`."},
     {"knowledge", "mapping or list",
      "A knowledge store that the model may search, `{store, sources, description, limit}`, or a "
      "list of up to 16. The model chooses one by its description."},
     {"memory", "number",
      "How many earlier messages of the session the model is told, 0 to 200 and at most 32 KiB. "
      "Default 20."},
     {"maxTurns", "number", "The most requests to the model for one answer, 1 to 50. Default 8."},
     {"tokenBudget", "number",
      "The tokens, as the model counts them, after which it is not asked again for one answer. "
      "Default 50000."}});

}  // namespace

constinit const NodeType ai_agent_node{
    .name = "aiAgent",
    .summary =
        "Lets a language model answer the user, with a memory, with tools that are branches of the "
        "Flow, and with knowledge. An answer is data: nothing in it is evaluated, and it is cut to "
        "16 KiB.",
    .fields = ai_agent_fields,
    .example =
        "- aiAgent:\n"
        "    connection: model\n"
        "    instructions: \"You help customers of {{shopName}}. Be short.\"\n"
        "    knowledge: {store: Manual}\n"
        "    tools:\n"
        "      - name: orderStatus\n"
        "        description: Tells how far an order is.\n"
        "        parameters:\n"
        "          type: object\n"
        "          properties: {id: {type: string}}\n"
        "          required: [id]\n"
        "        do:\n"
        "          - httpRequest:\n"
        "              url: \"https://crm.example.com/orders/"
        "{{encodeURIComponent(input.tool.arguments.id)}}\"\n"
        "              storeIn: context.order\n"
        "        result: {state: \"{{context.order.state}}\"}\n"
        "    onError: [{say: \"Please try later.\"}]\n",
    .create = create_ai_agent};

}  // namespace conversed::flows
