#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/expression/expression.h"
#include "flows/node.h"
#include "flows/problem.h"

namespace conversed::flows {

struct NodeType;
class View;

// Names that a Flow may refer to. The loader checks references against the bundle. A stored Flow
// compiles without these names: if a Connection was deleted, its Node fails when it runs.
// Kept by: HttpRequestNode.FailsAtOnceWhenItsConnectionIsDeleted.
struct KnownNames {
  std::set<std::string, std::less<>> connections;
  std::set<std::string, std::less<>> models;  // Connections to language models
  std::set<std::string, std::less<>> lexicons;
  std::set<std::string, std::less<>> tokens;  // labels
  std::set<std::string, std::less<>> flows;
  std::vector<std::string> locales;  // of the project; the first is the primary one
  // The sources of each knowledge store.
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> knowledge;
};

// One version of a Flow, compiled: an array of Nodes, each with its address and the Node that
// follows. Immutable. Threads share it without locks.
class Flow {
 public:
  // Compiles a definition from a Bundle or the store: `{"name","lexicons":[..],"nodes":[..]}`. The
  // problems have paths, and places if the definition comes from a file.
  [[nodiscard]] static Checked<std::shared_ptr<const Flow>> compile(
      const nlohmann::json& definition);

  // Compiles JSON text, such as `FlowVersion::definition`. Text that is not JSON is a Problem.
  [[nodiscard]] static Checked<std::shared_ptr<const Flow>> compile_text(
      std::string_view definition);

  // For the loader: problems go to the view's report. Null if there were any.
  [[nodiscard]] static std::shared_ptr<const Flow> compile(const View& definition,
                                                           const KnownNames* known);

  // A branch of a Node, besides the way to the Node that follows.
  struct Way {
    std::string name;  // of the field: `then`, `cases: yes`, `onError`
    NodeIndex to = end_of_flow;
  };
  // An object of the project that a Node names.
  struct Use {
    enum class Kind : std::uint8_t { connection, flow, knowledge, lexicon, slot };
    Kind kind = Kind::connection;
    std::string name;
    Place place;
  };
  // A text in which a Node reads values.
  struct Read {
    expression::Facts facts;
    Place place;
    bool is_condition = false;
  };
  // A use of a Node that works, but is probably a mistake.
  struct Warning {
    Place place;
    std::string message;
  };
  // The locales of a text that has several.
  struct Locales {
    std::vector<std::string> names;
    Place place;
  };
  // Facts about a Node for tools. Running a Flow does not need them.
  struct Outline {
    Place place;
    // Its text, condition, Flow or URL as written; may be empty. Of a text by locale the first one.
    std::string label;
    std::vector<std::pair<std::string, std::string>> labels;  // by locale, if it has several
    // The label of this locale, otherwise the first one.
    [[nodiscard]] const std::string& label_in(std::string_view locale) const;
    bool continues = true;  // the Node that follows may come next
    std::vector<Way> ways;
    std::vector<Use> uses;
    std::vector<Read> reads;
    std::vector<std::string> writes;     // paths, such as `context.cart.total`
    bool writes_flag = false;            // its values are true, false or null
    std::vector<std::string> arguments;  // their names, for the Flow that it enters
    std::vector<Use> pauses;             // Flows whose waits turn off its time-out
    std::vector<Warning> warnings;
    std::vector<Locales> locales;
  };

  // A Node at its place in the Flow. Stored state names a Node only by its address.
  // Kept by: Turn.FindsTheWaitingNodeByItsIdInANewVersion, Flow.GivesEveryNodeAStableAddress.
  struct Slot {
    std::unique_ptr<const Node> node;
    const NodeType* type = nullptr;
    std::string address;  // its id, otherwise its path, such as `nodes[3].then[0]`
    NodeIndex next = end_of_flow;
    Outline outline;
  };

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<std::string>& lexicons() const { return lexicons_; }
  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }
  // The first Node. `end_of_flow` if there is none.
  [[nodiscard]] NodeIndex start() const { return start_; }
  // Whether a Node looks for injects that came before it ran (NodeType::keeps_injects).
  [[nodiscard]] bool keeps_injects() const { return keeps_injects_; }
  // The names of the Flows that its Nodes name.
  [[nodiscard]] const std::set<std::string, std::less<>>& entered() const { return entered_; }
  // Requires an index below `slots().size()`.
  [[nodiscard]] const Slot& slot(NodeIndex index) const {
    return slots_[static_cast<std::size_t>(index)];
  }
  // The Node with this address. `end_of_flow` if there is none.
  [[nodiscard]] NodeIndex find(const std::string& address) const;

 private:
  friend class FlowCompiler;
  Flow() = default;

  std::string name_;
  std::vector<std::string> lexicons_;
  std::vector<Slot> slots_;
  std::map<std::string, NodeIndex, std::less<>> by_address_;
  NodeIndex start_ = end_of_flow;
  bool keeps_injects_ = false;
  std::set<std::string, std::less<>> entered_;
};

}  // namespace conversed::flows
