#include "store/assets/assets.h"

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;
using nlohmann::json;

model::Bundle shop() {
  model::Bundle bundle;
  bundle.project_name = "Shop";
  bundle.locales = {"en", "de"};
  bundle.members = {{"ann@example.com", "Ann", {"projectAdmin"}, {"en"}}};
  bundle.tokens = {{"shopName", "custom", "The Shop"}};
  bundle.connections = {
      {"crm", "httpBearer", {{"token", "very-secret-token"}}, {{"token", "${CRM_TOKEN}"}}}};
  bundle.lexicons = {{"Cities", {"city"}, {{"Paris", {"paree"}, {"city"}, {{"country", "FR"}}}}}};
  bundle.knowledge_stores = {{"Manual", {{"FAQ", {{"Returns take 14 days.", {{"page", 3}}}}}}}};
  bundle.flows = {{"Orders", {{"name", "Orders"}, {"nodes", json::array()}}}};
  model::BundleEndpoint endpoint;
  endpoint.name = "web";
  endpoint.flow = "Orders";
  endpoint.webhook = {{"http://127.0.0.1:9000/hook", "very-secret-hook", "${HOOK_SECRET}"}};
  bundle.endpoints = {endpoint};
  return bundle;
}

class AssetsTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    organisation_ =
        store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"})->id;
  }
  Assets& assets() { return store_->assets(); }
  // Expects that the organisation has `count` Tokens: a limit of `count` refuses another one.
  void expect_tokens(std::int64_t count) {
    const auto project = assets().projects(organisation_)->front().id;
    const auto refused = assets().create_token(project, {}, count);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::quota_exhausted);
    EXPECT_TRUE(assets().create_token(project, {}, count + 1));
  }
  json import(const model::Bundle& bundle) {
    auto report = assets().import_bundle(organisation_, bundle);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : json();
  }

  std::string organisation_;
};

TEST_F(AssetsTest, SecondImportKeepsEveryIdAndVersion) {
  const auto first = import(shop());
  const auto second = import(shop());
  EXPECT_EQ(first, second);
  EXPECT_EQ(first["flows"][0]["version"], 1);
  EXPECT_EQ(first["project"]["locales"].size(), 2U);
  EXPECT_EQ(first["lexicons"][0]["slots"][0]["name"], "city");
  EXPECT_TRUE(model::is_url_token(first["endpoints"][0]["urlToken"].get<std::string>()));
  const auto entries = assets().lexicon_entries(first["lexicons"][0]["_id"]);
  EXPECT_EQ(entries->front().slots, std::vector<std::string>{"city"});
}

TEST_F(AssetsTest, ChangedFlowGetsAVersionAndTheLastTwentyAreKept) {
  auto bundle = shop();
  const std::string id = import(bundle)["flows"][0]["_id"];
  for (int i = 2; i <= 25; ++i) {
    bundle.flows[0].definition["round"] = i;
    EXPECT_EQ(import(bundle)["flows"][0]["version"], i);
  }
  EXPECT_EQ(assets().flow(id, 0)->value().version, 25);
  EXPECT_TRUE(assets().flow(id, 6)->has_value());
  EXPECT_FALSE(assets().flow(id, 5)->has_value());
}

TEST_F(AssetsTest, PartsThatABundleDoesNotNameStay) {
  const auto first = import(shop());
  auto bundle = shop();
  bundle.connections.clear();
  bundle.endpoints.clear();
  bundle.lexicons[0].entries = {{"Rome", {}, {}, nullptr}};
  import(bundle);
  EXPECT_TRUE(assets().endpoint(first["endpoints"][0]["_id"])->has_value());
  EXPECT_TRUE(assets().connection_secrets(first["connections"][0]["_id"]));
  const auto entries = assets().lexicon_entries(first["lexicons"][0]["_id"]);
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().main_keyphrase, "Rome");
}

TEST_F(AssetsTest, ImportThatFailsLeavesNothingBehind) {
  const auto token = import(shop())["endpoints"][0]["urlToken"].get<std::string>();
  auto bundle = shop();
  bundle.project_name = "Second";
  bundle.endpoints[0].url_token = token;
  const auto generation = assets().generation();
  const auto refused = assets().import_bundle(organisation_, bundle);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_NE(refused.error().message.find("web"), std::string::npos);
  EXPECT_EQ(assets().projects(organisation_)->size(), 1U);
  // In PostgreSQL a daemon may hear of its own earlier writes late.
  EXPECT_TRUE(place_.in_postgres() || assets().generation() == generation);
}

model::Bundle tokens_only(const std::string& project, const std::vector<std::string>& labels) {
  model::Bundle bundle;
  bundle.project_name = project;
  bundle.locales = {"en"};
  for (const auto& label : labels) {
    model::BundleToken token;
    token.label = label;
    bundle.tokens.push_back(token);
  }
  return bundle;
}

TEST_F(AssetsTest, ImportBeyondTheLimitOfTokensIsRefusedWhole) {
  const ImportLimits three{.tokens = 3};
  ASSERT_TRUE(assets().import_bundle(organisation_, tokens_only("One", {"a", "b"}), three));
  const auto generation = assets().generation();
  const auto refused = assets().import_bundle(organisation_, tokens_only("Two", {"c", "d"}), three);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::quota_exhausted);
  EXPECT_EQ(assets().projects(organisation_)->size(), 1U);
  EXPECT_TRUE(place_.in_postgres() || assets().generation() == generation);
  EXPECT_TRUE(assets().import_bundle(organisation_, tokens_only("Two", {"c"}), three));
  // A lowered limit refuses new Tokens but keeps the present ones.
  const ImportLimits one{.tokens = 1};
  EXPECT_TRUE(assets().import_bundle(organisation_, tokens_only("One", {"a", "b"}), one));
  EXPECT_FALSE(assets().import_bundle(organisation_, tokens_only("One", {"a", "e"}), one));
  expect_tokens(3);
}

TEST_F(AssetsTest, ImportsAtOnceStayWithinTheLimitOfTokens) {
  constexpr int imports = 8;
  std::atomic<int> taken = 0;
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n < imports; ++n) {
      threads.emplace_back([&, n] {
        const auto bundle = tokens_only("Project " + std::to_string(n), {"a"});
        if (assets().import_bundle(organisation_, bundle, {.tokens = 3})) ++taken;
      });
    }
  }
  EXPECT_EQ(taken, 3);
  expect_tokens(3);
  EXPECT_EQ(assets().projects(organisation_)->size(), 3U);
}

TEST_F(AssetsTest, SameProjectNameInTwoOrganisationsIsTwoProjects) {
  const auto other =
      store_->accounts().create_organisation("Other", {.email = "boss@example.com"})->id;
  const auto first = import(shop());
  auto bundle = shop();
  EXPECT_EQ(assets().import_bundle(other, bundle).error().code, Errc::conflict)
      << "the member is a user of the first organisation";
  bundle.members.clear();
  const auto second = assets().import_bundle(other, bundle);
  ASSERT_TRUE(second);
  EXPECT_NE((*second)["project"]["_id"], first["project"]["_id"]);
  EXPECT_EQ(*assets().count_chunks(other), 1);
}

TEST_F(AssetsTest, SecretsOpenForTheirUserAndAreNowhereInClear) {
  auto bundle = shop();
  // The secret stands where `${NAME}` should stand.
  bundle.connections.front().source = bundle.connections.front().fields;
  auto& webhook = bundle.endpoints.front().webhook.front();
  webhook.secret_source = webhook.secret;
  const auto report = import(bundle);
  EXPECT_EQ(assets().connection_secrets(report["connections"][0]["_id"])->fields,
            R"({"token":"very-secret-token"})");
  EXPECT_EQ(assets().webhook_secrets(report["endpoints"][0]["_id"])->current, "very-secret-hook");
  auto password = store_->accounts().create_user(
      organisation_, {.email = "bob@example.com", .password = "very-secret-password"});
  auto key = store_->accounts().create_api_key(organisation_, password->id, "k");
  store_.reset();
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    std::ostringstream content;
    content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    EXPECT_EQ(content.str().find("very-secret"), std::string::npos) << entry.path();
    EXPECT_EQ(content.str().find(key->secret.substr(29)), std::string::npos) << entry.path();
    ++files;
  }
  EXPECT_GE(files, place_.in_postgres() ? 1U : 2U);
}

TEST_F(AssetsTest, SealedFieldsMovedToAnotherRowDoNotOpen) {
  auto bundle = shop();
  bundle.connections.push_back({"other", "httpBearer", {{"token", "x"}}, {{"token", "${X}"}}});
  const auto report = import(bundle);
  const std::string from = report["connections"][0]["_id"];
  const std::string to = report["connections"][1]["_id"];
  ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
    writer.connection().run(
        "UPDATE connections SET fields = (SELECT fields FROM connections WHERE id = :f)"
        " WHERE id = :t",
        from, to);
    return {};
  }));
  EXPECT_EQ(assets().connection_secrets(to).error().code, Errc::internal);
  EXPECT_TRUE(assets().connection_secrets(from));
}

TEST_F(AssetsTest, EndpointIsFoundByItsToken) {
  const auto report = import(shop());
  const auto endpoint = assets().endpoint_by_token(report["endpoints"][0]["urlToken"]);
  ASSERT_TRUE(endpoint->has_value());
  EXPECT_EQ((*endpoint)->organisation_id, organisation_);
  EXPECT_EQ((*endpoint)->flow_id, report["flows"][0]["_id"]);
  EXPECT_FALSE(assets().endpoint_by_token("none")->has_value());
  const auto project = assets().project_assets(report["project"]["_id"]);
  EXPECT_EQ(project->tokens.at("shopName"), "The Shop");
  EXPECT_EQ(project->connection_ids.at("crm"), report["connections"][0]["_id"]);
}

TEST_F(AssetsTest, LocalesThatAnImportDoesNotNameComeBehindItsOwn) {
  auto bundle = shop();
  const std::string project = import(bundle)["project"]["_id"];
  using Names = std::vector<std::string>;
  EXPECT_EQ(assets().project_assets(project)->locales, (Names{"en", "de"}));
  bundle.members.clear();
  bundle.locales = {"fr", "de"};
  import(bundle);
  EXPECT_EQ(assets().project_assets(project)->locales, (Names{"fr", "de", "en"}));
  import(bundle);
  EXPECT_EQ(assets().project_assets(project)->locales, (Names{"fr", "de", "en"}));
}

TEST_F(AssetsTest, DeletedConnectionIsMissingAfterwards) {
  const auto report = import(shop());
  const std::string project = report["project"]["_id"];
  const std::string id = report["connections"][0]["_id"];
  EXPECT_EQ(assets().delete_connection("other", id).error().code, Errc::not_found);
  ASSERT_TRUE(assets().delete_connection(project, id));
  EXPECT_EQ(assets().delete_connection(project, id).error().code, Errc::not_found);
  EXPECT_TRUE(assets().project_assets(project)->connection_ids.empty());
}

TEST_F(AssetsTest, TokenWithoutLabelIsNumberedAndLabelsAreUnique) {
  const std::string project = import(shop())["project"]["_id"];
  EXPECT_EQ(assets().create_token(project, {})->label, "Token 2");
  EXPECT_EQ(assets().create_token(project, {.label = "Token 4"})->label, "Token 4");
  EXPECT_EQ(assets().create_token(project, {})->label, "Token 5");
  EXPECT_EQ(assets().create_token(project, {.label = "shopName"}).error().code, Errc::conflict);
  EXPECT_EQ(assets().create_token("none", {.label = "x"}).error().code, Errc::not_found);
  expect_tokens(4);
}

TEST_F(AssetsTest, ImportedMemberHasRolesAndNoPassword) {
  const auto report = import(shop());
  const std::string project = report["project"]["_id"];
  const std::string user = report["members"][0]["_id"];
  auto& accounts = store_->accounts();
  EXPECT_EQ(accounts.principal_in(organisation_, user)->project_roles.at(project),
            std::vector<std::string>{"projectAdmin"});
  EXPECT_FALSE(accounts.member(project, user)->user.has_password);
  const std::string german = report["project"]["locales"][1]["_id"];
  EXPECT_EQ(accounts.set_allowed_locales(project, user, {german})->allowed_locales.front(), german);
  EXPECT_EQ(accounts.set_allowed_locales(project, user, {"none"}).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(accounts.set_allowed_locales("none", user, {}).error().code, Errc::not_found);
}

}  // namespace
}  // namespace conversed::store
