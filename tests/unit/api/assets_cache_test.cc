// Assets as requests and Turns see them. The cache reads them once for each generation of the
// store.
#include "api/live/assets_cache.h"

#include <gtest/gtest.h>

#include "flows/flow.h"
#include "flows/lexicon/lexicon.h"
#include "store/sql/sql.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using model::Errc;
using test::token;
using test::World;

model::Bundle one_flow() {
  model::Bundle bundle;
  bundle.project_name = "Late";
  bundle.locales = {"en"};
  bundle.flows.push_back({"Main", {{"name", "Main"}, {"nodes", nlohmann::json::array()}}});
  return bundle;
}

void import_into(World& world, const model::Bundle& bundle) {
  const auto acme = world.assets->endpoint_by_token(token('a')).value()->organisation_id;
  ASSERT_TRUE(world.store->assets().import_bundle(acme, bundle));
}

TEST(AssetsCache, HandsOutOneObjectUntilTheAssetsChange) {
  World world;
  const auto first = world.assets->endpoint_by_token(token('a')).value();
  EXPECT_EQ(world.assets->endpoint_by_token(token('a')).value(), first);
  import_into(world, one_flow());
  EXPECT_NE(world.assets->endpoint_by_token(token('a')).value(), first);
  EXPECT_EQ(world.assets->endpoint(first->id).value()->url_token, token('a'));
}

TEST(AssetsCache, FindsAnEndpointThatIsCreatedAfterAMiss) {
  World world;
  EXPECT_EQ(world.assets->endpoint_by_token(token('7')).error().code, Errc::not_found);
  auto bundle = one_flow();
  model::BundleEndpoint late;
  late.name = "late";
  late.flow = "Main";
  late.url_token = token('7');
  bundle.endpoints.push_back(late);
  import_into(world, bundle);
  EXPECT_TRUE(world.assets->endpoint_by_token(token('7')));
}

TEST(AssetsCache, AFlowIsCompiledOnceAVersion) {
  World world;
  const auto endpoint = world.assets->endpoint_by_token(token('a')).value();
  const auto newest = world.assets->newest_flow(endpoint->flow_id).value();
  EXPECT_EQ(newest->version.version, 1);
  EXPECT_EQ(newest->flow->name(), "Main");
  EXPECT_EQ(world.assets->flow(endpoint->flow_id, 1).value(), newest);
  import_into(world, one_flow());
  EXPECT_EQ(world.assets->newest_flow(endpoint->flow_id).value(), newest);
  EXPECT_EQ(world.assets->newest_flow("nothing").error().code, Errc::not_found);
}

TEST(AssetsCache, AVersionThatWasMissingIsFoundOnceItIsThere) {
  World world;
  const auto flow = world.assets->endpoint_by_token(token('a')).value()->flow_id;
  EXPECT_EQ(world.assets->flow(flow, 2).error().code, Errc::not_found);
  ASSERT_TRUE(world.store->committer().write_and_wait([&](store::Writer& writer) {
    world.store->assets().grow(writer);
    writer.connection().run(
        "INSERT INTO flow_versions (flow_id, version, definition, created_at, created_by)"
        " SELECT flow_id, 2, definition, created_at, created_by FROM flow_versions"
        " WHERE flow_id = :f",
        flow);
    return model::Result<void>();
  }));
  EXPECT_TRUE(world.assets->flow(flow, 2));
}

TEST(AssetsCache, AnEndedRampWhoseVersionIsGoneLeadsToTheFlowsOwnVersion) {
  World world;
  const auto endpoint = world.assets->endpoint_by_token(token('a')).value();
  auto project = *world.assets->project(endpoint->project_id).value();
  project.ramps[endpoint->flow_id] = {
      .id = "r", .version = 9, .stable_version = 1, .share = store::all_sessions};
  const auto flow = world.assets->flow_for(project, endpoint->flow_id, {"p", "e", "u", "s"});
  ASSERT_TRUE(flow);
  EXPECT_EQ((*flow)->version.version, 1);
}

TEST(AssetsCache, ALexiconIsMadeOnceAVersion) {
  World world;
  const auto endpoint = world.assets->endpoint_by_token(token('a')).value();
  const auto project = world.store->assets().project(endpoint->project_id).value();
  EXPECT_EQ(world.assets->lexicon(endpoint->project_id, "Fruit").error().code, Errc::not_found);
  model::Bundle bundle;
  bundle.project_name = project.name;
  bundle.locales = {"en"};
  bundle.lexicons = {{"Fruit", {"fruit"}, {{"Apple", {"apples"}, {"fruit"}, {{"n", 1}}}}}};
  ASSERT_TRUE(world.store->assets().import_bundle(endpoint->organisation_id, bundle));
  const auto lexicon = world.assets->lexicon(endpoint->project_id, "Fruit").value();
  ASSERT_EQ(lexicon->entries().size(), 1U);
  EXPECT_EQ(lexicon->entries()[0].slots, std::vector<std::string>{"fruit"});
  EXPECT_EQ(lexicon->entries()[0].data, (nlohmann::json{{"n", 1}}));
  ASSERT_TRUE(world.store->assets().create_token(endpoint->project_id, {.label = "t"}));
  EXPECT_EQ(world.assets->lexicon(endpoint->project_id, "Fruit").value(), lexicon);
  auto others = bundle;
  others.project_name = "Neighbor";
  ASSERT_TRUE(world.store->assets().import_bundle(endpoint->organisation_id, others));
  EXPECT_EQ(world.assets->lexicon(endpoint->project_id, "Fruit").value(), lexicon);
  ASSERT_TRUE(world.store->assets().import_bundle(endpoint->organisation_id, bundle));
  EXPECT_NE(world.assets->lexicon(endpoint->project_id, "Fruit").value(), lexicon);
  EXPECT_EQ(world.assets->lexicon("other", "Fruit").error().code, Errc::not_found);
}

TEST(AssetsCache, KnowsTheNamesOfAProject) {
  World world;
  const auto endpoint = world.assets->endpoint_by_token(token('a')).value();
  const auto project = world.assets->project(endpoint->project_id).value();
  EXPECT_EQ(project->flow_ids.at("Main"), endpoint->flow_id);
}

}  // namespace
}  // namespace conversed::api
