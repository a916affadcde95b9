#include "flows/nodes/knowledge_answer.h"
#include "flows/nodes/on_error.h"

namespace conversed::flows {
namespace {

constexpr int default_limit = 5;

struct Search {
  NodeConfig::Knowledge knowledge;
  std::optional<expression::Template> query;  // none: the input's text
  int limit = default_limit;
  std::optional<expression::Path> store_in;
  NodeIndex found = end_of_flow;
  NodeIndex nothing = end_of_flow;
  OnError on_error;
};

class SearchKnowledgeNode final : public Node {
 public:
  explicit SearchKnowledgeNode(Search search) : search_(std::move(search)) {}

  Result<Step> run(Turn& turn) const override {
    return AskKnowledge{knowledge_query(
        search_.knowledge, search_.query ? search_.query->render(turn.scope()) : turn.input_text(),
        search_.limit)};
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    if (!result.error_code.empty()) return search_.on_error.failed(turn, result);
    auto hits = hits_of(result.body);
    const bool any = !hits.empty();
    return step_after(turn.assign(*search_.store_in, std::move(hits)),
                      Jump{any ? search_.found : search_.nothing});
  }

  Awaits awaits() const override { return Awaits::call_result; }

 private:
  const Search search_;
};

NodePtr create_search_knowledge(NodeConfig& config) {
  Search search{.knowledge = config.knowledge(),
                .query = config.optional_template("query"),
                .limit = config.integer("limit", default_limit, 1, max_knowledge_hits),
                .store_in = config.path("storeIn"),
                .found = config.branch("onFound"),
                .nothing = config.branch("onNothing"),
                .on_error = OnError(config)};
  (void)config.require("storeIn");
  config.never_continues();
  return std::make_unique<const SearchKnowledgeNode>(std::move(search));
}

constexpr NodeField search_knowledge_fields[]{
    {"store", "name", "The knowledge store. Required."},
    {"sources", "list", "Names of its sources. Default: all."},
    {"query", "template",
     "The words to look for. The first 64 words count. Default: the input's text."},
    {"limit", "number", "The most hits, 1 to 20. Default 5."},
    {"storeIn", "path",
     "Where the hits are stored, the best one first: a list of `{id, source, text, data, score}`. "
     "`score`, between 0 and 1, says how much of the query a hit contains. Required."},
    {"onFound", "nodes", "Run if there is a hit. Then the Flow continues."},
    {"onNothing", "nodes", "Run if there is none. Then the Flow continues."},
    OnError::field};

}  // namespace

constinit const NodeType search_knowledge_node{
    .name = "searchKnowledge",
    .summary =
        "Searches a knowledge store, in any language and without regard to case and accents.",
    .fields = search_knowledge_fields,
    .example =
        "- searchKnowledge:\n"
        "    store: Manual\n"
        "    sources: [FAQ]\n"
        "    limit: 3\n"
        "    storeIn: context.hits\n"
        "    onFound: [{say: \"{{context.hits[0].text}}\"}]\n"
        "    onNothing: [{say: \"I don't know.\"}]\n",
    .create = create_search_knowledge};

}  // namespace conversed::flows
