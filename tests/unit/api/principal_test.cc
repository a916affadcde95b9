// Roles, and the parsing of credentials.
#include "api/auth/principal.h"

#include <gtest/gtest.h>

#include "api/auth/credentials.h"
#include "api/live/digest.h"

namespace conversed::api {
namespace {

Principal member_with(std::initializer_list<Role> in_project,
                      std::initializer_list<Role> in_organisation = {}) {
  Principal principal;
  principal.organisation_id = "org";
  for (const Role role : in_organisation) {
    principal.organisation_roles.emplace_back(to_string(role));
  }
  auto& roles = principal.project_roles["own"];
  for (const Role role : in_project) roles.emplace_back(to_string(role));
  return principal;
}

TEST(Principal, TheRoleOfTheProjectGrants) {
  const auto principal = member_with({Role::conversation_admin});
  EXPECT_EQ(principal.access("org", "own", Role::conversation_admin), Access::granted);
  EXPECT_EQ(principal.access("org", "own", Role::token_admin), Access::denied);
}

TEST(Principal, ProjectAdminHoldsEveryRoleOfItsProjectButNoneOfTheOrganisation) {
  const auto principal = member_with({Role::project_admin});
  for (const Role role :
       {Role::member, Role::token_admin, Role::member_manager, Role::conversation_admin,
        Role::proactive_admin, Role::connection_admin}) {
    EXPECT_EQ(principal.access("org", "own", role), Access::granted);
  }
  EXPECT_EQ(principal.access("org", "own", Role::user_admin), Access::denied);
  EXPECT_FALSE(principal.has(Role::project_admin));
}

TEST(Principal, ARoleOfAnyProjectOrOfTheOrganisationIsHeldSomewhere) {
  EXPECT_TRUE(member_with({Role::token_admin}).has_anywhere(Role::token_admin));
  EXPECT_TRUE(member_with({Role::project_admin}).has_anywhere(Role::token_admin));
  EXPECT_TRUE(member_with({}, {Role::project_admin}).has_anywhere(Role::project_admin));
  EXPECT_FALSE(member_with({Role::token_admin}).has_anywhere(Role::project_admin));
  EXPECT_FALSE(member_with({Role::project_admin}).has_anywhere(Role::user_admin));
}

TEST(Principal, ForeignProjectsAndOrganisationsAreHidden) {
  const auto principal = member_with({Role::project_admin});
  EXPECT_EQ(principal.access("org", "foreign", Role::member), Access::hidden);
  EXPECT_EQ(principal.access("other", "own", Role::member), Access::hidden);
}

TEST(Principal, RolesOfTheOrganisationHoldInEachOfItsProjects) {
  const auto admin = member_with({}, {Role::project_admin});
  EXPECT_EQ(admin.access("org", "any", Role::conversation_admin), Access::granted);
  EXPECT_EQ(admin.access("other", "any", Role::conversation_admin), Access::hidden);
}

TEST(Principal, ManagingUsersDoesNotOpenProjects) {
  const auto principal = member_with({}, {Role::user_admin, Role::platform_admin});
  EXPECT_EQ(principal.access("org", "any", Role::member), Access::hidden);
  EXPECT_TRUE(principal.has(Role::user_admin));
}

TEST(Principal, AMemberWithoutARoleSeesItsProject) {
  const auto principal = member_with({});
  EXPECT_EQ(principal.access("org", "own", Role::member), Access::granted);
  EXPECT_EQ(principal.access("org", "own", Role::conversation_admin), Access::denied);
}

TEST(Role, NamesComeBackAsTheyWent) {
  for (const char* name : {"projectAdmin", "tokenAdmin", "memberManager", "conversationAdmin",
                           "proactiveAdmin", "connectionAdmin", "userAdmin", "platformAdmin"}) {
    const auto role = role_from(name);
    ASSERT_TRUE(role) << name;
    EXPECT_EQ(to_string(*role), name);
  }
  EXPECT_FALSE(role_from("member"));
  EXPECT_FALSE(role_from(""));
}

TEST(Basic, ReadsAddressAndPassword) {
  const auto credentials = parse_basic("Basic YW5uQGV4YW1wbGUuY29tOnNlY3JldDpjw7ZsYQ==");
  ASSERT_TRUE(credentials);
  EXPECT_EQ(credentials->name, "ann@example.com");
  EXPECT_EQ(credentials->password, "secret:c\xC3\xB6la");
  EXPECT_TRUE(parse_basic("bASIC  YTpi"));
}

TEST(Basic, AnInvalidHeaderHasNoCredentials) {
  for (const char* header : {"", "Basic", "Basic ", "Basic !!!!", "Bearer YTpi", "Basic YQ==",
                             "Basic OmI=", "BasicYTpi", "Basic YTpiA", "Basic YT=pi"}) {
    EXPECT_FALSE(parse_basic(header)) << header;
  }
}

TEST(Digest, DependsOnTheBoundariesOfItsParts) {
  EXPECT_NE(digest({"ab", "c"}), digest({"a", "bc"}));
  EXPECT_EQ(digest({"ab", "c"}), digest({"ab", "c"}));
}

TEST(KeyedDigest, EachHasItsOwnKey) {
  const KeyedDigest one;
  const KeyedDigest two;
  EXPECT_EQ(one({"x"}), one({"x"}));
  EXPECT_NE(one({"x"}), two({"x"}));
}

}  // namespace
}  // namespace conversed::api
