// The cost of what the console's pages ask, in steps of SQLite's virtual machine: work, not time.
// It does not grow with the store.
#include <gtest/gtest.h>

#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "store/commit/receipt_blocks.h"
#include "store/model/ids.h"
#include "store/sql/sql.h"
#include "tests/support/receipt_step.h"
#include "tests/support/sqlite_steps.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::token;
using test::World;
using tests::steps;

struct Question {
  std::string path;
  HeaderList query;
};

class PageCost : public testing::Test {
 protected:
  // Adds sessions with these rows. Each has a receipt and an output; every tenth has a delivery, a
  // dead letter, and a question with a time-out.
  void fill(std::int64_t first, std::int64_t last) {
    const auto key = model::SessionKey{project_, endpoint_, "NAME", "s"}.encode();
    const std::string each =
        "WITH RECURSIVE n (i) AS (SELECT :f UNION ALL SELECT i + 1 FROM n"
        " WHERE i < :l) ";
    const std::string tenth = " FROM n WHERE i % 10 = 0";
    // One event a millisecond, roughly.
    const auto era = model::new_id().substr(0, 2);
    const std::string input = "printf('" + era + "%07d%015d', i, i)";
    const json state{
        {"v", 1}, {"executions", 1}, {"waiting", {{"flow", "Main"}, {"at", "nodes[0]"}}}};
    const json turn{{"what", "turn"}, {"flow", "Main"}, {"version", 1}, {"nodes", {"nodes[0]"}}};
    const auto done = world_.store->committer().write_and_wait([&](store::Writer& writer) {
      auto& connection = writer.connection();
      const auto now = writer.now();
      connection.run(each +
                         "INSERT INTO sessions (id, key, project_id, version, position_epoch,"
                         " position_partition, position_offset, started_at, last_activity_at,"
                         " context, flow_state, last_output_seq, inbox_size, last_receipt)"
                         " SELECT i, replace(:k, 'NAME', 'user ' || i), :p, 1, 0, 0, 0, :a, :b,"
                         " '{}', :s, 1, 0, " +
                         input + " FROM n",
                     first, last, key, project_, now, now, state.dump());
      store::ReceiptBlocks blocks;
      for (auto i = first; i <= last; ++i) {
        std::ostringstream id;
        id << era << std::setfill('0') << std::setw(7) << i << std::setw(15) << i;
        std::ostringstream trace;
        trace << std::setfill('0') << std::hex << std::setw(15) << i << std::string(17, '0');
        const store::NewReceiptRow::First begin{trace.str(), "", ""};
        blocks.begin({.input_id = id.str(), .first = begin, .body = tests::receipt_step(turn)}, i,
                     now);
      }
      blocks.flush(connection);
      connection.run(each +
                         "INSERT INTO outputs (session, seq, output_id, input_id, text, trace_id,"
                         " source, created_at, timers_ahead) SELECT i, 1, " +
                         input + " || '-1', " + input + ", 'hello ' || i, '', 'bot', :a, 0 FROM n",
                     first, last, now);
      connection.run(each +
                         "INSERT INTO deliveries (session, seq, output_id, endpoint_id,"
                         " withdrawable, due_at, attempts) SELECT i, 1, " +
                         input + " || '-1', :e, 0, :d, 3" + tenth,
                     first, last, endpoint_, now + std::chrono::hours(1));
      connection.run(each +
                         "INSERT INTO dead_letters (id, n, project_id, key, event_id, type,"
                         " trace_id, value, attempts, reason, flow, flow_version, node, state,"
                         " created_at) SELECT printf('%024d', i), i, :p,"
                         " replace(:k, 'NAME', 'user ' || i), " +
                         input +
                         ", 'inject', '', '{}', 0, 'reason ' || (i % 50), '', 0, '', 'new', :a" +
                         tenth,
                     first, last, project_, key, now);
      connection.run(each +
                         "INSERT INTO pending_calls (id, session, trace_id, due_at, time_out)"
                         " SELECT " +
                         input + " || '-t1', i, '', :d, 1" + tenth,
                     first, last, now + std::chrono::hours(1));
      connection.run(each +
                         "INSERT INTO audit (id, made_at, organisation_id, user_id, actor,"
                         " credential, address, operation, route, object, subject_user,"
                         " subject_session, status, trace_id) SELECT printf('%024d', i), :a,"
                         " printf('%024d', 0), printf('%024d', 0), 'x@example.com', 'password',"
                         " '192.0.2.1', 'listUsers', 'GET /management/users', '', '', '', 200,"
                         " printf('%015x%017d', i, 0) FROM n",
                     first, last, now);
      input_ =
          *connection.value<std::string>("SELECT last_receipt FROM sessions WHERE id = :i", first);
    });
    ASSERT_TRUE(done) << done.error().message;
  }

  // Not among them: the groups of dead letters, which examine up to 20,000 rows.
  [[nodiscard]] std::vector<Question> questions(const std::string& flow) const {
    const HeaderList names{{"URLToken", token('a')}, {"userId", "user 1000"}, {"sessionId", "s"}};
    const auto of = [this](HeaderList more = {}) {
      more.emplace_back("projectId", project_);
      return more;
    };
    return {{"sessions", of()},
            {"sessions", of({{"after", "2000"}})},
            {"sessions", of({{"userId", "user 1000"}})},
            {"sessions", of({{"userId", "nobody"}})},
            {"sessions", of({{"state", "busy"}})},
            {"sessions", of({{"URLToken", token('b')}})},
            {"sessions", of({{"text", "nobody says this"}})},
            {"sessions/show", names},
            {"sessions/events", names},
            {"receipts/" + input_, {}},
            {"receipts/" + std::string(32, '0'), {}},
            {"deliveries", of()},
            {"deliveries", of({{"URLToken", token('a')}})},
            {"deliveries", of({{"state", "paused"}})},
            {"deliveries", of({{"state", "behind"}})},
            {"deliveries", of({{"olderThan", "30d"}})},
            {"deadletters", of({{"state", "new"}})},
            {"deadletters", of({{"state", "replayed"}})},
            {"deadletters", of({{"state", "new"}, {"reason", "no such reason"}})},
            {"deadletters/000000000000000000001000", {}},
            {"timers", of()},
            {"schedules", of()},
            {"flows/" + flow + "/graph", {}},
            {"endpoints", of()},
            {"audit", {}},
            {"audit", {{"actor", "nobody@example.com"}}}};
  }

  // The steps of each answer.
  std::vector<std::int64_t> costs(const std::string& flow) {
    std::vector<std::int64_t> all;
    for (const auto& [path, query] : questions(flow)) {
      steps = 0;
      const auto answer =
          world_.manage(Method::get, "/management/" + path, nullptr, query, "admin@acme.example");
      EXPECT_TRUE(answer.status == 200 || answer.status == 404) << path << answer.body;
      all.push_back(steps.load());
    }
    return all;
  }

  const tests::CountedConnections counted_;
  World world_;
  const std::string project_ = world_.session_key().project_id;
  const std::string endpoint_ = world_.session_key().endpoint_id;
  std::string input_;  // of one of the sessions
};

TEST_F(PageCost, DoesNotGrowWithTheStore) {
  constexpr std::int64_t some = 30'000;
  const auto flows = json::parse(
      world_.manage(Method::get, "/management/flows", nullptr, {{"projectId", project_}}).body);
  const std::string flow = flows.at("items").at(0).at("_id");
  fill(1'000, 999 + some);
  (void)costs(flow);  // the first asking prepares statements and fills caches
  const auto before = costs(flow);
  fill(1'000 + some, 999 + 2 * some);
  const auto after = costs(flow);
  const auto asked = questions(flow);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    // The depth of the trees may grow, and the Committer's own work counts for any of them.
    EXPECT_LE(after[i], before[i] + before[i] / 10 + 1'000)
        << asked[i].path << " " << testing::PrintToString(asked[i].query);
  }
}

}  // namespace
}  // namespace conversed::api
