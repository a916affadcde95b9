#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flows/fields.h"
#include "flows/flow.h"

namespace conversed::flows {

inline constexpr Key flow_keys[]{must_have("name", Form::name), may_have("lexicons", Form::names),
                                 must_have("nodes", Form::nodes)};

// Compiles one Flow. The Nodes of a list get neighboring places in the array, so the successor of
// each Node is known before its branches are compiled. The readers of files bound the nesting and
// thereby the recursion. One thread, one use.
class FlowCompiler {
 public:
  FlowCompiler(Report& report, const KnownNames* known)
      : report_(report), known_(known), flow_(new Flow) {}

  // Null if there were problems, which are in the report.
  [[nodiscard]] std::shared_ptr<const Flow> compile(const View& definition);

  // Compiles a list of Nodes. `next` follows its last Node. Returns the index of its first Node, or
  // `next` if the list is empty. `path` is the list's path in the Flow.
  [[nodiscard]] NodeIndex sequence(const View& list, const std::string& path, NodeIndex next);

  // Declares a way from the Node at `from` to the Node with this id. If there is no such Node,
  // `compile` reports it at the end.
  void expect_node(const View& reference, std::string id, NodeIndex from);

  [[nodiscard]] NodeIndex nodes_so_far() const { return NodeIndex(flow_->slots_.size()); }
  // Empty until the Node is compiled.
  [[nodiscard]] const Flow::Slot& slot(NodeIndex index) const { return flow_->slot(index); }

  [[nodiscard]] const KnownNames* known() const { return known_; }

 private:
  struct Reference {
    std::string id;
    Place place;
    std::string path;
    NodeIndex from;
  };

  void node(const View& view, std::string path, NodeIndex index, NodeIndex next);
  // The member that is named after a Node type. Null, and a problem, if there is none.
  [[nodiscard]] const Located::Member* typed_member(const View& view);
  [[nodiscard]] std::string address_of(const View& view, const std::string& path);
  void check_references();

  Report& report_;
  const KnownNames* known_;
  std::shared_ptr<Flow> flow_;
  std::vector<Reference> references_;
  bool too_many_ = false;
};

// Reports `there is no Flow 'x'; did you mean 'y'?` for a text that is not among `known`. `missing`
// is the beginning of the message: "there is no Flow".
void expect_known(const View& view, std::string_view missing, const Names& known);

// Reports a mapping of locales to texts that is empty, has a locale that is not among `known`, or
// lacks the first one. If `known` is empty, any locale is possible.
void expect_locales(const View& mapping, const std::vector<std::string>& known);

}  // namespace conversed::flows
