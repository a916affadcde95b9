// The tables of docs/flows: the facts of the code, and the sentences of the pages. With
// CONVERSED_WRITE_REFERENCE=1 in the environment the test writes the pages instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "flows/bundle/bundle_keys.h"
#include "flows/expression/library.h"
#include "flows/input_members.h"
#include "flows/node_types.h"
#include "flows/tools/flow_test_file.h"
#include "flows/tools/node_pages.h"
#include "store/text/joined.h"
#include "store/text/quantity.h"

namespace conversed::flows {
namespace {

// The tables of keys, below their headings. Node types have one each.
struct Table {
  std::string_view page;
  std::string_view heading;
  std::span<const Key> keys;
};
constexpr Table tables[]{{"bundles.md", "## Keys", bundle_keys},
                         {"bundles.md", "## Members", member_keys},
                         {"bundles.md", "## Tokens", token_keys},
                         {"bundles.md", "## Endpoints", endpoint_keys},
                         {"bundles.md", "## Connections", connection_keys},
                         {"bundles.md", "## Lexicons", entry_keys},
                         {"follow-ups.md", "## The journey", journey_keys},
                         {"testing.md", "### Keys of the file", tools::test_file_keys},
                         {"testing.md", "### Tests", tools::test_keys},
                         {"testing.md", "### Steps", tools::step_keys},
                         {"testing.md", "### Expectations", tools::expectation_keys},
                         {"testing.md", "### Answers of calls", tools::call_stub_keys},
                         {"testing.md", "### Answers of searches", tools::search_stub_keys}};

bool has_table(std::span<const Key> keys) {
  return std::ranges::any_of(tables,
                             [&](const Table& table) { return table.keys.data() == keys.data(); });
}

// `{}` stands for the keys of a mapping.
using WordsOfForm = std::pair<Form, std::string_view>;
constexpr WordsOfForm words_of_forms[]{
    {Form::anything, "any value"},
    {Form::text, "text"},
    {Form::texts, "text, or a list of texts"},
    {Form::name, "name"},
    {Form::flag, "true or false"},
    {Form::number, "number"},
    {Form::duration, "duration"},
    {Form::number_or_duration, "duration or number"},
    {Form::template_text, "template"},
    {Form::json_template, "JSON template"},
    {Form::path, "path"},
    {Form::regex, "regular expression"},
    {Form::expression, "expression"},
    {Form::local_text, "local template"},
    {Form::local_texts, "local template, or a list of them"},
    {Form::names, "list"},
    {Form::any_mapping, "mapping"},
    {Form::text_map, "mapping to texts"},
    {Form::expressions, "mapping to expressions"},
    {Form::nodes, "nodes"},
    {Form::nodes_map, "mapping to nodes"},
    {Form::mapping, "{}"},
    {Form::mappings, "list of {}"},
    {Form::mapping_or_mappings, "{}, or a list of them"},
    {Form::text_or_mapping, "text or {}"},
    {Form::text_or_mappings, "text, or a list of {}"},
    {Form::texts_and_mappings, "list of texts and {}"},
    {Form::text_or_texts_and_mappings, "text, or a list of texts and {}"},
};

std::string code(std::string_view word) {
  return '`' + std::string(word) + '`';
}

// `{text, data?}`, or a word if another table describes the keys.
std::string shape_of(std::span<const Key> keys) {
  std::vector<std::string> parts;
  for (const Key& key : keys) {
    std::string part(key.name);
    if (!key.is_required) part += '?';
    const bool is_list = key.form == Form::mappings;
    if ((is_list || key.form == Form::mapping) && !has_table(key.keys)) {
      part += is_list ? ": [" + shape_of(key.keys) + ']' : ": " + shape_of(key.keys);
    }
    parts.push_back(std::move(part));
  }
  return '{' + text::joined(parts) + '}';
}

std::string written(const KeyFacts& key, std::int64_t number) {
  if (key.form == Form::flag) return number == 0 ? "false" : "true";
  if (key.form != Form::duration) return std::to_string(number);
  return text::duration_text(std::chrono::milliseconds(number));
}

std::string bounds_of(const KeyFacts& key) {
  if (key.most == 0) return {};
  const std::string most = written(key, key.most);
  if (key.least == key.most) return ", always " + most;
  if (key.form == Form::duration && key.least <= 1) return ", at most " + most;
  return ", " + written(key, key.least) + " to " + most;
}

std::string choices_of(const KeyFacts& key) {
  std::vector<std::string> words;
  for (const auto choice : key.choices) words.push_back(code(choice));
  const std::string last = std::move(words.back());
  words.pop_back();
  return (key.form == Form::names ? "list of " : "") + text::joined(words) + " or " + last;
}

std::string value_of(const KeyFacts& key) {
  if (!key.choices.empty()) return choices_of(key);
  const auto* found = std::ranges::find(words_of_forms, key.form, &WordsOfForm::first);
  std::string words(found->second);
  if (const auto at = words.find("{}"); at != std::string::npos) {
    const std::string word = at == 0 ? "mapping" : "mappings";
    words.replace(at, 2, has_table(key.keys) ? word : code(shape_of(key.keys)));
  }
  return words + bounds_of(key);
}

std::string default_of(const KeyFacts& key) {
  if (key.is_required) return "required";
  if (key.default_number) return written(key, *key.default_number);
  return key.default_word.empty() ? std::string() : code(key.default_word);
}

std::string row_of(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const auto& cell : cells) row += cell.empty() ? " |" : ' ' + cell + " |";
  return row + '\n';
}

std::string header_of(const std::vector<std::string>& names) {
  return row_of(names) + row_of(std::vector<std::string>(names.size(), "---"));
}

std::string file_of(const std::string& name) {
  return CONVERSED_SOURCE_DIR "/docs/flows/" + name;
}

class Page {
 public:
  Page(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}

  // Fills the table below the heading with the keys. The last cell of a row stays.
  template <typename Keys>
  void describe(const std::string& heading, const Keys& keys, const NodeType* type = nullptr) {
    const auto sentences = sentences_below(heading);
    std::string rows = header_of({"Key", "Value", "Default", "What"});
    for (const auto& key : keys) {
      rows += row_of({code(key.name) + mark_of(key, type), value_of(key), default_of(key),
                      sentence_of(std::string(key.name), sentences, heading)});
    }
    fill(heading, rows);
  }

  // Fills the table below the heading with names that have a sentence each.
  void list(const std::string& heading, const std::string& title,
            std::span<const std::string_view> names) {
    const auto sentences = sentences_below(heading);
    std::string rows = header_of({title, "What"});
    for (const auto name : names) {
      rows += row_of({code(name), sentence_of(std::string(name), sentences, heading)});
    }
    fill(heading, rows);
  }

  // Replaces the table below the heading.
  void fill(const std::string& heading, const std::string& rows) {
    const auto [begin, end] = table_below(heading);
    if (begin == end) {
      problems_ += place(heading) + "write the heading and a table below it\n";
    } else {
      text_.replace(begin, end - begin, rows);
    }
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::string& problems() const { return problems_; }

 private:
  static std::string mark_of(const Key&, const NodeType*) { return {}; }
  static std::string mark_of(const NodeField& field, const NodeType* type) {
    if (field.is_beside) return " (beside)";
    return field.name == type->shorthand ? " (alone)" : "";
  }

  [[nodiscard]] std::string place(const std::string& heading) const {
    return "docs/flows/" + name_ + ", " + heading + ": ";
  }

  // From the first row to behind the last one. Empty if there is none.
  [[nodiscard]] std::pair<std::size_t, std::size_t> table_below(const std::string& heading) const {
    const auto section = ('\n' + text_).find('\n' + heading + '\n');
    if (section == std::string::npos) return {0, 0};
    const auto begin = text_.find("\n|", section) + 1;
    if (begin == 0 || text_.find("\n#", section) < begin) return {0, 0};
    auto end = begin;
    while (end < text_.size() && text_[end] == '|') {
      end = std::min(text_.find('\n', end), text_.size() - 1) + 1;
    }
    return {begin, end};
  }

  using Sentences = std::map<std::string, std::string>;  // by key

  [[nodiscard]] std::string sentence_of(const std::string& name, const Sentences& sentences,
                                        const std::string& heading) {
    const auto found = sentences.find(name);
    if (found != sentences.end() && !found->second.empty()) return found->second;
    problems_ += place(heading) + code(name) + " has no sentence; write the row | " + code(name) +
                 " | The sentence. |\n";
    return {};
  }

  [[nodiscard]] Sentences sentences_below(const std::string& heading) {
    Sentences sentences;
    const auto [begin, end] = table_below(heading);
    std::istringstream rows(text_.substr(begin, end - begin));
    for (std::string row; std::getline(rows, row);) {
      if (!row.starts_with("| `")) continue;
      const auto cells = tools::cells_of(std::string_view(row).substr(1));
      if (cells.size() != 2 && cells.size() != 4) {
        problems_ += place(heading) + "a row has 2 or 4 cells: " + row + '\n';
        continue;
      }
      sentences[row.substr(3, row.find('`', 3) - 3)] = cells.back();
    }
    return sentences;
  }

  std::string name_;
  std::string text_;
  std::string problems_;
};

// The names of the library of expressions, by the values or the name that they belong to.
std::string rows_of_library() {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> lists;
  const auto list_of = [&](const std::string& of) -> auto& {
    for (auto& [known, names] : lists) {
      if (known == of) return names;
    }
    return lists.emplace_back(of, std::vector<std::string_view>()).second;
  };
  const auto add = [&](const std::string& of, std::span<const expression::Method> methods) {
    for (const auto& method : methods) list_of(of).push_back(method.name);
  };
  const auto add_by_space = [&](const auto& rows) {
    for (const auto& row : rows) {
      list_of(row.space.empty() ? "global" : code(row.space)).push_back(row.name);
    }
  };
  add("texts", expression::string_methods());
  add("arrays", expression::array_methods());
  add("numbers", expression::number_methods());
  add("all values", expression::any_methods());
  add_by_space(expression::global_functions());
  add_by_space(expression::math_functions());
  add_by_space(expression::named_constants());
  std::string rows = header_of({"Of", "Names"});
  for (const auto& [of, names] : lists) rows += row_of({of, code(text::joined(names, " "))});
  return rows;
}

void make(Page& page, std::string_view name) {
  for (const Table& table : tables) {
    if (table.page == name) page.describe(std::string(table.heading), table.keys);
  }
  if (name == "expressions.md") {
    page.list("### Members of `input`", "Member", input_members);
    page.fill("### Methods and functions", rows_of_library());
  }
  if (name != "nodes.md") return;
  for (const auto* type : node_types()) {
    if (!type->fields.empty()) page.describe("## " + code(type->name), type->fields, type);
  }
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Reference, HasTheFactsOfTheCode) {
  for (const auto* name :
       {"nodes.md", "bundles.md", "follow-ups.md", "testing.md", "expressions.md"}) {
    const std::string present = text_of_file(file_of(name));
    Page page(name, present);
    make(page, name);
    ASSERT_EQ(page.problems(), "");
    if (std::getenv("CONVERSED_WRITE_REFERENCE") != nullptr) {
      EXPECT_TRUE(std::ofstream(file_of(name)) << page.text() << std::flush) << name;
    } else {
      EXPECT_EQ(present, page.text())
          << "run flows_test with CONVERSED_WRITE_REFERENCE=1 --gtest_filter='Reference.*'";
    }
  }
}

TEST(Reference, AsksForTheSentenceOfANewKey) {
  Page page("nodes.md",
            "# Node types\n\n## `log`\nWrites a line.\n\n| Key | What |\n| --- | --- |\n"
            "| `line` | The line. |\n\n## `say`\n");
  page.describe("## `log`", log_node.fields, &log_node);
  EXPECT_EQ(page.problems(),
            "docs/flows/nodes.md, ## `log`: `text` has no sentence; write the row | `text` | The "
            "sentence. |\n");
}

}  // namespace
}  // namespace conversed::flows
