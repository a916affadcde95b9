#include "flows/tools/diff.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "flows/node_types.h"

namespace conversed::flows::tools {
namespace {

using nlohmann::json;

// Larger lists are compared place by place, because the table of the alignment would be too large.
constexpr std::size_t max_cells = 1'000'000;

const json nothing;

const json& member(const json& object, const std::string& name) {
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::string type_name(const json& node) {
  if (!node.is_object()) return {};
  for (const auto& [name, value] : node.items()) {
    if (find_node_type(name) != nullptr) return name;
  }
  return {};
}

std::string id_of(const json& node) {
  const json& id = member(node, "id");
  return id.is_string() ? id.get<std::string>() : std::string();
}

bool is_node_list(const json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(),
                     [](const json& item) { return !type_name(item).empty(); });
}

// Whether both are lists of Nodes, or one is and the other is empty or missing.
bool are_node_lists(const json& before, const json& after) {
  const auto may_be = [](const json& value) {
    return value.is_null() || (value.is_array() && value.empty()) || is_node_list(value);
  };
  return (is_node_list(before) || is_node_list(after)) && may_be(before) && may_be(after);
}

// The places of a list's items by their names, such as those of tools. Nothing if not every item
// has a unique name.
std::optional<std::map<std::string, std::size_t>> places_by_name(const json& list) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json& name = member(list[i], "name");
    if (!name.is_string() || !places.emplace(name.get<std::string>(), i).second) return {};
  }
  return places;
}

// The properties by which Nodes are compared. Made once for each Node.
struct Traits {
  std::string type;
  std::string id;
  std::string whole;
  std::string own;  // without its branches

  explicit Traits(const json& node) : type(type_name(node)), id(id_of(node)), whole(node.dump()) {
    json plain = node[type];
    if (plain.is_object()) {
      for (auto field = plain.begin(); field != plain.end();) {
        field = is_node_list(*field) ? plain.erase(field) : std::next(field);
      }
    }
    own = plain.dump();
  }
};

// How similar two Nodes are. 0: they are different Nodes.
int likeness(const Traits& before, const Traits& after) {
  if (before.whole == after.whole) return 8;
  if (before.type != after.type || before.id != after.id) return 0;
  if (!before.id.empty()) return 6;
  // A Node that differs only in its branches is more similar than one with another config.
  return before.own == after.own ? 4 : 1;
}

using Pairs = std::vector<std::pair<std::optional<std::size_t>, std::optional<std::size_t>>>;

// The best alignment of two lists: pairs of places, or single places without a counterpart.
class Alignment {
 public:
  Alignment(const json& before, const json& after)
      : before_(before.begin(), before.end()), after_(after.begin(), after.end()) {}

  Pairs run() {
    const std::size_t shorter = std::min(before_.size(), after_.size());
    std::size_t front = 0;
    while (front < shorter && before_[front].whole == after_[front].whole) ++front;
    std::size_t back = 0;
    while (back < shorter - front &&
           before_[before_.size() - 1 - back].whole == after_[after_.size() - 1 - back].whole) {
      ++back;
    }
    for (std::size_t i = 0; i < front; ++i) pairs_.emplace_back(i, i);
    align(front, before_.size() - back, after_.size() - back);
    for (std::size_t i = back; i > 0; --i) {
      pairs_.emplace_back(before_.size() - i, after_.size() - i);
    }
    return std::move(pairs_);
  }

 private:
  void align(std::size_t begin, std::size_t before_end, std::size_t after_end) {
    const std::size_t rows = before_end - begin;
    const std::size_t columns = after_end - begin;
    if (rows == 0 || columns == 0 || rows > max_cells / columns) {
      return place_by_place(begin, before_end, after_end);
    }
    // best[i][j]: the best sum of likeness from the i-th and j-th Node on.
    std::vector<int> best((rows + 1) * (columns + 1), 0);
    std::vector<signed char> fit(rows * columns, 0);
    const auto at = [&](std::size_t i, std::size_t j) -> int& {
      return best[i * (columns + 1) + j];
    };
    for (std::size_t i = rows; i-- > 0;) {
      for (std::size_t j = columns; j-- > 0;) {
        const int like = likeness(before_[begin + i], after_[begin + j]);
        fit[i * columns + j] = static_cast<signed char>(like);
        at(i, j) = std::max(at(i + 1, j), at(i, j + 1));
        if (like > 0) at(i, j) = std::max(at(i, j), at(i + 1, j + 1) + like);
      }
    }
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < rows || j < columns) {
      const bool both = i < rows && j < columns;
      const int like = both ? fit[i * columns + j] : 0;
      if (like > 0 && at(i, j) == at(i + 1, j + 1) + like) {
        pairs_.emplace_back(begin + i++, begin + j++);
      } else if (i < rows && (j == columns || at(i, j) == at(i + 1, j))) {
        pairs_.emplace_back(begin + i++, std::nullopt);
      } else {
        pairs_.emplace_back(std::nullopt, begin + j++);
      }
    }
  }

  void place_by_place(std::size_t begin, std::size_t before_end, std::size_t after_end) {
    for (std::size_t i = begin; i < std::max(before_end, after_end); ++i) {
      const bool both = i < before_end && i < after_end;
      if (both && likeness(before_[i], after_[i]) > 0) {
        pairs_.emplace_back(i, i);
        continue;
      }
      if (i < before_end) pairs_.emplace_back(i, std::nullopt);
      if (i < after_end) pairs_.emplace_back(std::nullopt, i);
    }
  }

  const std::vector<Traits> before_;
  const std::vector<Traits> after_;
  Pairs pairs_;
};

struct Places {
  std::string before;
  std::string after;

  [[nodiscard]] Places below(const std::string& part) const {
    return {before + part, after + part};
  }
};

class Differ {
 public:
  std::vector<FlowChange> run(const json& before, const json& after) {
    FlowChange own;
    members(own, before, after, {}, {});
    if (!own.fields.empty()) changes_.insert(changes_.begin(), std::move(own));
    find_moved();
    return std::move(changes_);
  }

 private:
  // The place of the mappings whose members are compared.
  struct Prefix {
    std::string name{};     // the fields' names so far; empty: the Node's own
    bool in_field = false;  // the mapping is a field's value, not a Node or an item of a list
  };

  // Compares the members of two mappings. It descends into lists of Nodes. Everything else is a
  // field of `node`. `at` is the path of the lists.
  void members(FlowChange& node, const json& before, const json& after, const Places& at,
               const Prefix& prefix) {
    std::vector<std::string> names;
    std::unordered_set<std::string> seen;
    for (const json* object : {&before, &after}) {
      if (!object->is_object()) continue;
      for (const auto& [name, value] : object->items()) {
        if (seen.insert(name).second) names.push_back(name);
      }
    }
    for (const auto& name : names) {
      // The syntax of Nodes' addresses: `nodes[1].cases["yes"][0]`, `nodes[2].tools[0].do`.
      std::string part = prefix.in_field ? "[\"" + name + "\"]" : name;
      if (!prefix.in_field && !at.after.empty()) part.insert(0, 1, '.');
      const std::string field = prefix.name.empty() ? name : prefix.name + "." + name;
      values(node, member(before, name), member(after, name), at.below(part), field);
    }
  }

  void values(FlowChange& node, const json& before, const json& after, const Places& at,
              const std::string& name) {
    if (before == after) return;
    if (are_node_lists(before, after)) return nodes(before, after, at);
    if (before.is_object() && after.is_object()) {
      return members(node, before, after, at, {name, true});
    }
    if (before.is_array() && after.is_array()) return lists(node, before, after, at, name);
    node.fields.push_back({name, before, after});
  }

  // Compares two lists that are not lists of Nodes. Items with names are matched by their names,
  // items of lists with the same length by their places.
  // The addresses of a split's Nodes have the names of its branches.
  void lists(FlowChange& node, const json& before, const json& after, const Places& at,
             const std::string& name) {
    const auto index = [](std::size_t i) { return "[" + std::to_string(i) + "]"; };
    const bool by_name = at.after.ends_with(".branches");
    const auto part = [&](const json& item, std::size_t i) {
      const json& named = member(item, "name");
      return by_name && named.is_string() ? "[\"" + named.get<std::string>() + "\"]" : index(i);
    };
    const auto was = places_by_name(before);
    const auto is = places_by_name(after);
    if (was && is && in_one_order(*was, *is)) {
      for (const auto& [item, i] : *was) {
        if (!is->contains(item)) node.fields.push_back({name + index(i), before[i], nothing});
      }
      for (std::size_t j = 0; j < after.size(); ++j) {
        const auto i = was->find(after[j]["name"].get_ref<const std::string&>());
        if (i == was->end()) {
          node.fields.push_back({name + index(j), nothing, after[j]});
        } else {
          item(node, before[i->second], after[j],
               {at.before + part(before[i->second], i->second), at.after + part(after[j], j)},
               name + index(j));
        }
      }
    } else if (before.size() == after.size()) {
      for (std::size_t i = 0; i < before.size(); ++i) {
        item(node, before[i], after[i],
             {at.before + part(before[i], i), at.after + part(after[i], i)}, name + index(i));
      }
    } else {
      node.fields.push_back({name, before, after});
    }
  }

  void item(FlowChange& node, const json& before, const json& after, const Places& at,
            const std::string& name) {
    if (before.is_object() && after.is_object()) {
      return members(node, before, after, at, {name, false});
    }
    values(node, before, after, at, name);
  }

  // Whether the common names have the same order in both lists.
  static bool in_one_order(const std::map<std::string, std::size_t>& was,
                           const std::map<std::string, std::size_t>& is) {
    std::map<std::size_t, std::size_t> both;  // places in `is` by places in `was`
    for (const auto& [name, i] : was) {
      if (const auto found = is.find(name); found != is.end()) both.emplace(i, found->second);
    }
    using Place = decltype(both)::value_type;
    return std::ranges::is_sorted(both, {}, &Place::second);
  }

  void nodes(const json& before, const json& after, const Places& at) {
    static const json none = json::array();
    const json& old_list = before.is_array() ? before : none;
    const json& new_list = after.is_array() ? after : none;
    for (const auto& [i, j] : Alignment(old_list, new_list).run()) {
      const std::string was = i ? at.before + "[" + std::to_string(*i) + "]" : "";
      const std::string is = j ? at.after + "[" + std::to_string(*j) + "]" : "";
      if (i && j) {
        pair(old_list[*i], new_list[*j], {was, is});
      } else {
        const json& node = i ? old_list[*i] : new_list[*j];
        changes_.push_back({.kind = i ? FlowChange::Kind::removed : FlowChange::Kind::added,
                            .path = i ? was : is,
                            .type = type_name(node),
                            .id = id_of(node),
                            .node = node});
      }
    }
  }

  void pair(const json& before, const json& after, const Places& at) {
    if (before == after) return;
    const std::string type = type_name(after);
    FlowChange change{.kind = FlowChange::Kind::changed,
                      .path = at.after,
                      .old_path = at.before == at.after ? "" : at.before,
                      .type = type,
                      .id = id_of(after)};
    // A Node's change comes before the changes in its branches.
    const std::size_t place = changes_.size();
    changes_.emplace_back();
    json beside_before = before;
    json beside_after = after;
    beside_before.erase(type);
    beside_after.erase(type);
    const json& old_config = before[type];
    const json& new_config = after[type];
    if (old_config.is_object() && new_config.is_object()) {
      members(change, old_config, new_config, at, {});
    } else {
      values(change, old_config, new_config, old_config.is_array() ? at.below(list_in(type)) : at,
             type);
    }
    members(change, beside_before, beside_after, at, {});
    changes_[place] = std::move(change);
  }

  // The path of a list that stands for a whole config, such as in `once: [..]`.
  static std::string list_in(const std::string& type) {
    return '.' + std::string(find_node_type(type)->shorthand);
  }

  // Whether the change is empty: the Node has moved, or differs only in its branches.
  static bool is_nothing(const FlowChange& change) {
    return (change.kind == FlowChange::Kind::removed && change.path.empty()) ||
           (change.kind == FlowChange::Kind::changed && change.fields.empty());
  }

  // Equal for Nodes that may be the same Node at another place.
  static std::string identity(const FlowChange& change) {
    return change.type + '\n' + (change.id.empty() ? '\n' + change.node.dump() : change.id);
  }

  // A removed Node has moved if a Node with the same id and type, or an equal Node, was added.
  void find_moved() {
    std::unordered_map<std::string, std::vector<FlowChange*>> gone;  // the last one first
    for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
      if (change->kind == FlowChange::Kind::removed) gone[identity(*change)].push_back(&*change);
    }
    for (FlowChange& added : changes_) {
      if (added.kind != FlowChange::Kind::added) continue;
      const auto found = gone.find(identity(added));
      if (found == gone.end() || found->second.empty()) continue;
      FlowChange* removed = found->second.back();
      found->second.pop_back();
      added.kind = FlowChange::Kind::moved;
      added.old_path = std::exchange(removed->path, {});
      const json old_node = std::exchange(removed->node, nullptr);
      const json new_node = std::exchange(added.node, nullptr);
      if (old_node != new_node) {
        added.fields.push_back({added.type, old_node[added.type], new_node[added.type]});
      }
    }
    std::erase_if(changes_, is_nothing);
  }

  std::vector<FlowChange> changes_;
};

}  // namespace

std::vector<FlowChange> diff_flows(const json& before, const json& after) {
  return Differ().run(before, after);
}

std::string_view to_string(FlowChange::Kind kind) {
  constexpr std::array<std::string_view, 4> names{"added", "removed", "changed", "moved"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace conversed::flows::tools
