#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// Only the session gets the keyphrase: a user must not change how others are understood.
struct AddKeyphraseNode final : Node {
  std::string lexicon;
  expression::Template keyphrase;
  std::optional<expression::JsonTemplate> synonyms;
  std::vector<std::string> slots;
  std::optional<expression::JsonTemplate> data;

  Result<Step> run(Turn& turn) const override {
    const std::string main = keyphrase.render(turn.scope());
    if (main.empty()) return Continue{};
    nlohmann::json entry = {{"main", main}, {"slots", slots}};
    if (synonyms) entry["keyphrases"] = synonyms->value(turn.scope());
    if (data) entry["data"] = data->value(turn.scope());
    return step_after(turn.add_keyphrase(lexicon, std::move(entry)));
  }
};

constexpr NodeField add_lexicon_keyphrase_fields[]{
    required<&AddKeyphraseNode::lexicon, &NodeConfig::lexicon>("lexicon"),
    required<&AddKeyphraseNode::keyphrase>("keyphrase"),
    optional<&AddKeyphraseNode::synonyms>("synonyms"), optional<&AddKeyphraseNode::slots>("slots"),
    optional<&AddKeyphraseNode::data>("data")};

}  // namespace

constinit const NodeType add_lexicon_keyphrase_node{.name = "addLexiconKeyphrase",
                                                    .fields = add_lexicon_keyphrase_fields,
                                                    .create = create<AddKeyphraseNode>};

}  // namespace conversed::flows
