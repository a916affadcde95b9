#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

struct Addition {
  std::string lexicon;
  expression::Template keyphrase;
  std::optional<expression::JsonTemplate> synonyms;
  std::vector<std::string> slots;
  std::optional<expression::JsonTemplate> data;
};

// The keyphrase is the session's own: a user's words must not change how others are understood.
class AddLexiconKeyphraseNode final : public Node {
 public:
  explicit AddLexiconKeyphraseNode(Addition addition) : addition_(std::move(addition)) {}

  Result<Step> run(Turn& turn) const override {
    const std::string keyphrase = addition_.keyphrase.render(turn.scope());
    if (keyphrase.empty()) return Continue{};
    nlohmann::json entry = {{"main", keyphrase}, {"slots", addition_.slots}};
    if (addition_.synonyms) entry["keyphrases"] = addition_.synonyms->value(turn.scope());
    if (addition_.data) entry["data"] = addition_.data->value(turn.scope());
    return step_after(turn.add_keyphrase(addition_.lexicon, std::move(entry)));
  }

 private:
  const Addition addition_;
};

NodePtr create_add_lexicon_keyphrase(NodeConfig& config) {
  (void)config.require("lexicon");
  Addition addition{.lexicon = config.lexicon("lexicon"),
                    .keyphrase = config.text_template("keyphrase"),
                    .synonyms = config.json_template("synonyms"),
                    .slots = config.names("slots"),
                    .data = config.json_template("data")};
  return std::make_unique<const AddLexiconKeyphraseNode>(std::move(addition));
}

constexpr NodeField add_lexicon_keyphrase_fields[]{
    {"lexicon", "name", "The lexicon. Flows that use it find the keyphrase. Required."},
    {"keyphrase", "template", "The main keyphrase. An empty one adds nothing. Required."},
    {"synonyms", "JSON template", "A list of further texts for it."},
    {"slots", "list", "The slots that it fills. Default: the one with the lexicon's name."},
    {"data", "JSON template", "Stands in each hit."}};

}  // namespace

constinit const NodeType add_lexicon_keyphrase_node{
    .name = "addLexiconKeyphrase",
    .summary =
        "Adds a keyphrase to a lexicon for this session, from its next input on. It replaces one "
        "with the same main keyphrase. Other sessions and the lexicon itself stay unchanged. A "
        "session can have 100, of 4 KiB each.",
    .fields = add_lexicon_keyphrase_fields,
    .example =
        "- addLexiconKeyphrase:\n"
        "    lexicon: Cities\n"
        "    keyphrase: \"{{input.text}}\"\n"
        "    slots: [city]\n",
    .create = create_add_lexicon_keyphrase};

}  // namespace conversed::flows
