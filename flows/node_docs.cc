#include "flows/node_docs.h"

#include "flows/node_types.h"

namespace conversed::flows {

std::string document_node_types() {
  std::string text;
  for (const NodeType* type : node_types()) {
    text += "## `" + std::string(type->name) + "`\n";
    text += std::string(type->summary) + "\n";
    if (!type->fields.empty()) text += "\n| Key | Value | What |\n| --- | --- | --- |\n";
    for (const auto& field : type->fields) {
      text += "| `" + std::string(field.name) + "` | " + std::string(field.kind) + " | " +
              std::string(field.summary);
      if (field.name == type->shorthand) text += " The value alone stands for it.";
      if (field.where == NodeField::Where::beside) {
        text += " May stand beside `" + std::string(type->name) + "`.";
      }
      text += " |\n";
    }
    text += "\n```yaml\n" + std::string(type->example) + "```\n\n";
  }
  text.pop_back();  // a page ends with one newline
  return text;
}

}  // namespace conversed::flows
