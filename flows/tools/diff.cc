#include "flows/tools/diff.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "flows/node_types.h"

namespace conversed::flows::tools {
namespace {

using nlohmann::json;
using Kind = FlowChange::Kind;

// Lists beyond this are compared place by place: the table of the alignment would be too large.
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

// Both are lists of Nodes, or one is and the other is empty or missing.
bool are_node_lists(const json& before, const json& after) {
  const auto may_be = [](const json& value) {
    return value.is_null() || (value.is_array() && value.empty()) || is_node_list(value);
  };
  return (is_node_list(before) || is_node_list(after)) && may_be(before) && may_be(after);
}

// What Nodes are compared by, made once for each.
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

// How well a Node fits another; 0: they are different Nodes.
int likeness(const Traits& before, const Traits& after) {
  if (before.whole == after.whole) return 8;
  if (before.type != after.type || before.id != after.id) return 0;
  if (!before.id.empty()) return 6;
  // A Node that differs in its branches alone is rather the same than one that says something else.
  return before.own == after.own ? 4 : 1;
}

using Pairs = std::vector<std::pair<std::optional<std::size_t>, std::optional<std::size_t>>>;

// The best alignment of two lists: places of both, or of one where the other has no such Node.
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
    // best[i][j]: of what is left from the i-th and j-th Node on.
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
    members(own, before, after, {}, "");
    if (!own.fields.empty()) changes_.insert(changes_.begin(), std::move(own));
    find_moved();
    return std::move(changes_);
  }

 private:
  // The members of two mappings: lists of Nodes are gone into, everything else is a field of
  // `node`. `prefix` is the fields' name so far, `at` the path of the lists.
  void members(FlowChange& node, const json& before, const json& after, const Places& at,
               const std::string& prefix) {
    std::vector<std::string> names;
    for (const json* object : {&before, &after}) {
      if (!object->is_object()) continue;
      for (const auto& [name, value] : object->items()) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
    for (const auto& name : names) {
      // As the addresses of Nodes are written: `nodes[1].cases["yes"][0]`.
      std::string part = prefix.empty() ? name : "[\"" + name + "\"]";
      if (prefix.empty() && !at.after.empty()) part.insert(0, 1, '.');
      values(node, member(before, name), member(after, name), at.below(part), prefix + name);
    }
  }

  void values(FlowChange& node, const json& before, const json& after, const Places& at,
              const std::string& name) {
    if (before == after) return;
    if (are_node_lists(before, after)) return nodes(before, after, at);
    if (before.is_object() && after.is_object())
      return members(node, before, after, at, name + ".");
    if (before.is_array() && after.is_array() && before.size() == after.size()) {
      for (std::size_t i = 0; i < before.size(); ++i) {
        const std::string index = "[" + std::to_string(i) + "]";
        values(node, before[i], after[i], at.below(index), name + index);
      }
      return;
    }
    node.fields.push_back({name, before, after});
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
        changes_.push_back({.kind = i ? Kind::removed : Kind::added,
                            .path = i ? was : is,
                            .old_path = {},
                            .type = type_name(node),
                            .id = id_of(node),
                            .fields = {},
                            .node = node});
      }
    }
  }

  void pair(const json& before, const json& after, const Places& at) {
    if (before == after) return;
    const std::string type = type_name(after);
    FlowChange change{.kind = Kind::changed,
                      .path = at.after,
                      .old_path = at.before == at.after ? "" : at.before,
                      .type = type,
                      .id = id_of(after),
                      .fields = {},
                      .node = {}};
    const std::size_t place = changes_.size();
    json beside_before = before;
    json beside_after = after;
    beside_before.erase(type);
    beside_after.erase(type);
    const json& old_config = before[type];
    const json& new_config = after[type];
    if (old_config.is_object() && new_config.is_object()) {
      members(change, old_config, new_config, at, "");
    } else {
      values(change, old_config, new_config, at, type);
    }
    members(change, beside_before, beside_after, at, "");
    if (change.fields.empty()) return;
    // In front of what was found in its branches.
    changes_.insert(changes_.begin() + static_cast<std::ptrdiff_t>(place), std::move(change));
  }

  // What was removed here and added there is one Node: of the same id and type, or equal in all.
  void find_moved() {
    for (FlowChange& added : changes_) {
      if (added.kind != Kind::added) continue;
      const auto removed = std::find_if(changes_.begin(), changes_.end(), [&](const auto& other) {
        if (other.kind != Kind::removed || other.type != added.type) return false;
        return added.id.empty() ? other.node == added.node : other.id == added.id;
      });
      if (removed == changes_.end()) continue;
      added.kind = Kind::moved;
      added.old_path = std::exchange(removed->path, {});
      const json old_node = std::exchange(removed->node, nullptr);
      const json new_node = std::exchange(added.node, nullptr);
      if (old_node != new_node) {
        added.fields.push_back({added.type, old_node[added.type], new_node[added.type]});
      }
      removed->type.clear();  // taken
    }
    std::erase_if(changes_, [](const FlowChange& change) {
      return change.kind == Kind::removed && change.path.empty();
    });
  }

  std::vector<FlowChange> changes_;
};

}  // namespace

std::vector<FlowChange> diff_flows(const json& before, const json& after) {
  return Differ().run(before, after);
}

std::string_view to_string(FlowChange::Kind kind) {
  switch (kind) {
    case Kind::added:
      return "added";
    case Kind::removed:
      return "removed";
    case Kind::changed:
      return "changed";
    case Kind::moved:
      return "moved";
  }
  return "";
}

}  // namespace conversed::flows::tools
