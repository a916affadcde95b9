#include "store/secrets/sealer.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "store/accounts/passwords.h"
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
  EXPECT_NE(sealer->seal("connections/fields/a", "secret"), sealed) << "the nonce was used twice";
}

TEST_F(SealerTest, AKeyedHashDependsOnItsKeyPurposeAndValue) {
  auto sealer = Sealer::open(file_);
  const auto hash = sealer->keyed_hash("a", "value");
  EXPECT_EQ(Sealer::open(file_)->keyed_hash("a", "value"), hash);
  EXPECT_NE(sealer->keyed_hash("b", "value"), hash);
  EXPECT_NE(sealer->keyed_hash("a", "another"), hash);
  ASSERT_TRUE(sealer->add_key());
  EXPECT_NE(sealer->keyed_hash("a", "value"), hash);
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
  auto sealer = Sealer::open(file_);
  const auto before = sealer->seal("t/c/1", "old");
  ASSERT_TRUE(sealer->add_key());
  const auto after = sealer->seal("t/c/1", "new");
  EXPECT_TRUE(after.starts_with("1.2."));
  EXPECT_FALSE(sealer->is_current(before));
  EXPECT_TRUE(sealer->is_current(after));
  const auto reopened = Sealer::open(file_);
  for (const Sealer* each : {&std::as_const(*sealer), &*reopened}) {
    EXPECT_EQ(*each->open_sealed("t/c/1", before), "old");
    EXPECT_EQ(*each->open_sealed("t/c/1", after), "new");
    EXPECT_EQ(each->keys_in_file(), 2U);
  }
}

TEST_F(SealerTest, AKeyThatIsNotInTheFileSealsNothing) {
  auto sealer = Sealer::open(file_);
  std::filesystem::remove_all(folder_.path());
  EXPECT_EQ(sealer->add_key().error().code, model::Errc::unavailable);
  EXPECT_EQ(sealer->newest(), 1U);
  EXPECT_EQ(sealer->keys_in_file(), 1U);
}

TEST_F(SealerTest, AFullKeyFileTakesNoFurtherKey) {
  {
    std::ofstream out(file_, std::ios::trunc);
    for (int id = 1; id <= 1'000; ++id) out << id << ' ' << std::string(64, 'a') << '\n';
  }
  auto sealer = Sealer::open(file_);
  ASSERT_TRUE(sealer) << sealer.error().message;
  const auto added = sealer->add_key();
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, model::Errc::conflict);
  EXPECT_EQ(added.error().message, "the key file holds too many keys");
  EXPECT_EQ(sealer->newest(), 1'000U);
  EXPECT_EQ(Sealer::open(file_)->keys_in_file(), 1'000U);
}

TEST_F(SealerTest, LeftoversOfAReplacementAreRemovedAndNothingElse) {
  const auto leftover = file_.string() + "." + model::new_id();
  const auto mine = file_.string() + ".copy-of-2027";
  for (const auto& path : {leftover, mine}) std::filesystem::copy_file(file_, path);
  ASSERT_TRUE(Sealer::open(file_, KeyFile::handed_over));
  EXPECT_TRUE(std::filesystem::exists(leftover)) << "a folder is no leftover";
  ASSERT_TRUE(Sealer::open(file_));
  EXPECT_FALSE(std::filesystem::exists(leftover)) << "the leftover holds old keys";
  EXPECT_TRUE(std::filesystem::exists(mine));
}

TEST_F(SealerTest, DroppedKeysOpenNothingAfterAnotherStart) {
  auto sealer = Sealer::open(file_);
  const auto before = sealer->seal("t/c/1", "old");
  ASSERT_TRUE(sealer->add_key());
  ASSERT_TRUE(sealer->drop_old_keys());
  EXPECT_EQ(*sealer->open_sealed("t/c/1", before), "old") << "values in use still open";
  const auto reopened = Sealer::open(file_);
  EXPECT_EQ(reopened->newest(), 2U);
  EXPECT_EQ(reopened->keys_in_file(), 1U);
  EXPECT_FALSE(reopened->open_sealed("t/c/1", before));
  ASSERT_TRUE(sealer->add_key());
  EXPECT_EQ(Sealer::open(file_)->keys_in_file(), 2U) << "a dropped key is in the file again";
}

TEST_F(SealerTest, ReplacedKeysAreKeptInAPrivateFileOfTheirOwn) {
  auto sealer = Sealer::open(file_);
  const auto before = sealer->seal("t/c/1", "old");
  ASSERT_TRUE(sealer->add_key());
  const auto kept = sealer->drop_old_keys();
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, file_.string() + ".1");
  for (const auto& file : {file_, *kept}) {
    struct stat status {};
    ASSERT_EQ(::stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << file;
  }
  EXPECT_EQ(*Sealer::open(*kept)->open_sealed("t/c/1", before), "old");
  const std::filesystem::directory_iterator files(folder_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 2) << "a further file is left";
  ASSERT_TRUE(Sealer::open(file_));
  EXPECT_TRUE(std::filesystem::exists(*kept)) << "a start removes it";
}

TEST_F(SealerTest, ReplacedKeyOverwritesNoOtherKeyOfItsNumber) {
  const auto first = file_.string() + ".1";
  ASSERT_TRUE(Sealer::create_key_file(first));  // another key
  const auto other = Sealer::open(first)->seal("t/c/1", "other");
  auto sealer = Sealer::open(file_);
  const auto before = sealer->seal("t/c/1", "old");
  ASSERT_TRUE(sealer->add_key());
  const auto kept = sealer->drop_old_keys();
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, first + ".2");
  EXPECT_EQ(*Sealer::open(*kept)->open_sealed("t/c/1", before), "old");
  EXPECT_EQ(*Sealer::open(first)->open_sealed("t/c/1", other), "other");
}

TEST_F(SealerTest, HandedOverKeyFileIsOnlyRead) {
  ::chmod(file_.c_str(), 0400);
  auto sealer = Sealer::open(file_, KeyFile::handed_over);
  ASSERT_TRUE(sealer);
  EXPECT_EQ(sealer->add_key().error().code, model::Errc::not_supported);
  EXPECT_EQ(Sealer::open(file_)->keys_in_file(), 1U);
}

TEST_F(SealerTest, DamagedKeyFileIsRefused) {
  for (const char* text : {"", "1", "1 abcd\n", "x y\n", "1 zz\n2 zz\n"}) {
    std::ofstream(file_, std::ios::trunc) << text;
    EXPECT_EQ(Sealer::open(file_).error().code, model::Errc::invalid_argument) << text;
  }
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

// `cheap`: the variable that asks for the least cost.
model::Result<std::string> hashed_with(const char* cheap) {
  const char* const given = std::getenv("CONVERSED_TEST_CHEAP_PASSWORDS");
  const std::string kept = given == nullptr ? "" : given;
  ::setenv("CONVERSED_TEST_CHEAP_PASSWORDS", cheap, 1);
  auto hash = hash_password("correct horse");
  ::setenv("CONVERSED_TEST_CHEAP_PASSWORDS", kept.c_str(), 1);
  return hash;
}

TEST(Passwords, OnlyTheRightPasswordMatches) {
  const auto hash = hashed_with("0");
  ASSERT_TRUE(hash);
  EXPECT_TRUE(hash->starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << *hash;
  EXPECT_TRUE(verify_password(*hash, "correct horse"));
  EXPECT_FALSE(verify_password(*hash, "correct horsf"));
  EXPECT_FALSE(verify_password(std::nullopt, "correct horse"));
  EXPECT_FALSE(verify_password(std::nullopt, "no user has this password"));
  EXPECT_FALSE(hash_password(""));
}

TEST(Passwords, AreHashedAtTheFullCostUnlessATestAsksForLess) {
  for (const char* const cheap : {"", "0"}) {
    EXPECT_TRUE(hashed_with(cheap).value().starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << cheap;
  }
  const auto hash = hashed_with("1").value();
#ifdef CONVERSED_PLANTED_FAULTS
  EXPECT_TRUE(hash.starts_with("$argon2id$v=19$m=8,t=1,p=1$")) << hash;
#else
  EXPECT_TRUE(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << hash;
#endif
  EXPECT_TRUE(verify_password(hash, "correct horse"));
  EXPECT_FALSE(verify_password(hash, "correct horsf"));
}

}  // namespace
}  // namespace conversed::store
