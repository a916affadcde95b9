#include "store/commit/receipt_blocks.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/receipt_keys.h"
#include "store/commit/row_writes.h"
#include "store/commit/stored_steps.h"
#include "store/conversation/receipts_sql.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using namespace std::chrono_literals;

const std::string deliveries = "plain_deliveries";

class ReceiptBlocksTest : public StoreTest {
 protected:
  // An id of this program with these last characters, made after so many milliseconds.
  std::string id_at(std::chrono::milliseconds time, const std::string& end) const {
    auto id = model::id_prefix(clock_.now() + time);
    return id.append(model::id_length - id.size() - end.size(), '0') + end;
  }
  // Writes the entries of one transaction: receipts of the session 7, and deliveries.
  void write(const std::vector<std::string>& begun,
             const std::vector<std::string>& delivered = {}) {
    run([&](Connection& connection) {
      ReceiptBlocks blocks;
      for (const auto& id : begun) {
        blocks.begin({.input_id = id, .first = NewReceiptRow::First{}, .body = "step of " + id}, 7,
                     clock_.now());
      }
      for (const auto& id : delivered) {
        blocks.add({.input_id = id, .seq = 3, .at = clock_.now(), .took = 2ms, .status = 204});
      }
      blocks.flush(connection);
    });
  }
  template <typename Work>
  void run(const Work& work) {
    ASSERT_TRUE(
        store_->committer().write_and_wait([&](Writer& writer) { work(writer.connection()); }));
  }
  std::optional<ReceiptBegin> found(const std::string& id) {
    std::optional<ReceiptBegin> receipt;
    run([&](Connection& connection) { receipt = find_receipt(connection, id); });
    return receipt;
  }
  std::int64_t blocks(const std::string& table = "receipts") {
    std::int64_t count = 0;
    run([&](Connection& connection) {
      count = connection.number("SELECT COUNT(*) FROM " + table);
    });
    return count;
  }
  std::size_t deliveries_of(const std::string& id) {
    nlohmann::json steps;
    run([&](Connection& connection) { steps = plain_deliveries(connection, id); });
    return steps.size();
  }
};

TEST_F(ReceiptBlocksTest, EventsThatBeginTogetherShareABlock) {
  const auto first = id_at(0ms, "a");
  const auto second = id_at(16ms, "b");
  const auto later = id_at(17ms, "c");
  write({later, second, first});
  EXPECT_EQ(blocks(), 2);
  for (const auto& id : {first, second, later}) {
    const auto receipt = found(id);
    ASSERT_TRUE(receipt) << id;
    EXPECT_EQ(receipt->session, 7);
    EXPECT_EQ(receipt->written_at, clock_.now());
    EXPECT_EQ(receipt->step, "step of " + id);
  }
  EXPECT_FALSE(found(id_at(0ms, "d")));
  EXPECT_FALSE(found(id_at(1ms, "a")));
  EXPECT_FALSE(found("no id"));
  EXPECT_FALSE(found(""));
}

TEST_F(ReceiptBlocksTest, BlockHas64EventsAndAllEntriesOfItsLast) {
  std::vector<std::string> ids;
  for (int n = 0; n < 160; ++n)
    ids.push_back(id_at(std::chrono::milliseconds(n / 10), std::to_string(n)));
  write(ids);
  for (const auto& id : ids) EXPECT_TRUE(found(id)) << id;
  EXPECT_EQ(blocks(), 3);
  const std::vector<std::string> many(100, ids.front());
  write({}, many);
  EXPECT_EQ(blocks(deliveries), 1) << "PostgreSQL changes a row once in a statement";
  EXPECT_EQ(deliveries_of(ids.front()), 100);
}

TEST_F(ReceiptBlocksTest, FindsTheDeliveriesOfLaterTransactions) {
  const auto first = id_at(0ms, "a");
  const auto second = id_at(3ms, "b");
  write({first, second});
  write({}, {second});
  write({}, {first, second});
  EXPECT_EQ(deliveries_of(first), 1);
  EXPECT_EQ(deliveries_of(second), 2);
  const auto ended = model::to_unix_ms(clock_.now());
  run([&](Connection& connection) {
    EXPECT_EQ(plain_deliveries(connection, first), nlohmann::json::array({{{"what", "delivery"},
                                                                           {"seq", 3},
                                                                           {"try", 1},
                                                                           {"us", 2'000},
                                                                           {"status", 204},
                                                                           {"at", ended - 2},
                                                                           {"w", ended}}}));
  });
}

// A step that is unlike others, of some so many bytes.
std::string step_of(const std::string& id, std::size_t bytes) {
  auto text = "step of " + id + ' ';
  while (text.size() < bytes) text += id;
  return tests::receipt_step({{"what", "turn"}, {"text", text}});
}

class PackedBlocksTest : public ReceiptBlocksTest {
 protected:
  // Writes receipts of one transaction, in which each event has a session of its own, from 1 on.
  void write_long(const std::vector<std::string>& ids, std::size_t bytes = 400) {
    run([&](Connection& connection) {
      ReceiptBlocks blocks;
      std::int64_t session = 0;
      for (const auto& id : ids) {
        blocks.begin({.input_id = id,
                      .first = NewReceiptRow::First{.trace_id = std::string(32, 'e'),
                                                    .key = "",
                                                    .previous = "0-" + id.substr(23)},
                      .body = step_of(id, bytes)},
                     ++session, clock_.now());
      }
      blocks.flush(connection);
    });
  }
  std::vector<std::string> ids(int count) const {
    std::vector<std::string> all;
    for (int n = 0; n < count; ++n) {
      all.push_back(
          id_at(std::chrono::milliseconds(n), std::string(1, static_cast<char>('a' + n))));
    }
    return all;
  }
  std::string stored() {
    std::string all;
    run([&](Connection& connection) {
      all.clear();
      connection.rows([&](const std::string& steps) { all += steps; },
                      "SELECT steps FROM receipts ORDER BY n");
    });
    return all;
  }
  void expect_all(const std::vector<std::string>& ids, std::size_t bytes = 400) {
    for (std::size_t n = 0; n < ids.size(); ++n) {
      const auto receipt = found(ids[n]);
      ASSERT_TRUE(receipt) << ids[n];
      EXPECT_EQ(receipt->session, n + 1);
      EXPECT_EQ(receipt->written_at, clock_.now());
      EXPECT_EQ(receipt->trace_id, std::string(32, 'e'));
      EXPECT_EQ(receipt->previous, "0-" + ids[n].substr(23));
      EXPECT_EQ(receipt->step, step_of(ids[n], bytes));
    }
  }
};

TEST_F(PackedBlocksTest, ReceiptsOfALargeBlockAreCompressedTogether) {
  const auto all = ids(10);
  write_long(all);
  EXPECT_EQ(blocks(), 1);
  EXPECT_LT(stored().size(), 2'000U) << stored();
  EXPECT_EQ(stored().find("step of"), std::string::npos);
  expect_all(all);
}

// `later_steps` has steps of events with a receipt only.
TEST_F(PackedBlocksTest, LaterStepFindsItsReceipt) {
  const auto all = ids(10);
  write_long(all);
  const auto later = tests::receipt_step({{"what", "call"}});
  const auto steps = [&](const std::string& id) {
    std::int64_t count = 0;
    run([&](Connection& connection) {
      add_to_receipt(connection, {.input_id = id, .body = later}, 3, clock_.now());
      count = connection.number("SELECT COUNT(*) FROM later_steps WHERE event_id = :e", id);
    });
    return count;
  };
  EXPECT_EQ(steps(all[2]), 1);
  EXPECT_EQ(steps(all[3]), 0) << "the receipt of another session";
  EXPECT_EQ(steps(id_at(2ms, "z")), 0);
}

TEST_F(PackedBlocksTest, ErasureCutsOneReceiptOut) {
  const auto all = ids(10);
  write_long(all);
  run([&](Connection& connection) {
    EXPECT_FALSE(remove_receipt(connection, all[4], 4)) << "of another session";
    EXPECT_EQ(remove_receipt(connection, all[4], 5), "0-e");
  });
  EXPECT_FALSE(found(all[4]));
  const auto left = stored();
  EXPECT_EQ(left.find(all[4]), std::string::npos);
  const auto steps = unpacked(left.substr(left.find('~')));
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->find(all[4]), std::string::npos);
  EXPECT_NE(steps->find(all[5]), std::string::npos);
  for (const auto& id : all) {
    const auto receipt = found(id);
    ASSERT_EQ(receipt.has_value(), id != all[4]);
    if (receipt) EXPECT_EQ(receipt->step, step_of(id, 400));
  }
  EXPECT_LT(stored().size(), 2'000U) << "the others are still compressed";
}

// Transactions add to each other's blocks, small ones and large ones.
TEST_F(PackedBlocksTest, PartsOfABlockStayReadable) {
  const auto first = id_at(0ms, "x");
  write({first});
  const auto all = ids(10);
  write_long(all);
  const auto second = id_at(0ms, "y");
  write({second});
  EXPECT_EQ(blocks(), 1);
  expect_all(all);
  EXPECT_EQ(found(first)->step, "step of " + first);
  EXPECT_EQ(found(second)->step, "step of " + second);
  run([&](Connection& connection) { EXPECT_TRUE(remove_receipt(connection, first, 7)); });
  EXPECT_FALSE(found(first));
  expect_all(all);
  EXPECT_EQ(found(second)->session, 7);
}

TEST_F(PackedBlocksTest, LargeBlocksAreCompressedInParts) {
  const auto all = ids(10);
  write_long(all, 30'000);
  const auto text = stored();
  EXPECT_EQ(std::ranges::count(text, '~'), 4) << "of 65,536 bytes";
  EXPECT_LT(text.size(), 20'000U);
  expect_all(all, 30'000);
  run([&](Connection& connection) { EXPECT_TRUE(remove_receipt(connection, all[4], 5)); });
  EXPECT_LT(stored().size(), 20'000U);
  EXPECT_EQ(found(all[9])->step, step_of(all[9], 30'000));
}

TEST_F(PackedBlocksTest, TraceIsFoundInItsBlock) {
  write_long(ids(10));
  run([&](Connection& connection) {
    std::size_t blocks = 0;
    connection.rows([&](const std::string&) { ++blocks; }, sql_of_traced_blocks, std::int64_t{0},
                    std::numeric_limits<std::int64_t>::max(), "% " + std::string(32, 'e') + " %");
    EXPECT_EQ(blocks, 1U);
  });
}

// A part whose mark is lost takes no steps of the next part.
TEST_F(PackedBlocksTest, NoReceiptGetsTheStepOfAnother) {
  const auto all = ids(10);
  write_long({all.begin(), all.begin() + 5});
  write_long({all.begin() + 5, all.end()});
  const auto text = stored();
  const auto mark = text.find('~');
  ASSERT_NE(mark, std::string::npos);
  ASSERT_NE(text.find('~', mark + 1), std::string::npos) << "a second part";
  for (const auto& damaged : {text.substr(0, mark) + text.substr(mark + 1),
                              text.substr(0, mark) + text.substr(text.find('\x1d', mark))}) {
    run([&](Connection& connection) {
      connection.run("DELETE FROM receipts");
      connection.run("INSERT INTO receipts (n, steps) VALUES (:n, :s)", model::id_number(all[0]),
                     damaged);
    });
    for (const auto& id : all) {
      const auto step = found(id)->step;
      EXPECT_TRUE(step == step_of(id, 400) || step == damaged_step) << id << ": " << step;
    }
  }
}

TEST_F(PackedBlocksTest, ChangedByteOfAPartCostsItsStepsAtMost) {
  const auto all = ids(10);
  write_long(all);
  const auto text = stored();
  for (auto at = text.find('~'); at < text.size(); at += 7) {
    auto changed = text;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    run([&](Connection& connection) {
      connection.run("UPDATE receipts SET steps = :s", changed);
      for (const auto& id : all) {
        const auto step = find_receipt(connection, id)->step;
        ASSERT_TRUE(step == damaged_step || step == step_of(id, 400)) << at << ": " << step;
      }
    });
  }
}

TEST_F(PackedBlocksTest, DamagedBlockCanBeErasedAndPruned) {
  const auto all = ids(10);
  const auto damaged = [&](const std::string& change) {
    write_long(all);
    run([&](Connection& connection) {
      EXPECT_TRUE(read_step(find_receipt(connection, all[2])->step)) << "before the damage";
    });
    run([&](Connection& connection) { connection.run("UPDATE receipts SET steps = " + change); });
    for (std::size_t n = 0; n < all.size(); ++n) {
      const auto receipt = found(all[n]);
      ASSERT_TRUE(receipt) << change;
      EXPECT_EQ(receipt->session, n + 1);
      EXPECT_EQ(receipt->previous, "0-" + all[n].substr(23));
      EXPECT_EQ(receipt->step, damaged_step) << change;
    }
    EXPECT_EQ(store_->first().receipts().get(all[2]).error().code, model::Errc::internal);
    run([&](Connection& connection) { EXPECT_TRUE(remove_receipt(connection, all[2], 3)); });
    EXPECT_FALSE(found(all[2]));
    EXPECT_TRUE(found(all[3]));
    EXPECT_EQ(store_->first().receipts().prune(clock_.now() + 1s, 10).value(), 9);
    EXPECT_EQ(blocks(), 0);
  };
  damaged("REPLACE(steps, '~KLUv', '~KLUx')");
  damaged("substr(steps, 1, length(steps) - 40)");
  damaged("REPLACE(steps, '~', '')");
}

// Chance makes equal numbers. All events begin at once if their clock stands still.
TEST_F(ReceiptBlocksTest, EventsOfOneNumberStayApart) {
  const auto first = id_at(0ms, "a");
  const auto second = id_at(0ms, "b");
  ASSERT_EQ(model::id_number(first), model::id_number(second));
  write({first});
  write({second});
  write({}, {second});
  EXPECT_EQ(blocks(), 1);
  EXPECT_EQ(found(first)->step, "step of " + first);
  EXPECT_EQ(found(second)->step, "step of " + second);
  EXPECT_EQ(deliveries_of(first), 0);
  EXPECT_EQ(deliveries_of(second), 1);
}

TEST_F(ReceiptBlocksTest, RemovesOneReceiptOfABlock) {
  const auto first = id_at(0ms, "a");
  const auto second = id_at(1ms, "b");
  write({first, second});
  write({}, {first, second});
  run([&](Connection& connection) {
    EXPECT_FALSE(remove_receipt(connection, first, 8)) << "of another session";
    EXPECT_TRUE(remove_receipt(connection, first, 7));
    EXPECT_FALSE(remove_receipt(connection, first, 7));
    EXPECT_EQ(connection.number("SELECT COUNT(*) FROM receipts WHERE steps LIKE '%" + first + "%'"),
              0);
  });
  EXPECT_FALSE(found(first));
  EXPECT_EQ(deliveries_of(second), 1);
  run([&](Connection& connection) { EXPECT_TRUE(remove_receipt(connection, second, 7)); });
  EXPECT_EQ(blocks(), 0);
}

TEST_F(ReceiptBlocksTest, DeliveryThatIsMarkedLateBringsNoReceiptBack) {
  const auto id = id_at(0ms, "a");
  write({id});
  run([&](Connection& connection) { EXPECT_TRUE(remove_receipt(connection, id, 7)); });
  write({}, {id});
  EXPECT_FALSE(found(id));
  EXPECT_EQ(blocks(deliveries), 1);
  EXPECT_EQ(store_->first().receipts().prune(clock_.now() + 1s, 10).value(), 1);
  EXPECT_EQ(blocks(deliveries), 0);
}

TEST_F(ReceiptBlocksTest, NumbersGoWithTheirReceipt) {
  const std::string key(32, 'a');
  const auto numbered = [&] {
    std::int64_t count = 0;
    run([&](Connection& connection) {
      count = connection.number("SELECT COUNT(*) FROM receipt_numbers");
    });
    return count;
  };
  const auto begin = [&](const std::string& id) {
    run([&](Connection& connection) {
      ReceiptBlocks blocks;
      blocks.begin(
          {.input_id = id,
           .first =
               NewReceiptRow::First{.trace_id = std::string(32, 'f'), .key = key, .previous = ""},
           .body = tests::receipt_step({{"what", "turn"}})},
          7, clock_.now());
      blocks.flush(connection);
    });
  };
  begin(id_at(0ms, "a"));
  EXPECT_EQ(numbered(), 2) << "of the trace and of the key";
  EXPECT_EQ(found(id_at(0ms, "a"))->numbers,
            (std::vector{key_number(std::string(32, 'f')).value(), key_number(key).value()}));
  run([&](Connection& connection) { EXPECT_TRUE(remove_receipt(connection, id_at(0ms, "a"), 7)); });
  EXPECT_EQ(numbered(), 0);
  begin(id_at(0ms, "b"));
  EXPECT_EQ(store_->first().receipts().prune(clock_.now() + 1s, 10).value(), 1);
  EXPECT_EQ(numbered(), 0);
}

}  // namespace
}  // namespace conversed::store
