#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flows/fields.h"
#include "flows/flow.h"

namespace conversed::flows {

// Compiles one Flow. A list of Nodes gets neighboring places in the array, so that the Node after
// each is known before its branches are compiled. The readers of files bound the nesting, and so
// the recursion. One thread, one use.
class FlowCompiler {
 public:
  FlowCompiler(Report& report, const KnownNames* known)
      : report_(report), known_(known), flow_(new Flow) {}

  // Null if there were problems; they are in the report.
  [[nodiscard]] std::shared_ptr<const Flow> compile(const View& definition);

  // Compiles a list of Nodes; `next` comes after its last one. Returns the index of its first one,
  // or `next` if the list is empty. `path` is that of the list in the Flow.
  [[nodiscard]] NodeIndex sequence(const View& list, const std::string& path, NodeIndex next);

  // The Node of this id is a way of the Node at `from`. If there is none, `compile` reports it at
  // its end.
  void expect_node(const View& reference, std::string id, NodeIndex from);

  [[nodiscard]] NodeIndex nodes_so_far() const { return NodeIndex(flow_->slots_.size()); }

  [[nodiscard]] const KnownNames* known() const { return known_; }

 private:
  struct Reference {
    std::string id;
    Place place;
    std::string path;
    NodeIndex from;
  };

  void node(const View& view, std::string path, NodeIndex index, NodeIndex next);
  // The member that is named by a Node type; null, and a problem, if there is none.
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
// is the message's begin: "there is no Flow".
void expect_known(const View& view, std::string_view missing, const Names& known);

}  // namespace conversed::flows
