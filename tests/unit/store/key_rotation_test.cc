#include "store/secrets/key_rotation.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/secrets/sealer.h"
#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

constexpr std::size_t endpoint_count = 150;  // more than two batches
// The secret and its source of each Endpoint, the fields and their source of the Connection, one
// replaced secret, and one value of the tenant.
constexpr std::int64_t sealed_values = 2 * static_cast<std::int64_t>(endpoint_count) + 4;

class KeyRotationTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    store_->committer().start();
    auto made = store_->accounts().create_first_organisation(
        "Acme", {.email = "a@example.com", .name = "A", .roles = {}, .password = std::nullopt});
    ASSERT_TRUE(made) << made.error().message;
    organisation_ = made->id;
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    bundle.flows.push_back({"Main", {{"name", "Main"}, {"nodes", nlohmann::json::array()}}});
    bundle.connections = {{"crm", "httpBearer", {{"token", "crm secret"}}, {{"token", "${T}"}}}};
    for (std::size_t i = 0; i < endpoint_count; ++i) {
      model::BundleEndpoint endpoint;
      endpoint.name = "e" + std::to_string(i);
      endpoint.flow = "Main";
      endpoint.webhook = {{"http://127.0.0.1/", secret(i), "${S}"}};
      bundle.endpoints.push_back(endpoint);
    }
    // Imports the first Endpoint with another secret first, so that it has a replaced secret.
    bundle.endpoints[0].webhook[0].secret = "secret from before";
    ASSERT_TRUE(store_->assets().import_bundle(organisation_, bundle));
    bundle.endpoints[0].webhook[0].secret = secret(0);
    auto report = store_->assets().import_bundle(organisation_, bundle);
    ASSERT_TRUE(report) << report.error().message;
    connection_ = report->at("connections")[0].at("_id");
    for (const auto& each : report->at("endpoints")) endpoints_.push_back(each.at("_id"));
    const std::string project = report->at("project").at("_id");
    const auto added = store_->committer().write_and_wait([&](Writer& writer) {
      return store_->proactive().add_tenant(writer, {.id = tenant_, .project_id = project});
    });
    ASSERT_TRUE(added) << added.error().message;
    tenant_secret_ = store_->proactive().tenant_secret(tenant_).value();
  }

  static std::string secret(std::size_t i) { return "secret " + std::to_string(i); }

  void expect_all_secrets() {
    const auto fields = store_->assets().connection_secrets(connection_);
    ASSERT_TRUE(fields) << fields.error().message;
    EXPECT_EQ(nlohmann::json::parse(fields->fields).at("token"), "crm secret");
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      const auto found = store_->assets().webhook_secrets(endpoints_[i]);
      ASSERT_TRUE(found && found->current) << i;
      EXPECT_EQ(*found->current, secret(i));
      EXPECT_EQ(found->previous.has_value(), i == 0);
      EXPECT_EQ(found->previous.value_or(secret(0)), i == 0 ? "secret from before" : secret(0));
    }
    const auto tenant = store_->proactive().tenant_secret(tenant_);
    ASSERT_TRUE(tenant) << tenant.error().message;
    EXPECT_EQ(*tenant, tenant_secret_);
  }

  // The columns of any table with values that the first key has sealed.
  std::vector<std::string> columns_of_the_first_key() {
    std::vector<std::string> found;
    const auto searched = store_->committer().write_and_wait([&](Writer& writer) {
      std::vector<std::pair<std::string, std::string>> columns;
      writer.connection().rows(
          [&](std::string table, std::string column) {
            columns.emplace_back(std::move(table), std::move(column));
          },
          writer.connection().dialect() == Dialect::sqlite
              ? "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
                " WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%'"
              : "SELECT table_name, column_name FROM information_schema.columns"
                " WHERE table_schema = current_schema()");
      for (const auto& [table, column] : columns) {
        const auto has_some = writer.connection().value<std::int64_t>(
            "SELECT 1 FROM \"" + table + "\" WHERE CAST(\"" + column +
            "\" AS TEXT) LIKE '1.1.%' LIMIT 1");
        if (has_some) found.push_back(table + "." + column);
      }
      return model::Result<void>();
    });
    EXPECT_TRUE(searched) << searched.error().message;
    return found;
  }

  std::string key_file() {
    std::ifstream file(folder_.path() / "master.key");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::string organisation_;
  std::string connection_;
  std::vector<std::string> endpoints_;
  const std::string tenant_ = model::new_id();
  std::string tenant_secret_;
};

TEST_F(KeyRotationTest, AllValuesAreSealedByTheNewKeyAlone) {
  const auto before = key_file();
  EXPECT_EQ(columns_of_the_first_key().size(), 6U);
  const auto report = store_->key_rotation().rotate();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->key, 2U);
  EXPECT_EQ(report->resealed, sealed_values);
  EXPECT_EQ(key_file().find(before), std::string::npos) << "the old key is in the file";
  EXPECT_EQ(columns_of_the_first_key(), std::vector<std::string>());
  expect_all_secrets();
  open();  // opens with the keys in the file
  expect_all_secrets();
}

TEST_F(KeyRotationTest, RotationThatWasCutShortGoesOn) {
  {
    auto sealer = Sealer::open(folder_.path() / "master.key");
    ASSERT_TRUE(sealer->add_key());  // the steps of a process before its end
  }
  open();
  ASSERT_TRUE(store_->key_rotation().is_unfinished());
  expect_all_secrets();
  const auto report = store_->key_rotation().resume();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->resealed, sealed_values);
  EXPECT_FALSE(store_->key_rotation().is_unfinished());
  open();
  EXPECT_FALSE(store_->key_rotation().is_unfinished());
  EXPECT_EQ(store_->key_rotation().resume()->resealed, 0);
  expect_all_secrets();
}

TEST_F(KeyRotationTest, OldKeyStaysWhileAValueCanNotBeResealed) {
  const auto old_key = key_file();
  const auto damaged = store_->committer().write_and_wait([&](Writer& writer) {
    writer.connection().run("UPDATE endpoints SET webhook_secret = '1.1.AAAA' WHERE id = :i",
                            endpoints_[7]);
    return model::Result<void>();
  });
  ASSERT_TRUE(damaged);
  const auto report = store_->key_rotation().rotate();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, model::Errc::internal);
  EXPECT_NE(key_file().find(old_key), std::string::npos);
  EXPECT_TRUE(store_->key_rotation().hold()) << "otherwise no backup would run again";
}

TEST_F(KeyRotationTest, NoneRunsWhileItIsHeldAndOneThatHasToGoOnIsNotHeld) {
  {
    const auto held = store_->key_rotation().hold();
    ASSERT_TRUE(held) << held.error().message;
    std::thread([&] {
      EXPECT_EQ(store_->key_rotation().rotate().error().code, model::Errc::conflict);
    }).join();
  }
  EXPECT_TRUE(store_->key_rotation().rotate());
  EXPECT_TRUE(store_->key_rotation().hold());
  ASSERT_TRUE(Sealer::open(folder_.path() / "master.key")->add_key());
  open();
  EXPECT_EQ(store_->key_rotation().hold().error().code, model::Errc::conflict);
  ASSERT_TRUE(store_->key_rotation().resume());
  EXPECT_TRUE(store_->key_rotation().hold());
}

TEST_F(KeyRotationTest, StoreOfAnotherKeyIsRefused) {
  store_.reset();
  std::filesystem::remove(folder_.path() / "master.key");
  ASSERT_TRUE(Sealer::create_key_file(folder_.path() / "master.key"));
  const auto opened = Store::open(place_.store(), clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, model::Errc::conflict);
}

TEST_F(KeyRotationTest, KeyOfAServiceManagerIsTakenAndNoneIsMade) {
  store_.reset();
  const TempFolder credentials;
  std::filesystem::rename(folder_.path() / "master.key", credentials.path() / "master.key");
  auto settings = place_.store();
  settings.master_key = credentials.path() / "master.key";
  auto opened = Store::open(settings, clock_);
  ASSERT_TRUE(opened) << opened.error().message;
  store_ = *std::move(opened);
  expect_all_secrets();
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "master.key"));
  EXPECT_EQ(store_->key_rotation().rotate().error().code, model::Errc::not_supported);
}

}  // namespace
}  // namespace conversed::store
