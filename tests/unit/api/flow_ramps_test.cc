// Ramps of Flows by the management routes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "store/sql/sql.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::body_of;
using test::World;

class FlowRampRoutes : public testing::Test {
 protected:
  void SetUp() override {
    const auto report = import("one");
    route_ = "/management/flows/" + report["flows"][0]["_id"].get<std::string>();
    import("two", {{ "hold", true }});
  }
  json import(const std::string& text, json more = json::object(), int status = 200) {
    more["text"] =
        "conversed: 1\nproject: {name: Ramps, locales: [en]}\n"
        "flows: [{name: Main, nodes: [{say: " +
        text + "}]}]\nendpoints: [{name: web, flow: Main}]\n";
    const auto response = world_.manage(Method::post, "/management/import", more);
    EXPECT_EQ(response.status, status) << response.body;
    return body_of(response);
  }
  Response set(const json& body) { return world_.manage(Method::post, route_ + "/ramp", body); }
  json versions() { return body_of(world_.manage(Method::get, route_ + "/versions", nullptr)); }

  World world_;
  std::string route_;
};

TEST_F(FlowRampRoutes, AHeldVersionGoesToAShareAndThenToAll) {
  EXPECT_TRUE(versions()["ramp"].is_null());
  EXPECT_EQ(versions()["items"][0]["share"], 0) << "a held version";
  const auto begun = set({{"version", 2}, {"share", 10}});
  ASSERT_EQ(begun.status, 200) << begun.body;
  auto ramp = body_of(begun);
  EXPECT_EQ(ramp["name"], "Main");
  EXPECT_EQ(ramp["stableVersion"], 1);
  EXPECT_EQ(ramp["maxErrors"], 5);
  EXPECT_EQ(ramp["beganBy"], "admin@acme.example");
  EXPECT_TRUE(ramp["endedAt"].is_null());
  EXPECT_EQ(versions()["ramp"], ramp);
  EXPECT_EQ(versions()["items"][0]["share"], 10);
  EXPECT_EQ(versions()["items"][1]["share"], 90);
  ramp = body_of(set({{"version", 2}, {"share", 50.0}, {"maxErrors", 0}}));
  EXPECT_EQ(ramp["share"], 50);
  EXPECT_EQ(ramp["maxErrors"], 0);
  EXPECT_EQ(body_of(set({{"version", 2}, {"share", 100}}))["ending"], "finished");
  EXPECT_EQ(versions()["items"][0]["share"], 100);
}

TEST_F(FlowRampRoutes, TheShareZeroAndTheRouteTakeTheVersionBack) {
  EXPECT_EQ(set({{"version", 2}, {"share", 0}}).status, 409) << "no ramp runs";
  EXPECT_EQ(set({{"version", 2}, {"share", 10}}).status, 200);
  EXPECT_EQ(set({{"version", 1}, {"share", 0}}).status, 409) << "another version";
  EXPECT_EQ(body_of(set({{"version", 2}, {"share", 0}}))["ending"], "stopped");
  EXPECT_EQ(set({{"version", 2}, {"share", 10}}).status, 200);
  const auto stop = [&](const std::string& version) {
    return world_.manage(Method::delete_, route_ + "/ramp", nullptr, {{"version", version}}).status;
  };
  EXPECT_EQ(stop("1"), 409) << "another version";
  EXPECT_EQ(stop("x"), 400);
  EXPECT_EQ(versions()["ramp"]["ending"], nullptr) << "it runs";
  EXPECT_EQ(stop("2"), 200);
  EXPECT_EQ(set({{"version", 2}, {"share", 10}}).status, 200);
  const auto stopped = world_.manage(Method::delete_, route_ + "/ramp", nullptr);
  EXPECT_EQ(body_of(stopped)["ending"], "stopped");
  EXPECT_EQ(world_.manage(Method::delete_, route_ + "/ramp", nullptr).status, 409);
}

TEST_F(FlowRampRoutes, ADiffBeginsAtTheVersionThatWasInEffectBefore) {
  const auto from = [&](const std::string& to) {
    const auto diff = world_.manage(Method::get, route_ + "/diff", nullptr, {{"to", to}});
    return body_of(diff)["from"].get<int>();
  };
  EXPECT_EQ(from("2"), 1) << "a held version";
  world_.clock.advance(std::chrono::seconds(1));
  import("three");
  EXPECT_EQ(from("3"), 1) << "version 2 was never in effect";
  EXPECT_EQ(from("2"), 3) << "it is compared with the version in effect";
  ASSERT_EQ(set({{"version", 2}, {"share", 10}}).status, 200);
  EXPECT_EQ(from("2"), 3);
  world_.clock.advance(std::chrono::seconds(1));
  ASSERT_EQ(set({{"version", 2}, {"share", 100}}).status, 200);
  EXPECT_EQ(from("2"), 3) << "it took effect after version 3";
  EXPECT_EQ(from("3"), 1);
  EXPECT_EQ(from("1"), 1);
}

TEST_F(FlowRampRoutes, WrongRampsAreRefused) {
  for (const json& wrong :
       {json::object(), json{{"version", 2}}, json{{"version", 0}, {"share", 10}},
        json{{"version", 2}, {"share", 101}}, json{{"version", 2}, {"share", -1}},
        json{{"version", 2}, {"share", 1.5}}, json{{"version", 2}, {"share", "10%"}},
        json{{"version", 2}, {"share", 10}, {"maxErrors", 101}},
        json{{"version", 2}, {"share", 10}, {"maxErrors", "5%"}}}) {
    EXPECT_EQ(set(wrong).status, 400) << wrong;
  }
  EXPECT_EQ(set({{"version", 3}, {"share", 10}}).status, 404);
  EXPECT_EQ(set({{"version", 1}, {"share", 10}}).status, 409) << "it is in effect";
}

TEST_F(FlowRampRoutes, AVersionThatThisProgramCanNotRunIsRefused) {
  ASSERT_TRUE(world_.store->committer().write_and_wait([&](store::Writer& writer) {
    writer.connection().run(
        R"(UPDATE flow_versions SET definition = '{"name":"Main","nodes":[{"laterNode":"x"}]}')"
        " WHERE flow_id = :f AND version = 2",
        route_.substr(route_.rfind('/') + 1));
    return model::Result<void>();
  }));
  EXPECT_EQ(set({{"version", 2}, {"share", 10}}).status, 409);
}

TEST_F(FlowRampRoutes, AVersionThatNamesADeletedPartIsRefused) {
  ASSERT_EQ(set({{"version", 2}, {"share", 10}}).status, 200);
  ASSERT_TRUE(world_.store->committer().write_and_wait([&](store::Writer& writer) {
    writer.connection().run(
        R"(UPDATE flow_versions SET definition = '{"name":"Main","nodes":[{"executeFlow":"Man"}]}')"
        " WHERE flow_id = :f AND version = 2",
        route_.substr(route_.rfind('/') + 1));
    return model::Result<void>();
  }));
  const auto refused = set({{"version", 2}, {"share", 20}});
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.body.find("nodes[0]: there is no Flow 'Man'; did you mean 'Main'?"),
            std::string::npos)
      << refused.body;
  EXPECT_EQ(set({{"version", 2}, {"share", 0}}).status, 200) << "the ramp can be stopped";
}

// Imports a bundle of the project Tools.
json import_tools(World& world, const std::string& text, bool prune = false) {
  const auto response = world.manage(
      Method::post, "/management/import",
      {{"file", "p.yaml"}, {"text", text}, {"environment", json::object()}, {"prune", prune}});
  EXPECT_EQ(response.status, 200) << response.body;
  return body_of(response);
}

TEST(FlowRollback, RefusesAVersionThatNamesDeletedParts) {
  World world;
  const std::string other = R"(conversed: 1
project: {name: Tools, locales: [en]}
flows: [{name: Main, nodes: [{say: two}]}]
endpoints: [{name: web, flow: Main}]
)";
  const std::string parts = R"(conversed: 1
project: {name: Tools, locales: [en]}
connections: [{name: crm, type: httpBearer, fields: {token: x}}]
lexicons: [{name: Cities, entries: [{mainKeyphrase: Rome}]}]
knowledgeStores: [{name: Manual, sources: [{name: FAQ, chunks: [{text: a}]}]}]
flows:
  - name: Main
    lexicons: [Cities]
    nodes:
      - id: ask
        httpRequest: {connection: crm, url: "https://crm.example.com"}
      - addLexiconKeyphrase: {lexicon: Cities, keyphrase: Oslo}
      - searchKnowledge: {store: Manual, storeIn: context.hits}
      - executeFlow: Other
  - {name: Other, nodes: [{say: x}]}
endpoints: [{name: web, flow: Main}]
)";
  const std::string flow = import_tools(world, parts)["flows"][0]["_id"];
  import_tools(world, other);
  const auto roll_back = [&] {
    return world.manage(Method::post, "/management/flows/" + flow + "/rollback", {{"version", 1}});
  };
  EXPECT_EQ(roll_back().status, 200) << "nothing was deleted";
  import_tools(world, other, true);
  const auto refused = roll_back();
  EXPECT_EQ(refused.status, 409) << refused.body;
  for (const char* problem :
       {"lexicons: there is no lexicon 'Cities'", "ask: there is no Connection 'crm'",
        "nodes[1]: there is no lexicon 'Cities'", "nodes[2]: there is no knowledge store 'Manual'",
        "nodes[3]: there is no Flow 'Other'"}) {
    EXPECT_NE(refused.body.find(problem), std::string::npos) << problem << refused.body;
  }
}

TEST_F(FlowRampRoutes, AnImportRespectsARamp) {
  ASSERT_EQ(set({{"version", 2}, {"share", 10}}).status, 200);
  const auto refused = import("three", {}, 409);
  EXPECT_NE(refused.dump().find("is in a ramp with version 2"), std::string::npos) << refused;
  EXPECT_EQ(import("three", {{"hold", true}})["flows"][0]["version"], 3);
  EXPECT_EQ(import("two")["flows"][0]["version"], 2);
  EXPECT_EQ(world_.manage(Method::post, route_ + "/rollback", {{"version", 1}}).status, 409);
  EXPECT_EQ(versions()["items"][2]["share"], 90);
}

TEST_F(FlowRampRoutes, PruneKeepsPartsThatAnotherVersionMayUse) {
  import("two", {{"hold", true}, { "prune", true }}, 400);
  ASSERT_EQ(set({{"version", 2}, {"share", 10}}).status, 200);
  const auto refused = import("two", {{"prune", true}}, 409);
  EXPECT_NE(refused.dump().find("end the ramp, then prune"), std::string::npos) << refused;
}

TEST_F(FlowRampRoutes, ADeletedFlowTakesItsRampWithIt) {
  ASSERT_EQ(set({{"version", 2}, {"share", 10}}).status, 200);
  json bundle{
      {"prune", true},
      {"text",
       "conversed: 1\nproject: {name: Ramps, locales: [en]}\n"
       "flows: [{name: Other, nodes: [{say: x}]}]\nendpoints: [{name: web, flow: Other}]\n"}};
  const auto pruned = world_.manage(Method::post, "/management/import", bundle);
  EXPECT_EQ(pruned.status, 200) << pruned.body;
  EXPECT_EQ(world_.manage(Method::get, route_ + "/versions", nullptr).status, 404);
}

}  // namespace
}  // namespace conversed::api
