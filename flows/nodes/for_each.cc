// Repeats its Nodes for the items of a list. The last of them leads back to it.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// Two loops, one inside the other, stay within the Turn's limits for short lists only.
constexpr std::size_t most_items = 50;

struct ForEachNode final : Node {
  // The repeated Nodes are [begin, end).
  struct Body {
    NodeIndex first = end_of_flow;
    NodeIndex begin = end_of_flow;
    NodeIndex end = end_of_flow;

    static void read(NodeConfig& config, const View& at, Body& into) {
      if (at.value().is_array() && at.value().items().empty()) {
        return at.problem("the list is empty; write a Node");
      }
      into.begin = config.nodes_so_far();
      into.first = config.loop(at, "do").value_or(end_of_flow);
      into.end = config.nodes_so_far();
    }
  };
  expression::Expression list;
  std::optional<expression::Path> item;
  std::optional<expression::Path> index;
  Body body;

  void check(NodeConfig& config) const {
    if (item && index && item->text() == index->text()) {
      config.problem("index", "the item and its number need two places; choose another");
    }
  }

  static void read_list(NodeConfig& config, const View& at, expression::Expression& into) {
    if (at.text()) into = config.condition_at(at);
  }

  [[nodiscard]] bool repeats(NodeIndex at) const override {
    return at >= body.begin && at < body.end;
  }

  Result<Step> run(Turn& turn) const override {
    if (!repeats(turn.came_from())) {
      if (auto begun = begin(turn); !begun) return model::fail(begun.error());
    }
    Turn::Loop* loop = turn.loop();
    // There is no loop if a goTo from outside led to the repeated Nodes.
    if (loop == nullptr || loop->next >= loop->list.size()) return end(turn);
    const std::size_t at = loop->next++;
    auto stored = turn.assign(*item, loop->list[at]);
    if (stored && index) stored = turn.assign(*index, at);
    return step_after(std::move(stored), Jump{body.first});
  }

 private:
  Result<void> begin(Turn& turn) const {
    auto value = list.evaluate(turn.scope());
    if (!value) return turn.failure(value.error().code, "the list: " + value.error().message);
    if (value->is_null()) {
      return turn.failure(model::Errc::invalid_argument,
                          "there is no list; write `?? []` behind it if it may be missing");
    }
    if (!value->is_array()) {
      return turn.failure(
          model::Errc::invalid_argument,
          std::string("expected a list, not a value of the type ") + value->type_name());
    }
    if (value->size() > most_items) {
      return turn.exceeded("the list has more than ", most_items,
                           " items; take some of them by `.slice(0, n)`");
    }
    return turn.begin_loop(std::move(*value));
  }

  Step end(Turn& turn) const {  // the Turn forgets the loop
    const Turn::Loop* loop = turn.loop();
    if (loop != nullptr && !loop->list.empty()) {
      turn.erase(*item);
      if (index) turn.erase(*index);
    }
    return Continue{};
  }
};

constexpr NodeField for_each_fields[]{
    required<&ForEachNode::list, &ForEachNode::read_list>("list").as(Form::expression),
    required<&ForEachNode::item>("item").or_beside(),
    optional<&ForEachNode::index>("index").or_beside(),
    required<&ForEachNode::body, &ForEachNode::Body::read>("do").as(Form::nodes).or_beside()};

}  // namespace

constinit const NodeType for_each_node{.name = "forEach",
                                       .shorthand = "list",
                                       .fields = for_each_fields,
                                       .create = create<ForEachNode>};

}  // namespace conversed::flows
