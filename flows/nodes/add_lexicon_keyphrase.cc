#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// The keyphrase is the session's own: a user's words must not change how others are understood.
NodePtr create_add_lexicon_keyphrase(NodeConfig& config) {
  (void)config.require("lexicon");
  return node_of([lexicon = config.lexicon("lexicon"), phrase = config.text_template("keyphrase"),
                  synonyms = config.json_template("synonyms"), slots = config.names("slots"),
                  data = config.json_template("data")](Turn& turn) -> Result<void> {
    const std::string keyphrase = phrase.render(turn.scope());
    if (keyphrase.empty()) return {};
    nlohmann::json entry = {{"main", keyphrase}, {"slots", slots}};
    if (synonyms) entry["keyphrases"] = synonyms->value(turn.scope());
    if (data) entry["data"] = data->value(turn.scope());
    return turn.add_keyphrase(lexicon, std::move(entry));
  });
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
