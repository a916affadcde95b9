// PostgreSQL only: sessions that break, several daemons, texts that it can't hold.
#include "store/sql/postgres.h"

#include <condition_variable>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <set>

#include "store/conversation/due_sql.h"
#include "store/sql/migrations.h"
#include "store/sql/postgres_rows.h"
#include "store/sql/postgres_watch.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

class PostgresTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(place_.in_postgres()) << "run this test with tests/support/postgres.py";
    outside_ = place_.another_writer();
  }

  std::unique_ptr<Store> open(const StoreSettings& settings) {
    auto opened = Store::open(settings, clock_);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  // Ends all sessions of the test's schema except the outside one.
  void break_sessions() {
    outside_->rows([](int) {},
                   "SELECT CASE WHEN pg_terminate_backend(a.pid) THEN 1 ELSE 0 END"
                   " FROM pg_stat_activity a WHERE a.application_name = 'conversed'"
                   " AND a.pid <> pg_backend_pid()");
  }

  const StorePlace place_;
  ManualClock clock_;
  std::unique_ptr<Connection> outside_;
};

TEST(PostgresRows, AnInsertOfASubqueryIsAnInsertOfASelect) {
  EXPECT_EQ(with_select("INSERT INTO t (a, b) VALUES ($1, (SELECT MAX(b) FROM t) + $2) ON CONFLICT "
                        "DO NOTHING"),
            "INSERT INTO t (a, b) SELECT $1, (SELECT MAX(b) FROM t) + $2 ON CONFLICT DO NOTHING");
  for (const std::string unchanged :
       {"INSERT INTO t (a) VALUES ($1)", "INSERT INTO t (a) SELECT a FROM t",
        "DELETE FROM t WHERE a = (SELECT $1)"}) {
    EXPECT_EQ(with_select(unchanged), unchanged);
  }
}

TEST_F(PostgresTest, TextsHoldAnyCharacterInTheirOrder) {
  auto store = open(place_.store());
  const std::string nul("a\0b", 3);
  const std::vector<std::string> texts{"a", nul, "a\x01", "a\x01\x01", "a\x01\x02", "a\x02", "aé"};
  Connection& connection = *outside_;
  for (const auto& text : texts) {
    connection.run("INSERT INTO claims (id, created_at) VALUES (:i, 0)", text);
  }
  std::vector<std::string> read;
  connection.rows([&](std::string text) { read.push_back(std::move(text)); },
                  "SELECT id FROM claims ORDER BY id");
  EXPECT_EQ(read, texts);
  EXPECT_TRUE(connection.value<std::string>("SELECT id FROM claims WHERE id = :i", nul));
}

TEST_F(PostgresTest, BadUtf8IsPoisonAndNothingElseIs) {
  auto store = open(place_.store());
  auto bad = turn(key_of("ann"), 0, 1);
  bad.outputs.front().text = "\xff";
  EXPECT_EQ(commit_now(store->committer(), std::move(bad)), Outcome::poison);
  EXPECT_EQ(commit_now(store->committer(), turn(key_of("ann"), 0, 1)), Outcome::committed);
}

TEST_F(PostgresTest, SearchOfListedSessionsReadsTheirOutputsAlone) {
  auto store = open(place_.store());
  Connection& connection = *outside_;
  connection.script(
      "INSERT INTO sessions (id, key, project_id, version, position_epoch, position_partition,"
      " position_offset, started_at, last_activity_at, context, flow_state, last_output_seq,"
      " inbox_size) SELECT i, 'key ' || i, 'project', 1, 0, 0, 0, 0, 0, '{}', 'null', 1, 0"
      " FROM generate_series(1, 5000) AS i;"
      "INSERT INTO outputs (id, session, seq, output_id, input_id, text, trace_id, source,"
      " created_at, timers_ahead) SELECT i, i, 1, 'o', 'i', 'hello', '', 'bot', 0, 0"
      " FROM generate_series(1, 5000) AS i;"
      "ANALYZE sessions; ANALYZE outputs");
  std::string plan;
  connection.rows_once(
      [&](std::vector<SqlValue>&& row) { plan += std::get<std::string>(row.back()) + "\n"; },
      "EXPLAIN SELECT CASE WHEN " + std::string(sql_of_fitting_output) +
          " THEN 1 ELSE 0 END FROM sessions WHERE project_id = 'project' ORDER BY id DESC LIMIT "
          "200",
      {"%word%"}, {SqlType::text});
  EXPECT_NE(plan.find("outputs_by_session"), std::string::npos) << plan;
}

TEST_F(PostgresTest, NoConnectionCompilesItsStatements) {
  const auto pulse = std::make_shared<PostgresPulse>();
  for (const auto role : {Connection::Role::reader, Connection::Role::writer}) {
    auto connection = open_postgres(*place_.postgres(), role, pulse);
    EXPECT_EQ(connection->value<std::string>("SHOW jit"), "off");
  }
}

// The server keeps the plan of a prepared statement until it analyzes the table again.
TEST_F(PostgresTest, PlanOfAnEmptyQueueFitsAFullOne) {
  auto store = open(place_.store());
  outside_->script("ANALYZE deliveries");
  const auto pulse = std::make_shared<PostgresPulse>();
  for (const auto role : {Connection::Role::reader, Connection::Role::writer}) {
    auto connection = open_postgres(*place_.postgres(), role, pulse);
    std::string plan;
    connection->rows_once(
        [&](std::vector<SqlValue>&& row) { plan += std::get<std::string>(row.back()) + "\n"; },
        "EXPLAIN " + std::string(sql_of_due_sessions),
        {"endpoint", std::int64_t{0}, std::int64_t{1}, std::int64_t{10}}, {SqlType::text});
    EXPECT_EQ(plan.find("Seq Scan"), std::string::npos) << plan;
    EXPECT_NE(plan.find("deliveries_pkey"), std::string::npos) << plan;
  }
}

// Columns by table.
using Columns = std::map<std::string, std::set<std::string>>;

TEST_F(PostgresTest, SchemaIsThatOfSqlite) {
  auto store = open(place_.store());
  Columns in_postgres;
  outside_->rows([&](const std::string& table,
                     std::string column) { in_postgres[table].insert(std::move(column)); },
                 "SELECT table_name, column_name FROM information_schema.columns"
                 " WHERE table_schema = current_schema()");
  const TempFolder folder;
  auto sqlite = Database::open({.file = folder / "store.db"});
  ASSERT_TRUE(sqlite);
  Columns in_sqlite;
  (*sqlite)->writer().rows(
      [&](const std::string& table, std::string column) {
        in_sqlite[table].insert(std::move(column));
      },
      "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"
      " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
      " AND m.name NOT LIKE 'knowledge_index%'");  // FTS5's own tables
  for (const auto& [table, columns] : in_sqlite) EXPECT_EQ(in_postgres[table], columns) << table;
  EXPECT_EQ(in_postgres.size(), in_sqlite.size());
  ASSERT_EQ(postgres_steps().size(), sqlite_steps().size());
  for (std::size_t i = 0; i < postgres_steps().size(); ++i) {
    EXPECT_EQ(postgres_steps()[i].version, sqlite_steps()[i].version);
    EXPECT_EQ(postgres_steps()[i].min_reader, sqlite_steps()[i].min_reader);
  }
}

TEST_F(PostgresTest, ReaderWhoseSessionBrokeReadsAllTheSame) {
  auto store = open(place_.store());
  ASSERT_EQ(commit_now(store->committer(), turn(key_of("ann"), 0, 1)), Outcome::committed);
  break_sessions();
  const auto session = store->first().sessions().load(key_of("ann"));
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ((*session)->version, 1);
}

TEST_F(PostgresTest, ReaderWhoseSessionBrokeAnswersWhatItWasAskedAhead) {
  auto store = open(place_.store());
  const auto pulse = std::make_shared<PostgresPulse>();
  auto reader = open_postgres(*place_.postgres(), Connection::Role::reader, pulse);
  ASSERT_EQ(reader->value<std::int64_t>("SELECT 1"), 1);
  break_sessions();
  auto asked = reader->ask<std::int64_t>("SELECT CAST(:n AS BIGINT)", std::int64_t{7});
  reader->settle();
  const auto answer = asked.take();
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<0>(*answer), 7);
}

// A server that goes on with the statement would work twice.
TEST_F(PostgresTest, ReadBeyondItsTimeLimitIsNotRepeated) {
  auto store = open(place_.store());
  const auto pulse = std::make_shared<PostgresPulse>();
  auto reader = open_postgres(*place_.postgres(), Connection::Role::reader, pulse);
  {
    const Connection::TimeLimit limit(*reader, std::chrono::steady_clock::now());
    EXPECT_THROW((void)reader->value<std::string>("SELECT CAST(pg_sleep(3600) AS TEXT)"), SqlError);
  }
  EXPECT_EQ(reader->round_trips(), 1U);
}

TEST_F(PostgresTest, WriterWhoseSessionBrokeGoesOnAndLosesNothing) {
  auto store = open(place_.store());
  for (int i = 0; i < 20; ++i) {
    break_sessions();
    EXPECT_EQ(commit_now(store->committer(), turn(key_of("ann"), i, i)), Outcome::committed);
  }
  EXPECT_EQ((*store->first().sessions().load(key_of("ann")))->version, 20);
  EXPECT_EQ(store->first().outbox().outputs(key_of("ann"), 0, 100)->size(), 20U);
}

TEST_F(PostgresTest, CommitWhoseSessionBreaksIsFoundOutAndDoneOnce) {
  auto store = open(place_.store());
  // A deferred trigger runs inside COMMIT. A rollback does not give numbers of a sequence back.
  outside_->script(
      "CREATE SEQUENCE commits;"
      "CREATE FUNCTION break_first() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN"
      " IF nextval('commits') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;"
      " RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER break_first AFTER INSERT OR UPDATE ON meta"
      " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION break_first();");
  int runs = 0;
  const auto written = store->committer().write_and_wait(
      [&](Writer& writer) -> model::Result<void> {
        ++runs;
        writer.connection().run(
            "INSERT INTO meta (name, value) VALUES ('count', 1)"
            " ON CONFLICT (name) DO UPDATE SET value = meta.value + 1");
        return {};
      },
      Committer::Patience::until_it_works);
  EXPECT_TRUE(written);
  EXPECT_EQ(runs, 2) << "the COMMIT was not tried twice";
  EXPECT_EQ(outside_->value<int>("SELECT value FROM meta WHERE name = 'count'"), 1);
}

// Citus takes a script statement by statement.
TEST_F(PostgresTest, ScriptIsCutAtTheEndsOfStatementsAndNotInsideAFunction) {
  outside_->script(
      "-- A comment; no statement.\n"
      "CREATE FUNCTION one() RETURNS BIGINT AS $$\n"
      "  SELECT 1;\n"
      "$$ LANGUAGE sql;\n"
      "\n"
      "CREATE TABLE numbers (n BIGINT); INSERT INTO numbers VALUES (one());\n"
      "INSERT INTO numbers\n"
      " VALUES (2)");
  EXPECT_EQ(outside_->value<std::int64_t>("SELECT SUM(n) FROM numbers"), 3);
}

TEST_F(PostgresTest, CommitsWaitForOthersIfTheLastTransactionHadSeveral) {
  auto database = Database::open(place_.database());
  ASSERT_TRUE(database);
  // The wait is longer than a test takes.
  Committer committer(**database, clock_, {.max_batch = 20, .commit_wait = std::chrono::hours(1)});
  int users = 0;
  const auto submit = [&](int commits, const std::function<void()>& then) {
    for (int i = 0; i < commits; ++i, ++users) {
      committer.submit(turn(key_of("user" + std::to_string(users)), 0, users),
                       [then](Outcome outcome, const auto&) {
                         EXPECT_EQ(outcome, Outcome::committed);
                         then();
                       });
    }
  };
  std::latch several(4);
  submit(4, [&] { several.count_down(); });
  committer.start();
  several.wait();
  std::latch full(20);  // such a batch waits for no others
  submit(20, [&] { full.count_down(); });
  full.wait();
  submit(19, [] {});
  committer.stop();  // ends the wait
  EXPECT_EQ(committer.commits(), 43U);
  EXPECT_EQ(committer.transactions(), 3U);
}

TEST_F(PostgresTest, ManyTurnsCostAFewRoundTripsAndStatements) {
  auto database = Database::open(place_.database());
  ASSERT_TRUE(database);
  Committer committer(**database, clock_);
  Outbox outbox(**database, committer);
  std::mutex mutex;
  std::condition_variable changed;
  constexpr int turns = 200;
  int left = 2 * turns;
  const auto done = [&] {
    const std::lock_guard lock(mutex);
    --left;
    changed.notify_all();
  };
  for (int i = 0; i < turns; ++i) {
    const auto key = key_of("user" + std::to_string(i));
    committer.submit(turn(key, 0, i), [&](Outcome outcome, const auto&) {
      EXPECT_EQ(outcome, Outcome::committed);
      done();
    });
    outbox.delivered(key, turn(key, 0, i).outputs.front(), 0, done,
                     PlainDelivery{.input_id = model::new_id(), .seq = 1, .status = 200});
  }
  // BEGIN and COMMIT have no plans.
  const auto statements = [&] {
    return (*database)->writer().number(
        "SELECT CAST(SUM(generic_plans + custom_plans) AS BIGINT) FROM pg_prepared_statements");
  };
  const auto statements_before = statements();
  const auto before = (*database)->writer().round_trips();
  committer.start();
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
  committer.stop();
  EXPECT_LE((*database)->writer().round_trips() - before, 4U);
  EXPECT_LE(statements() - statements_before, 20);
}

TEST_F(PostgresTest, ManySessionsAreReadInOneRoundTrip) {
  auto database = Database::open(place_.database());
  ASSERT_TRUE(database);
  Committer committer(**database, clock_);
  const Sessions sessions(**database, committer);
  std::vector<model::SessionKey> keys;
  for (int i = 0; i < 8; ++i) keys.push_back(key_of("user" + std::to_string(i)));
  ASSERT_TRUE(sessions.load_with_profiles(keys));  // prepares the statement
  const auto before = (*database)->reader()->round_trips();
  ASSERT_TRUE(sessions.load_with_profiles(keys));
  EXPECT_EQ((*database)->reader()->round_trips() - before, 1U);
}

TEST_F(PostgresTest, OfTwoDaemonsOneWinsEachVersion) {
  auto first = open(place_.store());
  auto second = open(place_.store());
  constexpr int rounds = 50;
  int committed = 0;
  for (int i = 0; i < rounds; ++i) {
    std::promise<Outcome> one;
    std::promise<Outcome> other;
    first->committer().submit(turn(key_of("ann"), i, i),
                              [&](Outcome outcome, const auto&) { one.set_value(outcome); });
    second->committer().submit(turn(key_of("ann"), i, i),
                               [&](Outcome outcome, const auto&) { other.set_value(outcome); });
    committed += one.get_future().get() == Outcome::committed ? 1 : 0;
    committed += other.get_future().get() == Outcome::committed ? 1 : 0;
  }
  EXPECT_EQ(committed, rounds);
  EXPECT_EQ((*second->first().sessions().load(key_of("ann")))->version, rounds);
}

TEST_F(PostgresTest, DaemonsThatStartTogetherMakeOneSchema) {
  constexpr int daemons = 4;
  std::vector<std::thread> threads;
  std::atomic<int> opened = 0;
  for (int i = 0; i < daemons; ++i) {
    threads.emplace_back([&] {
      if (Database::open(place_.database())) ++opened;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(opened, daemons);
  EXPECT_EQ(outside_->value<int>("SELECT COUNT(*) FROM schema_version"),
            static_cast<int>(postgres_steps().size()));
}

TEST_F(PostgresTest, AnExclusiveProgramIsAloneUntilItsSessionEnds) {
  auto settings = place_.store();
  settings.postgres->place = PostgresSettings::Place::alone;
  settings.postgres->turn_timeout = std::chrono::milliseconds(500);
  auto first = open(settings);
  const auto refused = Store::open(settings, clock_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("daemons use the store; stop them first"),
            std::string::npos)
      << refused.error().message;
  // After its session broke, it takes its place again.
  break_sessions();
  EXPECT_EQ(commit_now(first->committer(), turn(key_of("ann"), 0, 1)), Outcome::committed);
  EXPECT_FALSE(Store::open(settings, clock_));
  first.reset();
  EXPECT_TRUE(Store::open(settings, clock_));
}

TEST_F(PostgresTest, AnotherMasterKeyIsRefused) {
  auto first = open(place_.store());
  const TempFolder elsewhere;
  auto settings = place_.store();
  settings.data_dir = elsewhere.path();
  EXPECT_EQ(Store::open(settings, clock_).error().code, model::Errc::not_found)
      << "no new key may hide that the right key is missing";
  ASSERT_TRUE(Sealer::create_key_file(elsewhere / "master.key"));
  EXPECT_EQ(Store::open(settings, clock_).error().code, model::Errc::conflict);
  std::filesystem::copy_file(place_.folder() / "master.key", elsewhere / "master.key",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(Store::open(settings, clock_));
}

TEST_F(PostgresTest, ErrorsDoNotTellTheUrl) {
  for (const char* url :
       {"postgresql://user:hunter2@localhost:1/none", "postgresql://[hunter2",
        "postgresql://user:p@hunter2@localhost:1/none",
        "postgresql://user:hunter2/p@localhost:1/none",
        "postgresql://user:1/hunter2@localhost:1/none",
        "postgresql://user:p?hunter2@localhost/none",
        "postgresql://user:p@x/hunter2@localhost:1/none",
        "host=localhost port=1 password=p hunter2", "host=localhost port=1 password='p hunter2=1",
        "host=localhost port=hunter2"}) {
    const auto refused = Database::open({.postgres = PostgresSettings{.url = url}});
    ASSERT_FALSE(refused);
    // An invalid URL is an error of the settings. A missing server may come later.
    EXPECT_TRUE(refused.error().code == model::Errc::unavailable ||
                refused.error().code == model::Errc::invalid_argument)
        << refused.error().message;
    EXPECT_EQ(refused.error().message.find("hunter2"), std::string::npos)
        << refused.error().message;
  }
}

TEST_F(PostgresTest, ASlowWriteTimesOutAndDelaysNoOthers) {
  auto settings = place_.database();
  settings.postgres->timeout = std::chrono::milliseconds(100);
  auto database = Database::open(settings);
  ASSERT_TRUE(database) << database.error().message;
  Committer committer(**database, clock_);
  // All writes are in one batch.
  std::promise<Outcome> before;
  std::promise<Outcome> after;
  std::promise<model::Result<void>> slow;
  committer.submit(turn(key_of("ann"), 0, 1),
                   [&](Outcome outcome, const auto&) { before.set_value(outcome); });
  committer.write(
      [](Writer& writer) -> model::Result<void> {
        writer.connection().run("SELECT pg_sleep(3600)");
        return {};
      },
      [&](model::Result<void> written) { slow.set_value(std::move(written)); },
      Committer::Patience::none);
  std::promise<model::Result<void>> quick;
  committer.write([](Writer&) -> model::Result<void> { return {}; },
                  [&](model::Result<void> written) { quick.set_value(std::move(written)); },
                  Committer::Patience::none);
  committer.submit(turn(key_of("bob"), 0, 1),
                   [&](Outcome outcome, const auto&) { after.set_value(outcome); });
  committer.start();
  EXPECT_EQ(before.get_future().get(), Outcome::committed);
  EXPECT_EQ(slow.get_future().get().error().code, model::Errc::timed_out);
  EXPECT_TRUE(quick.get_future().get());
  EXPECT_EQ(after.get_future().get(), Outcome::committed);
}

// Its service would wait for the mark for ever.
TEST_F(PostgresTest, AMarkOutlivesTheTimeLimit) {
  auto settings = place_.database();
  settings.postgres->timeout = std::chrono::milliseconds(100);
  auto database = Database::open(settings);
  ASSERT_TRUE(database) << database.error().message;
  Committer committer(**database, clock_);
  std::promise<void> marked;
  std::atomic<int> tries = 0;
  committer.mark(
      [&](Connection& connection) {
        if (++tries < 3) connection.run("SELECT pg_sleep(3600)");
      },
      [&] { marked.set_value(); });
  committer.start();
  marked.get_future().wait();
  EXPECT_EQ(tries, 3);
}

TEST_F(PostgresTest, ReadsFailFastWhileTheServerIsSilent) {
  auto settings = place_.database();
  settings.pulse = std::make_shared<PostgresPulse>();
  auto database = Database::open(settings);
  ASSERT_TRUE(database) << database.error().message;
  const auto ask = [&] { return (*database)->reader()->value<std::int64_t>("SELECT 1"); };
  EXPECT_EQ(ask(), 1);
  settings.pulse->lost();
  EXPECT_THROW(ask(), SqlError);
  EXPECT_EQ((*database)->writer().value<std::int64_t>("SELECT 1"), 1)
      << "writers still ask the server";
  settings.pulse->found();
  EXPECT_EQ(ask(), 1);
  // The watch has to find the server again.
  settings.pulse->lost();
  PostgresWatch watch(
      *place_.postgres(), [](std::string_view) {}, *settings.pulse);
  ASSERT_TRUE(watch.start());
  while (!settings.pulse->answers()) std::this_thread::yield();
}

TEST_F(PostgresTest, WatchHearsOfChangesAlsoAfterItsSessionBroke) {
  auto store = open(place_.store());
  std::mutex mutex;
  std::condition_variable changed;
  std::multiset<std::string> heard;
  PostgresPulse pulse;
  PostgresWatch watch(
      *place_.postgres(),
      [&](std::string_view topic) {
        const std::lock_guard lock(mutex);
        heard.emplace(topic);
        changed.notify_all();
      },
      pulse);
  ASSERT_TRUE(watch.start());
  const auto wait_for = [&](const std::string& topic, std::size_t times) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return heard.count(topic) >= times; });
  };
  wait_for("", 1);
  ASSERT_TRUE(store->accounts().create_first_organisation(
      "Shop", {.email = "ann@example.com", .name = "Ann"}));
  wait_for("people", 1);
  break_sessions();
  wait_for("", 2);
}

TEST_F(PostgresTest, CachesOfOneDaemonAreStaleAfterTheWriteOfAnother) {
  auto first = open(place_.store());
  auto second = open(place_.store());
  const auto before = second->accounts().generation();
  ASSERT_TRUE(first->accounts().create_first_organisation(
      "Shop", {.email = "ann@example.com", .name = "Ann"}));
  while (second->accounts().generation() == before) {
    ASSERT_TRUE(second->accounts().organisations());  // each call is a round trip to the server
  }
}

}  // namespace
}  // namespace conversed::store
