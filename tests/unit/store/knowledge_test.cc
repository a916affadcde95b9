#include "store/knowledge/knowledge.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "store/sql/read.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using Texts = std::vector<std::string>;

class KnowledgeTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    organisation_ =
        store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"})->id;
  }

  // Imports one knowledge store of a project: its sources with their chunks.
  std::string import(const std::vector<std::pair<std::string, Texts>>& sources,
                     const std::string& project = "Shop") {
    model::Bundle bundle;
    bundle.project_name = project;
    bundle.locales = {"en"};
    model::BundleKnowledgeStore manual{"Manual", {}};
    for (const auto& [name, texts] : sources) {
      model::BundleSource source{name, {}};
      for (const auto& text : texts) source.chunks.push_back({text, {{"of", name}}});
      manual.sources.push_back(std::move(source));
    }
    bundle.knowledge_stores = {std::move(manual)};
    auto report = store_->assets().import_bundle(organisation_, bundle);
    EXPECT_TRUE(report) << report.error().message;
    return report ? report->at("project")["_id"].get<std::string>() : "";
  }

  std::vector<KnowledgeHit> hits(const std::string& project, const std::string& text,
                                 Texts sources = {}, std::size_t limit = 10) {
    auto found = store_->knowledge().search(
        project, {.store = "Manual", .sources = std::move(sources), .text = text, .limit = limit},
        std::chrono::minutes(1));
    EXPECT_TRUE(found) << found.error().message;
    return found ? *std::move(found) : std::vector<KnowledgeHit>();
  }
  Texts texts(const std::string& project, const std::string& text, Texts sources = {},
              std::size_t limit = 10) {
    Texts list;
    for (const auto& hit : hits(project, text, std::move(sources), limit)) {
      list.push_back(hit.text);
    }
    return list;
  }
  void write(const std::string& sql) {
    ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
      writer.connection().script(sql);
      return {};
    }));
  }
  // FTS5 keeps its own index beside the words. The two could differ.
  void check_index() {
    if (place_.in_postgres()) return;
    write("INSERT INTO knowledge_index (knowledge_index) VALUES ('integrity-check')");
  }
  std::int64_t count(const std::string& sql) {
    std::int64_t counted = -1;
    EXPECT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
      counted = writer.connection().value<std::int64_t>(sql).value_or(-1);
      return {};
    }));
    return counted;
  }

  std::string organisation_;
};

TEST_F(KnowledgeTest, BestChunksComeFirstWithTheirSourceAndData) {
  const auto shop =
      import({{"FAQ",
               {"Returns take 14 days.", "We deliver within 2 days, never on Sundays.",
                "The returns desk takes returns."}}});
  const auto found = hits(shop, "How long do returns take?");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].text, "Returns take 14 days.");
  EXPECT_EQ(found[0].source, "FAQ");
  EXPECT_EQ(found[0].data, R"({"of":"FAQ"})");
  EXPECT_EQ(found[0].chunk_id.size(), 24U);
  EXPECT_GT(found[0].score_ppm, found[1].score_ppm);
  EXPECT_GT(found[1].score_ppm, 0);
  EXPECT_LT(found[0].score_ppm, 1'000'000);
  EXPECT_EQ(texts(shop, "returns", {}, 1).size(), 1U) << "at most as many hits as asked for";
  EXPECT_EQ(texts(shop, "unicorns"), Texts{});
}

TEST_F(KnowledgeTest, SourcesRestrictTheHits) {
  const auto shop = import({{"FAQ", {"Returns are free."}}, {"Terms", {"Returns cost nothing."}}});
  EXPECT_EQ(texts(shop, "returns").size(), 2U);
  EXPECT_EQ(texts(shop, "returns", {"Terms"}), Texts{"Returns cost nothing."});
  EXPECT_EQ(texts(shop, "returns", {"Terms", "nowhere"}), Texts{"Returns cost nothing."});
  EXPECT_EQ(texts(shop, "returns", {"nowhere"}), Texts{});
}

TEST_F(KnowledgeTest, AnyLanguageIsFoundWhateverCaseAndAccents) {
  const auto shop = import(
      {{"FAQ",
        {"Die Rückgabefrist beträgt 14 Tage.", "退货需要在14天内完成。", "สินค้าคืนได้ภายในสิบสี่วัน",
         "Возврат занимает две недели.", "Οι επιστροφές διαρκούν δύο εβδομάδες."}}});
  EXPECT_EQ(texts(shop, "RUCKGABEFRIST").front(), "Die Rückgabefrist beträgt 14 Tage.");
  EXPECT_EQ(texts(shop, "Rückgabe").front(), "Die Rückgabefrist beträgt 14 Tage.")
      << "the beginning of a word";
  EXPECT_EQ(texts(shop, "退货").front(), "退货需要在14天内完成。");
  EXPECT_EQ(texts(shop, "คืนได้").front(), "สินค้าคืนได้ภายในสิบสี่วัน");
  EXPECT_EQ(texts(shop, "ВОЗВРАТЫ").front(), "Возврат занимает две недели.")
      << "the word with another ending";
  EXPECT_EQ(texts(shop, "επιστροφες").front(), "Οι επιστροφές διαρκούν δύο εβδομάδες.");
}

TEST_F(KnowledgeTest, CharactersThatStandTogetherCountMore) {
  const auto shop = import({{"FAQ", {"货到付款不退", "可以退货"}}});
  EXPECT_EQ(texts(shop, "退货"), (Texts{"可以退货", "货到付款不退"}));
}

TEST_F(KnowledgeTest, NoTextIsASyntaxError) {
  const auto shop = import({{"FAQ", {"Returns take 14 days.", "C++ and C# are languages."}}});
  for (const std::string text : {"",
                                 " ",
                                 "\"",
                                 "\"returns",
                                 "returns AND",
                                 "NOT",
                                 "NEAR(returns days, 2)",
                                 "terms : returns",
                                 "returns*",
                                 "^returns",
                                 "{",
                                 "}",
                                 "(",
                                 ")",
                                 "-",
                                 "+",
                                 "returns OR",
                                 "a\"b' OR 1=1 --",
                                 "*",
                                 "\\",
                                 "1_returns",
                                 "'",
                                 ";",
                                 ":",
                                 "\xFF\xFE",
                                 "[",
                                 "]"}) {
    (void)hits(shop, text);
  }
  EXPECT_EQ(texts(shop, "\"returns\" -- AND").front(), "Returns take 14 days.");
  EXPECT_EQ(texts(shop, "c++").front(), "C++ and C# are languages.");
  (void)hits(shop, std::string("nul\0nul", 7));
  (void)hits(shop, std::string(100'000, 'x'));
}

TEST_F(KnowledgeTest, RandomTextsAreQuestions) {
  const auto shop = import({{"FAQ", {"Returns take 14 days, \"quoted\" or not: (see *)."}}});
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  const std::string marks = "\"'*^:(){}[]+-_ \t\n.,;AndORNOTear0123\xC3\xBC\xE9\x80\xFF";
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t length = random() % 40; length > 0; --length) {
      text += marks[random() % marks.size()];
    }
    const auto found = store_->knowledge().search(
        shop, {.store = "Manual", .sources = {text}, .text = text, .limit = 3},
        std::chrono::minutes(1));
    ASSERT_TRUE(found) << testing::PrintToString(text) << ": " << found.error().message;
  }
}

TEST_F(KnowledgeTest, NothingOfOthersIsFoundOrChangesRanks) {
  const auto shop = import({{"FAQ", {"returns and refunds", "delivery and refunds"}}});
  const auto before = hits(shop, "returns refunds");
  Texts many;
  for (int i = 0; i < 50; ++i) many.push_back("returns " + std::to_string(i));
  const auto other = import({{"FAQ", many}}, "Other");
  const auto after = hits(shop, "returns refunds");
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].chunk_id, after[i].chunk_id);
    EXPECT_EQ(before[i].score_ppm, after[i].score_ppm);
  }
  EXPECT_EQ(texts(other, "refunds"), Texts{});
}

TEST_F(KnowledgeTest, MissingAndForeignStoresAreTheSame) {
  const auto shop = import({{"FAQ", {"a"}}});
  const model::KnowledgeQuery query{.store = "Nowhere", .sources = {}, .text = "a", .limit = 1};
  const model::KnowledgeQuery foreign{.store = "Manual", .sources = {}, .text = "a", .limit = 1};
  for (const auto& [project, asked] : {std::pair(shop, query), {"another", foreign}}) {
    const auto found = store_->knowledge().search(project, asked, std::chrono::minutes(1));
    EXPECT_EQ(found.error().code, model::Errc::not_found);
  }
}

TEST_F(KnowledgeTest, OfALongQuestionTheFirstWordsCount) {
  const auto shop = import({{"FAQ", {"Returns take 14 days.", "Unicorns fly."}}});
  std::string question = "how long do returns take when";
  for (int i = 0; i < 300; ++i) question += " word" + std::to_string(i);
  question += " unicorns";
  EXPECT_EQ(texts(shop, question), Texts{"Returns take 14 days."});
  std::string chinese;
  for (int i = 0; i < 3000; ++i) chinese += "退货";
  EXPECT_EQ(texts(shop, chinese), Texts{});
  EXPECT_EQ(texts(shop, std::string(100'000, 'a') + " returns"), Texts{"Returns take 14 days."});
}

TEST_F(KnowledgeTest, ASearchThatTakesTooLongEnds) {
  Texts many;
  for (int i = 0; i < 2000; ++i) many.push_back("returns take days " + std::to_string(i));
  const auto shop = import({{"FAQ", many}});
  const model::KnowledgeQuery query{
      .store = "Manual", .sources = {}, .text = "returns days", .limit = 5};
  const auto found = store_->knowledge().search(shop, query, std::chrono::milliseconds(0));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, model::Errc::timed_out);
  EXPECT_EQ(hits(shop, "returns days").size(), 10U) << "the connection still works";
}

TEST_F(KnowledgeTest, TheIndexFollowsImports) {
  auto shop = import({{"FAQ", {"alpha one", "beta two", "gamma three"}}, {"Terms", {"delta"}}});
  shop = import({{"FAQ", {"gamma three", "alpha one", "epsilon"}}});
  EXPECT_EQ(texts(shop, "beta"), Texts{});
  EXPECT_EQ(texts(shop, "alpha"), Texts{"alpha one"});
  EXPECT_EQ(texts(shop, "epsilon"), Texts{"epsilon"});
  EXPECT_EQ(texts(shop, "delta"), Texts{"delta"}) << "sources that the bundle does not name stay";
  EXPECT_EQ(count("SELECT COUNT(*) FROM knowledge_terms"), 4);
  EXPECT_EQ(count("SELECT chunk_count FROM knowledge_vocabularies"), 4);
  EXPECT_EQ(count("SELECT term_count FROM knowledge_vocabularies"), 6);
  EXPECT_EQ(count("SELECT COUNT(*) FROM knowledge_unindexed"), 0);
  check_index();
}

TEST_F(KnowledgeTest, AnImportOfTheSameWritesNothingAnew) {
  import({{ "FAQ", { "alpha", "beta" } }});
  const auto highest = count("SELECT MAX(n) FROM knowledge_terms");
  import({{ "FAQ", { "alpha", "beta" } }});
  import({{ "FAQ", { "beta", "alpha" } }});
  EXPECT_EQ(count("SELECT MAX(n) FROM knowledge_terms"), highest);
}

TEST_F(KnowledgeTest, TheIndexFollowsDeletedChangedAndDisabledChunks) {
  const auto shop = import({{"FAQ", {"alpha", "beta", "gamma"}}});
  write("DELETE FROM knowledge_chunks WHERE text = 'alpha'");
  write("UPDATE knowledge_chunks SET disabled = 1 WHERE text = 'beta'");
  EXPECT_EQ(texts(shop, "alpha beta gamma"), Texts{"gamma"});
  write("UPDATE knowledge_chunks SET disabled = 0 WHERE text = 'beta'");
  EXPECT_EQ(texts(shop, "beta"), Texts{"beta"});
  // Writes as a program that does not know the index.
  write("UPDATE knowledge_chunks SET text = 'omega' WHERE text = 'beta'");
  EXPECT_EQ(texts(shop, "beta"), Texts{});
  open();
  EXPECT_EQ(texts(shop, "omega"), Texts{"omega"}) << "indexed at the next start";
  write(
      "DELETE FROM knowledge_chunks; DELETE FROM knowledge_sources; DELETE FROM knowledge_stores");
  EXPECT_EQ(count("SELECT COUNT(*) FROM knowledge_terms"), 0);
  EXPECT_EQ(count("SELECT COUNT(*) FROM knowledge_vocabularies"), 0);
  check_index();
}

}  // namespace
}  // namespace conversed::store
