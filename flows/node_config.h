#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/expression/expression.h"
#include "flows/expression/path.h"
#include "flows/expression/template.h"
#include "flows/fields.h"
#include "flows/flow.h"
#include "flows/node.h"
#include "flows/regex.h"

namespace conversed::flows {

class FlowCompiler;
struct NodeType;

// The config of one Node while its Flow is compiled. Each reader reports a wrong value at its place
// and returns a harmless one, so that `create` continues and all problems are reported at once. A
// Flow with problems never runs. Reading the config also notes the facts for tools (Flow::Outline).
// One thread.
class NodeConfig {
 public:
  // `node` is the whole Node, `config` the value under the type's name; both outlive this.
  NodeConfig(FlowCompiler& compiler, const NodeType& type, const View& node, const View& config,
             std::string path, NodeIndex here, NodeIndex next);

  // The Node that follows this one. A missing branch leads there.
  [[nodiscard]] NodeIndex next() const { return next_; }
  [[nodiscard]] bool has(std::string_view field) const { return find(field).has_value(); }

  // Nothing if the field is missing or null; `require` reports that as a problem.
  [[nodiscard]] std::optional<View> find(std::string_view field) const;
  [[nodiscard]] std::optional<View> require(std::string_view field);

  // Required. The functions below whose result is optional give nothing for a missing field.
  [[nodiscard]] expression::Template text_template(std::string_view field);
  [[nodiscard]] std::optional<expression::Template> optional_template(std::string_view field);
  // Required: one text or a list of at least one.
  [[nodiscard]] std::vector<expression::Template> alternatives(std::string_view field);
  [[nodiscard]] expression::Expression condition(std::string_view field);  // required
  [[nodiscard]] std::optional<expression::JsonTemplate> json_template(std::string_view field);
  // A mapping of header names to templates.
  [[nodiscard]] std::vector<std::pair<std::string, expression::Template>> headers(
      std::string_view field);
  // Of a value at any place in this Node.
  [[nodiscard]] expression::JsonTemplate json_template_at(const View& view);
  [[nodiscard]] std::optional<expression::Path> path_at(const View& view);
  [[nodiscard]] std::optional<expression::Path> path(std::string_view field);
  [[nodiscard]] expression::Path path_or(std::string_view field, const char* otherwise);
  [[nodiscard]] std::string choice(std::string_view field,
                                   std::span<const std::string_view> choices,
                                   std::string_view otherwise);
  [[nodiscard]] int integer(std::string_view field, int otherwise, int least, int most);
  [[nodiscard]] std::chrono::milliseconds duration(
      std::string_view field, std::optional<std::chrono::milliseconds> otherwise,
      std::chrono::milliseconds least, std::chrono::milliseconds most);
  [[nodiscard]] std::vector<std::string> names(std::string_view field);
  // The name of a Connection of the project; empty if the field is missing.
  [[nodiscard]] std::string connection(std::string_view field);
  // The name of a Connection to a language model; required.
  [[nodiscard]] std::string model_connection(std::string_view field);
  struct Knowledge {
    std::string store;
    std::vector<std::string> sources;  // empty: all of the store
  };
  // `store` (required) and `sources`, of this Node or of a mapping within it.
  [[nodiscard]] Knowledge knowledge();
  [[nodiscard]] Knowledge knowledge_at(const Fields& fields);
  // The id of a Node of this Flow; required.
  [[nodiscard]] std::string node_id(std::string_view field);

  // The first Node of a list of Nodes, after which `next()` comes; `next()` if there is none.
  [[nodiscard]] NodeIndex branch(std::string_view field);
  // The first of the Nodes of the list, after which this Node runs again; this Node's own index if
  // the list is empty. `name` is that of the way. The Nodes follow this one in the array, before
  // those of branches that are read later.
  [[nodiscard]] NodeIndex loop(const View& nodes, const std::string& name);
  [[nodiscard]] NodeIndex here() const { return here_; }
  [[nodiscard]] NodeIndex nodes_so_far() const;  // the array's size now
  // A mapping of texts to lists of Nodes; required.
  [[nodiscard]] std::vector<std::pair<std::string, NodeIndex>> branches(std::string_view field);

  // For Nodes without config: `- stop: true`.
  void expect_true();
  // For free-form Nodes: each member names a place below `root` and has the template of its value.
  [[nodiscard]] std::vector<std::pair<expression::Path, expression::JsonTemplate>> assignments(
      std::string_view root);
  // For free-form Nodes: one name or a list of names of places below `root`.
  [[nodiscard]] std::vector<expression::Path> places(std::string_view root);

  // The name of another Flow of the project; required.
  [[nodiscard]] std::string flow_name(std::string_view field);
  // The name of a lexicon that this Flow uses; empty if the field is missing.
  [[nodiscard]] std::string lexicon(std::string_view field);
  [[nodiscard]] std::optional<Regex> regex(std::string_view field, Regex::Case which);
  [[nodiscard]] bool flag(std::string_view field, bool otherwise);
  // The name of a slot; empty if the field is missing.
  [[nodiscard]] std::string slot(std::string_view field);
  // For Nodes that only go the ways of their branches.
  void never_continues() { outline_.continues = false; }

  // Call it last.
  [[nodiscard]] Flow::Outline take_outline();

  // Any other check.
  void problem(std::string_view field, std::string message);
  // For a config that does no harm when it runs, and that earlier versions accepted: imports refuse
  // it, but a stored Flow compiles. Kept by:
  // StoredDefinitions.CompileWithWordsThatTheirTypeIgnores.
  void import_problem(std::string_view field, std::string message);
  // For `flow check` alone.
  void warn(std::string_view field, std::string message);

 private:
  void check_keys();
  [[nodiscard]] expression::Template template_at(const View& view);
  [[nodiscard]] expression::Expression expression_at(const View& view, std::string_view source);
  // Checks each text of the value on its own, so that a problem has the place of its text.
  void check_templates(const View& view);
  void note_reads(const View& view, const expression::MembersRead& reads);
  // The name in the field. A problem if it is not among the `known` names.
  using Names = std::set<std::string, std::less<>>;
  [[nodiscard]] std::string named(const std::optional<View>& found, Flow::Use::Kind kind,
                                  std::string_view missing, const Names KnownNames::*known);
  void use(Flow::Use::Kind kind, const View& at, std::string name);

  FlowCompiler& compiler_;
  const NodeType& type_;
  const View& node_;
  const View& config_;
  const std::string path_;  // of this Node in its Flow, such as `nodes[3].then[0]`
  const NodeIndex here_;
  const NodeIndex next_;
  Flow::Outline outline_;
};

}  // namespace conversed::flows
