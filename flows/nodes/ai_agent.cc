// Each request to the model, or to knowledge, ends the Turn. A tool's Nodes run like others, and
// after the last of them the agent runs again.
#include <algorithm>
#include <set>

#include "flows/nodes/agent_memory.h"
#include "flows/nodes/json_schema.h"
#include "flows/nodes/knowledge_answer.h"
#include "store/model/json.h"

namespace conversed::flows {
namespace {

using model::Errc;
using nlohmann::json;

constexpr const char* knowledge_tool = "searchKnowledge";
constexpr const char* input_tool = "tool";  // the member of `input`
constexpr std::size_t max_argument_depth = 16;
constexpr std::size_t max_tools = 64;
constexpr std::size_t max_stores = 16;
constexpr std::size_t compared_a_step = 32;  // names or choices of a schema

constexpr Key tool_keys[]{must_have("name", Form::text),
                          must_have("description", Form::text),
                          may_have("parameters", Form::any_mapping),
                          may_have("storeIn", Form::text),
                          may_have("do", Form::nodes),
                          may_have("result", Form::anything)};
constexpr Key store_keys[]{must_have("store", Form::name), may_have("sources", Form::names),
                           may_have("description", Form::text),
                           may_have("limit", Form::number)
                               .within(1, max_knowledge_hits)
                               .by_default(default_knowledge_hits)};

struct Tool {
  std::string name;
  std::string description;
  json parameters;                             // a JSON Schema of an object
  std::optional<expression::Path> store_in{};  // the place of the arguments
  std::optional<NodeIndex> first{};            // first of its Nodes, if it has any
  std::optional<expression::JsonTemplate> result{};
  std::size_t width = 0;  // the schema's
};

struct Tools {
  std::vector<Tool> list;
  NodeIndex begin = end_of_flow;  // the Nodes of all tools are in [begin, end)
  NodeIndex end = end_of_flow;

  static void read(NodeConfig& config, const View& at, Tools& into);

  [[nodiscard]] const Tool* find(const std::string& name) const {
    const auto found = std::ranges::find(list, name, &Tool::name);
    return found == list.end() ? nullptr : &*found;
  }
};

// A knowledge store that the agent may search.
struct AgentKnowledge {
  NodeConfig::Knowledge knowledge;
  std::string description;
  int limit = default_knowledge_hits;
};

json tool_for_model(const std::string& name, const std::string& description, json parameters) {
  return {{"type", "function"},
          {"function",
           {{"name", name}, {"description", description}, {"parameters", std::move(parameters)}}}};
}

// With several stores the model names the store.
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

// The store in valid arguments. A single store needs no name.
const AgentKnowledge& store_of(const std::vector<AgentKnowledge>& stores, const json& arguments) {
  const json name = arguments.value("store", json());
  const auto found =
      std::ranges::find_if(stores, [&](const auto& each) { return each.knowledge.store == name; });
  return found == stores.end() ? stores.front() : *found;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : model::json_text(value);
}

struct AiAgentNode final : ChatNode {
  expression::Template instructions;
  std::optional<expression::Template> prompt;  // empty: the input's text
  Tools tools;
  std::vector<AgentKnowledge> knowledge;
  int kept_messages = 0;  // of earlier exchanges
  int max_turns = 0;      // the most requests to the model in one exchange
  int token_budget = 0;   // the most tokens of one exchange

  Result<Step> run(Turn& turn) const override {
    auto exchange = recall(turn);
    if (!exchange) return model::fail(exchange.error());
    AgentMemory& memory = exchange->memory;
    if (comes_back(turn) && !memory.open().empty()) {
      memory.answer_first(result_of_tool(turn, memory.open().front().name));
      turn.input_object().erase(input_tool);
      return go_on(turn, *exchange);
    }
    const std::string text = prompt ? prompt->render(turn.scope()) : turn.input_text();
    if (text.empty()) return failed(turn, "no_prompt", "there is nothing to ask the model");
    turn.input_object().erase(input_tool);  // left by a tool that never came back
    memory.begin(std::string(text::cut(text, max_answer_bytes)), most_kept());
    return ask(turn, *exchange);
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    auto exchange = recall(turn);
    if (!exchange) return model::fail(exchange.error());
    AgentMemory& memory = exchange->memory;
    if (!memory.open().empty()) {  // the result belongs to a search
      memory.answer_first(result.error_code.empty()
                              ? hits_text(hits_of(result.body), max_answer_bytes)
                              : "The search failed.");
      return go_on(turn, *exchange);
    }
    memory.tokens += result.model_tokens;
    if (!result.error_code.empty()) {
      exchange->give_up();
      return failed(turn, result, connection);
    }
    auto answer = read_answer(result.body);
    if (!answer) {
      exchange->give_up();
      return failed(turn, "invalid_answer", "the model gave no answer", result.status);
    }
    if (!answer->tool_calls.empty()) {
      memory.add_calls(*answer);
      return go_on(turn, *exchange);
    }
    memory.end(answer->text, most_kept());
    exchange->keep();
    return step_after(take_answer(turn, answer->text, answer->text));
  }

 private:
  std::size_t most_kept() const { return static_cast<std::size_t>(kept_messages); }

  // Whether a Node of a tool led here.
  bool comes_back(const Turn& turn) const {
    const NodeIndex from = turn.came_from();
    return from != end_of_flow && from >= tools.begin && from < tools.end;
  }

  // This Node's memory, with its place in the session's Flow state.
  struct Exchange {
    AgentMemory memory;
    json* stored;

    void keep() { *stored = memory.save(); }
    void give_up() {
      memory.give_up();
      keep();
    }
  };

  static Result<Exchange> recall(Turn& turn) {
    auto stored = turn.memory();
    if (!stored) return model::fail(stored.error());
    auto memory = AgentMemory::load(**stored);
    if (!memory) return turn.failure(Errc::internal, "its memory can't be read");
    return Exchange{std::move(*memory), *stored};
  }

  std::string result_of_tool(Turn& turn, const std::string& name) const {
    const Tool* tool = tools.find(name);
    if (tool == nullptr || !tool->result) return "done";
    return text_of(tool->result->value(turn.scope()));
  }

  // The model gets the error.
  static tl::expected<json, std::string> read_arguments(const ToolCall& call, const json& schema) {
    auto arguments =
        model::parse_json(call.arguments.empty() ? "{}" : call.arguments, max_argument_depth);
    if (!arguments) return tl::unexpected<std::string>("The arguments are not JSON.");
    if (auto wrong = misfit(*arguments, schema)) {
      return tl::unexpected<std::string>("The arguments do not fit: " + *wrong);
    }
    return std::move(*arguments);
  }

  // Runs the tools that the model asked for. Then asks the model again.
  Result<Step> go_on(Turn& turn, Exchange& exchange) const {
    AgentMemory& memory = exchange.memory;
    while (!memory.open().empty()) {
      const ToolCall call = memory.open().front();
      const bool searches = !knowledge.empty() && call.name == knowledge_tool;
      const Tool* tool = tools.find(call.name);
      if (tool == nullptr && !searches) {
        memory.answer_first("There is no such tool.");
        continue;
      }
      // Pays for reading the arguments and for comparing each value with the schema.
      const std::size_t width = tool == nullptr ? 0 : tool->width;
      if (!turn.budget().step(call.arguments.size() * (1 + width / compared_a_step))) break;
      const json of_search = searches ? knowledge_parameters(knowledge) : json();
      auto arguments = read_arguments(call, searches ? of_search : tool->parameters);
      if (!arguments) {
        memory.answer_first(arguments.error());
        continue;
      }
      if (searches) {
        exchange.keep();
        const auto& store = store_of(knowledge, *arguments);
        return AskKnowledge{knowledge_query(
            store.knowledge, (*arguments)["query"].get_ref<const std::string&>(), store.limit)};
      }
      if (auto started = start(turn, *tool, std::move(*arguments)); !started) {
        return model::fail(started.error());
      }
      if (tool->first) {
        exchange.keep();
        return Jump{*tool->first};
      }
      memory.answer_first(result_of_tool(turn, tool->name));
      turn.input_object().erase(input_tool);
    }
    return ask(turn, exchange);
  }

  static Result<void> start(Turn& turn, const Tool& tool, json arguments) {
    turn.input_object()[input_tool] = {{"name", tool.name}, {"arguments", arguments}};
    return tool.store_in ? turn.assign(*tool.store_in, std::move(arguments)) : Result<void>();
  }

  Result<Step> ask(Turn& turn, Exchange& exchange) const {
    AgentMemory& memory = exchange.memory;
    const auto refuse = [&](std::string_view code, const std::string& message) {
      exchange.give_up();
      return failed(turn, code, message);
    };
    if (memory.turns >= max_turns) {
      return refuse("turn_limit", "the model was asked " + std::to_string(max_turns) +
                                      " times without an answer");
    }
    if (memory.tokens >= token_budget) {
      return refuse("token_limit", "the model took more than " + std::to_string(token_budget) +
                                       " tokens without an answer");
    }
    if (memory.too_large()) return refuse("too_large", "the results of the tools are too large");
    ++memory.turns;
    json body = {{"messages", json::array()}};
    json& messages = body["messages"];
    messages.push_back(message_of("system", instructions.render(turn.scope())));
    for (const auto& message : memory.messages()) messages.push_back(message);
    if (json list = tools_for_model(); !list.empty()) body["tools"] = std::move(list);
    auto step = ask_model(turn, std::move(body));
    if (step && std::holds_alternative<CallUpstream>(*step)) {
      exchange.keep();
    } else {
      exchange.give_up();
    }
    return step;
  }

  json tools_for_model() const {
    json list = json::array();
    for (const auto& tool : tools.list) {
      list.push_back(tool_for_model(tool.name, tool.description, tool.parameters));
    }
    if (!knowledge.empty()) {
      list.push_back(tool_for_model(knowledge_tool, knowledge_description(knowledge),
                                    knowledge_parameters(knowledge)));
    }
    return list;
  }
};

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
  const Fields fields(view, tool_keys);
  Tool tool{.name = fields.text("name"),
            .description = fields.text("description"),
            .parameters = read_parameters(fields)};
  tool.width = schema_width(tool.parameters);
  if (const auto name = fields.find("name"); name && !tool.name.empty()) {
    // Servers accept only these names.
    if (!is_word(tool.name, "_-") || tool.name.size() > 64 || tool.name == knowledge_tool) {
      name->problem("a tool's name is 1 to 64 letters, digits, `_` or `-`, and not " +
                    std::string(knowledge_tool));
    } else if (!names.insert(tool.name).second) {
      name->problem("the tool '" + tool.name + "' is used twice; rename one");
    }
  }
  if (const auto place = fields.find("storeIn")) tool.store_in = config.path_at(*place);
  if (const auto result = fields.find("result")) tool.result = config.json_template_at(*result);
  if (const auto nodes = fields.find("do")) {
    tool.first = config.loop(*nodes, "tools[" + std::to_string(index) + "].do");
  }
  return tool;
}

void Tools::read(NodeConfig& config, const View& at, Tools& into) {
  if (!at.expect_list("a list of tools")) return;
  const auto items = at.items();
  if (items.size() > max_tools) {
    return at.problem("at most " + std::to_string(max_tools) + " tools are allowed");
  }
  std::set<std::string> names;
  into.begin = config.nodes_so_far();
  for (std::size_t i = 0; i < items.size(); ++i) {
    into.list.push_back(read_tool(config, items[i], i, names));
  }
  into.end = config.nodes_so_far();
}

AgentKnowledge read_store(NodeConfig& config, const View& view) {
  const Fields fields(view, store_keys);
  AgentKnowledge store{.knowledge = {}, .description = fields.optional_text("description")};
  if (const auto at = fields.find("store")) {
    store.knowledge = config.knowledge_at(*at, fields.find("sources"));
  }
  if (store.description.empty()) {
    store.description = "Searches the knowledge of " + store.knowledge.store + ".";
  }
  store.limit = static_cast<int>(fields.integer("limit").value_or(store.limit));
  return store;
}

void read_stores(NodeConfig& config, const View& at, std::vector<AgentKnowledge>& into) {
  if (!at.value().is_array()) return into.push_back(read_store(config, at));
  const auto items = at.items();
  if (items.size() > max_stores) {
    return at.problem("at most " + std::to_string(max_stores) + " knowledge stores are allowed");
  }
  std::set<std::string> names;
  for (const View& item : items) {
    into.push_back(read_store(config, item));
    const std::string& name = into.back().knowledge.store;
    if (!name.empty() && !names.insert(name).second) {
      item.problem("the knowledge store '" + name + "' is used twice; rename one");
    }
  }
}

constexpr auto ai_agent_fields = with_chat_fields(
    {required<&AiAgentNode::instructions>("instructions"), optional<&AiAgentNode::prompt>("prompt"),
     optional<&AiAgentNode::tools, &Tools::read>("tools").as(Form::mappings).of(tool_keys),
     optional<&AiAgentNode::knowledge, &read_stores>("knowledge")
         .as(Form::mapping_or_mappings)
         .of(store_keys),
     optional<&AiAgentNode::kept_messages>("memory").within(0, 200).by_default(20),
     optional<&AiAgentNode::max_turns>("maxTurns").within(1, 50).by_default(8),
     optional<&AiAgentNode::token_budget>("tokenBudget").within(1, 10'000'000).by_default(50'000)});

}  // namespace

constinit const NodeType ai_agent_node{
    .name = "aiAgent", .fields = ai_agent_fields, .create = create<AiAgentNode>};

}  // namespace conversed::flows
