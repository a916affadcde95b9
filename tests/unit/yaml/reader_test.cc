#include "store/yaml/reader.h"

#include <gtest/gtest.h>

#include <random>

namespace conversed::yaml {
namespace {

constexpr std::size_t max_memory = std::size_t{2} << 20;

Document parse(const std::string& text) {
  return read(text, Schema::texts, {.max_depth = 8, .max_memory = max_memory});
}

std::string faults_of(const Document& document) {
  std::string lines;
  for (const Fault& fault : document.faults) {
    lines += std::to_string(fault.place.line) + ":" + std::to_string(fault.place.column) + ": " +
             fault.message + "\n";
  }
  return lines;
}

std::string problems_of(const std::string& text) {
  return faults_of(parse(text));
}

TEST(YamlReader, RemembersWhereEachValueIs) {
  const Document document = parse("a: 1\nb:\n  c: [x, 'y z']\n  d:\n");
  ASSERT_EQ(faults_of(document), "");
  const auto& root = document.root->members();
  ASSERT_EQ(root.size(), 2U);
  EXPECT_EQ(root[0].name, "a");
  EXPECT_EQ(root[0].value.text(), "1");
  EXPECT_EQ(root[1].place, (Place{2, 1}));
  const auto& b = root[1].value.members();
  ASSERT_EQ(b.size(), 2U);
  EXPECT_EQ(b[0].place, (Place{3, 3}));
  ASSERT_EQ(b[0].value.items().size(), 2U);
  EXPECT_EQ(b[0].value.items()[1].text(), "y z");
  EXPECT_EQ(b[0].value.items()[1].place(), (Place{3, 10}));
  EXPECT_TRUE(b[1].value.is_null());
}

TEST(YamlReader, EmptyFilesAreEmptyNotWrong) {
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "---\n...\n", "~\n"}) {
    const Document document = parse(text);
    EXPECT_EQ(faults_of(document), "") << text;
    EXPECT_TRUE(!document.root || document.root->is_null()) << text;
  }
}

// The values before the fault can still be checked.
TEST(YamlReader, KeepsWhatItReadBeforeAFault) {
  const Document document = parse("a: 1\nb: {c: 2, d: [3\n");
  ASSERT_EQ(document.faults.size(), 1U);
  EXPECT_EQ(document.root->to_json().dump(), R"({"a":"1","b":{"c":"2","d":["3"]}})");
}

TEST(YamlReader, SyntaxErrorsNameLineAndColumn) {
  const std::string hint = "; a text with ': ' in it stands in quotes\n";
  EXPECT_EQ(problems_of("- say: hello: you\n"),
            "1:13: is not valid YAML: illegal map value" + hint);
  EXPECT_EQ(problems_of("a: ä\nb: {say: hello: you}\n"),
            "2:15: is not valid YAML: end of map flow not found" + hint);
  EXPECT_EQ(problems_of("a: {b: 1, c\n").find("quotes"), std::string::npos);
  EXPECT_EQ(problems_of("a: [1\n"),
            "1:6: is not valid YAML: end of sequence flow not found; the '[' of line 1 is not "
            "closed; write ']' (at the file's end)\n");
  EXPECT_EQ(problems_of("a: \"\\q\"\n"),
            "1:7: is not valid YAML: unknown escape character: q; put a text with \\ into single "
            "quotes: '...'\n");
}

// Mistakes of people who write YAML for the first time.
TEST(YamlReader, SyntaxErrorsTellTheRemedy) {
  struct Case {
    const char* text;
    const char* remedy;
  };
  constexpr const char* indent =
      "is this line indented as the one above it, and is there a blank behind each ':' and '-'?";
  constexpr const char* quotes =
      "put the whole text into quotes; within '...' write '' for a quote";
  const Case cases[] = {
      {"a:\n  - b: 1\n   - c: 2\n", indent},
      {"a:\n  b: 1\nc: 2\n d: 3\n", indent},
      {"a:\n  b: text\n   c: 2\n", indent},
      {"a:\n  - b: 1\nc:\n  - d: 1\n  e:\n  - f: 2\n", indent},
      {"a: 1\nb:2\n", indent},
      {"a:\n  -b: 1\n  - b: 2\n", indent},
      {"a: {b: 1, c: 2\nd: 3\n", "the '{' of line 1 is not closed; write '}'"},
      {"a: 1\nb: [{c: true}}\n", "the '[' of line 2 is not closed; write ']'"},
      {"b: [{c: x]\n", "the '{' of line 1 is not closed; write '}'"},
      {"- b: [{c: x}\n- d: 1\n", "the '[' of line 1 is not closed; write ']'"},
      {"- b: |\n    'it [\n- c: \"x{\"\n  d: [y}\n", "the '[' of line 4 is not closed; write ']'"},
      {"- {b: #5}\n- c: 1\n",
       "'#' begins a comment in line 1, so no bracket behind it counts; a text with '#' stands in "
       "quotes"},
      {"- b: \"Hello\n- c: there\n- d: \"you\"\n", "is the quote of line 1 not closed?"},
      {"- b: x\n- c: 'It''s\n- d: y\n", "the quote of line 2 is not closed (at the file's end)"},
      {"- b: > 5 pizzas\n", "a text that begins with > or | stands in quotes"},
      {"- b: | pipe\n", "a text that begins with > or | stands in quotes"},
      {"a: \"\\d+\"\n", "put a text with \\ into single quotes: '...'"},
      {"a:\n\t- b: 1\n", "indent by blanks, not by tabs"},
      {"a:\n  - b: 1\n\t- c: 1\n", "indent by blanks, not by tabs"},
      {"a:\n\tb: 1\n", "indent by blanks, not by tabs"},
      {"a: \"so \"called\"\"\n", quotes},
      {"b: 1\na: 'I can't'\n", quotes},
      {"a: {name} is here\n", quotes},
      {"a: {{context.name}}\n", "a text that begins with { stands in quotes"},
      {"a: @you\n", "a text that begins with @, % or ` stands in quotes"},
      {"a: %off\n", "a text that begins with @, % or ` stands in quotes"},
      {"a: {b: Which one?}\n", "within {} and [] a text with a '?' stands in quotes"}};
  for (const auto& [text, remedy] : cases) {
    EXPECT_TRUE(problems_of(text).ends_with(std::string("; ") + remedy + "\n"))
        << text << problems_of(text);
  }
  EXPECT_EQ(problems_of("[a]: 1\n"), "1:1: a key must be a text\n");
}

// Only the core schema has tags and aliases.
TEST(YamlReader, MarksAtTheBeginningOfATextTellTheRemedy) {
  const auto core_problems_of = [](const std::string& text) {
    return faults_of(read(text, Schema::core, {.max_depth = 8, .max_memory = max_memory}));
  };
  EXPECT_EQ(core_problems_of("if: !context.a\n"),
            "1:5: the tag does not fit the value, or is unknown; a text that begins with ! stands "
            "in quotes\n");
  EXPECT_TRUE(core_problems_of("say: *Welcome*\n")
                  .ends_with("; a text that begins with * stands in quotes\n"));
}

// yaml-cpp itself accepts these.
TEST(YamlReader, TruncatedTextIsRefused) {
  for (const char* text :
       {"a: \"x\n", "a: 'x\nb: 1\n", "a: \"x", "a: 1\nb\n", "a: 1\nb", "a: {b: 1\n"}) {
    EXPECT_NE(problems_of(text), "") << text;
  }
  EXPECT_EQ(problems_of("a: 1"), "");
  EXPECT_EQ(problems_of("a: |\n  x\n  y"), "");
  EXPECT_EQ(problems_of("# last line"), "");
}

TEST(YamlReader, DuplicateKeysAreRefusedAtAnyDepth) {
  EXPECT_EQ(problems_of("a: 1\nb: 2\na: 3\n"),
            "3:1: the key \"a\" is given twice, first in line 1\n");
  EXPECT_EQ(problems_of("a: {b: 1, c: {b: 2}, b: {c: {d: 1, d: {e: [1]}, d: 2}}}\n"),
            "1:22: the key \"b\" is given twice, first in line 1\n"
            "1:36: the key \"d\" is given twice, first in line 1\n"
            "1:49: the key \"d\" is given twice, first in line 1\n");
}

TEST(YamlReader, AliasBombsCostNothingAndAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int k = 0; k < 8; ++k) bomb += ", " + last;
    bomb += "]\n";
  }
  const Document document = parse(bomb);
  ASSERT_EQ(document.faults.size(), 30U + 29U * 9U);
  EXPECT_NE(document.faults.front().message.find("anchors"), std::string::npos);
}

TEST(YamlReader, MergeKeysAndTagsAreRefused) {
  EXPECT_NE(problems_of("a: &x {b: 1}\nc: {<<: *x}\n").find("aliases"), std::string::npos);
  EXPECT_NE(problems_of("a: !!int 5\n").find("tags"), std::string::npos);
}

TEST(YamlReader, DeepNestingIsRefusedBeforeItCosts) {
  for (const char* open : {"[", "{a: ", "- ", "? "}) {
    std::string text;
    while (text.size() < max_memory / 8) text += open;
    const std::string problems = problems_of(text);
    EXPECT_NE(problems.find("1:"), std::string::npos) << open << ": " << problems;
  }
}

TEST(YamlReader, ManyValuesAreRefused) {
  std::string tokens = "a: [";
  std::string lines = "a:\n";
  for (int i = 0; i < 50'000; ++i) {
    tokens += "1,";
    lines += "- 1\n";
  }
  for (const auto& text : {tokens + "]\n", lines}) {
    EXPECT_NE(problems_of(text).find("too many values"), std::string::npos);
  }
}

TEST(YamlReader, EndlessFaultsAreCutOff) {
  std::string text = "a: 1\n";
  for (int i = 0; i < 2000; ++i) text += "a: 1\n";
  EXPECT_EQ(parse(text).faults.size(), 1000U);
}

TEST(YamlReader, OneDocumentOnly) {
  EXPECT_EQ(problems_of("a: 1\n---\nb: 2\n"),
            "2:1: a second document begins here; expected one only\n");
}

TEST(YamlReader, KeysArePlainWords) {
  for (const char* text : {"[a]: 1\n", "{a: 1}: 2\n", "? [a, b]\n: 1\n", "~: 1\n", ": 1\n"}) {
    EXPECT_NE(problems_of(text), "") << text;
  }
}

TEST(YamlReader, OnlyUtf8IsText) {
  EXPECT_EQ(problems_of("a: \xFF\n"), "1:4: the file is no valid UTF-8 from here on\n");
  for (const char control : {'\0', '\4', '\x7F'}) {
    EXPECT_EQ(problems_of(std::string("a: ") + control + "b\n"),
              "1:4: a control character; write it as an escape in a quoted text\n");
  }
  EXPECT_EQ(problems_of("\xEF\xBB\xBF"
                        "a: 1\n"),
            "");
}

// Any bytes give a tree or problems. Under the sanitizers this finds crashes.
TEST(YamlReader, AnyBytesAreATreeOrProblems) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr std::string_view alphabet = "ab:-[]{},&*!|>'\"%@`?# \n\t0~<.\\\xC3\xA9";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t length = random() % 60; text.size() < length;) {
      text += alphabet[random() % alphabet.size()];
    }
    for (const Schema schema : {Schema::texts, Schema::core}) {
      const Document document =
          read(text, schema, {.max_depth = 8, .max_memory = std::size_t{2} << 20});
      for (const Fault& fault : document.faults) ASSERT_FALSE(fault.message.empty()) << text;
    }
  }
}

}  // namespace
}  // namespace conversed::yaml
