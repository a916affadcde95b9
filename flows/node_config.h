#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/expression/expression.h"
#include "flows/expression/path.h"
#include "flows/expression/template.h"
#include "flows/fields.h"
#include "flows/flow.h"
#include "flows/local_text.h"
#include "flows/node.h"
#include "flows/regex.h"

namespace conversed::flows {

class FlowCompiler;
struct NodeField;
struct NodeType;

// The config of one Node during the compilation of its Flow. Each reader reports a wrong value at
// its place and returns a harmless one, so that all problems are reported at once. A Flow with
// problems never runs. Reading the config also records facts for tools (Flow::Outline). One thread.
class NodeConfig {
 public:
  // `node` is the whole Node, `config` the value under the type's name. Both must outlive this.
  NodeConfig(FlowCompiler& compiler, const NodeType& type, const View& node, const View& config,
             std::string path, NodeIndex here, NodeIndex next);

  // Reads the type's fields into their members. A missing field leaves its member unchanged. A
  // missing required field is a problem.
  void read_fields(Node& node);
  // Call it last.
  [[nodiscard]] Flow::Outline take_outline();

  // Nothing if the field is missing or null. `require` reports that as a problem.
  [[nodiscard]] std::optional<View> find(std::string_view field) const;
  std::optional<View> require(std::string_view field);
  [[nodiscard]] bool has(std::string_view field) const { return find(field).has_value(); }

  // These read a field by the type of its member.
  void read(const View& at, const NodeField&, bool& into) { into = at.flag().value_or(into); }
  void read(const View& at, const NodeField& field, int& into);
  void read(const View& at, const NodeField& field, std::chrono::milliseconds& into);
  void read(const View& at, const NodeField& field, std::string& into);  // a choice, or a name
  void read(const View& at, const NodeField&, std::vector<std::string>& into);  // names
  void read(const View& at, const NodeField&, expression::Template& into) {
    into = template_at(at);
  }
  void read(const View& at, const NodeField&, LocalText& into) { into = local_text_at(at); }
  // One text, or a list of at least one, each maybe by locale.
  void read(const View& at, const NodeField&, std::vector<LocalText>& into);
  void read(const View& at, const NodeField&, expression::Expression& into) {
    into = condition_at(at);
  }
  void read(const View& at, const NodeField&, std::optional<expression::JsonTemplate>& into) {
    into = json_template_at(at);
  }
  void read(const View& at, const NodeField&, std::optional<expression::Path>& into) {
    into = path_at(at);
  }
  // A mapping of header names to templates.
  using Headers = std::vector<std::pair<std::string, expression::Template>>;
  void read(const View& at, const NodeField&, Headers& into);
  void read(const View& at, const NodeField& field, NodeIndex& into);  // a branch
  template <typename T>
  void read(const View& at, const NodeField& field, std::optional<T>& into) {
    read(at, field, into.emplace());
  }

  // Readers that a field names. `connection` refuses a Connection to a language model.
  void connection(const View& at, std::string& into);
  void model_connection(const View& at, std::string& into);
  void flow_name(const View& at, std::string& into);  // another Flow of the project
  void lexicon(const View& at, std::string& into);
  void slot(const View& at, std::string& into);
  void node_id(const View& at, std::string& into);  // a Node of this Flow
  struct Knowledge {
    std::string store;
    std::vector<std::string> sources;  // empty: all of the store
  };
  // Reads the field `store` with this Node's `sources`.
  void knowledge(const View& store, Knowledge& into);

  // Reads a value at any place in this Node.
  [[nodiscard]] Knowledge knowledge_at(const View& store, const std::optional<View>& sources);
  [[nodiscard]] expression::JsonTemplate json_template_at(const View& view);
  [[nodiscard]] std::optional<expression::Path> path_at(const View& view);
  [[nodiscard]] std::optional<Regex> regex_at(const View& view, Regex::Case which);
  [[nodiscard]] expression::Expression condition_at(const View& view);
  [[nodiscard]] expression::Template template_at(const View& view);
  // A text, or a mapping of locales to texts.
  [[nodiscard]] LocalText local_text_at(const View& view);
  // Reports a mapping of locales that the project does not have, or that lacks its primary one.
  void check_locales(const View& mapping);
  // Records that the values it writes are true, false or null.
  void note_flag() { outline_.writes_flag = true; }
  // Records the write of a default that no field replaces.
  void note_write(std::string path) { outline_.writes.push_back(std::move(path)); }

  // The first Node of a list of Nodes. After the list, the Node after this one runs. A missing list
  // leads directly to that Node.
  [[nodiscard]] NodeIndex branch(std::string_view field, const View* nodes);
  // The same for a list elsewhere in this Node. `part` is its path below this Node, `name` the name
  // of the way.
  [[nodiscard]] NodeIndex branch_at(const std::string& part, std::string name, const View* nodes);
  // The first Node of a list after which this Node runs again. Nothing if the list is empty. `name`
  // is the name of the way.
  [[nodiscard]] std::optional<NodeIndex> loop(const View& nodes, const std::string& name);
  [[nodiscard]] NodeIndex nodes_so_far() const;  // the current size of the array
  // Reports each Node from `begin` on, of the branch at the place, that waits for an input. Records
  // the Flows that these Nodes enter.
  void refuse_waits(const View& at, NodeIndex begin);
  // A mapping of texts to lists of Nodes.
  [[nodiscard]] std::vector<std::pair<std::string, NodeIndex>> branches(std::string_view field,
                                                                        const View& mapping);

  // For free-form Nodes: each member names a place below `root`. Its value is a template.
  [[nodiscard]] std::vector<std::pair<expression::Path, expression::JsonTemplate>> assignments(
      std::string_view root);
  // For free-form Nodes: one name, or a list of names, of places below `root`.
  [[nodiscard]] std::vector<expression::Path> places(std::string_view root);

  // Records the name of an argument for the Flow that this Node enters.
  void note_argument(std::string name) { outline_.arguments.push_back(std::move(name)); }
  // For a Node that ends its Flow.
  void ends_flow() { outline_.ways.push_back({"", end_of_flow}); }

  // For a Node that never continues, although its type may.
  void never_continues() { outline_.continues = false; }

  void problem(std::string_view field, std::string message);
  // Reports a harmless config that earlier versions accepted. Imports refuse it, but a stored Flow
  // compiles.
  // Kept by: StoredDefinitions.CompileWithWordsThatTheirTypeIgnores.
  void import_problem(const View& at, std::string message);
  // Reported only by `flow check`.
  void warn(const View& at, std::string message);

 private:
  void check_keys();
  [[nodiscard]] std::string misplaced(const Located::Member& member,
                                      const std::vector<std::string_view>& inside,
                                      std::vector<std::string_view> beside) const;
  [[nodiscard]] bool is_shorthand_by_locale(const std::vector<std::string_view>& inside) const;
  [[nodiscard]] bool is_true_for_nothing() const;
  void expect_true();
  void warn_of_expression(const View& text);
  // Checks each text of the value separately, so that a problem has the place of its text.
  void check_templates(const View& view);
  enum class Reader : std::uint8_t { condition, text };
  void note_reads(const View& view, expression::Facts facts, Reader reader);
  // The name at the place. Empty if there is none. A problem if it is not among the `known` names.
  [[nodiscard]] std::string named(const View& at, Flow::Use::Kind kind, std::string_view missing,
                                  const Names KnownNames::*known);
  void use(Flow::Use::Kind kind, const View& at, std::string name);

  FlowCompiler& compiler_;
  const NodeType& type_;
  const View& node_;
  const View& config_;
  const std::string path_;  // this Node's path in its Flow, such as `nodes[3].then[0]`
  const NodeIndex here_;
  const NodeIndex next_;
  Flow::Outline outline_;
};

}  // namespace conversed::flows
