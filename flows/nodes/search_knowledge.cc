#include "flows/nodes/calls.h"
#include "flows/nodes/knowledge_answer.h"

namespace conversed::flows {
namespace {

struct SearchKnowledgeNode final : CallNode {
  NodeConfig::Knowledge knowledge;
  std::optional<expression::Template> query;  // empty: the input's text
  int limit = 0;
  std::optional<expression::Path> store_in;
  NodeIndex on_found = end_of_flow;
  NodeIndex on_nothing = end_of_flow;

  Result<Step> run(Turn& turn) const override {
    const std::string text = query ? query->render(turn.scope()) : turn.input_text();
    return AskKnowledge{knowledge_query(knowledge, text, limit)};
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    if (!result.error_code.empty()) return failed(turn, result);
    auto hits = hits_of(result.body);
    const bool any = !hits.empty();
    return step_after(turn.assign(*store_in, std::move(hits)), Jump{any ? on_found : on_nothing});
  }
};

constexpr NodeField search_knowledge_fields[]{
    required<&SearchKnowledgeNode::knowledge, &NodeConfig::knowledge>("store"),
    optional("sources").as(Form::names),
    optional<&SearchKnowledgeNode::query>("query"),
    optional<&SearchKnowledgeNode::limit>("limit")
        .within(1, max_knowledge_hits)
        .by_default(default_knowledge_hits),
    required<&SearchKnowledgeNode::store_in>("storeIn"),
    optional<&SearchKnowledgeNode::on_found>("onFound"),
    optional<&SearchKnowledgeNode::on_nothing>("onNothing"),
    on_error_field};

}  // namespace

constinit const NodeType search_knowledge_node{.name = "searchKnowledge",
                                               .continues = false,
                                               .fields = search_knowledge_fields,
                                               .create = create<SearchKnowledgeNode>};

}  // namespace conversed::flows
