#include "config/load.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "config/keys.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/config/equal_settings.h"

namespace conversed::config {
namespace {

using namespace std::chrono_literals;

class Load : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path write(const std::string& text) const {
    auto file = folder_ / "conversed.yaml";
    std::ofstream(file) << text;
    return file;
  }

  [[nodiscard]] tl::expected<Settings, std::vector<Problem>> load_text(
      const std::string& text, Environment environment = {}) const {
    return load({.file = write(text), .environment = std::move(environment), .root = true});
  }

  // The problems of the text, without the folder's name.
  [[nodiscard]] std::string problems_of(const std::string& text,
                                        Environment environment = {}) const {
    return shown(load_text(text, std::move(environment)));
  }

  [[nodiscard]] std::string shown(
      const tl::expected<Settings, std::vector<Problem>>& loaded) const {
    if (loaded) return "";
    std::string text = format_problems(loaded.error());
    const std::string prefix = folder_.path().string() + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

  tests::TempFolder folder_;
};

TEST_F(Load, WithoutFileAndEnvironmentGivesTheDefaults) {
  const auto loaded = load({.file = std::nullopt, .environment = {}, .root = true});
  ASSERT_TRUE(loaded) << format_problems(loaded.error());
  Settings expected;
  expected.data_dir = "/var/lib/conversed";
  expected.workers = 2;
  EXPECT_EQ(*loaded, expected);
}

TEST_F(Load, WithoutANumberEachCoreHasAWorkerWithinBounds) {
  const auto workers = [&](unsigned cores, const std::string& file) {
    return load({.file = write(file), .environment = {}, .root = true, .cores = cores})->workers;
  };
  EXPECT_EQ(workers(8, "workers: 0\n"), 8U);
  EXPECT_EQ(workers(1, "workers: 0\n"), 2U);
  EXPECT_EQ(workers(64, "workers: 0\n"), 16U);
  EXPECT_EQ(workers(8, "limits: {in_flight: 3}\n"), 3U);
  EXPECT_EQ(workers(8, "workers: 1\n"), 1U);
}

TEST_F(Load, TheFileChangesTheDefaults) {
  const auto loaded = load_text(R"(
data_dir: /srv/conversed
workers: 2
roles: [scheduler, worker, api]
listen: {address: "::", port: 0}
api:
  base_path: ""
  idle_timeout: 2m
  max_body: 1MiB
limits:
  # every key of a group may be left out
egress:
  allow: [10.0.0.0/8, CRM.Example.com, "::1"]
proactive: {enabled: false}
log: {format: text, level: debug}
)");
  ASSERT_TRUE(loaded) << format_problems(loaded.error());
  EXPECT_EQ(loaded->data_dir, "/srv/conversed");
  EXPECT_EQ(loaded->workers, 2U);
  EXPECT_EQ(loaded->roles, (std::vector{Role::api, Role::worker, Role::scheduler}));
  EXPECT_EQ(loaded->listen.address, "::");
  EXPECT_EQ(loaded->listen.port, 0U);
  EXPECT_EQ(loaded->api.base_path, "");
  EXPECT_EQ(loaded->api.idle_timeout, 2min);
  EXPECT_EQ(loaded->api.max_body_bytes, 1024U * 1024U);
  EXPECT_EQ(loaded->egress.allow,
            (std::vector<std::string>{"10.0.0.0/8", "crm.example.com", "::1"}));
  EXPECT_FALSE(loaded->proactive.enabled);
  EXPECT_EQ(loaded->log.format, LogFormat::text);
  EXPECT_EQ(loaded->log.level, LogLevel::debug);
}

TEST_F(Load, TheEnvironmentWinsOverTheFile) {
  const auto loaded = load_text("listen: {port: 1}\negress: {allow: [a]}\n",
                                {{"CONVERSED_LISTEN_PORT", "2"},
                                 {"CONVERSED_EGRESS_ALLOW", "10.0.0.0/8, b"},
                                 {"CONVERSED_QUEUE_KAFKA_BOOTSTRAP_SERVERS", "k1:9092,k2:9092"},
                                 {"PATH", "/bin"}});
  ASSERT_TRUE(loaded) << format_problems(loaded.error());
  EXPECT_EQ(loaded->listen.port, 2U);
  EXPECT_EQ(loaded->egress.allow, (std::vector<std::string>{"10.0.0.0/8", "b"}));
  EXPECT_EQ(loaded->queue.kafka.bootstrap_servers,
            (std::vector<std::string>{"k1:9092", "k2:9092"}));
}

TEST_F(Load, PairsKeepTheirOrderAndWhatFollowsTheFirstEqualsSign) {
  const auto loaded = load_text("queue: {kafka: {properties: [b.c=x=y, \"a=1,2\", d=]}}\n");
  ASSERT_TRUE(loaded) << format_problems(loaded.error());
  const std::vector<std::pair<std::string, Secret>> expected{
      {"b.c", Secret("x=y")}, {"a", Secret("1,2")}, {"d", Secret("")}};
  EXPECT_EQ(loaded->queue.kafka.properties, expected);
}

TEST_F(Load, EveryKeyHasAVariableThatSetsIt) {
  for (const Key& key : keys()) {
    const auto loaded =
        load({.file = std::nullopt, .environment = {{key.variable(), "\x01"}}, .root = true});
    ASSERT_FALSE(loaded) << key.path;
    ASSERT_EQ(loaded.error().size(), 1U) << format_problems(loaded.error());
    EXPECT_EQ(loaded.error()[0].file, environment_source);
    EXPECT_EQ(loaded.error()[0].path, key.variable());
  }
}

TEST_F(Load, AllProblemsAreReportedAtOnceInOrder) {
  EXPECT_EQ(
      problems_of("workers: 2000\n"
                  "listen:\n"
                  "  port: eighty\n"
                  "  prot: 1\n"
                  "api: {max_body: 64KB, header_timeout: 10, threads: [1]}\n"
                  "workers: 5\n"
                  "flows: 3\n"
                  "log: {level: loud}\n",
                  {{"CONVERSED_LISTEN_PRT", "1"}, {"CONVERSED_WORKERS", "many"}}),
      "conversed.yaml:1: workers: expected a whole number from 0 to 1024, got \"2000\" (too "
      "large)\n"
      "conversed.yaml:3: listen.port: expected a whole number from 0 to 65535, got \"eighty\"\n"
      "conversed.yaml:4: listen.prot: unknown key; did you mean listen.port?\n"
      "conversed.yaml:5: api.max_body: expected a size from 1KiB to 16MiB, in bytes, KiB, MiB or "
      "GiB, got \"64KB\"\n"
      "conversed.yaml:5: api.header_timeout: expected a duration from 100ms to 10m, such as "
      "500ms, 10s, 5m, 2h or 3d, got \"10\"\n"
      "conversed.yaml:5: api.threads: expected a whole number from 1 to 256, got a list\n"
      "conversed.yaml:6:1: the key \"workers\" is given twice, first in line 1\n"
      "conversed.yaml:7: flows: expected keys and values below it\n"
      "conversed.yaml:8: log.level: expected one of debug, info, warn, error, got \"loud\"\n"
      "environment: CONVERSED_LISTEN_PRT: is no setting; did you mean CONVERSED_LISTEN_PORT?\n"
      "environment: CONVERSED_WORKERS: expected a whole number from 0 to 1024, got \"many\"\n");
}

TEST_F(Load, UnknownKeysAreErrorsWithAHint) {
  EXPECT_EQ(problems_of("lisen: {port: 1, address: x}\n"),
            "conversed.yaml:1: lisen: unknown key; did you mean listen?\n");
  EXPECT_EQ(problems_of("queue: {topic_prefix: x}\n"),
            "conversed.yaml:1: queue.topic_prefix: unknown key; did you mean "
            "queue.kafka.topic_prefix?\n");
  EXPECT_EQ(problems_of("something_else: 1\n"), "conversed.yaml:1: something_else: unknown key\n");
  EXPECT_EQ(problems_of("\"a\\nb\": 1\n"), "conversed.yaml:1: \"a\\nb\": unknown key\n");
}

TEST_F(Load, ListsAreCheckedItemByItem) {
  EXPECT_EQ(
      problems_of("egress: {allow: [10.0.0.0/8, 10.0.0.1/8]}\n"),
      "conversed.yaml:1: egress.allow: expected a list of CIDR ranges, IP addresses and host "
      "names, such as [10.0.0.0/8, crm.example.com], got \"10.0.0.0/8, 10.0.0.1/8\" (item 2 is "
      "wrong)\n");
  EXPECT_EQ(problems_of("roles: [api, api]\n"),
            "conversed.yaml:1: roles: expected a list of api, worker, scheduler, got "
            "\"api, api\" (item 2 is given twice)\n");
  EXPECT_NE(problems_of("roles: []\n"), "");
  EXPECT_NE(problems_of("roles: [[api]]\n"), "");
}

TEST_F(Load, OnlyADaemonOfAClusterMayLeaveRolesOut) {
  EXPECT_EQ(problems_of("roles: [api]\n"),
            "conversed.yaml:1: roles: must name all roles: outside a cluster (store.driver "
            "postgres) one daemon has all\n");
  EXPECT_EQ(problems_of("roles: [worker]\n"
                        "queue: {driver: kafka, kafka: {bootstrap_servers: [a:1]}}\n"
                        "store: {driver: postgres, postgres: {url: \"postgresql://h/d\"}}\n"),
            "");
}

TEST_F(Load, AKeyWithoutAValueIsNoDefault) {
  EXPECT_EQ(problems_of("workers:\n"),
            "conversed.yaml:1: workers: expected a whole number from 0 to 1024, got nothing\n");
}

TEST_F(Load, SecretsAreNeverShown) {
  const std::string yaml = problems_of("store:\n  postgres: {url: \"mysql://me:hunter2@h/d\"}\n");
  EXPECT_EQ(
      yaml,
      "conversed.yaml:2: store.postgres.url: expected a URL that begins with postgresql://, or "
      "nothing, got something else\n");
  const std::string pairs = problems_of("queue: {kafka: {properties: [hunter2]}}\n");
  EXPECT_EQ(pairs,
            "conversed.yaml:1: queue.kafka.properties: expected a list of name=value, such as "
            "[security.protocol=sasl_ssl, sasl.mechanism=SCRAM-SHA-512], got something else (item "
            "1 is wrong)\n");
  const std::string list = problems_of("store: {postgres: {url: [hunter2]}}\n");
  EXPECT_EQ(list.find("hunter2"), std::string::npos) << list;
  const std::string variable =
      problems_of("", {{"CONVERSED_STORE_POSTGRES_URL", "hunter2"}, {"CONVERSED_URL", "hunter2"}});
  EXPECT_NE(variable, "");
  EXPECT_EQ(variable.find("hunter2"), std::string::npos) << variable;
}

TEST_F(Load, ASharedStoreNeedsASharedLog) {
  EXPECT_EQ(problems_of("store: {driver: postgres, postgres: {url: \"postgresql://h/d\"}}\n"),
            "conversed.yaml:1: store.driver: postgres needs queue.driver kafka: the embedded log "
            "is one daemon's own, the store is not\n");
}

TEST_F(Load, DriversNeedTheirAddresses) {
  EXPECT_EQ(problems_of("queue: {driver: kafka}\nstore: {driver: postgres}\n"),
            "conversed.yaml: queue.kafka.bootstrap_servers: is required by queue.driver kafka\n"
            "conversed.yaml: store.postgres.url: is required by store.driver postgres\n");
  EXPECT_TRUE(
      load_text("queue: {driver: kafka, kafka: {bootstrap_servers: \"k:9092\"}}\n"
                "store: {driver: postgres, postgres: {url: \"postgresql://h/d\"}}\n"));
}

TEST_F(Load, ContradictingValuesAreReportedAtTheirPlace) {
  EXPECT_EQ(problems_of("listen: {port: 9464}\n"),
            "conversed.yaml: admin.port: is the same as listen.port (9464); the two need a port "
            "each\n");
  EXPECT_TRUE(load_text("listen: {port: 0}\nadmin: {port: 0}\n"));
  EXPECT_EQ(problems_of("oauth: {refresh_token_lifetime: 30m}\n"),
            "conversed.yaml:1: oauth.refresh_token_lifetime: is shorter than "
            "oauth.access_token_lifetime (1h)\n");
  EXPECT_EQ(problems_of("contact_center: {organisation: Shop, organisation_claim: org}\n"),
            "conversed.yaml:1: contact_center.organisation_claim: is given besides "
            "contact_center.organisation; give one of them\n");
  EXPECT_TRUE(load_text("oauth: {issuer: \"https://talk.example/new\"}\n"));
  for (const char* wrong : {"talk.example", "https://talk.example/", "https://talk.example?a"}) {
    EXPECT_NE(problems_of("oauth: {issuer: \"" + std::string(wrong) + "\"}\n"), "") << wrong;
  }
  EXPECT_EQ(problems_of("", {{"CONVERSED_WORKERS", "4"}, {"CONVERSED_LIMITS_IN_FLIGHT", "3"}}),
            "environment: CONVERSED_LIMITS_IN_FLIGHT: is smaller than workers (4), so some could "
            "never have work\n");
}

TEST_F(Load, ReservedVariablesAreNotSettings) {
  for (const std::string_view reserved : reserved_variables()) {
    const std::string name = std::string(reserved) + (reserved.ends_with('_') ? "KILL_AT" : "");
    EXPECT_EQ(problems_of("", {{name, "x"}}), "") << name;
  }
  EXPECT_NE(problems_of("", {{"CONVERSED_CONFIGX", "x"}}), "");
}

TEST_F(Load, FilesThatCantBeReadSayWhy) {
  const auto load_path = [&](const std::filesystem::path& file) {
    return shown(load({.file = file, .environment = {}, .root = true}));
  };
  EXPECT_EQ(load_path(folder_ / "none"), "none: cannot be read: No such file or directory\n");
  std::filesystem::create_directory(folder_ / "sub");
  EXPECT_EQ(load_path(folder_ / "sub"), "sub: is a folder, expected a file\n");
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(load_path(folder_ / "fifo"), "fifo: is not a regular file\n");
  EXPECT_EQ(load_path(write("#" + std::string(max_file_bytes, 'x'))),
            "conversed.yaml: is larger than 1MiB, which no settings file is\n");
  EXPECT_EQ(load_path(write("#" + std::string(max_file_bytes - 1, 'x'))), "");
  if (::geteuid() != 0) {
    const auto secret = write("");
    ASSERT_EQ(::chmod(secret.c_str(), 0), 0);
    EXPECT_EQ(load_path(secret), "conversed.yaml: cannot be read: Permission denied\n");
  }
}

TEST_F(Load, ARootThatIsNoMapIsRefused) {
  EXPECT_EQ(problems_of("- a\n"),
            "conversed.yaml:1:1: expected keys and values, such as `listen: {port: 8080}`\n");
}

class Credentials : public Load {
 protected:
  void hand_over(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  auto load_with(Environment environment) {
    return load(
        {.file = write("queue: {driver: kafka, kafka: {bootstrap_servers: \"k:9092\"}}\n"
                       "store: {driver: postgres, postgres: {url: \"postgresql://f/d\"}}\n"),
         .environment = std::move(environment),
         .root = true,
         .credentials = folder_.path()});
  }
};

TEST_F(Credentials, WinOverTheFileAndLoseToTheEnvironment) {
  EXPECT_EQ(load_with({})->store.postgres.url.reveal(), "postgresql://f/d");
  hand_over("store.postgres.url", "postgresql://c/d\n");
  EXPECT_EQ(load_with({})->store.postgres.url.reveal(), "postgresql://c/d");
  EXPECT_EQ(load_with({{"CONVERSED_STORE_POSTGRES_URL", "postgresql://e/d"}})
                ->store.postgres.url.reveal(),
            "postgresql://e/d");
}

TEST_F(Credentials, HaveTheKeyFileIfItIsThere) {
  EXPECT_EQ(load_with({})->master_key, "");
  hand_over("master.key", "");
  EXPECT_EQ(load_with({})->master_key, folder_ / "master.key");
}

TEST_F(Credentials, OfTheWrongFormAreReportedWithoutTheirValue) {
  hand_over("contact_center.secret", "hunter2");
  const auto problems = shown(load_with({}));
  EXPECT_NE(problems.find("contact_center.secret: contact_center.secret: expected"),
            std::string::npos)
      << problems;
  EXPECT_EQ(problems.find("hunter2"), std::string::npos);
}

TEST_F(Credentials, ThatAreNoSecretsAreNotRead) {
  hand_over("listen.port", "1");
  EXPECT_EQ(load_with({})->listen.port, ListenSettings().port);
}

TEST(DataDir, DependsOnTheUser) {
  const auto data_dir = [](Environment environment, bool root) {
    return load({.file = std::nullopt, .environment = std::move(environment), .root = root});
  };
  EXPECT_EQ(data_dir({{"HOME", "/root"}}, true)->data_dir, "/var/lib/conversed");
  EXPECT_EQ(data_dir({{"HOME", "/home/a"}}, false)->data_dir, "/home/a/.local/state/conversed");
  EXPECT_EQ(data_dir({{"HOME", "/home/a"}, {"XDG_STATE_HOME", "/s"}}, false)->data_dir,
            "/s/conversed");
  // The XDG Base Directory Specification says to ignore relative paths.
  EXPECT_EQ(data_dir({{"HOME", "/home/a"}, {"XDG_STATE_HOME", "s"}}, false)->data_dir,
            "/home/a/.local/state/conversed");
  EXPECT_EQ(data_dir({{"HOME", "/home/a"}, {"STATE_DIRECTORY", "/v/c:/v/d"}}, false)->data_dir,
            "/v/c");
  EXPECT_EQ(data_dir({{"STATE_DIRECTORY", "/v/c"}}, true)->data_dir, "/v/c");
  EXPECT_EQ(data_dir({{"CONVERSED_DATA_DIR", "rel"}}, false)->data_dir, "rel");
  const auto none = data_dir({}, false);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error()[0].path, "data_dir");
}

}  // namespace
}  // namespace conversed::config
