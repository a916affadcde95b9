// The cost of reads of long lists, in steps of SQLite's virtual machine: work, not time.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/commit/receipt_blocks.h"
#include "store/commit/receipt_keys.h"
#include "store/model/ids.h"
#include "tests/support/sqlite_steps.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

constexpr std::size_t page_size = 25;

using tests::steps;

class CostTest : public StoreTest {
 protected:
  const tests::CountedConnections counted_;
};

using RemovalCostTest = CostTest;

TEST_F(RemovalCostTest, TheTransactionCostsTheSameWithAnyNumberOfSessions) {
  const auto organisation =
      store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"});
  ASSERT_TRUE(organisation);
  model::Bundle bundle;
  bundle.project_name = "Shop";
  bundle.locales = {"en"};
  std::vector<std::int64_t> costs;
  std::int64_t offset = 0;
  const FlowReader reader{
      .standing = [](const auto&, const auto&) { return std::vector<std::string>(); },
      .entered = [](const auto&) { return std::vector<std::string>(); }};
  for (const int sessions : {10, 1'000}) {
    const auto name = std::to_string(sessions);
    bundle.flows.clear();
    bundle.flows.push_back({name, {{"name", name}, {"nodes", nlohmann::json::array()}}});
    const auto report = store_->assets().import_bundle(organisation->id, bundle);
    ASSERT_TRUE(report) << report.error().message;
    for (int i = 0; i < sessions; ++i) {
      SessionCommit commit;
      commit.key = {report->at("project").at("_id"), "endpoint", name, std::to_string(i)};
      commit.after.key = commit.key;
      commit.after.position = {.epoch = 1, .partition = 0, .offset = ++offset};
      model::FollowUp follow_up;
      follow_up.id = model::new_id();
      follow_up.session = commit.key;
      commit.follow_ups.added.push_back(follow_up);
      store_->committer().submit(std::move(commit), [](Outcome, const auto&) {});
    }
    ASSERT_TRUE(store_->committer().write_and_wait([](Writer&) {}));  // behind the commits
    const auto parts =
        store_->removals().flow(report->at("flows")[0].at("_id"), reader, clock_.now());
    ASSERT_TRUE(parts);
    steps = 0;
    const auto usages = store_->committer().write_and_wait(
        [&](Writer& writer) { return Removals::remove(writer, *parts); });
    costs.push_back(steps.load());
    ASSERT_TRUE(usages);
    EXPECT_TRUE(usages->empty());
  }
  EXPECT_LE(costs[1], costs[0] + 100);
}

class PagingCostTest : public CostTest {
 protected:
  void import_chunks(int count) {
    count_ = count;
    const auto organisation =
        store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"});
    ASSERT_TRUE(organisation);
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    model::BundleSource source{"FAQ", {}};
    for (int n = 0; n < count; ++n) {
      source.chunks.push_back({"chunk " + std::to_string(n), nullptr});
    }
    bundle.knowledge_stores = {{"Manual", {std::move(source)}}};
    const auto report = store_->assets().import_bundle(organisation->id, bundle);
    ASSERT_TRUE(report) << report.error().message;
    source_ = report->at("knowledgeStores")[0]["sources"][0]["_id"];
  }

  [[nodiscard]] PageRequest request(const std::vector<SortKey>& sort) const {
    PageRequest asked;
    asked.limit = page_size;
    asked.now = clock_.now();
    asked.sort = sort;
    return asked;
  }
  Page<KnowledgeChunk> get(const PageRequest& asked) {
    auto page = store_->assets().chunks(source_, asked);
    EXPECT_TRUE(page) << page.error().message;
    return page ? *std::move(page) : Page<KnowledgeChunk>();
  }
  // The steps of a page. Stores the page in `into` if given.
  std::int64_t cost(const PageRequest& asked, Page<KnowledgeChunk>* into = nullptr) {
    steps = 0;
    auto page = get(asked);
    const auto taken = steps.load();
    EXPECT_EQ(page.items.size(), page_size);
    EXPECT_EQ(page.total, count_);
    if (into != nullptr) *into = std::move(page);
    return taken;
  }
  // The steps of the two pages around a place of the list: the next page by cursor, and the
  // previous.
  std::pair<std::int64_t, std::int64_t> costs_at(const std::vector<SortKey>& sort, int depth) {
    auto there = request(sort);
    there.skip = depth;
    auto onwards = request({});
    onwards.next = get(there).next;
    Page<KnowledgeChunk> next;
    const auto forward = cost(onwards, &next);
    auto back = request({});
    back.previous = next.previous;
    return {forward, cost(back)};
  }

  int count_ = 0;
  std::string source_;
};

TEST_F(PagingCostTest, ByIdAndOrderAnyPageByCursorCostsTheSameAtAnyDepth) {
  ASSERT_NO_FATAL_FAILURE(import_chunks(100'000));
  const std::vector<std::vector<SortKey>> sorts{{},
                                                {{"order", Order::ascending}},
                                                {{"order", Order::descending}},
                                                {{"_id", Order::ascending}},
                                                {{"_id", Order::descending}}};
  for (const auto& sort : sorts) {
    std::vector<std::int64_t> forward;
    std::vector<std::int64_t> backward;
    for (const int depth : {25, 1'000, 10'000, 50'000, count_ - 75}) {
      const auto [next, previous] = costs_at(sort, depth);
      forward.push_back(next);
      backward.push_back(previous);
    }
    for (const auto& costs : {forward, backward}) {
      const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
      EXPECT_GT(*least, static_cast<std::int64_t>(page_size)) << "no steps were counted";
      // The statements and the count of rows are the same. The Committer's own work may count for
      // one page or for the next.
      EXPECT_LE(*most, *least + *least / 10) << testing::PrintToString(costs);
      EXPECT_LT(*most, 10'000) << "the cost is that of a page, not of the list";
    }
  }
}

// Without an index the whole list has to be read. The count shows it.
TEST_F(PagingCostTest, ByTextThePageCostsTheList) {
  ASSERT_NO_FATAL_FAILURE(import_chunks(20'000));
  EXPECT_GT(cost(request({{"text", Order::ascending}})), count_);
}

class ReceiptsCostTest : public CostTest {
 protected:
  const std::string trace_ = std::string(31, '0') + '1';

  // A session's receipts of so many events, all of one trace.
  void add_receipts(const std::string& user, int count) {
    ASSERT_EQ(commit_now(turn(key_of(user), 0, 1)), Outcome::committed);
    ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) {
      auto& connection = writer.connection();
      const auto session =
          connection.value<std::int64_t>("SELECT id FROM sessions WHERE key = :k", key_of(user));
      std::string previous;
      ReceiptBlocks blocks;
      for (int i = 0; i < count; ++i) {
        const auto id = model::new_id(clock_.now());
        const NewReceiptRow row{
            .input_id = id,
            .first = NewReceiptRow::First{.trace_id = trace_, .key = "", .previous = previous},
            .body = ""};
        blocks.begin(row, *session, clock_.now());
        previous = id;
        clock_.advance(std::chrono::milliseconds(1));
      }
      blocks.flush(connection);
      connection.run("UPDATE sessions SET last_receipt = :r WHERE id = :s", previous, *session);
    }));
  }
  template <typename Read>
  std::int64_t cost_of(const Read& read) {
    steps = 0;
    read();
    return steps.load();
  }
};

TEST_F(ReceiptsCostTest, TraceWithAnyNumberOfForeignEventsCostsABoundedRead) {
  const auto find = [&] {
    EXPECT_TRUE(store_->first().receipts().find("foreign", trace_, "", 5)->empty());
  };
  add_receipts("ann", 2'000);
  const auto few = cost_of(find);
  EXPECT_GT(few, 1'000) << "nothing was counted";
  add_receipts("bob", 8'000);
  EXPECT_LE(cost_of(find), few + few / 10);
}

TEST_F(ReceiptsCostTest, PageOfAnExportCostsTheSameInAnyChain) {
  const auto highest_cost = [&](const std::string& user, int count) {
    add_receipts(user, count);
    int receipts = 0;
    std::int64_t most = 0;
    std::optional<UserData::Place> place = UserData::Place{};
    while (place) {
      most = std::max(
          most, cost_of([&] {
            const auto page =
                store_->first().user_data().read_page({"project", user}, *place, 50).value();
            receipts += static_cast<int>(std::ranges::count(
                page.items, "receipt", [](const auto& item) { return item["kind"]; }));
            place = page.next;
          }));
    }
    EXPECT_EQ(receipts, count);
    return most;
  };
  const auto few = highest_cost("ann", 200);
  EXPECT_GT(few, 50) << "nothing was counted";
  EXPECT_LE(highest_cost("bob", 2'000), few + few / 5);
}

class DueSessionsCostTest : public CostTest {
 protected:
  // The steps to read the first outputs of an Endpoint's only session, which has `count` delivered
  // outputs and `count` pending ones.
  std::int64_t cost_behind(std::int64_t count) {
    const std::string endpoint = "endpoint " + std::to_string(count);
    auto commit = turn({"project", endpoint, "ann", "s"}, 0, 1);
    const auto output = commit.outputs.front();
    commit.outputs.clear();
    for (std::int64_t seq = 1; seq <= 2 * count; ++seq) {
      commit.outputs.push_back(output);
      commit.outputs.back().seq = seq;
      if (seq <= count) commit.outputs.back().delivery = model::Delivery::none;
    }
    commit.after.last_output_seq = 2 * count;
    EXPECT_EQ(commit_now(commit), Outcome::committed);
    steps = 0;
    const auto page = store_->first().outbox().due(endpoint, clock_.now(), 10, 16);
    const auto taken = steps.load();
    EXPECT_TRUE(page);
    EXPECT_EQ(page->sessions.size(), 1U);
    EXPECT_EQ(page->sessions.front().outputs.front().seq, count + 1);
    return taken;
  }
};

TEST_F(DueSessionsCostTest, SessionWithAnyNumberOfOutputsCostsTheSame) {
  const auto few = cost_behind(20);
  EXPECT_GT(few, 16) << "nothing was counted";
  EXPECT_LE(cost_behind(5'000), few + few / 10);
}

}  // namespace
}  // namespace conversed::store
