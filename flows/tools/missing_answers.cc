#include "flows/tools/missing_answers.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "flows/node_types.h"
#include "flows/tools/ways.h"

namespace conversed::flows::tools {
namespace {

constexpr std::size_t most_nodes = 200;  // that are looked at behind one question

bool is_below(std::string_view path, std::string_view whole) {
  return path.starts_with(whole) &&
         (path.size() == whole.size() || path[whole.size()] == '.' || path[whole.size()] == '[');
}

bool reads(const Flow::Read& read, std::string_view path) {
  return std::ranges::any_of(read.facts.paths,
                             [&](const auto& one) { return is_below(one, path); });
}

// Whether the user sees the texts of the Node.
bool is_said(const Flow::Slot& slot) {
  const auto type = slot.type->name;
  return type == "say" || type == "question" || type == "handover" || type == "followUp";
}

// One use. Bounded, because the daemon checks what its users import.
class Search {
 public:
  explicit Search(const Flow& flow) : flow_(flow) {}

  [[nodiscard]] std::vector<MissingAnswer> run() {
    std::vector<MissingAnswer> found;
    for (const auto& slot : flow_.slots()) {
      if (slot.type->name != "question" || slot.outline.writes.empty()) continue;
      const auto& ways = slot.outline.ways;
      const auto& path = slot.outline.writes.front();
      const auto way = std::ranges::find(ways, "onNoAnswer", &Flow::Way::name);
      if (way == ways.end()) {
        if (const auto* reader = reader_behind(slot.next, path, &slot, Reader::any)) {
          found.push_back({&slot, "the Node " + reader->address + " needs '" + path +
                                      "', but without an answer the execution ends here and the "
                                      "user is told nothing; add onNoAnswer"});
        }
      } else if (const auto* speaker = reader_behind(way->to, path, nullptr, Reader::says)) {
        found.push_back({&slot, "after onNoAnswer '" + path + "' is null, and the Node " +
                                    speaker->address +
                                    " says it; end onNoAnswer with a stop, or add an if"});
      }
    }
    return found;
  }

 private:
  enum class Reader : std::uint8_t { any, says };

  // Finds a Node that reads the path, on a way from `first`. On this way no Node writes the path or
  // asks whether it is there, and the way does not pass `question`.
  [[nodiscard]] const Flow::Slot* reader_behind(NodeIndex first, const std::string& path,
                                                const Flow::Slot* question, Reader reader) {
    std::set<NodeIndex> seen;
    std::vector<NodeIndex> open{first};
    while (!open.empty() && seen.size() < most_nodes) {
      const NodeIndex at = open.back();
      open.pop_back();
      if (at == end_of_flow || !seen.insert(at).second || &flow_.slot(at) == question) continue;
      const auto& slot = flow_.slot(at);
      const auto use = use_of(slot, path, reader);
      if (use == Use::read) return &slot;
      if (use == Use::none) std::ranges::copy(successors(slot), std::back_inserter(open));
    }
    return nullptr;
  }

  enum class Use : std::uint8_t { none, read, settled };
  Use use_of(const Flow::Slot& slot, const std::string& path, Reader reader) {
    Use use = Use::none;
    for (const auto& read : slot.outline.reads) {
      left_ -= std::min(left_, read.facts.paths.size() + 1);
      if (left_ == 0) return Use::settled;
      if (!reads(read, path)) continue;
      if (read.is_condition || read.facts.decides) return Use::settled;
      if (reader == Reader::any || is_said(slot)) use = Use::read;
    }
    if (use != Use::none) return use;
    const bool writes = std::ranges::any_of(slot.outline.writes, [&](const auto& written) {
      return is_below(written, path) || is_below(path, written);
    });
    const bool enters = std::ranges::any_of(slot.outline.uses, [](const auto& used) {
      return used.kind == Flow::Use::Kind::flow;  // that Flow may write anything
    });
    return writes || enters ? Use::settled : Use::none;
  }

  const Flow& flow_;
  std::size_t left_ = 1'000'000;  // paths that may still be compared
};

}  // namespace

std::vector<MissingAnswer> missing_answers(const Flow& flow) {
  return Search(flow).run();
}

}  // namespace conversed::flows::tools
