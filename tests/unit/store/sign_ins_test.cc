#include "store/accounts/sign_ins.h"

#include <chrono>

#include "store/sql/database.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

class SignInsTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    const auto made = store_->accounts().create_first_organisation(
        "Acme", {.email = "Ann@acme.example", .roles = {"userAdmin"}});
    ASSERT_TRUE(made) << made.error().message;
    organisation_ = made->id;
    ann_ = store_->accounts().user_by_email(made->id, "ann@acme.example")->id;
  }

  // Notes a sign-in and waits until earlier notes are committed.
  void note(const std::string& address) {
    store_->sign_ins().note(ann_, address, clock_.now());
    ASSERT_TRUE(
        store_->committer().write_and_wait([](Writer&) -> model::Result<void> { return {}; }));
  }
  bool knows(const std::string& address, const std::string& email = "ann@ACME.example") {
    return store_->sign_ins().knows(email, address);
  }

  std::string organisation_;
  std::string ann_;
};

TEST_F(SignInsTest, AnAddressIsKnownFromItsFirstSignInOnAlsoAfterARestart) {
  EXPECT_FALSE(knows("192.0.2.1"));
  note("192.0.2.1");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(knows("192.0.2.1"));
    EXPECT_FALSE(knows("192.0.2.2"));
    EXPECT_FALSE(knows("192.0.2.1", "tom@acme.example"));
    open();
  }
}

TEST_F(SignInsTest, TheNewestAddressesStay) {
  note("old");
  for (std::size_t i = 0; i < SignIns::max_addresses; ++i) {
    clock_.advance(std::chrono::seconds(1));
    note("192.0.2." + std::to_string(i));
  }
  EXPECT_FALSE(knows("old"));
  EXPECT_TRUE(knows("192.0.2.0"));
}

TEST_F(SignInsTest, AnAddressThatIsUsedIsRenewedEachDay) {
  note("home");
  clock_.advance(std::chrono::hours(25));
  for (std::size_t i = 1; i < SignIns::max_addresses; ++i) {
    note("192.0.2." + std::to_string(i));
  }
  clock_.advance(std::chrono::seconds(1));
  note("home");
  clock_.advance(std::chrono::seconds(1));
  note("new");
  EXPECT_TRUE(knows("home"));
}

}  // namespace
}  // namespace conversed::store
