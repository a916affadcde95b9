// A store of two database servers. The first one has the accounts and assets.
#include <nlohmann/json.hpp>
#include <set>

#include "store/assets/project_removal.h"
#include "store/assets/removal.h"
#include "store/shards/removed_projects.h"
#include "store/sql/postgres.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

constexpr std::int32_t partitions = 4;

const FlowReader reader{.standing =
                            [](const json& flow_state, const std::optional<model::Execution>&) {
                              return std::vector<std::string>{flow_state.at("waiting")};
                            },
                        .entered = [](const std::string&) { return std::vector<std::string>(); }};

class LayoutTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(place_.in_postgres()) << "run this test with tests/support/postgres.py";
  }

  Result<void> open(const StoreSettings& settings) {
    store_.reset();
    auto opened = Store::open(settings, clock_);
    if (!opened) return model::fail(opened.error());
    store_ = *std::move(opened);
    return {};
  }
  std::vector<std::size_t> places() {
    std::vector<std::size_t> places;
    for (std::int32_t partition = 0; partition < partitions; ++partition) {
      places.push_back(store_->layout().shard_of(partition));
    }
    return places;
  }
  using Places = std::vector<std::size_t>;

  const StorePlace place_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
};

TEST_F(LayoutTest, AnEmptyStoreIsSpreadOverItsShards) {
  const auto settings = place_.store_of(3);
  ASSERT_TRUE(open(settings));
  EXPECT_EQ(places(), (Places{0, 0, 0, 0})) << "before it is settled";
  ASSERT_TRUE(store_->layout().settle(partitions));
  EXPECT_EQ(places(), (Places{0, 1, 2, 0}));
  ASSERT_TRUE(open(settings));
  EXPECT_EQ(places(), (Places{0, 1, 2, 0})) << "it is stored";
  const auto key = key_of("ann");
  EXPECT_EQ(&store_->of(key), &store_->of(model::partition_of(key.encode(), partitions)));
}

TEST_F(LayoutTest, AStoreWithSessionsKeepsAllPartitionsInTheFirstShard) {
  auto settings = place_.store_of(2);
  const auto shards = std::exchange(settings.shards, {});
  ASSERT_TRUE(open(settings));
  ASSERT_EQ(commit_now(store_->committer(), turn(key_of("ann"), 0, 1)), Outcome::committed);
  settings.shards = shards;
  ASSERT_TRUE(open(settings));
  ASSERT_TRUE(store_->layout().settle(partitions));
  EXPECT_EQ(places(), (Places{0, 0, 0, 0}));
}

TEST_F(LayoutTest, AnotherNumberOfPartitionsIsRefused) {
  ASSERT_TRUE(open(place_.store_of(2)));
  ASSERT_TRUE(store_->layout().settle(partitions));
  EXPECT_EQ(store_->layout().settle(partitions + 1).error().code, Errc::conflict);
  EXPECT_TRUE(store_->layout().settle(partitions));
}

TEST_F(LayoutTest, AServerKeepsItsPlaceInTheList) {
  auto settings = place_.store_of(3);
  ASSERT_TRUE(open(settings));
  std::swap(settings.shards[0], settings.shards[1]);
  EXPECT_EQ(open(settings).error().code, Errc::conflict);
  std::swap(settings.shards[0], settings.shards[1]);
  EXPECT_TRUE(open(settings));
}

TEST_F(LayoutTest, AServerWithAStoreOfItsOwnIsRefused) {
  const StorePlace another;
  ASSERT_TRUE(open(another.store()));
  auto settings = place_.store_of(1);
  settings.shards = {*another.postgres()};
  EXPECT_EQ(open(settings).error().code, Errc::conflict);
}

TEST_F(LayoutTest, AStoreWithoutOneOfItsShardsIsRefused) {
  auto settings = place_.store_of(3);
  ASSERT_TRUE(open(settings));
  ASSERT_TRUE(store_->layout().settle(partitions));
  settings.shards.pop_back();
  EXPECT_EQ(open(settings).error().code, Errc::conflict);
  settings.shards.pop_back();
  EXPECT_EQ(open(settings).error().code, Errc::conflict);
}

// The project "Shop" with the Flows "Main" and "Old" and the Endpoints "web" and "old".
class ShardsTest : public LayoutTest {
 protected:
  void SetUp() override {
    LayoutTest::SetUp();
    settings_ = place_.store_of(2);
    ASSERT_TRUE(open(settings_));
    ASSERT_TRUE(store_->layout().settle(partitions));
    organisation_ =
        store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"})->id;
    import(1);
  }

  Shard& second() { return *store_->shards().at(1); }

  void import(int round, NewVersions versions = NewVersions::in_effect) {
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    for (const char* name : {"Main", "Old"}) {
      bundle.flows.push_back({name, {{"name", name}, {"round", round}}});
    }
    for (const char* name : {"web", "old"}) {
      model::BundleEndpoint endpoint;
      endpoint.name = name;
      endpoint.flow = "Main";
      bundle.endpoints.push_back(std::move(endpoint));
    }
    const auto report = store_->assets().import_bundle(organisation_, bundle, {}, {}, versions);
    ASSERT_TRUE(report) << report.error().message;
    project_ = report->at("project").at("_id");
    for (const auto& each : report->at("flows")) flows_[each.at("name")] = each.at("_id");
    for (const auto& each : report->at("endpoints")) endpoints_[each.at("name")] = each.at("_id");
  }

  // A new user whose sessions are in this shard.
  model::SessionKey user_in(const Shard& shard, const std::string& endpoint = "web") {
    for (;;) {
      model::SessionKey key{project_, endpoints_.at(endpoint), "u" + std::to_string(++users_), "s"};
      if (&store_->of(key) == &shard) return key;
    }
  }
  // The first SessionCommit of a new user in this shard.
  SessionCommit commit_in(const Shard& shard, const std::string& endpoint = "web") {
    auto commit = turn(user_in(shard, endpoint), 0, users_, model::Delivery::none);
    commit.after.flow_state = {{"waiting", ""}};
    commit.after.last_activity_at = clock_.now();
    return commit;
  }
  void write(SessionCommit commit) {
    Shard& shard = store_->of(commit.key);
    ASSERT_EQ(commit_now(shard.committer(), std::move(commit)), Outcome::committed);
  }
  void run(Shard& shard, const std::function<void(Connection&)>& work) {
    const auto done =
        shard.committer().write_and_wait([&](Writer& writer) { work(writer.connection()); });
    ASSERT_TRUE(done) << done.error().message;
  }
  std::int64_t rows_of(Shard& shard, const std::string& table) {
    std::int64_t number = -1;
    run(shard, [&](Connection& connection) {
      number = connection.number("SELECT COUNT(*) FROM " + table);
    });
    return number;
  }

  // Renames the second shard's schema, so that its statements fail. The second call undoes it.
  void switch_second() {
    const auto& url = settings_.shards.front().url;
    auto schema = url.substr(url.rfind("test_"));
    auto other = schema + "_away";
    if (is_away_) std::swap(schema, other);
    place_.another_writer()->script("ALTER SCHEMA " + schema + " RENAME TO " + other);
    is_away_ = !is_away_;
    if (is_away_) return;
    ASSERT_TRUE(
        second().committer().write_and_wait([](Writer&) {}, Committer::Patience::until_it_works));
  }

  StoreSettings settings_;
  std::string organisation_;
  std::string project_;
  std::map<std::string, std::string> flows_;      // ids by name
  std::map<std::string, std::string> endpoints_;  // ids by name
  int users_ = 0;
  bool is_away_ = false;
};

TEST_F(ShardsTest, UsageIsTheSumEvenIfAShardIsAway) {
  const auto use_in = [&](Shard& shard, std::int64_t amount) {
    auto commit = commit_in(shard);
    commit.quota = {{organisation_, "injects", amount}};
    write(std::move(commit));
  };
  const auto used = [&] {
    return store_->usage().used(organisation_, "injects", month_of(clock_.now()));
  };
  use_in(store_->first(), 2);
  use_in(second(), 3);
  switch_second();
  EXPECT_EQ(*used(), 2) << "nothing was read from it yet";
  switch_second();
  EXPECT_EQ(*used(), 5);
  use_in(second(), 4);
  EXPECT_EQ(*used(), 9);
  use_in(second(), 10);
  switch_second();
  EXPECT_EQ(*used(), 9) << "the amount that was last read";
  use_in(store_->first(), 1);
  EXPECT_EQ(*used(), 10);
  EXPECT_EQ(*store_->usage().used(organisation_, "injects", "2001-01"), 0) << "of another month";
  EXPECT_EQ(*store_->usage().used("other", "injects", month_of(clock_.now())), 0);
}

TEST_F(ShardsTest, TurnsOfARampAreCountedOverAllShards) {
  import(2, NewVersions::held);
  auto& assets = store_->assets();
  const auto& flow = flows_["Main"];
  const auto begin = [&] { return assets.set_ramp({flow, 2, 10, 50, ""})->id; };
  const auto count_in = [&](Shard& shard, const std::string& ramp, std::int64_t turns,
                            std::int64_t failures) {
    auto commit = commit_in(shard);
    commit.ramps = {{ramp, RampUse::Version::ramped, turns, failures}};
    write(std::move(commit));
  };
  const auto turns = [&] { return (*assets.ramp(flow))->ramped.turns; };
  const auto first_ramp = begin();
  count_in(store_->first(), first_ramp, 10, 2);
  count_in(second(), first_ramp, 10, 8);
  EXPECT_EQ(turns(), 20);
  EXPECT_TRUE(assets.take_back_ramps()->empty()) << "the bound is reached, not passed";
  count_in(second(), first_ramp, 10, 10);
  switch_second();
  EXPECT_TRUE(assets.take_back_ramps()->empty()) << "the shard with the failures is away";
  EXPECT_EQ(turns(), 10);
  switch_second();
  const auto ended = assets.take_back_ramps();
  ASSERT_EQ(ended->size(), 1U);
  EXPECT_EQ(ended->front().ramped.turns, 30);
  EXPECT_EQ(ended->front().ramped.failures, 20);
  assets.forget_ramp_counts();
  EXPECT_EQ(rows_of(store_->first(), "ramp_counts"), 0);
  EXPECT_EQ(rows_of(second(), "ramp_counts"), 0);
  // A Turn that began before the end.
  count_in(second(), first_ramp, 1, 1);
  EXPECT_EQ(turns(), 30);
  const auto next_ramp = begin();
  EXPECT_EQ(turns(), 0);
  count_in(second(), next_ramp, 5, 1);
  EXPECT_TRUE(assets.take_back_ramps()->empty());
  assets.forget_ramp_counts();
  EXPECT_EQ(rows_of(second(), "ramp_counts"), 1) << "of the ramp that runs";
  const auto stopped = assets.stop_ramp(flow);
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_EQ(stopped->ramped.turns, 5);
  EXPECT_EQ(turns(), 5);
}

TEST_F(ShardsTest, AVersionThatASessionOfAnotherShardIsPinnedToIsKept) {
  const auto& main = flows_["Main"];
  const auto pin = [&](const Shard& shard, std::int64_t version) {
    auto commit = commit_in(shard);
    commit.after.execution.emplace();
    commit.after.execution->input_id = "input";
    commit.after.execution->pending_call_id = "call";
    commit.after.execution->flow_id = main;
    commit.after.execution->flow_version = version;
    write(std::move(commit));
  };
  pin(second(), 1);
  pin(store_->first(), 2);
  for (int round = 2; round <= 25; ++round) import(round);
  const auto kept = [&] {
    std::set<std::int64_t> versions;
    const auto list = store_->assets().flow_versions(main);
    for (const auto& each : *list) versions.insert(each.version);
    return versions;
  };
  EXPECT_EQ(kept().size(), 25U) << "an import can't see the other shards' sessions";
  switch_second();
  EXPECT_FALSE(store_->assets().prune_all_flow_versions());
  EXPECT_EQ(kept().size(), 25U);
  switch_second();
  const auto removed = store_->assets().prune_all_flow_versions();
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, 3 + 5) << "of both Flows";
  const auto left = kept();
  EXPECT_TRUE(left.contains(1));
  EXPECT_TRUE(left.contains(2));
  EXPECT_FALSE(left.contains(3));
  EXPECT_TRUE(left.contains(6));
  EXPECT_EQ(*store_->assets().prune_all_flow_versions(), 0);
}

TEST_F(ShardsTest, RemovalIsRefusedForWorkInAnotherShard) {
  const auto endpoint = [&] {
    return store_->removals().endpoint(endpoints_["old"], reader, clock_.now());
  };
  const auto flow = [&] { return store_->removals().flow(flows_["Old"], reader, clock_.now()); };
  EXPECT_TRUE(endpoint()->usages.empty());
  auto waiting = commit_in(second(), "old");
  waiting.after.flow_state = {{"waiting", "Old"}};
  waiting.outputs.front().delivery = model::Delivery::pending;
  write(waiting);
  auto also = commit_in(store_->first(), "old");
  also.after.flow_state = {{"waiting", "Old"}};
  also.outputs.front().delivery = model::Delivery::pending;
  write(also);
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = waiting.key;
  schedule.text = "later";
  ASSERT_TRUE(second().schedules().create(schedule, std::nullopt));
  EXPECT_EQ(endpoint()->usages,
            (std::vector<PartUsage>{{"Endpoint", "old", PartUsage::Kind::sessions, "", 2},
                                    {"Endpoint", "old", PartUsage::Kind::outputs, "", 2},
                                    {"Endpoint", "old", PartUsage::Kind::schedules, "", 1}}));
  EXPECT_EQ(flow()->usages,
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::sessions, "", 2}}));
  const auto project = parts_of_project(store_->removals(), project_, reader, clock_.now());
  ASSERT_TRUE(project) << project.error().message;
  const auto usages = store_->committer().write_and_wait(
      [&](Writer& writer) { return remove_project(writer, *project, Removals::Mode::real); });
  ASSERT_TRUE(usages) << usages.error().message;
  EXPECT_EQ(*usages,
            (std::vector<PartUsage>{{"Endpoint", "old", PartUsage::Kind::sessions, "", 2},
                                    {"Endpoint", "old", PartUsage::Kind::outputs, "", 2},
                                    {"Endpoint", "old", PartUsage::Kind::schedules, "", 1}}));
  switch_second();
  EXPECT_FALSE(endpoint());
}

TEST_F(ShardsTest, HealthOfADeletedEndpointIsForgottenInAllShards) {
  for (const char* name : {"web", "old"}) {
    second().endpoint_health().failed(
        {.endpoint_id = endpoints_[name], .failing_since = clock_.now(), .last_at = clock_.now()});
  }
  ASSERT_TRUE(second().committer().write_and_wait([](Writer&) {}));  // behind the writes above
  const auto parts = store_->removals().endpoint(endpoints_["old"], reader, clock_.now());
  ASSERT_TRUE(store_->committer().write_and_wait(
      [&](Writer& writer) { return Removals::remove(writer, *parts); }));
  ASSERT_TRUE(store_->removals().forget_health());
  EXPECT_TRUE(second().endpoint_health().find(endpoints_["web"])->has_value());
  EXPECT_FALSE(second().endpoint_health().find(endpoints_["old"])->has_value());
}

TEST_F(ShardsTest, AllShardsKnowTheKeyOfARotation) {
  switch_second();
  EXPECT_FALSE(store_->key_rotation().rotate()) << "a shard does not know the new key";
  EXPECT_TRUE(store_->key_rotation().is_unfinished());
  switch_second();
  ASSERT_TRUE(store_->key_rotation().resume());
  EXPECT_FALSE(store_->key_rotation().is_unfinished());
  const auto opened = open(settings_);
  EXPECT_TRUE(opened) << opened.error().message;
}

TEST_F(ShardsTest, ErasureOfAUserFreesTheKeysOfAppendsFirst) {
  auto commit = commit_in(second());
  const auto key = commit.key;
  commit.answers.kept.push_back({"input", "{}", clock_.now() + std::chrono::hours(24)});
  write(std::move(commit));
  std::promise<void> reserved;
  store_->append_keys().reserve(
      {.scope = "s", .key = "k", .event_id = "input", .session_key = key.encode()},
      [&](const auto&) { reserved.set_value(); });
  reserved.get_future().wait();
  const UserOfProject user{key.project_id, key.user_id};
  ASSERT_EQ(&store_->of({.project_id = user.project_id, .user_id = user.user_id}), &second());
  UserData::EraseHooks hooks{.finished = [](const model::Position&) { return true; }, .ended = {}};
  const auto erase_in_first = [&](const model::KeyRange&) -> Result<void> {
    EXPECT_EQ(rows_of(second(), "answers"), 1);
    auto inner = hooks;
    inner.forget_keys = {};
    inner.lives_elsewhere = true;
    const auto erased = store_->first().user_data().erase(user, inner);
    return erased ? Result<void>() : fail(erased.error());
  };
  hooks.forget_keys = erase_in_first;
  EXPECT_EQ(second().user_data().erase(user, hooks)->answers, 1);
  EXPECT_EQ(rows_of(store_->first(), "append_keys"), 0);
}

TEST_F(ShardsTest, AuditFindsTheProjectOfARowInAnotherShard) {
  auto commit = commit_in(second());
  const auto letter = model::new_id();
  commit.dead_letters.push_back({letter, {model::new_id(), "inject", "", "{}"}, "why"});
  write(std::move(commit));
  const auto project_of = [&](const std::string& id) {
    AuditEntry entry;
    entry.id = model::new_id();
    entry.organisation_id = organisation_;
    entry.actor = "root@example.com";
    std::promise<Result<AuditEntry>> stored;
    store_->audit().begin(entry,
                          [&](Result<AuditEntry> done) { stored.set_value(std::move(done)); },
                          {AuditedProject::By::dead_letter, id});
    return stored.get_future().get()->project_id;
  };
  EXPECT_EQ(project_of(letter), project_);
  EXPECT_EQ(project_of(model::new_id()), "");
  switch_second();
  EXPECT_EQ(project_of(letter), "") << "the entry is written all the same";
}

TEST_F(ShardsTest, FollowUpsOfAJourneyAreWithdrawnInAllShards) {
  for (const bool of_journey : {true, false}) {
    auto commit = commit_in(second());
    model::FollowUp later;
    later.id = model::new_id();
    later.session = commit.key;
    later.plan.of_journey = of_journey;
    commit.follow_ups.added.push_back(later);
    write(std::move(commit));
  }
  EXPECT_EQ(store_->proactive().withdraw_elsewhere(project_), 1);
  EXPECT_EQ(store_->proactive().withdraw_elsewhere(project_), 0) << "it may be called again";
  EXPECT_EQ(rows_of(second(), "follow_ups"), 1) << "of a Node";
}

TEST_F(ShardsTest, ADeletedProjectIsErasedInAllShards) {
  for (const auto& shard : store_->shards()) {
    auto commit = commit_in(*shard);
    commit.after.flow_state = nullptr;
    commit.after.last_activity_at = {};
    commit.profile.data = json{{"note", "likes tea"}};
    commit.dead_letters.push_back({model::new_id(), {model::new_id(), "inject", "", "{}"}, "why"});
    write(std::move(commit));
  }
  run(store_->first(), [&](Connection& connection) {
    connection.run("INSERT INTO removed_projects (id, removed_at) VALUES (:i, :t)", project_,
                   clock_.now());
  });
  model::Schedule late;  // came between the two steps of the removal
  late.id = model::new_id();
  late.session = user_in(second());
  late.text = "later";
  ASSERT_TRUE(second().schedules().create(late, std::nullopt));
  clock_.advance(RemovedProjects::lifetime);
  int freed = 0;
  const auto erase = [&] {
    return RemovedProjects(store_->shards())
        .erase({.stopped = [] { return false; },
                .finished = [](const model::Position&) { return true; },
                .forget_keys = [&](const model::KeyRange&) -> Result<void> {
                  ++freed;
                  return {};
                }},
               clock_.now());
  };
  switch_second();
  EXPECT_FALSE(erase());
  EXPECT_EQ(rows_of(store_->first(), "sessions"), 0) << "the other shard does not hold it up";
  EXPECT_FALSE(erase());
  EXPECT_EQ(rows_of(store_->first(), "removed_projects"), 1) << "a shard has sessions of it";
  switch_second();
  EXPECT_EQ(erase()->sessions, 1);
  for (const char* table : {"sessions", "outputs", "profiles", "dead_letters", "schedules"}) {
    EXPECT_EQ(rows_of(second(), table), 0) << table;
  }
  EXPECT_EQ(freed, 2);
  EXPECT_EQ(*erase(), RemovedProjects::Erased());
  EXPECT_EQ(rows_of(store_->first(), "removed_projects"), 0);
}

}  // namespace
}  // namespace conversed::store
