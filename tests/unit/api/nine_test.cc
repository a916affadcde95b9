// The operations on projects and their parts, through the Router.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "store/model/ids.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::header;
using test::message;
using test::token;
using test::World;

constexpr const char* admin = "admin@acme.example";
constexpr const char* ann = "ann@acme.example";  // conversationAdmin in Shop
constexpr const char* tom = "tom@acme.example";  // tokenAdmin in Shop
constexpr const char* stranger = "out@other.example";

class Nine : public testing::Test {
 protected:
  explicit Nine(const test::WorldSettings& settings = {}) : world(settings) {
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en", "de"};
    bundle.members = {{"eve@acme.example", "Eve", {}, {}}};
    bundle.connections = {{"crm", "httpBearer", {{"token", "t"}}, {{"token", "${T}"}}}};
    bundle.lexicons = {
        {"Cities",
         {"city"},
         {{"Paris", {"paree"}, {"city"}, {{"country", "FR"}}}, {"Rome", {}, {}, nullptr}}}};
    bundle.knowledge_stores = {
        {"Manual", {{"FAQ", {{"Returns take 14 days.", {{"page", 3}}}, {"Die Straße", nullptr}}}}}};
    const auto organisations = world.store->accounts().organisations();
    for (const auto& each : *organisations) {
      if (each.name == "Acme") organisation = each.id;
    }
    report = *world.store->assets().import_bundle(organisation, bundle);
    project = report["project"]["_id"];
  }

  const std::string& key_of(const char* user) {
    auto& key = keys_[user];
    if (key.empty()) key = world.key_of(user);
    return key;
  }
  Response ask(Method method, const std::string& path, const json& body = nullptr,
               const char* user = admin, HeaderList query = {}, HeaderList headers = {}) {
    headers.emplace_back("x-api-key", key_of(user));
    return world.call(
        {method, path, std::move(headers), body.is_null() ? "" : body.dump(), std::move(query)});
  }
  Response get(const std::string& path, HeaderList query = {}, const char* user = admin) {
    return ask(Method::get, path, nullptr, user, std::move(query));
  }
  std::string snippets() const { return "/v2.0/projects/" + project + "/snippets"; }
  std::string setup() const { return "/v2.0/projects/" + project + "/settings/proactive/setup"; }
  std::string entries() const {
    return "/v2.0/lexicons/" + report["lexicons"][0]["_id"].get<std::string>() + "/entries";
  }
  std::string chunks() const {
    const auto& store = report["knowledgeStores"][0];
    return "/v2.0/knowledgestores/" + store["_id"].get<std::string>() + "/sources/" +
           store["sources"][0]["_id"].get<std::string>() + "/chunks";
  }

  World world;
  std::string organisation;
  std::string project;
  json report;

 private:
  std::map<std::string, std::string> keys_;
};

TEST_F(Nine, TokenIsCreatedWithDefaultsAndItsLabelIsUnique) {
  const auto made = ask(Method::post, snippets(), {{"label", "greeting"}, {"unknown", 1}}, tom);
  ASSERT_EQ(made.status, 201) << made.body;
  const auto body = json::parse(made.body);
  EXPECT_TRUE(model::is_id(body["_id"].get<std::string>()));
  EXPECT_EQ(body["label"], "greeting");
  EXPECT_EQ(body["type"], "custom");
  EXPECT_EQ(body["script"], "");
  EXPECT_EQ(body["projectId"], project);
  EXPECT_TRUE(model::is_id(body["createdBy"].get<std::string>()));
  EXPECT_EQ(body["createdBy"], body["lastChangedBy"]);
  EXPECT_EQ(body["createdAt"], 1'780'000'000);
  EXPECT_EQ(body.size(), 9U);
  EXPECT_EQ(ask(Method::post, snippets(), {{"label", "greeting"}}, tom).status, 409);
  const auto unnamed = ask(Method::post, snippets(), json::object(), tom);
  EXPECT_EQ(json::parse(unnamed.body)["label"], "Token 2");
}

TEST_F(Nine, TokenWithWrongFieldsIsRefused) {
  const std::string umlauts_200 = [] {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "ü";
    return text;
  }();
  EXPECT_EQ(ask(Method::post, snippets(), {{"label", umlauts_200}}).status, 201) << "characters";
  const json wrong[] = {{{"label", umlauts_200 + "x"}},
                        {{"label", ""}},
                        {{"label", 1}},
                        {{"type", "other"}},
                        {{"type", ""}},
                        {{"script", 1}},
                        json::array(),
                        "text",
                        nullptr};
  for (const auto& body : wrong) {
    EXPECT_EQ(ask(Method::post, snippets(), body).status, 400) << body;
  }
  EXPECT_EQ(ask(Method::post, "/v2.0/projects/UPPER/snippets", json::object()).status, 400);
}

TEST_F(Nine, ForeignAndMissingObjectsLookTheSameAndRolesAreAsked) {
  const std::string missing(24, 'z');
  const std::string crm = report["connections"][0]["_id"];
  const std::string eve = report["members"][0]["_id"];
  struct Row {
    Method method;
    std::string path;
    std::string gone;  // the same path for a missing object
    bool needs_role;
  };
  const Row rows[] = {
      {Method::post, snippets(), "/v2.0/projects/" + missing + "/snippets", true},
      {Method::patch, "/v2.0/projects/" + project + "/members/" + eve,
       "/v2.0/projects/" + missing + "/members/" + missing, true},
      {Method::patch, "/v2.0/projects/" + project + "/members/" + eve,
       "/v2.0/projects/" + project + "/members/" + missing, true},
      {Method::post, setup(), "/v2.0/projects/" + missing + "/settings/proactive/setup", true},
      {Method::delete_, "/v2.0/connections/" + crm, "/v2.0/connections/" + missing, true},
      {Method::get, entries(), "/v2.0/lexicons/" + missing + "/entries", false},
      {Method::get, chunks(),
       "/v2.0/knowledgestores/" + missing + "/sources/" + missing + "/chunks", false},
  };
  for (const auto& [method, path, gone, needs_role] : rows) {
    const json body = method == Method::get ? json() : json::object();
    const auto foreign = ask(method, path, body, stranger);
    auto missing_body = json::parse(ask(method, gone, body, stranger).body);
    auto foreign_body = json::parse(foreign.body);
    EXPECT_EQ(foreign.status, 404) << path;
    missing_body.erase("instance");
    foreign_body.erase("instance");
    EXPECT_EQ(foreign_body, missing_body) << path;
    EXPECT_EQ(ask(method, gone, body).status, 404) << path;
    EXPECT_EQ(ask(method, gone, body, ann).status, 404) << "existence is checked before the role";
    if (needs_role) {
      EXPECT_EQ(ask(method, path, body, ann).status, 403) << path;
    } else {
      EXPECT_EQ(ask(method, path, body, ann).status, 200) << path;
    }
  }
}

TEST_F(Nine, MemberGetsLocalesOfTheProject) {
  const std::string eve = report["members"][0]["_id"];
  const std::string path = "/v2.0/projects/" + project + "/members/" + eve;
  const std::string german = report["project"]["locales"][1]["_id"];
  const json wanted = json::array({{{"localeId", german}}});
  const auto updated = ask(Method::patch, path, {{"allowedLocales", wanted}, {"roles", "x"}});
  ASSERT_EQ(updated.status, 200) << updated.body;
  EXPECT_EQ(
      json::parse(updated.body),
      (json{{"_id", eve}, {"name", "Eve"}, {"roles", json::array()}, {"allowedLocales", wanted}}));
  EXPECT_EQ(ask(Method::patch, path, {{"allowedLocales", json::array()}}).status, 200);
  const json wrong[] = {json::object(),
                        {{"allowedLocales", german}},
                        {{"allowedLocales", {german}}},
                        {{"allowedLocales", {{{"localeId", 1}}}}},
                        {{"allowedLocales", {{{"localeId", std::string(24, 'z')}}}}}};
  for (const auto& body : wrong) EXPECT_EQ(ask(Method::patch, path, body).status, 400) << body;
  const std::string nobody = "/v2.0/projects/" + project + "/members/" + std::string(24, 'z');
  EXPECT_EQ(ask(Method::patch, nobody, {{"allowedLocales", wanted}}).status, 404);
}

TEST_F(Nine, ConnectionIsDeletedOnce) {
  const std::string path =
      "/v2.0/connections/" + report["connections"][0]["_id"].get<std::string>();
  const auto deleted = ask(Method::delete_, path);
  EXPECT_EQ(deleted.status, 204);
  EXPECT_EQ(deleted.body, "");
  EXPECT_EQ(ask(Method::delete_, path).status, 404);
}

TEST_F(Nine, ChunksAreCountedOverTheOrganisation) {
  EXPECT_EQ(json::parse(get("/v2.0/organisations/chunkcount").body), (json{{"chunkCount", 2}}));
  EXPECT_EQ(json::parse(get("/v2.0/organisations/chunkcount", {}, stranger).body)["chunkCount"], 0);
  // Operation 6 has no representation but JSON.
  const auto answer = ask(Method::get, "/v2.0/organisations/chunkcount", nullptr, ann, {},
                          {{"accept", "text/csv"}});
  EXPECT_EQ(answer.content_type, "application/json; charset=utf-8");
}

TEST_F(Nine, EntriesAreABareArrayWithTheirPageInHeaders) {
  const auto answer = get(entries(), {{"sort", "mainKeyphrase:asc"}, {"limit", "1"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto items = json::parse(answer.body);
  ASSERT_EQ(items.size(), 1U);
  const auto& paris = items[0];
  EXPECT_EQ(paris["mainKeyphrase"], "Paris");
  EXPECT_EQ(json::parse(paris["data"].get<std::string>()), (json{{"country", "FR"}}));
  EXPECT_EQ(paris["slotReferences"][0], report["lexicons"][0]["slots"][0]["_id"]);
  const auto& keyphrases = paris["keyphrases"]["keyphrases"];
  ASSERT_EQ(keyphrases.size(), 2U);
  EXPECT_EQ(keyphrases[0]["value"], "Paris");
  EXPECT_EQ(keyphrases[0]["isMainKeyphrase"], true);
  EXPECT_EQ(keyphrases[1]["value"], "paree");
  EXPECT_TRUE(model::is_id(keyphrases[1]["_id"].get<std::string>()));
  EXPECT_EQ(header(answer, "X-Total-Count"), "2");
  EXPECT_EQ(header(answer, "X-Previous-Cursor"), "");
  const auto cursor = header(answer, "X-Next-Cursor");
  ASSERT_TRUE(model::is_id(cursor));
  EXPECT_EQ(header(answer, "Link"), "<" + entries() + "?sort=mainKeyphrase%3Aasc&limit=1&next=" +
                                        cursor + ">; rel=\"next\"");
  const auto next = get(entries(), {{"next", cursor}, {"api_key", key_of(admin)}});
  EXPECT_EQ(json::parse(next.body)[0]["mainKeyphrase"], "Rome");
  EXPECT_EQ(header(next, "Link").find(key_of(admin)), std::string::npos);
  EXPECT_NE(header(next, "Link").find("rel=\"prev\""), std::string::npos);
}

TEST_F(Nine, EntriesOfAnotherProjectThanNamedAreNotFound) {
  EXPECT_EQ(get(entries(), {{"projectId", project}}).status, 200);
  EXPECT_EQ(get(entries(), {{"projectId", std::string(24, 'z')}}).status, 404);
  EXPECT_EQ(get(entries(), {{"projectId", "x"}}).status, 400);
}

TEST_F(Nine, ChunksAreListedAndFiltered) {
  const auto answer = json::parse(get(chunks()).body);
  EXPECT_EQ(answer["total"], 2);
  EXPECT_EQ(answer["nextCursor"], nullptr);
  EXPECT_EQ(answer["previousCursor"], nullptr);
  const auto& first = answer["items"][0];
  EXPECT_EQ(first["order"], 0);
  EXPECT_EQ(first["text"], "Returns take 14 days.");
  EXPECT_EQ(first["disabled"], false);
  EXPECT_EQ(first["data"], (json{{"page", 3}}));
  EXPECT_EQ(first["storeReference"], report["knowledgeStores"][0]["_id"]);
  EXPECT_EQ(first["sourceReference"], report["knowledgeStores"][0]["sources"][0]["_id"]);
  EXPECT_EQ(first["createdAt"], 1'780'000'000);
  EXPECT_EQ(first.size(), 8U);
  const auto filtered = json::parse(get(chunks(), {{"filter", "STRASSE"}}).body);
  EXPECT_EQ(filtered["total"], 1);
  EXPECT_EQ(filtered["items"][0]["text"], "Die Straße");
}

TEST_F(Nine, PagesAreAskedForInTheDocumentedWayOnly) {
  const HeaderList wrong[] = {
      {{"limit", "0"}},        {{"limit", "101"}},
      {{"limit", "x"}},        {{"skip", "-1"}},
      {{"sort", ""}},          {{"sort", "order"}},
      {{"sort", "order:up"}},  {{"sort", "order:asc,"}},
      {{"sort", ":asc"}},      {{"sort", "data:asc"}},
      {{"sort", "other:asc"}}, {{"next", ""}},
      {{"next", "UPPER"}},     {{"next", std::string(24, 'a')}},
      {{"previous", "short"}},
  };
  for (const auto& query : wrong) {
    EXPECT_EQ(get(chunks(), query).status, 400) << query[0].first << "=" << query[0].second;
  }
}

TEST_F(Nine, RepresentationsComeAsAskedFor) {
  const auto as = [&](const char* accept) {
    return ask(Method::get, chunks(), nullptr, admin, {{"limit", "1"}}, {{"accept", accept}});
  };
  EXPECT_EQ(as("text/csv").content_type, "text/csv; charset=utf-8; header=present");
  EXPECT_TRUE(as("text/csv")
                  .body.starts_with("_id,order,text,disabled,data,storeReference,"
                                    "sourceReference,createdAt\r\n"));
  EXPECT_EQ(header(as("text/csv"), "X-Total-Count"), "2");
  EXPECT_NE(as("application/xml").body.find("<knowledgeChunks "), std::string::npos);
  const auto hal = json::parse(as("application/hal+json").body);
  EXPECT_EQ(hal["_links"]["self"]["href"], chunks() + "?limit=1");
  EXPECT_EQ(hal["_embedded"]["items"].size(), 1U);
  EXPECT_EQ(header(as("image/png"), "Vary"), "Accept");
  const auto error =
      ask(Method::get, chunks(), nullptr, admin, {{"limit", "0"}}, {{"accept", "text/csv"}});
  EXPECT_EQ(error.content_type, "application/problem+json");
}

TEST_F(Nine, AProjectHasOneSetUpJob) {
  const auto made = ask(Method::post, setup());
  ASSERT_EQ(made.status, 201) << made.body;
  const auto job = json::parse(made.body);
  const std::string id = job["_id"];
  EXPECT_EQ(job["status"], "queued");
  EXPECT_EQ(job["type"], "proactiveSetup");
  EXPECT_EQ(job["progress"], 0);
  EXPECT_EQ(job["failReason"], nullptr);
  EXPECT_EQ(job["data"], nullptr);
  EXPECT_EQ(header(made, "Location"), "/v2.0/tasks/" + id);
  EXPECT_TRUE(world.log_is_empty()) << "a set-up appends no event";
  const auto again = ask(Method::post, setup());
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(json::parse(again.body)["details"], (json{{"taskId", id}}));

  EXPECT_EQ(json::parse(get("/v2.0/tasks/" + id, {}, ann).body), job);
  EXPECT_EQ(get("/v2.0/tasks/" + id, {}, stranger).status, 404);
  EXPECT_EQ(ask(Method::post, "/v2.0/tasks/" + id + "/cancel", nullptr, ann).status, 403);
  EXPECT_EQ(ask(Method::post, "/v2.0/tasks/" + id + "/cancel", nullptr, stranger).status, 404);
  const auto cancelled = ask(Method::post, "/v2.0/tasks/" + id + "/cancel");
  EXPECT_EQ(json::parse(cancelled.body)["status"], "cancelled");
  EXPECT_EQ(ask(Method::post, setup()).status, 201) << "a cancelled set-up does not count";
}

TEST_F(Nine, RepeatedKeyOfASetUpGetsTheFirstAnswer) {
  const HeaderList key{{"idempotency-key", "once"}};
  const auto first = ask(Method::post, setup(), nullptr, admin, {}, key);
  const auto again = ask(Method::post, setup(), nullptr, admin, {}, key);
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(ask(Method::post, setup(), {{"other", "body"}}, admin, {}, key).status, 409);
  EXPECT_EQ(ask(Method::post, setup(), nullptr, admin, {}, {{"idempotency-key", ""}}).status, 400);
  world.clock.advance(std::chrono::hours(24));
  EXPECT_EQ(ask(Method::post, setup(), nullptr, admin, {}, key).status, 409)
      << "the project is set up already";
}

TEST_F(Nine, TasksAreListedNewestFirstAndFiltered) {
  const std::string first = json::parse(ask(Method::post, setup()).body)["_id"];
  ASSERT_EQ(ask(Method::post, "/v2.0/tasks/" + first + "/cancel").status, 200);
  const std::string second = json::parse(ask(Method::post, setup()).body)["_id"];
  const auto all = json::parse(get("/v2.0/tasks").body);
  EXPECT_EQ(all["total"], 2);
  EXPECT_EQ(all["items"][0]["_id"], second);
  EXPECT_EQ(all["items"][1]["_id"], first);
  const auto page = json::parse(get("/v2.0/tasks", {{"limit", "1"}}).body);
  const auto rest = json::parse(get("/v2.0/tasks", {{"next", page["nextCursor"]}}).body);
  EXPECT_EQ(rest["items"][0]["_id"], first);
  const auto queued = json::parse(get("/v2.0/tasks", {{"status", "queued"}}).body);
  EXPECT_EQ(queued["total"], 1);
  EXPECT_EQ(get("/v2.0/tasks", {{"status", "other"}}).status, 400);
  EXPECT_EQ(json::parse(get("/v2.0/tasks", {{"projectId", project}}).body)["total"], 2);
  EXPECT_EQ(get("/v2.0/tasks", {{"projectId", std::string(24, 'z')}}).status, 404);
  EXPECT_EQ(get("/v2.0/tasks", {{"projectId", project}}, stranger).status, 404);
  EXPECT_EQ(json::parse(get("/v2.0/tasks", {}, stranger).body)["total"], 0);
}

TEST_F(Nine, WaitingForATaskEndsWithItsChange) {
  const std::string id = json::parse(ask(Method::post, setup()).body)["_id"];
  const auto key = world.key_of(ann);
  auto waiting =
      world.send({Method::get, "/v2.0/tasks/" + id, {{"x-api-key", key}}, "", {{"wait", "30"}}});
  while (world.watch.size() == 0) std::this_thread::yield();
  const auto lease = world.store->jobs().lease(id, world.clock.now() + std::chrono::minutes(1));
  ASSERT_TRUE(lease);
  EXPECT_EQ(json::parse(waiting.get().body)["status"], "active");
  // A step without progress does not end the wait. Progress does.
  waiting =
      world.send({Method::get, "/v2.0/tasks/" + id, {{"x-api-key", key}}, "", {{"wait", "30"}}});
  ASSERT_TRUE(
      world.store->jobs().step(id, lease->fencing_token, {.progress = 0, .current_step = 1}));
  ASSERT_TRUE(
      world.store->jobs().step(id, lease->fencing_token, {.progress = 40, .current_step = 1}));
  EXPECT_EQ(json::parse(waiting.get().body)["progress"], 40);
  ASSERT_TRUE(world.store->jobs().finish(id, lease->fencing_token, model::JobState::done, ""));
  EXPECT_EQ(json::parse(get("/v2.0/tasks/" + id, {{"wait", "30"}}).body)["status"], "done");
  EXPECT_EQ(ask(Method::post, "/v2.0/tasks/" + id + "/cancel").status, 409);
  EXPECT_EQ(get("/v2.0/tasks/" + id, {{"wait", "31"}}).status, 400);
}

TEST_F(Nine, StoppingEndsTheWaitForATask) {
  const std::string id = json::parse(ask(Method::post, setup()).body)["_id"];
  auto waiting = world.send(
      {Method::get, "/v2.0/tasks/" + id, {{"x-api-key", world.key_of(ann)}}, "", {{"wait", "30"}}});
  while (world.watch.size() == 0) std::this_thread::yield();
  // The watch does not hear of this change. Only a read of the store would show it.
  world.store->jobs().on_change([](const std::string&) {});
  ASSERT_TRUE(world.store->jobs().lease(id, world.clock.now() + std::chrono::minutes(1)));
  world.watch.stop();
  EXPECT_EQ(json::parse(waiting.get().body)["status"], "queued") << "a stop reads nothing";
}

TEST_F(Nine, NotifyIsAppendedOncePerKeyAndCountsForNoQuota) {
  const HeaderList key{{"idempotency-key", "k"}};
  const auto first = ask(Method::post, "/v2.0/endpoint/notify", message(), ann, {}, key);
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.content_type, "text/plain; charset=utf-8");
  const auto again = ask(Method::post, "/v2.0/endpoint/notify", message(), ann, {}, key);
  EXPECT_EQ(header(again, "X-Inject-Id"), header(first, "X-Inject-Id"));
  const auto by_token = ask(Method::post, "/notify/" + token('b'),
                            {{"userId", "u"}, {"sessionId", "s"}, {"text", "x"}}, ann);
  EXPECT_EQ(by_token.status, 200) << "activeOnly refuses injects only";
  const auto events = world.read_events(2);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].type, model::EventType::notify);
  EXPECT_EQ(events[1].type, model::EventType::notify);
  EXPECT_TRUE(world.log_is_empty());
  EXPECT_EQ(ask(Method::post, "/v2.0/endpoint/notify", message(), tom).status, 403);
  const auto foreign = ask(Method::post, "/v2.0/endpoint/notify", message('c'), ann);
  EXPECT_EQ(foreign.status, 404);
  EXPECT_EQ(json::parse(foreign.body).size(), 4U) << "the reduced shape has four fields";
}

class NineWithQuota : public Nine {
 protected:
  NineWithQuota() : Nine({.limits = {}, .quota = {.jobs_per_month = 1, .tokens = 1}}) {}
};

TEST_F(NineWithQuota, UsedUpPlansAre402) {
  EXPECT_EQ(ask(Method::post, snippets(), {{"label", "one"}}).status, 201);
  EXPECT_EQ(ask(Method::post, snippets(), {{"label", "one"}}).status, 409);
  EXPECT_EQ(ask(Method::post, snippets(), {{"label", "two"}}).status, 402);
  const std::string id = json::parse(ask(Method::post, setup()).body)["_id"];
  EXPECT_EQ(ask(Method::post, setup()).status, 409);
  ASSERT_EQ(ask(Method::post, "/v2.0/tasks/" + id + "/cancel").status, 200);
  EXPECT_EQ(ask(Method::post, setup()).status, 402);
}

TEST_F(Nine, SwitchedOffSetUpIs501) {
  world.options.proactive.enabled = false;
  EXPECT_EQ(ask(Method::post, setup()).status, 501);
  EXPECT_EQ(ask(Method::post, setup(), nullptr, ann).status, 403);
}

}  // namespace
}  // namespace conversed::api
