#include "store/sealer.h"

#include <sys/stat.h>

#include "store/passwords.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

class SealerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Sealer::create_key_file(file_)); }
  TempFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "master.key";
};

TEST_F(SealerTest, SealedValueOpensInItsPlaceOnly) {
  const auto sealer = Sealer::open(file_);
  const auto sealed = sealer->seal("connections/fields/a", "secret");
  EXPECT_EQ(sealed.find("secret"), std::string::npos);
  EXPECT_EQ(*sealer->open_sealed("connections/fields/a", sealed), "secret");
  EXPECT_FALSE(sealer->open_sealed("connections/fields/b", sealed));
  EXPECT_FALSE(sealer->open_sealed("connections/source/a", sealed));
  EXPECT_NE(sealer->seal("connections/fields/a", "secret"), sealed) << "nonces repeat";
}

TEST_F(SealerTest, EveryAlteredCharacterIsNoticed) {
  const auto sealer = Sealer::open(file_);
  const auto sealed = sealer->seal("t/c/1", "secret");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    auto altered = sealed;
    altered[i] = altered[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(sealer->open_sealed("t/c/1", altered)) << i;
    EXPECT_FALSE(sealer->open_sealed("t/c/1", sealed.substr(0, i))) << i;
  }
}

TEST_F(SealerTest, RotationKeepsOldValuesReadable) {
  const auto before = Sealer::open(file_)->seal("t/c/1", "old");
  ASSERT_TRUE(Sealer::add_key(file_));
  const auto sealer = Sealer::open(file_);
  const auto after = sealer->seal("t/c/1", "new");
  EXPECT_TRUE(after.starts_with("1.2."));
  EXPECT_EQ(*sealer->open_sealed("t/c/1", before), "old");
  EXPECT_EQ(*sealer->open_sealed("t/c/1", after), "new");
}

TEST_F(SealerTest, KeyFileThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0640U, 0604U, 0660U}) {
    ::chmod(file_.c_str(), mode);
    EXPECT_EQ(Sealer::open(file_).error().code, model::Errc::permission_denied) << mode;
  }
  ::chmod(file_.c_str(), 0600);
  EXPECT_TRUE(Sealer::open(file_));
}

TEST_F(SealerTest, KeyFileIsNeverOverwritten) {
  EXPECT_EQ(Sealer::create_key_file(file_).error().code, model::Errc::conflict);
  EXPECT_EQ(Sealer::open(folder_.path() / "none").error().code, model::Errc::not_found);
}

TEST(Passwords, OnlyTheRightPasswordMatches) {
  const auto hash = hash_password("correct horse");
  ASSERT_TRUE(hash);
  EXPECT_TRUE(hash->starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << *hash;
  EXPECT_TRUE(verify_password(*hash, "correct horse"));
  EXPECT_FALSE(verify_password(*hash, "correct horsf"));
  EXPECT_FALSE(verify_password(std::nullopt, "correct horse"));
  EXPECT_FALSE(verify_password(std::nullopt, "no user has this password"));
  EXPECT_FALSE(hash_password(""));
}

}  // namespace
}  // namespace conversed::store
