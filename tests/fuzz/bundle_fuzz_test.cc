// Hostile bundles: any input becomes a Bundle or Problems. A loaded bundle compiles again and can
// be checked, drawn and run.
#include "flows/bundle/loader.h"
#include "flows/flow.h"
#include "flows/tools/check.h"
#include "flows/tools/graph.h"
#include "tests/support/fuzzing.h"

namespace conversed::flows {
namespace {

void try_to_load(const std::string& text, const std::string& name) {
  LoadLimits limits;
  limits.max_memory = std::size_t{2} << 20;  // a bomb at the full limit takes long
  limits.variables = Variables::may_be_missing;
  const auto bundle = load_bundle(text, name, {}, limits);
  if (!bundle) {
    ASSERT_FALSE(bundle.error().empty());
    return;
  }
  for (const auto& flow : bundle->flows) {
    const auto again = Flow::compile_text(flow.definition.dump());
    ASSERT_TRUE(again) << to_string(again.error());
    ASSERT_FALSE(tools::mermaid_of(**again).empty());
    ASSERT_FALSE(tools::dot_of(**again).empty());
  }
  for (const auto& finding : tools::check_bundle(text, name)) {
    ASSERT_NE(finding.severity, tools::Severity::error) << tools::to_string(finding);
  }
}

TEST(BundleFuzz, TheCorpusIsTakenOrRefused) {
  const auto corpus = tests::read_corpus(CONVERSED_CORPUS);
  ASSERT_GE(corpus.size(), 5U);
  for (const auto& entry : corpus) {
    try_to_load(entry.text, entry.name);
    const bool good = entry.name.starts_with("good");
    EXPECT_EQ(load_bundle(entry.text, entry.name, {}, {.variables = Variables::may_be_missing})
                  .has_value(),
              good)
        << entry.name;
  }
}

TEST(BundleFuzz, MutationsOfTheCorpusAreTakenOrRefused) {
  tests::Mutator mutator(
      tests::read_corpus(CONVERSED_CORPUS),
      {"[",    "]",     "{",         "}",       ":",      "- ",     "\n",  "\"",  "&a ",
       "*a",   "!!",    "|",         "\t",      "#",      "{{",     "}}",  "~",   "'",
       "? ",   "---",   ", ",        "\xC3",    "<<",     "null",   "1e9", "\\u", "say: ",
       "do: ", "id: a", "tools: [{", "goTo: a", "nodes:", "then: ["});
  const tests::LastInput last("bundle");
  tests::fuzz(1500, [&] {
    const auto& entry = mutator.entry();
    const std::string text = mutator.mutate(entry.text.substr(0, 4000));
    last.keep(text);
    SCOPED_TRACE(text);
    try_to_load(text, mutator.below(2) == 0 ? entry.name : "x.json");
  });
}

}  // namespace
}  // namespace conversed::flows
