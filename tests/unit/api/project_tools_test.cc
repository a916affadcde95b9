// Versions of Flows, exports, and the uses of a Connection, by the management routes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "flows/turn/turn.h"
#include "store/commit/usage.h"
#include "store/model/ids.h"
#include "store/sql/sql.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::body_of;
using test::World;

class ProjectTools : public testing::Test {
 protected:
  json import(const std::string& text, int status = 200, const json& environment = json::object()) {
    const auto response =
        world_.manage(Method::post, "/management/import",
                      {{"file", "p.yaml"}, {"text", text}, {"environment", environment}});
    EXPECT_EQ(response.status, status) << response.body;
    return body_of(response);
  }
  json get(const std::string& path, HeaderList query = {}, int status = 200,
           std::string_view as = "admin@acme.example") {
    const auto response = world_.manage(Method::get, path, nullptr, std::move(query), as);
    EXPECT_EQ(response.status, status) << response.body;
    return body_of(response);
  }
  static std::string bundle(const std::string& nodes) {
    return "conversed: 1\nproject: {name: Tools, locales: [en]}\nflows:\n  - name: Main\n    "
           "nodes:\n" +
           nodes + "endpoints: [{name: web, flow: Main}]\n";
  }

  World world_;
};

TEST_F(ProjectTools, VersionsAreListedComparedAndGoneBackTo) {
  const auto report = import(bundle("      - say: one\n"));
  import(bundle("      - say: two\n      - id: end\n        stop: true\n"));
  const std::string project = report["project"]["_id"];
  const auto flows = get("/management/flows", {{"projectId", project}});
  ASSERT_EQ(flows["items"].size(), 1U);
  EXPECT_EQ(flows["items"][0]["version"], 2);
  const std::string route = "/management/flows/" + flows["items"][0]["_id"].get<std::string>();

  auto versions = get(route + "/versions");
  ASSERT_EQ(versions["items"].size(), 2U);
  EXPECT_EQ(versions["items"][0]["createdBy"], "admin@acme.example");
  EXPECT_TRUE(versions["items"][1]["restoredFrom"].is_null());

  const auto diff = get(route + "/diff");
  EXPECT_EQ(diff["from"], 1);
  EXPECT_EQ(diff["to"], 2);
  ASSERT_EQ(diff["changes"].size(), 2U);
  EXPECT_EQ(diff["changes"][0]["change"], "changed");
  EXPECT_EQ(diff["changes"][0]["fields"][0]["before"], "one");
  EXPECT_EQ(diff["changes"][1]["path"], "nodes[1]");
  EXPECT_EQ(diff["changes"][1]["id"], "end");
  EXPECT_TRUE(get(route + "/diff", {{"to", "1"}})["changes"].empty())
      << "the first version has no predecessor";

  const auto back = world_.manage(Method::post, route + "/rollback", {{"version", 1}});
  ASSERT_EQ(back.status, 200) << back.body;
  EXPECT_EQ(body_of(back)["version"], 3);
  versions = get(route + "/versions");
  EXPECT_EQ(versions["items"][0]["restoredFrom"], 1);
  EXPECT_EQ(get(route + "/definition")["definition"],
            get(route + "/definition", {{"version", "1"}})["definition"]);
  EXPECT_EQ(get(route + "/definition")["primaryLocale"], "en");
  EXPECT_TRUE(get(route + "/diff", {{"from", "1"}, {"to", "3"}})["changes"].empty());
  // The old text runs next.
  const auto compiled = world_.assets->newest_flow(flows["items"][0]["_id"].get<std::string>());
  EXPECT_EQ((*compiled)->version.version, 3);
}

TEST_F(ProjectTools, UnknownVersionsAreNotFound) {
  const std::string id = import(bundle("      - say: one\n"))["flows"][0]["_id"];
  const std::string route = "/management/flows/" + id;
  get(route + "/definition", {{"version", "2"}}, 404);
  get(route + "/diff", {{"from", "7"}}, 404);
  for (const char* wrong : {"0", "-1", "x", "1.5"}) {
    get(route + "/definition", {{"version", wrong}}, 400);
  }
  const auto roll_back = [&](const json& body) {
    return world_.manage(Method::post, route + "/rollback", body).status;
  };
  EXPECT_EQ(roll_back({{"version", 2}}), 404);
  EXPECT_EQ(roll_back({{"version", 2.0}}), 404) << "2.0 is a whole number";
  for (const json& wrong :
       {json::object(), json{{"version", 0}}, json{{"version", "1"}}, json{{"version", 1.5}},
        json{{"version", 1e300}}, json{{"version", 18446744073709551615U}}}) {
    EXPECT_EQ(roll_back(wrong), 400) << wrong;
  }
  get("/management/flows/" + std::string(model::id_length, 'z') + "/versions", {}, 404);
}

// The report of an import without the order of the bundle's parts. Warnings have lines of one text.
json unordered(json report) {
  report.erase("warnings");
  for (auto& part : report) {
    if (part.is_array()) std::sort(part.begin(), part.end());
  }
  return report;
}

constexpr const char* signing_secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

constexpr const char* whole = R"(conversed: 1
project: {name: Whole, locales: [de, en]}
members: [{email: member@acme.example, name: A member, roles: [tokenAdmin], allowedLocales: [de]}]
tokens: [{label: shop name, script: "The Shop"}]
connections:
  - {name: crm, type: httpBearer, hosts: [crm.example.com, "crm.example.com:8443"], fields: {token: "${CRM_TOKEN}"}}
  - {name: clear, type: httpBasic, fields: {username: bob, password: in-the-clear}}
lexicons:
  - {name: Cities, slots: [city, town], entries: [{mainKeyphrase: Rome, keyphrases: [roma], slots: [town], data: {a: [1, null]}}]}
knowledgeStores: [{name: Manual, sources: [{name: FAQ, chunks: [{text: "Line\nline", data: 3}, {text: b}]}]}]
flows:
  - name: Main
    lexicons: [Cities]
    nodes:
      - id: ask
        question: {text: "Which?", type: keyphrase, slot: city, storeIn: context.city}
      - httpRequest: {connection: crm, url: "https://crm.example.com", onError: [{say: later}]}
      - executeFlow: Other
  - {name: Other, nodes: [{say: ["{{shop name}}", 'yes']}]}
endpoints:
  - {name: web, flow: Main, sessionExpiry: 90s, activeOnly: true, errorText: "Oh: no", onError: Other,
     output: {webhook: {url: "https://h.example/${HOOK}", secret: "${SECRET}"}}}
proactive: {journey: {after: 20m, text: "Still there?", quietHours: {from: "22:00", to: "07:00", timezone: Europe/Berlin}}}
)";

TEST_F(ProjectTools, AnExportImportsToTheSame) {
  const json environment{{"CRM_TOKEN", "t"},
                         {"HOOK", "h"},
                         {"SECRET", signing_secret},
                         {"CLEAR_PASSWORD", "in-the-clear"}};
  const auto report = import(whole, 200, environment);
  const std::string route =
      "/management/projects/" + report["project"]["_id"].get<std::string>() + "/export";
  const auto exported = get(route);
  EXPECT_EQ(exported["file"], "Whole.yaml");
  EXPECT_TRUE(exported["problems"].empty()) << exported["problems"];
  EXPECT_EQ(exported["variables"], json({"CLEAR_PASSWORD", "CRM_TOKEN", "HOOK", "SECRET"}));
  const std::string text = exported["text"];
  EXPECT_EQ(text.find("in-the-clear"), std::string::npos) << text;
  EXPECT_NE(text.find("https://h.example/${HOOK}"), std::string::npos) << text;
  // Every id and version stays: the import creates and changes nothing.
  EXPECT_EQ(unordered(import(text, 200, environment)), unordered(report));
  EXPECT_EQ(get(route)["text"], text);
  const std::string crm = report["connections"][1]["_id"];
  EXPECT_EQ(world_.store->assets().connection_secrets(crm)->fields,
            R"({"password":"in-the-clear","username":"bob"})");
}

// Each part survives the way through another store unchanged.
TEST_F(ProjectTools, AnExportImportsToTheSameElsewhere) {
  const json environment{
      {"CRM_TOKEN", "t"}, {"HOOK", "h"}, {"SECRET", signing_secret}, {"CLEAR_PASSWORD", "p"}};
  const auto report = import(whole, 200, environment);
  const auto route = [](const json& of) {
    return "/management/projects/" + of["project"]["_id"].get<std::string>() + "/export";
  };
  const std::string text = get(route(report))["text"];
  World empty;
  const auto taken =
      empty.manage(Method::post, "/management/import",
                   {{"file", "p.yaml"}, {"text", text}, {"environment", environment}});
  ASSERT_EQ(taken.status, 200) << taken.body;
  const auto again = empty.manage(Method::get, route(body_of(taken)), nullptr);
  ASSERT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(body_of(again)["text"], text);
  for (const char* part :
       {"members:", "tokens:", "connections:", "lexicons:", "knowledgeStores:", "flows:",
        "endpoints:", "proactive:", "username: bob", "urlToken:", "chunks:", "quietHours:"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST_F(ProjectTools, AnExportReportsPartsThatAnImportWouldRefuse) {
  const auto report =
      import(whole, 200, {{"CRM_TOKEN", "t"}, {"HOOK", "h"}, {"SECRET", signing_secret}});
  const std::string project = report["project"]["_id"];
  ASSERT_TRUE(world_.store->assets().delete_connection(project, report["connections"][0]["_id"]));
  const auto exported = get("/management/projects/" + project + "/export");
  ASSERT_EQ(exported["problems"].size(), 1U) << exported["problems"];
  EXPECT_NE(exported["problems"][0]["message"].get<std::string>().find("crm"), std::string::npos);
}

TEST_F(ProjectTools, ProjectsAreListedForTheirMembers) {
  const auto names = [&](std::string_view as) {
    json list = json::array();
    const auto projects = get("/management/projects", {}, 200, as);
    for (const auto& item : projects["items"]) list.push_back(item["name"]);
    return list;
  };
  EXPECT_EQ(names("admin@acme.example"), json({"Shop", "Side"}));
  EXPECT_EQ(names("ann@acme.example"), json::array({"Shop"}));
}

TEST_F(ProjectTools, OrganisationsAreListedWithTheirUsage) {
  const auto organisation = world_.store->accounts().organisations()->at(0).id;
  ASSERT_TRUE(world_.store->committer().write_and_wait([&](store::Writer& writer) {
    return store::Usage::add(writer, {organisation, store::model_tokens_counter, 120});
  }));
  const auto month = store::month_of(world_.clock.now());
  const auto organisations = get("/management/organisations");
  for (const auto& item : organisations["items"]) {
    const bool is_it = item["_id"] == organisation;
    EXPECT_EQ(item["used"],
              (json{{"month", month}, {"injects", 0}, {"modelTokens", is_it ? 120 : 0}}));
  }
}

// --- Connections -------------------------------------------------------------------------------

constexpr const char* users_of_crm = R"(conversed: 1
project: {name: Calls, locales: [en]}
connections: [{name: crm, type: httpBearer, fields: {token: x}}, {name: idle, type: httpBearer, fields: {token: x}}]
flows:
  - name: Main
    nodes:
      - id: ask
        question: "Which?"
      - id: look
        httpRequest: {connection: crm, url: "https://crm.example.com"}
      - id: behind
        question: "Anything else?"
  - {name: Plain, nodes: [{id: ask, question: "Which?"}]}
endpoints:
  - {name: main, flow: Main, sessionExpiry: 30m}
  - {name: plain, flow: Plain, sessionExpiry: 30m}
)";

class ConnectionUsages : public ProjectTools {
 protected:
  ConnectionUsages() : report_(import(users_of_crm)) {}

  std::string route(int connection = 0) const {
    return "/management/connections/" +
           report_["connections"][static_cast<std::size_t>(connection)]["_id"].get<std::string>() +
           "/usages";
  }
  // Stores a session of the Endpoint that waits at the Node of its Flow. With "" it does not wait.
  void put(std::size_t endpoint, const std::string& user, const std::string& at) {
    store::SessionCommit commit;
    commit.key = {report_["project"]["_id"], report_["endpoints"][endpoint]["_id"], user, "s"};
    commit.after.key = commit.key;
    commit.after.position = {1, 0, ++offset_};
    commit.after.last_activity_at = world_.clock.now();
    if (!at.empty()) {
      const char* flow = endpoint == 0 ? "Main" : "Plain";
      commit.after.flow_state = {
          {"v", 1}, {"executions", 1}, {"waiting", {{"flow", flow}, {"at", at}}}};
    }
    world_.commit_now(std::move(commit));
  }

  const json report_;
  std::int64_t offset_ = 0;
};

TEST_F(ConnectionUsages, NameFlowsNodesAndSessions) {
  put(0, "asked", "ask");
  put(0, "served", "behind");
  put(0, "fresh", "");
  put(1, "elsewhere", "ask");
  const auto usages = get(route());
  EXPECT_EQ(usages["name"], "crm");
  ASSERT_EQ(usages["flows"].size(), 1U);
  EXPECT_EQ(usages["flows"][0]["name"], "Main");
  EXPECT_EQ(usages["flows"][0]["nodes"],
            json::array({{{"node", "look"}, {"type", "httpRequest"}}}));
  const auto& sessions = usages["sessions"];
  EXPECT_EQ(sessions["count"], 3);
  EXPECT_EQ(sessions["isComplete"], true);
  std::map<std::string, std::string> meets;
  for (const auto& item : sessions["items"]) {
    meets[item["userId"].get<std::string>()] = item["meets"].get<std::string>();
  }
  EXPECT_EQ(meets, (std::map<std::string, std::string>{
                       {"asked", "ahead"}, {"served", "later"}, {"fresh", "later"}}));
  const auto unused = get(route(1));
  EXPECT_TRUE(unused["flows"].empty());
  EXPECT_EQ(unused["sessions"]["count"], 0);
}

class ImportPlan : public ConnectionUsages {
 protected:
  json plan(const std::string& text) {
    const auto response = world_.manage(Method::post, "/management/import",
                                        {{"file", "p.yaml"}, {"text", text}}, {{"dryRun", "true"}});
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(body_of(response).at("isComplete"), true);
    return body_of(response).at("plan");
  }
  // `changed Flow Main`, without the unchanged parts.
  static std::vector<std::string> changes(const json& parts) {
    std::vector<std::string> list;
    for (const auto& part : parts) {
      if (part["change"] == "unchanged") continue;
      list.push_back(part["change"].get<std::string>() + ' ' + part["part"].get<std::string>() +
                     ' ' + part["name"].get<std::string>());
    }
    return list;
  }
};

TEST_F(ImportPlan, OfTheSameBundleHasNoChange) {
  const auto same = plan(users_of_crm);
  EXPECT_EQ(same.size(), 7U);
  EXPECT_EQ(changes(same), (std::vector<std::string>{}));
  const json environment{
      {"CRM_TOKEN", "t"}, {"HOOK", "h"}, {"SECRET", signing_secret}, {"CLEAR_PASSWORD", "p"}};
  import(whole, 200, environment);
  const auto response = world_.manage(
      Method::post, "/management/import",
      {{"file", "p.yaml"}, {"text", whole}, {"environment", environment}}, {{"dryRun", "true"}});
  EXPECT_EQ(changes(body_of(response).at("plan")), (std::vector<std::string>{}));
}

TEST_F(ImportPlan, NamesPartsOfWhichOnlyASecretOrAVariablesValueHasChanged) {
  const std::string text = R"(conversed: 1
project: {name: Secrets, locales: [en]}
connections:
  - {name: literal, type: httpBearer, fields: {token: first-token}}
  - {name: variable, type: httpBearer, fields: {token: "${TOKEN}"}}
flows: [{name: Main, nodes: [{say: hi}]}]
endpoints:
  - {name: literal, flow: Main, output: {webhook: {url: "https://h.example", secret: SIGNING}}}
  - {name: variable, flow: Main, output: {webhook: {url: "https://${HOST}", secret: "${SECRET}"}}}
)";
  const std::string other_secret = "whsec_" + std::string(32, 'A');
  json environment{{"TOKEN", "t"}, {"HOST", "h.example"}, {"SECRET", signing_secret}};
  const auto with = [&](const std::string& secret) {
    auto bundle = text;
    return bundle.replace(bundle.find("SIGNING"), 7, secret);
  };
  const auto planned = [&](const std::string& bundle) {
    const auto response = world_.manage(
        Method::post, "/management/import",
        {{"file", "p.yaml"}, {"text", bundle}, {"environment", environment}}, {{"dryRun", "true"}});
    EXPECT_EQ(response.status, 200) << response.body;
    for (const std::string& secret : {std::string(signing_secret), other_secret}) {
      EXPECT_EQ(response.body.find(secret), std::string::npos);
    }
    return changes(body_of(response).at("plan"));
  };
  using Changes = std::vector<std::string>;
  import(with(signing_secret), 200, environment);
  EXPECT_EQ(planned(with(signing_secret)), Changes());
  EXPECT_EQ(planned(with(other_secret)), Changes{"changed Endpoint literal"});
  auto changed = with(signing_secret);
  changed.replace(changed.find("first-token"), 5, "other");
  EXPECT_EQ(planned(changed), Changes{"changed Connection literal"});
  environment["TOKEN"] = "u";
  environment["HOST"] = "other.example";
  EXPECT_EQ(planned(with(signing_secret)),
            (Changes{"changed Connection variable", "changed Endpoint variable"}));
  environment["HOST"] = "h.example";
  environment["SECRET"] = other_secret;
  EXPECT_EQ(planned(with(signing_secret)),
            (Changes{"changed Connection variable", "changed Endpoint variable"}));
}

TEST_F(ImportPlan, IsRefusedWithoutTheRoleBeforeTheBundleIsChecked) {
  const std::string email = "pia@acme.example";
  ASSERT_TRUE(world_.store->accounts().create_user(
      world_.store->assets().endpoint_by_token(test::token('a')).value()->organisation_id,
      {.email = email,
       .membership = store::Accounts::NewMembership{report_["project"]["_id"], {"projectAdmin"}}}));
  const auto send = [&](const std::string& project) {
    return world_
        .manage(Method::post, "/management/import",
                {{"text", "conversed: 1\nproject: {name: " + project + "}\nflows: 5\n"}}, {}, email)
        .status;
  };
  EXPECT_EQ(send("Shop"), 403);
  EXPECT_EQ(send("Calls"), 400) << "the project in which the user has the role";
}

class Pruning : public ImportPlan {
 protected:
  Response send(const std::string& text, bool dry_run) {
    return world_.manage(Method::post, "/management/import",
                         {{"file", "p.yaml"}, {"text", text}, {"prune", true}},
                         {{"dryRun", dry_run ? "true" : "false"}});
  }
  // The bundle without the Endpoint `plain`, its Flow and the Connection `idle`.
  static std::string less() {
    std::string text = users_of_crm;
    for (const std::string gone : {", {name: idle, type: httpBearer, fields: {token: x}}",
                                   "  - {name: Plain, nodes: [{id: ask, question: \"Which?\"}]}\n",
                                   "  - {name: plain, flow: Plain, sessionExpiry: 30m}\n"}) {
      text.erase(text.find(gone), gone.size());
    }
    return text;
  }
};

TEST_F(Pruning, DeletesExactlyWhatThePlanNames) {
  const auto planned = send(less(), true);
  ASSERT_EQ(planned.status, 200) << planned.body;
  EXPECT_TRUE(body_of(planned)["usages"].empty());
  EXPECT_EQ(changes(body_of(planned)["plan"]),
            (std::vector<std::string>{"deleted Connection idle", "deleted Flow Plain",
                                      "deleted Endpoint plain"}));
  EXPECT_EQ(changes(plan(users_of_crm)), std::vector<std::string>()) << "a plan changes nothing";
  const auto done = send(less(), false);
  ASSERT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(body_of(done)["deleted"], json::array({{{"part", "Flow"}, {"name", "Plain"}},
                                                   {{"part", "Endpoint"}, {"name", "plain"}},
                                                   {{"part", "Connection"}, {"name", "idle"}}}));
  EXPECT_EQ(changes(plan(less())), std::vector<std::string>());
  EXPECT_EQ(
      changes(plan(users_of_crm)),
      (std::vector<std::string>{"new Connection idle", "new Flow Plain", "new Endpoint plain"}));
}

TEST_F(Pruning, IsRefusedWithWhatUsesTheParts) {
  put(1, "waits", "ask");
  auto text = less();
  text.replace(text.find("Anything else?"), 8, "Something");
  const auto planned = body_of(send(text, true));
  ASSERT_EQ(planned["usages"].size(), 2U) << planned;
  const auto refused = send(text, false);
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(body_of(refused)["details"]["usages"], planned["usages"]);
  for (const auto& usage : planned["usages"]) {
    EXPECT_EQ(usage["kind"], "sessions");
    EXPECT_EQ(usage["count"], 1);
  }
  EXPECT_EQ(changes(plan(users_of_crm)), std::vector<std::string>()) << "nothing was imported";
  world_.clock.advance(std::chrono::minutes(31));
  EXPECT_EQ(send(text, false).status, 200) << "the session has expired";
}

class Deletion : public ConnectionUsages {
 protected:
  json del(const std::string& path, int status, bool dry_run = false) {
    const auto response =
        world_.manage(Method::delete_, path, nullptr, {{"dryRun", dry_run ? "true" : "false"}});
    EXPECT_EQ(response.status, status) << response.body;
    return body_of(response);
  }
  std::string path_of(const char* list, std::size_t n) const {
    return std::string("/management/") + list + "/" + report_[list][n]["_id"].get<std::string>();
  }
  // Stores a session in whose Endpoint's Flow a follow-up's Flow waits or, after its execution has
  // failed, is left. Returns what uses the Flow behind it.
  json usages_behind(bool waits) {
    store::SessionCommit commit;
    commit.key = {report_["project"]["_id"], report_["endpoints"][0]["_id"], "ann",
                  waits ? "waits" : "failed"};
    commit.after.key = commit.key;
    commit.after.position = {1, 0, ++offset_};
    commit.after.last_activity_at = world_.clock.now();
    commit.after.flow_state = {{"v", 1},
                               {"executions", 1},
                               {"followUpFlow", "Main"},
                               {"behind", {{"flow", "Plain"}, {"at", "ask"}}}};
    if (waits) commit.after.flow_state["waiting"] = {{"flow", "Main"}, {"at", "ask"}};
    world_.commit_now(std::move(commit));
    return del(path_of("flows", 1), 409)["details"]["usages"];
  }
};

TEST_F(Deletion, OfAFlowIsRefusedWhileAnEndpointRunsIt) {
  const auto flow = path_of("flows", 1);
  const auto preview = del(flow, 200, true);
  EXPECT_EQ(preview["name"], "Plain");
  ASSERT_EQ(preview["usages"].size(), 1U);
  EXPECT_EQ(preview["usages"][0]["kind"], "endpoint");
  EXPECT_EQ(preview["usages"][0]["by"], "plain");
  EXPECT_EQ(del(flow, 409)["details"]["usages"], preview["usages"]);
  EXPECT_TRUE(del(path_of("endpoints", 1), 200, true)["usages"].empty());
  EXPECT_EQ(del(path_of("endpoints", 1), 200)["name"], "plain");
  EXPECT_TRUE(del(flow, 200)["usages"].empty());
  del(flow, 404);
  del(path_of("endpoints", 1), 404);
  const auto flows = get("/management/flows", {{"projectId", report_["project"]["_id"]}});
  EXPECT_EQ(flows["items"].size(), 1U);
}

TEST_F(Deletion, OfAProjectIsRefusedWhileSomethingUsesItAndThenFreesItsNames) {
  usages_behind(true);
  const auto project = "/management/projects/" + report_["project"]["_id"].get<std::string>();
  const auto preview = del(project, 200, true);
  EXPECT_EQ(preview["name"], report_["project"]["name"]);
  ASSERT_EQ(preview["usages"].size(), 1U) << preview;
  EXPECT_EQ(preview["usages"][0]["kind"], "sessions");
  EXPECT_EQ(del(project, 409)["details"]["usages"], preview["usages"]);
  const auto before = get("/management/projects")["items"].size();
  world_.clock.advance(std::chrono::days(2));
  EXPECT_TRUE(del(project, 200)["usages"].empty()) << "the session has expired";
  EXPECT_EQ(get("/management/projects")["items"].size(), before - 1);
  del(project, 404);
  del(path_of("flows", 0), 404);
  del(path_of("endpoints", 0), 404);
}

TEST_F(Deletion, OfAFlowIsRefusedWhileAnotherOneEntersIt) {
  std::string text = users_of_crm;
  text.replace(
      text.find("  - {name: Plain"), 0,
      "  - {name: Caller, nodes: [{executeFlow: Called}]}\n  - {name: Called, nodes: []}\n");
  const auto report = import(text);
  std::string called;
  for (const auto& flow : report["flows"]) {
    if (flow["name"] == "Called") called = "/management/flows/" + flow["_id"].get<std::string>();
  }
  const auto usages = del(called, 409)["details"]["usages"];
  ASSERT_EQ(usages.size(), 1U) << usages;
  EXPECT_EQ(usages[0]["kind"], "flow");
  EXPECT_EQ(usages[0]["by"], "Caller");
}

TEST_F(Deletion, OfAFlowIsRefusedWhileAFlowThatCanNotBeCompiledMayEnterIt) {
  const auto report = import(std::string(users_of_crm) + "  - {name: free, flow: Main}\n");
  const std::string main = report["flows"][0]["_id"];
  del(path_of("endpoints", 1), 200);
  ASSERT_TRUE(world_.store->committer().write_and_wait([&](store::Writer& writer) {
    writer.connection().run(
        R"(UPDATE flow_versions SET definition = '{"name":"Main","nodes":[{"laterNode":"Plain"}]}')"
        " WHERE flow_id = :f",
        main);
  }));
  const auto usages = del(path_of("flows", 1), 409)["details"]["usages"];
  ASSERT_EQ(usages.size(), 1U) << usages;
  EXPECT_EQ(usages[0]["by"], "Main");
}

// While the follow-up's Flow makes a call, and after its execution has failed, nothing is in
// `waiting`.
TEST_F(Deletion, OfAFlowIsRefusedWhileItWaitsBehindAFollowUp) {
  del(path_of("endpoints", 1), 200);
  for (const bool waits : {false, true}) {
    SCOPED_TRACE(waits);
    const auto usages = usages_behind(waits);
    ASSERT_EQ(usages.size(), 1U) << usages;
    EXPECT_EQ(usages[0]["kind"], "sessions");
    EXPECT_EQ(usages[0]["count"], waits ? 2 : 1);
  }
}

TEST_F(ImportPlan, TakesASecretThatCanNotBeReadForAChangedOne) {
  ASSERT_TRUE(world_.store->committer().write_and_wait([&](store::Writer& writer) {
    writer.connection().run("UPDATE connections SET fields = 'damaged' WHERE name = 'crm'");
  }));
  EXPECT_EQ(changes(plan(users_of_crm)), std::vector<std::string>{"changed Connection crm"});
  import(users_of_crm);
  EXPECT_EQ(changes(plan(users_of_crm)), std::vector<std::string>());
}

TEST_F(ImportPlan, TellsThatOnlyTheNewestSessionsWereCounted) {
  for (int i = 0; i < 150; ++i) put(0, "user " + std::to_string(i), "ask");
  world_.options.steady_now = [this] { return world_.steady += std::chrono::milliseconds(20); };
  const auto response =
      world_.manage(Method::post, "/management/import",
                    {{"file", "p.yaml"}, {"text", users_of_crm}}, {{"dryRun", "true"}});
  EXPECT_EQ(body_of(response).at("isComplete"), false) << response.body;
}

TEST_F(ImportPlan, OfANewProjectHasNewPartsOnly) {
  const auto parts = plan(bundle("      - say: one\n"));
  EXPECT_EQ(changes(parts),
            (std::vector<std::string>{"new project locales", "new Flow Main", "new Endpoint web"}));
}

TEST_F(ImportPlan, NamesChangedPartsAndTheSessionsThatTheyMeet) {
  put(0, "asked", "ask");
  put(0, "served", "behind");
  put(1, "elsewhere", "ask");
  std::string changed = users_of_crm;
  const auto replace = [&](const std::string& old, const std::string& with) {
    changed.replace(changed.find(old), old.size(), with);
  };
  replace("id: behind", "id: last");
  replace("locales: [en]", "locales: [en, de]");
  replace("{name: idle, type: httpBearer, fields: {token: x}}", "");
  replace("{name: plain, flow: Plain, sessionExpiry: 30m}", "{name: plain, flow: Plain}");
  replace("{name: main, flow: Main, sessionExpiry: 30m}", "{name: new, flow: Main}");
  const auto parts = plan(changed);
  EXPECT_EQ(changes(parts),
            (std::vector<std::string>{"changed project locales", "leftOver Connection idle",
                                      "changed Flow Main", "new Endpoint new",
                                      "leftOver Endpoint main"}));
  const auto flow = std::find_if(parts.begin(), parts.end(),
                                 [](const auto& part) { return part["name"] == "Main"; });
  EXPECT_EQ((*flow)["waiting"],
            json::array({{{"node", "ask"}, {"sessions", 1}, {"stays", true}},
                         {{"node", "behind"}, {"sessions", 1}, {"stays", false}}}));
}

TEST_F(ConnectionUsages, NameTheOlderVersionsThatSessionsRun) {
  store::SessionCommit commit;
  commit.key = {report_["project"]["_id"], report_["endpoints"][0]["_id"], "ann", "s"};
  commit.after.key = commit.key;
  commit.after.position = {1, 0, ++offset_};
  commit.after.last_activity_at = world_.clock.now();
  model::Execution pinned;
  pinned.input_id = "input";
  pinned.pending_call_id = "call";
  pinned.flow_id = report_["flows"][0]["_id"];
  pinned.flow_version = 1;
  pinned.state = {{"v", 1}, {"flow", "Main"}, {"at", "ask"}};
  commit.after.execution = pinned;
  world_.commit_now(std::move(commit));
  std::string without = users_of_crm;
  without.replace(without.find("connection: crm, "), std::string("connection: crm, ").size(), "");
  import(without);
  const auto usages = get(route());
  ASSERT_EQ(usages["flows"].size(), 1U) << usages;
  EXPECT_EQ(usages["flows"][0]["version"], 1);
  EXPECT_EQ(usages["flows"][0]["nodes"][0]["node"], "look");
  EXPECT_EQ(usages["sessions"]["count"], 1);
}

TEST_F(ConnectionUsages, ComePageByPageAndLeaveOutWhatHasExpired) {
  put(0, "expired", "ask");
  world_.clock.advance(std::chrono::minutes(31));
  for (int i = 0; i < 5; ++i) put(0, "user" + std::to_string(i), "ask");
  std::vector<std::string> seen;
  json after = 0;
  while (!after.is_null()) {
    const auto page =
        get(route(), {{"limit", "2"}, {"after", std::to_string(after.get<int>())}})["sessions"];
    EXPECT_EQ(page["count"], seen.empty() ? json(5) : json()) << "counted once";
    EXPECT_LE(page["items"].size(), 2U);
    for (const auto& item : page["items"]) seen.push_back(item["userId"].get<std::string>());
    after = page["next"];
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"user4", "user3", "user2", "user1", "user0"}));
}

TEST_F(ConnectionUsages, IncludeTheFlowThatWaitsBehindAFollowUp) {
  store::SessionCommit commit;
  commit.key = {report_["project"]["_id"], report_["endpoints"][1]["_id"], "ann", "s"};
  commit.after.key = commit.key;
  commit.after.position = {1, 0, ++offset_};
  commit.after.last_activity_at = world_.clock.now();
  commit.after.flow_state = {{"v", 1},
                             {"executions", 1},
                             {"followUpFlow", "Plain"},
                             {"waiting", {{"flow", "Plain"}, {"at", "ask"}}},
                             {"behind", {{"flow", "Main"}, {"at", "ask"}}}};
  world_.commit_now(std::move(commit));
  const auto sessions = get(route())["sessions"];
  ASSERT_EQ(sessions["count"], 1);
  EXPECT_EQ(sessions["items"][0]["meets"], "ahead");
}

TEST_F(ConnectionUsages, SessionsAreShownToConversationAdmins) {
  put(0, "asked", "ask");
  const std::string email = "cora@acme.example";
  const std::string project = report_["project"]["_id"];
  ASSERT_TRUE(world_.store->accounts().create_user(
      world_.store->assets().endpoint_by_token(test::token('a')).value()->organisation_id,
      {.email = email,
       .membership = store::Accounts::NewMembership{project, {"connectionAdmin"}}}));
  const auto sessions = get(route(), {}, 200, email)["sessions"];
  EXPECT_EQ(sessions["count"], 1);
  EXPECT_TRUE(sessions["items"].is_null());
  get("/management/connections", {{"projectId", project}}, 200, email);
}

}  // namespace
}  // namespace conversed::api
