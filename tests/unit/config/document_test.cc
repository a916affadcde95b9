#include "config/document.h"

#include <gtest/gtest.h>

#include <random>

namespace conversed::config {
namespace {

std::string problems_of(const std::string& text) {
  return format_problems(parse_yaml(text, "f").problems);
}

TEST(Document, RemembersWhereEachValueIs) {
  const YamlDocument document = parse_yaml("a: 1\nb:\n  c: [x, 'y z']\n  d:\n", "f");
  ASSERT_TRUE(document.problems.empty()) << format_problems(document.problems);
  const YamlNode& root = document.root;
  ASSERT_EQ(root.children.size(), 2U);
  EXPECT_EQ(root.children[0].key, "a");
  EXPECT_EQ(root.children[0].text, "1");
  const YamlNode& b = root.children[1];
  EXPECT_EQ(b.line, 2U);
  ASSERT_EQ(b.children.size(), 2U);
  EXPECT_EQ(b.children[0].line, 3U);
  EXPECT_EQ(b.children[0].column, 3U);
  ASSERT_EQ(b.children[0].children.size(), 2U);
  EXPECT_EQ(b.children[0].children[1].text, "y z");
  EXPECT_EQ(b.children[1].kind, YamlNode::Kind::nothing);
}

TEST(Document, EmptyFilesAreEmptyNotWrong) {
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "---\n...\n", "~\n"}) {
    const YamlDocument document = parse_yaml(text, "f");
    EXPECT_TRUE(document.problems.empty()) << text << format_problems(document.problems);
    EXPECT_EQ(document.root.kind, YamlNode::Kind::nothing) << text;
  }
}

TEST(Document, SyntaxErrorsNameLineAndColumn) {
  EXPECT_EQ(problems_of("a: 1\n b: 2\n"), "f:2:3: is not valid YAML: illegal map value\n");
  EXPECT_EQ(problems_of("a: [1\n"),
            "f:1: is not valid YAML: end of sequence flow not found (at the file's end)\n");
  EXPECT_EQ(problems_of("a: \"\\q\"\n"), "f:1:7: is not valid YAML: unknown escape character: q\n");
}

// yaml-cpp by itself lets these pass.
TEST(Document, WhatIsCutOffAtTheEndIsRefused) {
  for (const char* text :
       {"a: \"x\n", "a: 'x\nb: 1\n", "a: \"x", "a: 1\nb\n", "a: 1\nb", "a: {b: 1\n"}) {
    EXPECT_NE(problems_of(text), "") << text;
  }
  EXPECT_EQ(problems_of("a: 1"), "");
  EXPECT_EQ(problems_of("a: |\n  x\n  y"), "");
  EXPECT_EQ(problems_of("# last line"), "");
}

TEST(Document, DuplicateKeysAreRefusedAtAnyDepth) {
  EXPECT_EQ(problems_of("a: 1\nb: 2\na: 3\n"),
            "f:3:1: the key \"a\" is given twice, first in line 1\n");
  EXPECT_EQ(problems_of("a: {b: 1, c: {b: 2}, b: {c: {d: 1, d: {e: [1]}, d: 2}}}\n"),
            "f:1:22: the key \"b\" is given twice, first in line 1\n"
            "f:1:36: the key \"d\" is given twice, first in line 1\n"
            "f:1:49: the key \"d\" is given twice, first in line 1\n");
}

TEST(Document, AliasBombsCostNothingAndAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int k = 0; k < 8; ++k) bomb += ", " + last;
    bomb += "]\n";
  }
  const YamlDocument document = parse_yaml(bomb, "f");
  ASSERT_EQ(document.problems.size(), 30U + 29U * 9U);
  EXPECT_NE(document.problems.front().message.find("anchors"), std::string::npos);
}

TEST(Document, MergeKeysAndTagsAreRefused) {
  EXPECT_NE(problems_of("a: &x {b: 1}\nc: {<<: *x}\n").find("aliases"), std::string::npos);
  EXPECT_NE(problems_of("a: !!int 5\n").find("tags"), std::string::npos);
}

TEST(Document, DeepNestingIsRefusedBeforeItCosts) {
  for (const char* open : {"[", "{a: ", "- ", "? "}) {
    std::string text;
    while (text.size() < max_yaml_bytes / 4) text += open;
    const std::string problems = problems_of(text);
    EXPECT_NE(problems.find("f:1:"), std::string::npos) << open << ": " << problems;
  }
}

TEST(Document, ManyNodesAreRefused) {
  std::string text = "a: [";
  for (std::size_t i = 0; i < max_yaml_nodes; ++i) text += "1,";
  EXPECT_NE(problems_of(text + "]\n").find("more than 10000 keys and values"), std::string::npos);
}

TEST(Document, OneDocumentOnly) {
  EXPECT_EQ(problems_of("a: 1\n---\nb: 2\n"),
            "f:3:1: a second document begins here; expected one only\n");
}

TEST(Document, KeysArePlainWords) {
  for (const char* text : {"[a]: 1\n", "{a: 1}: 2\n", "? [a, b]\n: 1\n", "~: 1\n", ": 1\n"}) {
    EXPECT_NE(problems_of(text), "") << text;
  }
}

TEST(Document, OnlyUtf8IsText) {
  EXPECT_EQ(problems_of("a: \xFF\n"), "f: is not UTF-8 text\n");
  EXPECT_EQ(problems_of(std::string("a: \0b\n", 6)), "f: is not UTF-8 text\n");
  EXPECT_EQ(problems_of("\xEF\xBB\xBF"
                        "a: 1\n"),
            "");
}

// Whatever the bytes, the answer is a tree or problems: under the sanitizers this looks for
// crashes.
TEST(Document, AnyBytesAreATreeOrProblems) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr std::string_view alphabet = "ab:-[]{},&*!|>'\"%@`?# \n\t0~<.\\\xC3\xA9";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t length = random() % 60; text.size() < length;) {
      text += alphabet[random() % alphabet.size()];
    }
    const YamlDocument document = parse_yaml(text, "f");
    for (const Problem& problem : document.problems) ASSERT_FALSE(problem.message.empty()) << text;
  }
}

}  // namespace
}  // namespace conversed::config
