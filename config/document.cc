#include "config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>

#include "config/values.h"
#include "store/text/utf8.h"

namespace conversed::config {
namespace {

// Ends the parse from within an event; the problem is recorded by then.
struct Stop {};

// Builds the tree from yaml-cpp's events. Its own loader (YAML::Load) is not used: it takes
// duplicate keys in silence, expands aliases and recurses as deep as the file says. One thread at a
// time.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(YamlDocument& document, const std::string& file) : document_(document), file_(file) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    place(mark, YamlNode::Kind::nothing, "");
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problem(mark, "aliases (*name) are not supported here; write the value out");
    place(mark, YamlNode::Kind::nothing, "");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    place(mark, YamlNode::Kind::text, value);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    open(mark, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { open_.pop_back(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    open(mark, YamlNode::Kind::map);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // A collection that is being read.
  struct Open {
    YamlNode* node;  // into the tree; stays put, since only the innermost collection grows
    bool has_key = false;
    std::string key = {};
    std::uint32_t key_line = 0;
    std::uint32_t key_column = 0;
  };

  void problem(const YAML::Mark& mark, std::string message) {
    document_.problems.push_back({.file = file_,
                                  .line = static_cast<std::uint32_t>(mark.line + 1),
                                  .column = static_cast<std::uint32_t>(mark.column + 1),
                                  .path = "",
                                  .message = std::move(message)});
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) problem(mark, "anchors (&name) are not supported here; write the value out");
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    // "?" and "!" are yaml-cpp's own words for an untagged plain and an untagged quoted value.
    if (tag.empty() || tag == "?" || tag == "!") return;
    problem(mark, "tags (" + in_quotes(tag) + ") are not supported here");
  }

  void open(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (open_.size() >= max_yaml_depth) {
      problem(mark, "nested deeper than " + std::to_string(max_yaml_depth) + " levels");
      throw Stop{};
    }
    open_.push_back(Open{.node = place(mark, kind, "")});
  }

  // Puts a node where the parse is: a key, a value, an item or the root. Returns its place in the
  // tree.
  YamlNode* place(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& text) {
    if (++nodes_ > max_yaml_nodes) {
      problem(mark, "more than " + std::to_string(max_yaml_nodes) + " keys and values");
      throw Stop{};
    }
    YamlNode node{.kind = kind,
                  .line = static_cast<std::uint32_t>(mark.line + 1),
                  .column = static_cast<std::uint32_t>(mark.column + 1),
                  .key = "",
                  .text = text,
                  .children = {}};
    if (open_.empty()) {
      document_.root = std::move(node);
      return &document_.root;
    }
    Open& parent = open_.back();
    if (parent.node->kind == YamlNode::Kind::map) {
      if (!parent.has_key) {
        take_key(mark, parent, node);
        return nullptr;
      }
      parent.has_key = false;
      node.line = parent.key_line;
      node.column = parent.key_column;
    }
    node.key = std::move(parent.key);
    parent.key.clear();
    return &parent.node->children.emplace_back(std::move(node));
  }

  void take_key(const YAML::Mark& mark, Open& parent, const YamlNode& key) {
    if (key.kind != YamlNode::Kind::text) {
      problem(mark, "expected a key that is a plain word");
      throw Stop{};  // where its value belongs can't be told
    }
    const auto& siblings = parent.node->children;
    const auto first = std::find_if(siblings.begin(), siblings.end(),
                                    [&](const auto& child) { return child.key == key.text; });
    if (first != siblings.end()) {
      problem(mark, "the key " + in_quotes(key.text) + " is given twice, first in line " +
                        std::to_string(first->line));
    }
    parent.has_key = true;
    parent.key = key.text;
    parent.key_line = key.line;
    parent.key_column = key.column;
  }

  YamlDocument& document_;
  const std::string& file_;
  std::vector<Open> open_;
  std::size_t nodes_ = 0;
};

}  // namespace

YamlDocument parse_yaml(const std::string& text, const std::string& name) {
  YamlDocument document;
  const auto refuse = [&](std::uint32_t line, std::uint32_t column, std::string message) {
    document.problems.push_back(
        {.file = name, .line = line, .column = column, .path = "", .message = std::move(message)});
  };
  // yaml-cpp replaces bad bytes in silence, and guesses UTF-16 and UTF-32 from NULs.
  if (!text::is_utf8(text) || text.find('\0') != std::string::npos) {
    refuse(0, 0, "is not UTF-8 text");
    return document;
  }
  try {
    // At the very end of its input yaml-cpp takes an unclosed quote for closed and a lone word for
    // a key (its issue 819). With a comment there, it is not the end.
    std::istringstream in(text + "\n#");
    YAML::Parser parser(in);
    TreeBuilder builder(document, name);
    if (parser.HandleNextDocument(builder)) {
      YamlDocument rest;
      TreeBuilder ignored(rest, name);
      if (parser.HandleNextDocument(ignored)) {
        refuse(rest.root.line, 1, "a second document begins here; expected one only");
      }
    }
  } catch (const Stop&) {
    // The event that stopped has recorded why.
  } catch (const YAML::Exception& error) {
    const auto line = static_cast<std::uint32_t>(error.mark.line + 1);
    const auto lines = static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n') +
                                                  (text.ends_with('\n') ? 0 : 1));
    if (error.mark.is_null()) {
      refuse(0, 0, "is not valid YAML: " + error.msg);
    } else if (line > lines) {
      refuse(lines, 0, "is not valid YAML: " + error.msg + " (at the file's end)");
    } else {
      refuse(line, static_cast<std::uint32_t>(error.mark.column + 1),
             "is not valid YAML: " + error.msg);
    }
  } catch (const std::exception& error) {
    refuse(0, 0, std::string("is not valid YAML: ") + error.what());
  }
  return document;
}

}  // namespace conversed::config
