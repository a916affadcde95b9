// The management routes, by HTTP Basic.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "store/model/ids.h"
#include "store/sql/sql.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::body_of;
using test::header;
using test::message;
using test::token;
using test::World;

TEST(Management, WithoutCredentialsItAsksForThem) {
  World world;
  const auto ask = [&](HeaderList headers) {
    return world.call({Method::get, "/management/apikeys", std::move(headers), "", {}});
  };
  const auto right = world.sign_in("admin@acme.example");
  EXPECT_EQ(ask({{"authorization", right}}).status, 200);
  const HeaderList wrong[] = {
      {},
      {{"authorization", "Bearer x"}},
      {{"authorization", test::basic("admin@acme.example", "wrong")}},
      {{"authorization", test::basic("nobody@acme.example", "secret secret")}},
      {{"x-api-key", world.key_of("admin@acme.example")}},
  };
  for (const auto& headers : wrong) {
    const auto response = ask(headers);
    EXPECT_EQ(response.status, 401);
    EXPECT_EQ(header(response, "WWW-Authenticate"), R"(Basic realm="conversed", charset="UTF-8")");
  }
}

TEST(Management, AVerifiedPasswordIsRememberedUntilItChanges) {
  World world;
  const auto list = [&] { return world.manage(Method::get, "/management/apikeys"); };
  EXPECT_EQ(list().status, 200);
  const auto header = test::basic("admin@acme.example", "secret secret");
  EXPECT_TRUE(world.authenticator->remembered_basic(header, world.steady));
  EXPECT_FALSE(
      world.authenticator->remembered_basic(header, world.steady + Authenticator::basic_lifetime));
  const auto organisation =
      world.store->assets().endpoint_by_token(token('a')).value()->organisation_id;
  const auto user =
      world.store->accounts().user_by_email(organisation, "admin@acme.example").value();
  ASSERT_TRUE(world.store->accounts().set_password(organisation, user.id, "another password"));
  EXPECT_FALSE(world.authenticator->remembered_basic(header, world.steady));
  EXPECT_EQ(list().status, 401);
}

constexpr const char* good_bundle = R"(conversed: 1
project: {name: Imported, locales: [en]}
flows:
  - name: Main
    nodes:
      - say: "Hello ${NAME}"
endpoints:
  - {name: web, flow: Main}
)";

TEST(Import, TakesABundleAndAnswersWithItsIds) {
  World world;
  const auto response = world.manage(Method::post, "/management/import",
                                     {{"file", "shop.yaml"}, {"text", good_bundle}});
  ASSERT_EQ(response.status, 200) << response.body;
  const auto report = body_of(response);
  EXPECT_EQ(report.at("project").at("name"), "Imported");
  EXPECT_TRUE(model::is_id(report.at("project").at("_id").get<std::string>()));
  const std::string url_token = report.at("endpoints")[0].at("urlToken");
  EXPECT_TRUE(world.assets->endpoint_by_token(url_token));
}

TEST(Import, ADryRunChangesNothing) {
  World world;
  const auto response =
      world.manage(Method::post, "/management/import",
                   {{"file", "shop.yaml"}, {"text", good_bundle}}, {{"dryRun", "true"}});
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(body_of(response).at("problems"), json::array());
  const auto acme = world.store->assets().endpoint_by_token(token('a')).value()->organisation_id;
  EXPECT_EQ(world.store->assets().projects(acme).value().size(), 2U);
}

TEST(Endpoints, AreListedByNameWithTheirFlowsAndWhetherTheyHaveAWebhook) {
  World world;
  const auto imported =
      world.manage(Method::post, "/management/import", {{"file", "shop.yaml"}, {"text", R"(
conversed: 1
project: {name: Listed, locales: [en]}
flows: [{name: Main, nodes: [{say: Hi}]}]
endpoints:
  - {name: web, flow: Main, output: {webhook: {url: "https://shop.example/hook"}}}
  - {name: app, flow: Main}
)"}});
  ASSERT_EQ(imported.status, 200) << imported.body;
  const std::string project = body_of(imported).at("project").at("_id");
  const auto listed =
      world.manage(Method::get, "/management/endpoints", nullptr, {{"projectId", project}});
  ASSERT_EQ(listed.status, 200) << listed.body;
  const auto items = body_of(listed).at("items");
  ASSERT_EQ(items.size(), 2U) << items;
  EXPECT_EQ(items[0].at("name"), "app");
  EXPECT_EQ(items[0].at("hasWebhook"), false);
  EXPECT_EQ(items[1].at("name"), "web");
  EXPECT_EQ(items[1].at("flow"), "Main");
  EXPECT_EQ(items[1].at("hasWebhook"), true);
  EXPECT_EQ(items[1].at("URLToken").get<std::string>().size(), 64U);
}

TEST(Import, ADryRunOverAnExistingProjectLeavesItsFlowsAsTheyAre) {
  World world;
  const auto import = [&](const std::string& text, const char* dry_run) {
    return world.manage(Method::post, "/management/import", {{"file", "shop.yaml"}, {"text", text}},
                        {{"dryRun", dry_run}});
  };
  const auto first = import(good_bundle, "false");
  ASSERT_EQ(first.status, 200) << first.body;
  const std::string project = body_of(first).at("project").at("_id");
  const auto& assets = world.store->assets();
  const auto flow = assets.flows(project).value().at(0).id;
  const auto versions = assets.flow_versions(flow).value().size();
  const auto generation = assets.generation();
  std::string changed = good_bundle;
  changed.replace(changed.find("Hello"), 5, "Good day");
  const auto checked = import(changed, "true");
  EXPECT_EQ(checked.status, 200) << checked.body;
  EXPECT_EQ(assets.flow_versions(flow).value().size(), versions);
  EXPECT_EQ(assets.generation(), generation);
  ASSERT_EQ(import(changed, "false").status, 200);
  EXPECT_EQ(assets.flow_versions(flow).value().size(), versions + 1);
}

TEST(Import, ADryRunThatIsNeitherTrueNorFalseChangesNothing) {
  World world;
  for (const char* word : {"maybe", "1", "TRUE", ""}) {
    const auto response =
        world.manage(Method::post, "/management/import",
                     {{"file", "shop.yaml"}, {"text", good_bundle}}, {{"dryRun", word}});
    EXPECT_EQ(response.status, 400) << word;
    EXPECT_NE(response.body.find("dryRun"), std::string::npos) << response.body;
  }
  const auto acme = world.store->assets().endpoint_by_token(token('a')).value()->organisation_id;
  EXPECT_EQ(world.store->assets().projects(acme).value().size(), 2U);
}

TEST(Import, ReportsEveryProblem) {
  World world;
  const auto response =
      world.manage(Method::post, "/management/import",
                   {{"file", "bad.yaml"}, {"text", "conversed: 1\nproject: {nam: X}\nflows: 5\n"}});
  EXPECT_EQ(response.status, 400);
  const auto problems = body_of(response).at("details").at("problems");
  ASSERT_GE(problems.size(), 2U) << response.body;
  EXPECT_EQ(problems[0].at("file"), "bad.yaml");
  EXPECT_EQ(problems[0].at("line"), 2);
  EXPECT_TRUE(problems[0].contains("column") && problems[0].contains("path") &&
              problems[0].contains("message"));
}

TEST(Import, ReportsWarningsWhateverBecomesOfTheBundle) {
  World world;
  const std::string bundle =
      "conversed: 1\nproject: {name: Warned}\nflows:\n"
      "- {name: Main, nodes: [{say: \"{{contxt.a}}\"}]}\nendpoints: [{name: web, flow: Main}]\n";
  const auto import = [&](const std::string& text, const char* dry_run) {
    return world.manage(Method::post, "/management/import", {{"file", "shop.yaml"}, {"text", text}},
                        {{"dryRun", dry_run}});
  };
  const auto expect_warning = [](const json& warnings) {
    ASSERT_EQ(warnings.size(), 1U) << warnings;
    EXPECT_EQ(warnings[0].at("line"), 4);
    EXPECT_EQ(warnings[0].at("path"), "Flow 'Main', nodes[0]");
    EXPECT_NE(warnings[0].at("message").get<std::string>().find("did you mean 'context'?"),
              std::string::npos);
  };
  for (const char* dry_run : {"true", "false"}) {
    const auto taken = import(bundle, dry_run);
    ASSERT_EQ(taken.status, 200) << taken.body;
    expect_warning(body_of(taken).at("warnings"));
  }
  const auto refused = import(bundle + "members: 5\n", "false");
  ASSERT_EQ(refused.status, 400) << refused.body;
  expect_warning(body_of(refused).at("details").at("warnings"));
}

TEST(Import, BeyondTheQuotaOfTokensNothingIsImported) {
  test::WorldSettings settings;
  settings.quota.tokens = 1;
  World world(settings);
  const auto bundle = [](const std::string& project, const std::string& tokens) {
    return json{
        {"file", "shop.yaml"},
        {"text", "conversed: 1\nproject: {name: " + project + ", locales: [en]}\ntokens: [" +
                     tokens + "]\nflows: [{name: Main, nodes: [{say: Hi}]}]\n"}};
  };
  const auto one = bundle("One", "{label: a, script: x}");
  const auto two = bundle("Two", "{label: b, script: x}");
  EXPECT_EQ(world.manage(Method::post, "/management/import", one).status, 200);
  EXPECT_EQ(world.manage(Method::post, "/management/import", one).status, 200)
      << "a repeated import adds no token";
  for (const HeaderList& query : {HeaderList{}, HeaderList{{"dryRun", "true"}}}) {
    const auto refused = world.manage(Method::post, "/management/import", two, query);
    EXPECT_EQ(refused.status, 402) << refused.body;
    EXPECT_NE(refused.body.find("quota of Tokens"), std::string::npos);
  }
  const auto acme = world.store->assets().endpoint_by_token(token('a')).value()->organisation_id;
  const auto projects = world.store->assets().projects(acme).value();
  ASSERT_EQ(projects.size(), 3U) << "Shop, Side and One";
  EXPECT_EQ(world.store->assets().create_token(projects[0].id, {}, 1).error().code,
            model::Errc::quota_exhausted);
  EXPECT_TRUE(world.store->assets().create_token(projects[0].id, {}, 2)) << "one Token exists";
}

TEST(Import, TakesAProjectAdmin) {
  World world;
  const json body{{"file", "shop.yaml"}, {"text", good_bundle}};
  EXPECT_EQ(world.manage(Method::post, "/management/import", body, {}, "ann@acme.example").status,
            403);
  for (const json& wrong :
       {json{{"file", "x"}}, json{{"text", 5}}, json{{"text", "x"}, {"environment", {{"A", 1}}}}}) {
    EXPECT_EQ(world.manage(Method::post, "/management/import", wrong).status, 400);
  }
}

TEST(Import, IsRefusedUnreadToAUserWhoMayImportNowhere) {
  World world;
  const auto sent = [&](std::string_view email) {
    return test::Sent{
        Method::post, "/management/import", {{"authorization", world.sign_in(email)}}, "[[],[", {}};
  };
  EXPECT_EQ(world.call(sent("tom@acme.example")).status, 403);
  EXPECT_EQ(world.call(sent("admin@acme.example")).status, 400);
}

TEST(Import, OneRunsAtATimeAndAFewWait) {
  World world;
  std::promise<void> begun;
  std::promise<void> go_on;
  ASSERT_TRUE(world.imports.post([&] {
    begun.set_value();
    go_on.get_future().wait();
  }));
  begun.get_future().wait();  // from now on it takes no place in the queue
  const json body{{"file", "shop.yaml"}, {"text", good_bundle}};
  const test::Sent sent{Method::post,
                        "/management/import",
                        {{"authorization", world.sign_in("admin@acme.example")}},
                        body.dump(),
                        {}};
  while (world.imports.post([] {})) {
  }
  EXPECT_EQ(world.call(sent).status, 503) << "the queue is full";
  go_on.set_value();
  std::promise<void> all_ran;
  while (!world.imports.post([&] { all_ran.set_value(); })) std::this_thread::yield();
  all_ran.get_future().wait();
  EXPECT_EQ(world.call(sent).status, 200);
}

TEST(ApiKeys, AreShownOnceAndWorkAtOnce) {
  World world;
  const auto response = world.manage(Method::post, "/management/apikeys",
                                     {{"name", "ci"}, {"user", "ann@acme.example"}});
  ASSERT_EQ(response.status, 201) << response.body;
  const auto made = body_of(response);
  EXPECT_EQ(made.at("name"), "ci");
  EXPECT_EQ(made.at("user"), "ann@acme.example");
  const std::string key = made.at("key");
  const auto list = world.manage(Method::get, "/management/apikeys");
  EXPECT_EQ(list.body.find(key), std::string::npos);
  EXPECT_EQ(
      world
          .call({Method::post, "/v2.0/endpoint/inject", {{"x-api-key", key}}, message().dump(), {}})
          .status,
      200);
}

TEST(ApiKeys, OthersKeysTakeTheRoleUserAdmin) {
  World world;
  const auto as_ann = [&](Method method, const std::string& path, const json& body = nullptr) {
    return world.manage(method, path, body, {}, "ann@acme.example");
  };
  EXPECT_EQ(as_ann(Method::post, "/management/apikeys", {{"name", "own"}}).status, 201);
  // Without the role the answer does not tell whether the user exists.
  for (const char* email : {"admin@acme.example", "nobody@acme.example", "out@other.example"}) {
    EXPECT_EQ(as_ann(Method::post, "/management/apikeys", {{"name", "x"}, {"user", email}}).status,
              403);
  }
  const auto others = body_of(world.manage(Method::post, "/management/apikeys", {{"name", "a"}}));
  const std::string id = others.at("_id");
  EXPECT_EQ(as_ann(Method::delete_, "/management/apikeys/" + id).status, 404);
  const auto own = body_of(as_ann(Method::get, "/management/apikeys"));
  for (const auto& item : own.at("items")) {
    EXPECT_EQ(item.at("user"), "ann@acme.example");
  }
  // An administrator can't see users of another organisation.
  EXPECT_EQ(world
                .manage(Method::post, "/management/apikeys",
                        {{"name", "x"}, {"user", "out@other.example"}})
                .status,
            404);
  EXPECT_EQ(world.manage(Method::post, "/management/apikeys", {{"name", ""}}).status, 400);
}

TEST(ManagementInject, AnswersWithTheIdOfTheEvent) {
  World world;
  const auto response = world.manage(Method::post, "/management/inject", message());
  EXPECT_EQ(response.status, 202) << response.body;
  EXPECT_EQ(world.read_events(1).at(0).id, body_of(response).at("_id"));
  EXPECT_EQ(
      world.manage(Method::post, "/management/inject", message('d'), {}, "ann@acme.example").status,
      404);
}

TEST(Sessions, AreListedShownAndReset) {
  World world;
  auto session = world.put_session();
  store::SessionCommit commit;
  commit.key = session.key;
  commit.expected_version = session.version;
  commit.after = session;
  commit.after.context = {{"count", 3}};
  commit.profile = {.read_version = 0, .data = json{{"name", "Uma"}}};
  commit.after.last_output_seq = 1;
  model::Output output;
  output.id = "o1";
  output.seq = 1;
  output.text = "said";
  commit.outputs = {output};
  world.commit_now(commit);

  const auto list = body_of(world.manage(Method::get, "/management/sessions", nullptr,
                                         {{"projectId", session.key.project_id}}));
  ASSERT_EQ(list.at("items").size(), 1U);
  EXPECT_EQ(list.at("items")[0].at("userId"), "u");
  EXPECT_EQ(list.at("items")[0].at("state"), "idle");

  const HeaderList query{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}};
  const auto shown =
      body_of(world.manage(Method::get, "/management/sessions/show", nullptr, query));
  EXPECT_EQ(shown.at("context"), (json{{"count", 3}}));
  EXPECT_EQ(shown.at("profile"), (json{{"name", "Uma"}}));
  EXPECT_EQ(shown.at("outputs")[0].at("text"), "said");

  const json names{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}};
  EXPECT_EQ(world.manage(Method::post, "/management/sessions/reset", names).status, 204);
  EXPECT_EQ(world.store->first().sessions().load(session.key).value()->context, json::object());
  ASSERT_EQ(world.touched.size(), 1U);
  EXPECT_EQ(world.touched[0], session.key);
  json unknown = names;
  unknown["sessionId"] = "none";
  EXPECT_EQ(world.manage(Method::post, "/management/sessions/reset", unknown).status, 404);
}

TEST(Sessions, AnErasureAlsoDropsThoseInMemory) {
  World world;
  const auto key = world.put_session().key;
  ASSERT_TRUE(world.store->committer().write_and_wait([](store::Writer& writer) {
    writer.connection().run("UPDATE sessions SET position_epoch = 0");  // its record is finished
  }));
  EXPECT_EQ(world.forgotten, 0);
  const auto erased = world.manage(Method::post, "/management/usersdata/erase",
                                   {{"userId", key.user_id}}, {{"projectId", key.project_id}});
  EXPECT_EQ(erased.status, 200) << erased.body;
  EXPECT_FALSE(*world.store->first().sessions().load(key));
  EXPECT_EQ(world.forgotten, 1);
}

TEST(Sessions, DamagedProfileDoesNotHideThem) {
  World world;
  const auto key = world.put_session().key;
  ASSERT_TRUE(world.store->committer().write_and_wait([&](store::Writer& writer) {
    writer.connection().run(
        "INSERT INTO profiles (project_id, user_id, version, data) VALUES (:p, :u, 1, '{')",
        key.project_id, key.user_id);
  }));
  const auto shown = [&] {
    return world.manage(
        Method::get, "/management/sessions/show", nullptr,
        {{"URLToken", token('a')}, {"userId", key.user_id}, {"sessionId", key.session_id}});
  };
  const auto body = body_of(shown());
  EXPECT_EQ(body.at("state"), "idle");
  EXPECT_EQ(body.at("profile"), nullptr);
  EXPECT_FALSE(body.at("profileDamage").get<std::string>().empty());
  ASSERT_TRUE(world.store->committer().write_and_wait(
      [](store::Writer& writer) { writer.connection().run("UPDATE sessions SET context = '{'"); }));
  EXPECT_EQ(shown().status, 500);
}

TEST(Sessions, AResetAnswersTheWaitingClient) {
  World world;
  store::SessionCommit commit;
  commit.key = world.session_key();
  commit.after.key = commit.key;
  commit.after.position = {1, 0, 0};
  model::Execution execution;
  execution.input_id = "input";
  execution.source = model::EventType::user_message;
  execution.pending_call_id = "call";
  commit.after.execution = execution;
  world.commit_now(commit);
  std::promise<model::Result<Answer>> told;
  world.pending_replies.wait("input", std::chrono::steady_clock::now() + std::chrono::hours(1),
                             {.answered = [&](auto answer) { told.set_value(std::move(answer)); },
                              .overdue = [](auto, auto) {},
                              .heard = [](auto) {}});
  const json names{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}};
  EXPECT_EQ(world.manage(Method::post, "/management/sessions/reset", names).status, 204);
  EXPECT_EQ(told.get_future().get().error().code, model::Errc::internal);
  EXPECT_EQ(world.touched, std::vector{world.session_key()});
}

TEST(Sessions, ForeignProjectsAreNotFoundAndOwnOnesTakeTheRole) {
  World world;
  const auto list = [&](char endpoint, const char* email) {
    return world
        .manage(Method::get, "/management/sessions", nullptr,
                {{"projectId", world.session_key(endpoint).project_id}}, email)
        .status;
  };
  EXPECT_EQ(list('a', "ann@acme.example"), 200);
  EXPECT_EQ(list('a', "tom@acme.example"), 403);
  EXPECT_EQ(list('d', "ann@acme.example"), 404);
  EXPECT_EQ(list('a', "out@other.example"), 404);
  // The parameter projectId may be missing only if the user has one project.
  EXPECT_EQ(
      world.manage(Method::get, "/management/sessions", nullptr, {}, "ann@acme.example").status,
      200);
  EXPECT_EQ(world.manage(Method::get, "/management/sessions").status, 400);
}

class DeadLetterTest : public testing::Test {
 protected:
  std::string put(const std::string& type = "inject") {
    const auto session = world_.store->first().sessions().load(world_.session_key()).value();
    model::Event event;
    event.id = model::new_id();
    event.type = *model::event_type_from(type);
    event.session = world_.session_key();
    event.accepted_at = world_.clock.now();
    event.text = "lost";
    store::SessionCommit commit;
    commit.key = event.session;
    commit.expected_version = session ? session->version : 0;
    commit.after.key = commit.key;
    commit.after.position = {1, 0, commit.expected_version};
    auto id = model::new_id();
    commit.dead_letters = {
        {id, {event.id, type, std::string(32, '7'), model::encode_value(event)}, "too many steps"}};
    world_.commit_now(commit);
    return id;
  }
  Response manage(Method method, const std::string& path, HeaderList query = {}) {
    return world_.manage(method, "/management/deadletters" + path, nullptr, std::move(query),
                         "ann@acme.example");
  }

  World world_;
};

TEST_F(DeadLetterTest, AreListedWithTheirReasonAndByState) {
  const auto id = put();
  const auto items = body_of(manage(Method::get, "")).at("items");
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].at("_id"), id);
  EXPECT_EQ(items[0].at("reason"), "too many steps");
  EXPECT_EQ(items[0].at("state"), "new");
  EXPECT_EQ(body_of(manage(Method::get, "", {{"state", "discarded"}})).at("items").size(), 0U);
  EXPECT_EQ(manage(Method::get, "", {{"state", "odd"}}).status, 400);
  EXPECT_EQ(body_of(manage(Method::get, "/" + id)).at("text"), "lost");
}

TEST_F(DeadLetterTest, AReplayIsANewEventThatClaimsTheLetter) {
  const auto id = put();
  world_.clock.advance(std::chrono::hours(1));
  const auto response = manage(Method::post, "/" + id + "/replay");
  ASSERT_EQ(response.status, 202) << response.body;
  const auto event = world_.read_events(1).at(0);
  EXPECT_EQ(event.id, body_of(response).at("_id"));
  EXPECT_EQ(event.claim, (model::Claim{model::Claim::Kind::dead_letter, id}));
  EXPECT_EQ(event.text, "lost");
  EXPECT_EQ(event.session, world_.session_key());
  EXPECT_EQ(event.accepted_at, world_.clock.now());
}

TEST_F(DeadLetterTest, AReplayedOutputIsDeliveredAtOnce) {
  store::SessionCommit commit;
  commit.key = world_.session_key();
  commit.after.key = commit.key;
  commit.after.position = {1, 0, 0};
  commit.after.last_output_seq = 1;
  model::Output output;
  output.id = "o1";
  output.seq = 1;
  output.delivery = model::Delivery::pending;
  commit.outputs = {output};
  world_.commit_now(commit);
  std::promise<model::Result<void>> given_up;
  world_.store->first().outbox().give_up(
      commit.key, output, "gone", true,
      [&](model::Result<void> done) { given_up.set_value(std::move(done)); });
  ASSERT_TRUE(given_up.get_future().get());
  const auto items = body_of(manage(Method::get, "")).at("items");
  const std::string id = items.at(0).at("_id");
  EXPECT_EQ(manage(Method::post, "/" + id + "/replay").status, 202);
  EXPECT_EQ(world_.delivered, std::vector{commit.key});
  EXPECT_EQ(manage(Method::post, "/" + id + "/replay").status, 409);
  EXPECT_EQ(world_.delivered.size(), 1U);
}

TEST_F(DeadLetterTest, ADiscardedOneIsNotReplayed) {
  const auto id = put();
  EXPECT_EQ(manage(Method::post, "/" + id + "/discard").status, 204);
  EXPECT_EQ(manage(Method::post, "/" + id + "/discard").status, 409);
  EXPECT_EQ(manage(Method::post, "/" + id + "/replay").status, 409);
  EXPECT_TRUE(world_.log_is_empty());
}

TEST_F(DeadLetterTest, AnAnswerWhoseExecutionIsOverCanOnlyBeDiscarded) {
  const auto id = put("callResult");
  EXPECT_EQ(manage(Method::post, "/" + id + "/replay").status, 409);
  EXPECT_EQ(manage(Method::post, "/" + id + "/discard").status, 204);
}

TEST_F(DeadLetterTest, ForeignOnesAreNotFound) {
  const auto id = put();
  const auto status_for = [&](const char* email) {
    return world_.manage(Method::get, "/management/deadletters/" + id, nullptr, {}, email).status;
  };
  EXPECT_EQ(status_for("out@other.example"), 404);
  EXPECT_EQ(status_for("tom@acme.example"), 403) << "a member without the role";
  EXPECT_EQ(manage(Method::get, "/" + model::new_id()).status, 404);
}

TEST(Status, TellsPositionsToPlatformAdminsOnly) {
  World world;
  EXPECT_EQ(world.inject(message()).status, 200);
  const auto response = world.manage(Method::get, "/management/status");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto body = body_of(response);
  EXPECT_EQ(body.at("version"), "1.2.3");
  EXPECT_EQ(body.at("queue").at("lag"), 1);
  EXPECT_EQ(body.at("queue").at("partitions").size(), 2U);
  EXPECT_EQ(body.at("queue").at("healthy"), true);
  EXPECT_EQ(body.at("counts").at("appended"), 1);
  EXPECT_EQ(body.at("newestDeadLetter"), nullptr);
  EXPECT_EQ(world.manage(Method::get, "/management/status", nullptr, {}, "ann@acme.example").status,
            403);
}

}  // namespace
}  // namespace conversed::api
