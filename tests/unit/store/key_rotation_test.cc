#include "store/key_rotation.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "store/sealer.h"
#include "store/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

constexpr std::size_t endpoint_count = 150;  // more than two batches

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
    auto report = store_->assets().import_bundle(organisation_, bundle);
    ASSERT_TRUE(report) << report.error().message;
    connection_ = report->at("connections")[0].at("_id");
    for (const auto& each : report->at("endpoints")) endpoints_.push_back(each.at("_id"));
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
    }
  }

  std::string key_file() {
    std::ifstream file(folder_.path() / "master.key");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::string organisation_;
  std::string connection_;
  std::vector<std::string> endpoints_;
};

TEST_F(KeyRotationTest, AllValuesAreSealedByTheNewKeyAlone) {
  const auto before = key_file();
  const auto report = store_->key_rotation().rotate();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->key, 2U);
  EXPECT_EQ(report->resealed, static_cast<std::int64_t>(endpoint_count) + 1);
  EXPECT_EQ(key_file().find(before), std::string::npos) << "the old key is still in the file";
  expect_all_secrets();
  open();  // by what the file holds now
  expect_all_secrets();
}

TEST_F(KeyRotationTest, RotationThatWasCutShortGoesOn) {
  {
    auto sealer = Sealer::open(folder_.path() / "master.key");
    ASSERT_TRUE(sealer->add_key());  // all that a process did before its end
  }
  open();
  ASSERT_TRUE(store_->key_rotation().is_unfinished());
  expect_all_secrets();
  const auto report = store_->key_rotation().resume();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->resealed, static_cast<std::int64_t>(endpoint_count) + 1);
  EXPECT_FALSE(store_->key_rotation().is_unfinished());
  open();
  EXPECT_FALSE(store_->key_rotation().is_unfinished());
  EXPECT_EQ(store_->key_rotation().resume()->resealed, 0);
  expect_all_secrets();
}

TEST_F(KeyRotationTest, OldKeyStaysWhileAValueNeedsItThatCanNotBeSealedAnew) {
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
}

TEST_F(KeyRotationTest, StoreOfAnotherKeyIsRefused) {
  store_.reset();
  std::filesystem::remove(folder_.path() / "master.key");
  ASSERT_TRUE(Sealer::create_key_file(folder_.path() / "master.key"));
  const auto opened = Store::open({.data_dir = folder_.path()}, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, model::Errc::conflict);
}

TEST_F(KeyRotationTest, KeyOfAServiceManagerIsTakenAndNoneIsMade) {
  store_.reset();
  const TempFolder credentials;
  std::filesystem::rename(folder_.path() / "master.key", credentials.path() / "master.key");
  auto opened = Store::open({.data_dir = folder_.path(),
                             .master_key = credentials.path() / "master.key"},
                            clock_);
  ASSERT_TRUE(opened) << opened.error().message;
  store_ = *std::move(opened);
  expect_all_secrets();
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "master.key"));
  EXPECT_EQ(store_->key_rotation().rotate().error().code, model::Errc::not_supported);
}

}  // namespace
}  // namespace conversed::store
