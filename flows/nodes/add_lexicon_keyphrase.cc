// Teaches the session a word: a keyphrase beside those of a lexicon. It is the session's own, since
// what one user says must not change what others are understood to say.
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

class AddLexiconKeyphraseNode final : public Node {
 public:
  explicit AddLexiconKeyphraseNode(Addition addition) : addition_(std::move(addition)) {}

  Result<Step> run(Turn& turn) const override {
    const std::string keyphrase = addition_.keyphrase.render(turn.scope());
    if (keyphrase.empty()) return Continue{};
    nlohmann::json entry = {{"main", keyphrase}, {"slots", addition_.slots}};
    if (addition_.synonyms) entry["keyphrases"] = addition_.synonyms->value(turn.scope());
    if (addition_.data) entry["data"] = addition_.data->value(turn.scope());
    if (auto done = turn.add_keyphrase(addition_.lexicon, std::move(entry)); !done) {
      return model::fail(done.error());
    }
    return Continue{};
  }

 private:
  const Addition addition_;
};

std::unique_ptr<const Node> create_add_lexicon_keyphrase(NodeConfig& config) {
  if (!config.has("lexicon")) config.problem("lexicon", "'lexicon' is missing");
  Addition addition{.lexicon = config.lexicon("lexicon"),
                    .keyphrase = config.text_template("keyphrase"),
                    .synonyms = config.json_template("synonyms"),
                    .slots = config.names("slots"),
                    .data = config.json_template("data")};
  return std::make_unique<const AddLexiconKeyphraseNode>(std::move(addition));
}

constexpr NodeField add_lexicon_keyphrase_fields[]{
    {"lexicon", "name", "The lexicon; Flows that use it find the keyphrase. Required."},
    {"keyphrase", "template", "The main keyphrase; an empty one adds nothing. Required."},
    {"synonyms", "JSON template", "A list of texts that stand for it."},
    {"slots", "list", "The slots that it fills; default: the one with the lexicon's name."},
    {"data", "JSON template", "Handed on with each hit."}};

}  // namespace

constinit const NodeType add_lexicon_keyphrase_node{
    .name = "addLexiconKeyphrase",
    .summary =
        "Adds a keyphrase to a lexicon for this session, from its next input on; one with the same "
        "main keyphrase is replaced. Other sessions, and the lexicon as the API lists it, stay as "
        "they are. At most 100 a session, of 4 KiB each.",
    .shorthand = "",
    .fields = add_lexicon_keyphrase_fields,
    .example =
        "- addLexiconKeyphrase:\n"
        "    lexicon: Cities\n"
        "    keyphrase: \"{{input.text}}\"\n"
        "    slots: [city]\n",
    .create = create_add_lexicon_keyphrase};

}  // namespace conversed::flows
