// The audit trail: which requests have an entry, what the entry says, and who may read it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/audit_trail.h"
#include "store/sql/sql.h"
#include "store/text/base64.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api::test {
namespace {

using nlohmann::json;

class AuditTrailOfRequests : public testing::Test {
 protected:
  // The entries, newest first. Statuses and sign-ins are stored after their answers, so this waits
  // for a write of its own: it ends after all earlier writes.
  json entries(const HeaderList& query = {}, std::string_view email = "admin@acme.example") {
    const auto nothing = [](store::Writer&) -> model::Result<void> { return {}; };
    EXPECT_TRUE(world.store->committer().write_and_wait(nothing));
    const auto answer = world.manage(Method::get, "/management/audit", nullptr, query, email);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body).at("items");
  }
  json newest(const std::string& operation) {
    const auto items = entries({{"operation", operation}});
    return items.empty() ? json(nullptr) : items[0];
  }

  World world;
};

TEST_F(AuditTrailOfRequests, ChangeHasOneEntryThatSaysWhoWhatAndHowItEnded) {
  const auto made = world.manage(Method::post, "/management/apikeys", {{"name", "orders"}});
  ASSERT_EQ(made.status, 201) << made.body;
  const auto entry = newest("createApiKey");
  EXPECT_EQ(entry.at("actor"), "admin@acme.example");
  EXPECT_EQ(entry.at("credential"), "password");
  EXPECT_EQ(entry.at("route"), "POST /management/apikeys");
  EXPECT_EQ(entry.at("object"), "name=orders");
  EXPECT_EQ(entry.at("status"), 201);
  EXPECT_EQ(entry.at("traceId").get<std::string>().size(), 32U);
  EXPECT_EQ(entries({{"operation", "createApiKey"}}).size(), 1U);
  EXPECT_EQ(entry.dump().find(json::parse(made.body).at("key").get<std::string>()),
            std::string::npos);
}

TEST_F(AuditTrailOfRequests, EntryOfABulkJobSaysWhatTheJobChanges) {
  const auto begun = world.manage(Method::post, "/management/deadletters/discard", nullptr,
                                  {{"reason", "too slow"}, {"flow", "Main"}, {"olderThan", "2h"}},
                                  "ann@acme.example");
  ASSERT_EQ(begun.status, 202) << begun.body;
  EXPECT_EQ(
      newest("discardDeadLetters").at("object"),
      "reason=too slow, flow=Main, olderThan=2h, projectId=" + world.session_key().project_id);
}

TEST_F(AuditTrailOfRequests, EntryOfAnImportNamesTheProject) {
  const auto object_of = [&](const std::string& text) {
    (void)world.manage(Method::post, "/management/import", {{"text", text}});
    return newest("importProject").at("object").get<std::string>();
  };
  const auto name = world.store->assets().project(world.session_key().project_id).value().name;
  const auto known = "project=" + name + ", projectId=" + world.session_key().project_id;
  EXPECT_EQ(object_of("project: {name: " + name + ", locales: [en]}\n"), known);
  EXPECT_EQ(object_of("# the project\nproject:\n  locales: [en]\n  name: \"" + name + "\"\n"),
            known);
  EXPECT_EQ(object_of(R"({"project": {"name": ")" + name + R"("}})"), known);
  EXPECT_EQ(object_of("project: {name: Unknown}\n"), "project=Unknown");
  EXPECT_EQ(entries({{"about", name}, {"operation", "importProject"}}).size(), 3U);
}

TEST_F(AuditTrailOfRequests, EntriesOfAProjectsObjectsNameTheProject) {
  const auto& project = world.session_key().project_id;
  const HeaderList session{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}};
  (void)world.manage(Method::get, "/management/sessions/show", nullptr, session,
                     "ann@acme.example");
  EXPECT_EQ(newest("showSession").at("object"),
            "URLToken=" + token('a') + ", projectId=" + project);
  const auto name = world.store->assets().project(project).value().name;
  EXPECT_EQ(entries({{"about", project}, {"operation", "showSession"}}),
            entries({{"about", name}, {"operation", "showSession"}}));
}

TEST_F(AuditTrailOfRequests, EntriesAboutAnIdAreFound) {
  const auto made = world.manage(Method::post, "/management/apikeys", {{"name", "orders"}});
  const auto id = json::parse(made.body).at("_id").get<std::string>();
  world.manage(Method::post, "/management/apikeys", {{"name", "other"}});
  world.manage(Method::delete_, "/management/apikeys/" + id);
  const auto about = entries({{"about", id}});
  ASSERT_EQ(about.size(), 1U);
  EXPECT_EQ(about[0].at("operation"), "revokeApiKey");
  EXPECT_EQ(entries({{"about", about[0].at("_id").get<std::string>()}}), about);
  EXPECT_GT(entries({{"about", about[0].at("traceId").get<std::string>()}}).size(), 1U)
      << "all requests of the test have one trace";
  EXPECT_EQ(entries({{"about", std::string(24, 'x')}}), json::array());
  EXPECT_EQ(entries({{"about", "100%"}}), json::array());
  EXPECT_EQ(entries({{"about", "name=ord_rs"}}), json::array()) << "no text is a pattern";
  EXPECT_EQ(entries({{"about", "name=orders"}}).size(), 1U);
}

TEST_F(AuditTrailOfRequests, RefusedChangeHasAnEntryToo) {
  const auto id = std::string(24, 'x');
  EXPECT_EQ(world.manage(Method::delete_, "/management/apikeys/" + id).status, 404);
  const auto entry = newest("revokeApiKey");
  EXPECT_EQ(entry.at("object"), "keyId=" + id);
  EXPECT_EQ(entry.at("status"), 404);
}

TEST_F(AuditTrailOfRequests, ReadOfAConversationHasAnEntryAndAListHasNone) {
  world.put_session();
  const HeaderList names{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}};
  const auto shown =
      world.manage(Method::get, "/management/sessions/show", nullptr, names, "ann@acme.example");
  ASSERT_EQ(shown.status, 200) << shown.body;
  const auto entry = newest("showSession");
  EXPECT_EQ(entry.at("actor"), "ann@acme.example");
  EXPECT_EQ(entry.at("userId"), "u");
  EXPECT_EQ(entry.at("sessionId"), "s");
  EXPECT_TRUE(newest("listUsers").is_null());
}

TEST_F(AuditTrailOfRequests, ReadsThatFollowEachOtherAreOneView) {
  const auto show = [&](const char* session, const char* email = "ann@acme.example") {
    const HeaderList names{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", session}};
    return world.manage(Method::get, "/management/sessions/show", nullptr, names, email).status;
  };
  const auto views = [&] { return entries({{"operation", "showSession"}}).size(); };
  EXPECT_EQ(show("s"), 404);
  EXPECT_EQ(views(), 1U);
  world.put_session();
  EXPECT_EQ(show("s"), 200);
  EXPECT_EQ(views(), 2U) << "a read that was refused is no view";
  EXPECT_EQ(show("s"), 200);
  EXPECT_EQ(views(), 2U);
  EXPECT_EQ(show("s", "admin@acme.example"), 200);
  EXPECT_EQ(show("other"), 404);
  EXPECT_EQ(views(), 4U);
  world.steady += AuditTrail::view_time;
  EXPECT_EQ(show("s"), 200);
  EXPECT_EQ(views(), 5U);
}

TEST_F(AuditTrailOfRequests, InjectHasNone) {
  ASSERT_EQ(world.inject(message()).status, 200);
  EXPECT_TRUE(newest("inject").is_null());
}

TEST_F(AuditTrailOfRequests, ErasureRemovesTheUserFromEarlierEntries) {
  world.put_session();
  const HeaderList names{{"URLToken", token('a')}, {"userId", "u"}, {"sessionId", "s"}};
  (void)world.manage(Method::get, "/management/sessions/show", nullptr, names, "ann@acme.example");
  world.log_is_empty();
  const auto erased = world.store->first().user_data().erase(
      {world.session_key().project_id, "u"},
      {.finished = [](const model::Position&) { return true; }, .ended = {}});
  ASSERT_TRUE(erased) << erased.error().message;
  const auto entry = newest("showSession");
  EXPECT_TRUE(entry.at("userId").is_null()) << entry;
  EXPECT_TRUE(entry.at("sessionId").is_null());
}

TEST_F(AuditTrailOfRequests, SignInHasOneEntryForEachVerification) {
  (void)world.manage(Method::get, "/management/projects");
  (void)world.manage(Method::get, "/management/projects");
  const auto items = entries({{"operation", "signIn"}, {"actor", "admin@acme.example"}});
  ASSERT_EQ(items.size(), 1U) << items;
  EXPECT_EQ(items[0].at("status"), 200);
}

TEST_F(AuditTrailOfRequests, WrongPasswordHasAnEntryThatNamesKnownUsersOnly) {
  const auto wrong = [&](const std::string& credentials) {
    return world.call(
        {Method::get,
         "/management/projects",
         {{"authorization", "Basic " + text::encode_base64(credentials, text::Base64::standard)}},
         "",
         {}});
  };
  // Signs the user in for the requests below.
  (void)world.manage(Method::get, "/management/projects");
  EXPECT_EQ(wrong("ann@acme.example:not this one").status, 401);
  EXPECT_EQ(wrong("my secret password:").status, 401);
  const auto items = entries({{"operation", "signIn"}});
  ASSERT_EQ(items.size(), 3U) << items;
  EXPECT_TRUE(items[0].at("actor").is_null());
  EXPECT_EQ(items[0].at("status"), 401);
  EXPECT_EQ(items[1].at("actor"), "ann@acme.example");
  EXPECT_EQ(items.dump().find("my secret"), std::string::npos);
}

TEST_F(AuditTrailOfRequests, OthersMayNotReadIt) {
  EXPECT_EQ(world.manage(Method::get, "/management/audit", nullptr, {}, "tom@acme.example").status,
            403);
}

TEST_F(AuditTrailOfRequests, EntriesCannotBeEdited) {
  (void)world.manage(Method::post, "/management/apikeys", {{"name", "orders"}});
  for (const char* sql :
       {"UPDATE audit SET actor = 'x'", "UPDATE audit SET status = 500 WHERE status IS NOT NULL",
        "UPDATE audit SET subject_user = 'x'"}) {
    const auto edited =
        world.store->committer().write_and_wait([&](store::Writer& writer) -> model::Result<void> {
          writer.connection().run(sql);
          return {};
        });
    EXPECT_FALSE(edited) << sql;
  }
}

}  // namespace
}  // namespace conversed::api::test
