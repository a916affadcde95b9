#include "store/paging/paging.h"

#include <algorithm>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "store/assets/lists.h"
#include "store/sql/fold.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;
using nlohmann::json;

model::BundleChunk chunk(const std::string& text) {
  return {text, {{"length", text.size()}}};
}

std::string numbered(int n) {
  std::string digits = std::to_string(n);
  return "chunk " + std::string(3 - digits.size(), '0') + digits;
}

class PagingTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    organisation_ =
        store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"})->id;
    for (int n = 0; n < 25; ++n) texts_.push_back(numbered(n));
    import();
  }

  [[nodiscard]] model::Bundle bundle() const {
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    model::BundleSource source{"FAQ", {}};
    for (const auto& text : texts_) source.chunks.push_back(chunk(text));
    bundle.knowledge_stores = {{"Manual", {source}}};
    model::BundleLexicon lexicon{"Words", {}, {}};
    for (const auto& text : texts_) lexicon.entries.push_back({text, {}, {}, json::object()});
    bundle.lexicons = {lexicon};
    return bundle;
  }
  void import() {
    auto report = store_->assets().import_bundle(organisation_, bundle());
    ASSERT_TRUE(report) << report.error().message;
    source_ = report->at("knowledgeStores")[0]["sources"][0]["_id"];
    lexicon_ = report->at("lexicons")[0]["_id"];
  }

  [[nodiscard]] PageRequest request(std::size_t limit = 10) const {
    PageRequest asked;
    asked.limit = limit;
    asked.now = clock_.now();
    return asked;
  }
  [[nodiscard]] PageRequest after(const Page<KnowledgeChunk>& page) const {
    PageRequest asked = request();
    asked.next = page.next;
    return asked;
  }
  Page<KnowledgeChunk> get(const PageRequest& asked) {
    auto page = store_->assets().chunks(source_, asked);
    EXPECT_TRUE(page) << page.error().message;
    return page ? *std::move(page) : Page<KnowledgeChunk>();
  }
  static std::vector<std::string> texts(const Page<KnowledgeChunk>& page) {
    std::vector<std::string> list;
    for (const auto& item : page.items) list.push_back(item.text);
    return list;
  }
  // The texts from `first` on, in the order of the source.
  [[nodiscard]] std::vector<std::string> from(std::size_t first, std::size_t count = 10) const {
    const auto begin = texts_.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(std::min(count, texts_.size() - first))};
  }

  std::string organisation_;
  std::string source_;
  std::string lexicon_;
  std::vector<std::string> texts_;
};

TEST_F(PagingTest, CursorsLeadThroughTheListAndBack) {
  const auto first = get(request());
  EXPECT_EQ(texts(first), from(0));
  EXPECT_EQ(first.total, 25);
  EXPECT_EQ(first.previous, "");
  const auto second = get(after(first));
  EXPECT_EQ(texts(second), from(10));
  const auto third = get(after(second));
  EXPECT_EQ(texts(third), from(20));
  EXPECT_EQ(third.next, "");
  auto back = request();
  back.previous = third.previous;
  const auto again = get(back);
  EXPECT_EQ(texts(again), from(10));
  EXPECT_EQ(texts(get(after(again))), from(20));
  back.previous = again.previous;
  const auto beginning = get(back);
  EXPECT_EQ(texts(beginning), from(0));
  EXPECT_EQ(beginning.previous, "");
  EXPECT_EQ(texts(get(after(beginning))), from(10));
}

TEST_F(PagingTest, ItemsAddedOrRemovedMeanwhileShiftNothing) {
  using Change = std::function<void(std::vector<std::string>&)>;
  const std::vector<Change> changes{
      [](auto& list) { list.erase(list.begin() + 9); },  // the item at the cursor
      [](auto& list) { list.erase(list.begin(), list.begin() + 5); },
      [](auto& list) { list.insert(list.begin(), "a new one in front"); },
      [](auto& list) { list.erase(list.begin() + 2, list.begin() + 10); },
      [](auto& list) { list.push_back("a new one at the end"); },
  };
  const auto all = texts_;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    texts_ = all;
    import();
    const auto first = get(request());
    changes[i](texts_);
    import();
    std::vector<std::string> seen;
    auto page = get(after(first));
    for (;;) {
      const auto these = texts(page);
      seen.insert(seen.end(), these.begin(), these.end());
      if (page.next.empty()) break;
      page = get(after(page));
    }
    std::vector<std::string> expected(all.begin() + 10, all.end());
    if (i == 4) expected.push_back("a new one at the end");
    EXPECT_EQ(seen, expected) << "change " << i;
    EXPECT_EQ(page.total, static_cast<std::int64_t>(texts_.size()));
  }
}

// An import may give the numbers of removed items to other items. Tries every cursor that a page
// can have. The import removes the items at the cursor and inserts others in front, so that all
// numbers change.
TEST_F(PagingTest, CursorsByOrderStayInTheirPlacesWhenTheItemsAtThemGo) {
  using Sort = std::vector<SortKey>;
  const auto all = texts_;
  const Sort sorts[] = {{},
                        {{"order", Order::descending}},
                        {{"disabled", Order::ascending}, {"order", Order::ascending}}};
  for (const auto& sort : sorts) {
    for (const bool all_before : {false, true}) {
      texts_ = all;
      import();
      auto asked = request(5);
      asked.sort = sort;
      asked.skip = 5;
      const auto page = get(asked);
      const auto shown = texts(page);
      // Removes the last or first item, or also all others on that side of the cursor.
      const auto goes = [&](const std::string& text) {
        const bool earlier = sort.size() == 1 ? text > shown.front() : text < shown.front();
        return text == shown.front() || text == shown.back() ||
               (all_before && (earlier || std::count(shown.begin(), shown.end(), text) > 0));
      };
      auto before = texts_;  // in the order of the list
      if (sort.size() == 1) std::reverse(before.begin(), before.end());
      std::erase_if(texts_, goes);
      std::erase_if(before, goes);
      texts_.insert(texts_.begin(), {"new 1", "new 2", "new 3"});
      import();

      const auto old_ones = [](std::vector<std::string> list) {
        std::erase_if(list, [](const std::string& text) { return text.starts_with("new"); });
        return list;
      };
      auto on = request(100);
      on.next = page.next;
      const std::size_t earlier = all_before ? 0 : 8;  // remaining items up to the page's end
      EXPECT_EQ(old_ones(texts(get(on))),
                std::vector<std::string>(before.begin() + static_cast<std::ptrdiff_t>(earlier),
                                         before.end()));
      auto back = request(100);
      back.previous = page.previous;
      EXPECT_EQ(old_ones(texts(get(back))),
                std::vector<std::string>(before.begin(), before.begin() + (all_before ? 0 : 5)));
    }
  }
}

TEST_F(PagingTest, MovedItemsLeaveAllOtherCursorsInTheirPlaces) {
  auto by_id = request();
  by_id.sort = {{"_id", Order::ascending}};
  const auto first_by_id = get(by_id);
  const auto first = get(request());
  std::swap(texts_[3], texts_[20]);
  import();
  auto rest = after(first);
  rest.limit = 100;
  EXPECT_EQ(texts(get(rest)), from(10, 15)) << "a moved item counts as removed and added";
  EXPECT_EQ(texts(get(request(100))), from(0, 25));
  rest.next = first_by_id.next;
  auto all = texts(first_by_id);
  const auto others = texts(get(rest));
  all.insert(all.end(), others.begin(), others.end());
  EXPECT_EQ(all.size(), 25U);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 25U);
}

// No item is left after the cursor, so every item added there is new to the reader.
TEST_F(PagingTest, NewItemsStandBehindRemovedOnesAtWhichACursorStands) {
  for (const bool at_once : {true, false}) {
    const auto first = get(request());
    texts_.resize(9);
    if (!at_once) import();
    texts_.insert(texts_.end(), {"new 1", "new 2"});
    import();
    EXPECT_EQ(texts(get(after(first))), from(9)) << at_once;
    for (int n = 0; n < 25; ++n) texts_.push_back("later " + numbered(n));
    import();
  }
  // The same between two items that stay.
  const auto first = get(request(5));
  texts_[4] = "instead";
  import();
  EXPECT_EQ(texts(get(after(first))), from(4));
}

// Imports that insert chunks after the same chunk again and again run out of order numbers. Then
// all items get new places, which ends the cursors by `order`. Cursors by `_id` stay.
TEST_F(PagingTest, CursorsByOrderEndWhenAllItemsGetNewPlaces) {
  auto by_id = request();
  by_id.sort = {{"_id", Order::ascending}};
  const auto first_by_id = get(by_id);
  int ended = 0;
  for (int n = 0; n < 20; ++n) {
    const auto first = get(request());
    texts_.insert(texts_.begin() + 4, "new " + numbered(n));
    import();
    const auto rest = store_->assets().chunks(source_, after(first));
    if (rest) {
      EXPECT_EQ(texts(*rest), from(11)) << n;
      continue;
    }
    EXPECT_EQ(rest.error().code, Errc::invalid_argument);
    EXPECT_EQ(texts(get(request(100))), from(0, 100));
    EXPECT_FALSE(get(after(first_by_id)).items.empty());
    ++ended;
  }
  EXPECT_EQ(ended, 1);
}

// The cursors of a page are written after the page was read. Here an import commits in between.
TEST_F(PagingTest, ImportBetweenAPageAndItsCursorsLeadsThemToNoWrongPlace) {
  int ended = 0;
  for (int n = 0; n < 20; ++n) {
    const auto before = from(10);
    texts_.insert(texts_.begin() + 4, "new " + numbered(n));
    std::promise<void> begun;
    std::promise<void> go;
    std::promise<model::Result<void>> imported;
    store_->committer().write(
        [&, bundle = bundle()](Writer& writer) -> model::Result<void> {
          auto report = store_->assets().import_bundle(writer, organisation_, bundle, {});
          begun.set_value();
          go.get_future().wait();
          if (!report) return model::fail(report.error());
          return {};
        },
        [&](model::Result<void> done) { imported.set_value(std::move(done)); });
    begun.get_future().wait();
    auto reading = std::async(std::launch::async, [&] { return get(request()); });
    // The other thread reads its page and waits for the Committer meanwhile.
    for (int i = 0; i < 20; ++i) EXPECT_EQ(get(request(100)).total, 25 + n);
    go.set_value();
    EXPECT_TRUE(imported.get_future().get());
    const auto first = reading.get();
    const auto rest = store_->assets().chunks(source_, after(first));
    if (rest) {
      EXPECT_EQ(texts(*rest).front(), first.total == 25 + n ? before.front() : from(10).front());
    } else {
      EXPECT_EQ(rest.error().code, Errc::invalid_argument);
      ++ended;
    }
  }
  EXPECT_LE(ended, 1);
}

TEST_F(PagingTest, BehindAnEmptyPageTheListIsStillThere) {
  const auto first = get(request(20));
  texts_.resize(20);
  import();
  const auto empty = get(after(first));
  EXPECT_TRUE(empty.items.empty());
  EXPECT_EQ(empty.next, "");
  auto back = request(5);
  back.previous = empty.previous;
  EXPECT_EQ(texts(get(back)), from(15));
  auto beyond = request();
  beyond.skip = 100;
  back.previous = get(beyond).previous;
  EXPECT_EQ(texts(get(back)), from(15)) << "the pages before the end";
}

TEST_F(PagingTest, SkipAndSortsOfSeveralFields) {
  auto asked = request(3);
  asked.skip = 20;
  asked.sort = {{"order", Order::descending}, {"_id", Order::ascending}};
  const auto page = get(asked);
  EXPECT_EQ(texts(page), (std::vector<std::string>{texts_[4], texts_[3], texts_[2]}));
  EXPECT_EQ(texts(get(after(page))), (std::vector<std::string>{texts_[1], texts_[0]}));
  asked.skip = 0;
  // The items are equal in `disabled`, so the second field decides. A tie-break follows it.
  asked.sort = {{"disabled", Order::descending}, {"text", Order::descending}};
  const auto by_text = get(asked);
  EXPECT_EQ(texts(by_text), (std::vector<std::string>{texts_[24], texts_[23], texts_[22]}));
  EXPECT_EQ(texts(get(after(by_text))).front(), texts_[21]);
  asked.sort = {{"data", Order::ascending}};
  EXPECT_EQ(store_->assets().chunks(source_, asked).error().code, Errc::invalid_argument);
}

TEST_F(PagingTest, ManyEqualSortValuesLoseNothing) {
  std::set<std::string> seen;
  auto asked = request(4);
  asked.sort = {{"createdAt", Order::descending}};
  auto page = get(asked);
  for (;;) {
    for (const auto& item : page.items) EXPECT_TRUE(seen.insert(item.id).second);
    if (page.next.empty()) break;
    asked = request(4);
    asked.next = page.next;
    page = get(asked);
  }
  EXPECT_EQ(seen.size(), 25U);
}

TEST_F(PagingTest, FilterFoldsCaseAndIsCounted) {
  texts_.insert(texts_.begin() + 3, "Die HAUPTSTRASSE ist gesperrt");
  texts_.push_back("Eine Straße, zwei stra\u00DFen");
  import();
  auto asked = request(1);
  asked.filter = "straße";
  const auto first = get(asked);
  EXPECT_EQ(first.total, 2);
  EXPECT_EQ(texts(first), std::vector<std::string>{texts_[3]});
  const auto second = get(after(first));
  EXPECT_EQ(texts(second), std::vector<std::string>{texts_.back()});
  EXPECT_EQ(second.total, 2);
  EXPECT_EQ(second.next, "");
  asked.filter = "no such thing";
  EXPECT_EQ(get(asked).total, 0);
  EXPECT_EQ(fold_case("ΣΊΣΥΦΟΣ ẞ"), fold_case("σίσυφος ss"));
}

TEST_F(PagingTest, CursorsEndAndBelongToTheirList) {
  const auto first = get(request());
  const auto refused = [&](const PageRequest& asked) {
    const auto page = store_->assets().chunks(source_, asked);
    return !page && page.error().code == Errc::invalid_argument;
  };
  auto other = request();
  other.next = first.next;
  EXPECT_EQ(store_->assets().lexicon_entries(lexicon_, other).error().code, Errc::invalid_argument);
  auto asked = after(first);
  asked.sort = {{"text", Order::descending}};
  EXPECT_TRUE(refused(asked)) << "the sort differs";
  asked.sort = {{"order", Order::ascending}};
  EXPECT_FALSE(refused(asked)) << "the list's default order, named";
  asked = after(first);
  asked.filter = "chunk";
  EXPECT_TRUE(refused(asked)) << "the filter differs";
  asked = request();
  asked.previous = first.next;
  EXPECT_TRUE(refused(asked)) << "the direction differs";
  asked.next = first.next;
  EXPECT_TRUE(refused(asked)) << "both cursors at once";
  EXPECT_FALSE(refused(after(first)));
  clock_.advance(std::chrono::hours(1));
  EXPECT_TRUE(refused(after(first))) << "the cursor has expired after an hour";
}

// A deep page costs as much as the first: SQLite finds the place in an index and reads on from
// there, without a scan of the list and without a sort.
TEST_F(PagingTest, ByIdAndOrderAnIndexLeadsToThePage) {
  if (place_.in_postgres()) GTEST_SKIP() << "reads SQLite's plan";
  const auto plan_of = [&](const PagedList& list, const SortKey& key, Side side) {
    const auto keys = plan_sort(list, {key});
    const Bound bound{side,
                      {keys->front().field.type == SqlType::integer ? SqlValue(std::int64_t{5})
                                                                    : SqlValue(std::string("x"))}};
    const auto select = select_page(list, *keys, bound, "", 11, 0);
    std::string plan;
    const auto done =
        store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
          writer.connection().rows_once(
              [&](std::vector<SqlValue>&& row) { plan += std::get<std::string>(row[3]) + "\n"; },
              "EXPLAIN QUERY PLAN " + select.sql, select.values,
              {SqlType::integer, SqlType::integer, SqlType::integer, SqlType::text});
          return {};
        });
    EXPECT_TRUE(done);
    return plan;
  };
  for (const Side side : {Side::after, Side::before}) {
    for (const Order order : {Order::ascending, Order::descending}) {
      for (const auto& plan : {plan_of(chunk_list(source_), {"_id", order}, side),
                               plan_of(chunk_list(source_), {"order", order}, side),
                               plan_of(entry_list(lexicon_), {"_id", order}, side)}) {
        EXPECT_NE(plan.find("SEARCH"), std::string::npos) << plan;
        // The index finds both the list and the place in it.
        EXPECT_NE(plan.find("=? AND "), std::string::npos) << plan;
        EXPECT_EQ(plan.find("SCAN"), std::string::npos) << plan;
        EXPECT_EQ(plan.find("B-TREE"), std::string::npos) << plan;
      }
    }
  }
}

TEST_F(PagingTest, EntriesAreCountedAndSortedByTheirShownValues) {
  auto asked = request(100);
  asked.sort = {{"mainKeyphrase", Order::descending}};
  const auto page = store_->assets().lexicon_entries(lexicon_, asked);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->total, 25);
  ASSERT_EQ(page->items.size(), 25U);
  EXPECT_EQ(page->items.front().main_keyphrase, texts_[24]);
  const auto by_id = store_->assets().lexicon_entries(lexicon_, request(100));
  EXPECT_TRUE(std::is_sorted(by_id->items.begin(), by_id->items.end(),
                             [](const auto& a, const auto& b) { return a.id < b.id; }));
  texts_.resize(7);
  import();
  EXPECT_EQ(store_->assets().lexicon_entries(lexicon_, request())->total, 7);
  EXPECT_EQ(*store_->assets().count_chunks(organisation_), 7);
}

}  // namespace
}  // namespace conversed::store
