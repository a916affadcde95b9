// The OpenAPI document is complete, agrees with the operation table and the router, and is served.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "api/openapi/document.h"
#include "store/yaml/reader.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/documented.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::World;

const json& document() {
  static const json parsed = json::parse(openapi::document(all_operations(), "").dump());
  return parsed;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Calls `visit` with the path, the method and the documented operation of each operation.
template <typename Visit>
void each_operation(const json& whole, const Visit& visit) {
  for (const auto& [path, item] : whole["paths"].items()) {
    for (const auto& [method, operation] : item.items()) visit(path, method, operation);
  }
}

std::set<std::string> names_in(const std::string& path) {
  static const std::regex name("\\{([^}]+)\\}");
  std::set<std::string> names;
  for (std::sregex_iterator at(path.begin(), path.end(), name), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

TEST(OpenApi, HasEveryOperationOfTheTableAndNoOther) {
  const json& whole = document();
  std::set<std::string> ids;
  for (const Operation* operation : all_operations()) {
    const json& item = whole["paths"][std::string(operation->path)];
    const auto method = lower(method_name(operation->method));
    ASSERT_TRUE(item.contains(method)) << operation->id;
    EXPECT_EQ(item[method]["operationId"], operation->id);
    EXPECT_TRUE(ids.insert(std::string(operation->id)).second) << operation->id;
  }
  std::size_t count = 0;
  each_operation(whole, [&](const auto&, const auto&, const json&) { ++count; });
  EXPECT_EQ(count, ids.size());
}

void expect_resolved(const json& whole, const json& node, const std::string& at) {
  if (node.is_object() && node.contains("$ref")) {
    const auto target = node["$ref"].get<std::string>();
    ASSERT_TRUE(target.starts_with("#/")) << at;
    EXPECT_TRUE(whole.contains(json::json_pointer(target.substr(1)))) << at << " " << target;
  }
  if (!node.is_structured()) return;
  for (const auto& [name, member] : node.items()) expect_resolved(whole, member, at + "/" + name);
}

TEST(OpenApi, EveryChangeDocumentsAnUnknownOutcome) {
  each_operation(document(), [](const auto& path, const auto& method, const json& operation) {
    if (method != "get") {
      EXPECT_TRUE(operation["responses"].contains("504")) << method << " " << path;
    }
  });
}

TEST(OpenApi, AllReferencesResolve) {
  const json& whole = document();
  expect_resolved(whole, whole, "");
  EXPECT_EQ(whole.dump().find(openapi::component_mark), std::string::npos);
  EXPECT_EQ(whole["openapi"], "3.1.0");
  EXPECT_EQ(whole["info"]["version"], "2026.16.0");
}

TEST(OpenApi, PathsDeclareTheirParameters) {
  each_operation(document(), [](const auto& path, const auto& method, const json& operation) {
    std::set<std::string> declared;
    std::set<std::string> all;
    for (const json& parameter : operation.value("parameters", json::array())) {
      const std::string name = parameter["name"];
      const std::string in = parameter["in"];
      EXPECT_TRUE(all.insert(in + " " + name).second) << path << " " << name;
      EXPECT_TRUE(parameter.contains("schema")) << path << " " << name;
      if (in != "path") continue;
      EXPECT_EQ(parameter["required"], true) << path << " " << name;
      declared.insert(name);
    }
    EXPECT_EQ(declared, names_in(path)) << method;
  });
}

TEST(OpenApi, EveryOperationSaysWhatItIsAndAnswers) {
  const json& whole = document();
  std::set<std::string> tags;
  for (const json& tag : whole["tags"]) tags.insert(tag["name"].get<std::string>());
  each_operation(whole, [&](const auto& path, const auto&, const json& operation) {
    EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << path;
    EXPECT_TRUE(tags.contains(operation["tags"][0].get<std::string>())) << path;
    const std::string first = operation["responses"].begin().key();
    EXPECT_TRUE(first.starts_with("2") || first == "302") << path;
    for (const char* status : {"400", "413", "429", "500", "503"}) {
      EXPECT_TRUE(operation["responses"].contains(status)) << path << " " << status;
    }
  });
}

TEST(OpenApi, LinksLeadToParameters) {
  const json& whole = document();
  std::map<std::string, std::set<std::string>> parameters;
  each_operation(whole, [&](const auto&, const auto&, const json& operation) {
    for (const json& each : operation.value("parameters", json::array())) {
      parameters[operation["operationId"]].insert(each["name"].get<std::string>());
    }
  });
  int links = 0;
  each_operation(whole, [&](const auto& path, const auto&, const json& operation) {
    for (const auto& [status, response] : operation["responses"].items()) {
      const json followed = response.value("links", json::object());
      for (const auto& [name, link] : followed.items()) {
        ++links;
        for (const auto& [parameter, value] : link["parameters"].items()) {
          EXPECT_TRUE(parameters[link["operationId"]].contains(parameter)) << path << " " << name;
        }
      }
    }
  });
  EXPECT_GT(links, 0);
}

TEST(OpenApi, SecurityIsThatOfTheTable) {
  const json& whole = document();
  for (const Operation* operation : all_operations()) {
    const json& security = whole["paths"][std::string(operation->path)]
                                [lower(method_name(operation->method))]["security"];
    std::set<std::string> schemes;
    for (const json& choice : security) {
      const std::string name = choice.items().begin().key();
      EXPECT_TRUE(whole["components"]["securitySchemes"].contains(name)) << name;
      schemes.insert(name);
    }
    switch (operation->credential) {
      case Credential::open:
        EXPECT_TRUE(security.is_array() && security.empty()) << operation->id;
        break;
      case Credential::basic:
        EXPECT_EQ(schemes, std::set<std::string>{"BasicAuth"}) << operation->id;
        break;
      case Credential::client:
        EXPECT_EQ(schemes, (std::set<std::string>{"APIKeyHeader", "APIKeyQueryParam",
                                                  "ContactCenterTokenHeader", "OAuth2"}))
            << operation->id;
        break;
    }
  }
}

// The path with sample values for its parameters.
std::string filled(const std::string& path) {
  static const std::regex token("\\{URLToken\\}");
  static const std::regex name("\\{[^}]+\\}");
  return std::regex_replace(std::regex_replace(path, token, test::token('a')), name,
                            std::string(24, 'x'));
}

TEST(OpenApi, TheRouterAnswersTheMethodsThatAreDocumented) {
  World world;
  const json& whole = document();
  for (const auto& [path, item] : whole["paths"].items()) {
    std::set<std::string> documented{"OPTIONS"};
    for (const auto& [method, operation] : item.items()) {
      std::string upper = method;
      for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      documented.insert(std::move(upper));
    }
    if (documented.contains("GET")) documented.insert("HEAD");
    for (const char* base : {"", "/new"}) {
      const auto answer = world.call({Method::options, base + filled(path), {}, "", {}});
      const auto allowed = test::header(answer, "Access-Control-Allow-Methods");
      static const std::regex word("[A-Z]+");
      const std::set<std::string> answered(
          std::sregex_token_iterator(allowed.begin(), allowed.end(), word),
          std::sregex_token_iterator());
      EXPECT_EQ(answered, documented) << path;
    }
  }
}

TEST(OpenApi, IsServedForTheBaseThatTheClientCameBy) {
  World world;
  for (const auto& [base, server] : {std::pair{"", "/"}, std::pair{"/new", "/new"}}) {
    const auto answer = world.call({Method::get, std::string(base) + "/openapi.json", {}, "", {}});
    ASSERT_EQ(answer.status, 200);
    EXPECT_EQ(answer.content_type, "application/json; charset=utf-8");
    const json whole = json::parse(answer.body);
    EXPECT_EQ(whole["servers"][0]["url"], server);
    const json& flows = whole["components"]["securitySchemes"]["OAuth2"]["flows"];
    EXPECT_EQ(flows["password"]["tokenUrl"], std::string(base) + "/auth/oauth2/token");
    EXPECT_EQ(flows["authorizationCode"]["scopes"], json::object());
  }
}

TEST(OpenApi, IsServedAsYaml) {
  World world;
  const auto answer = world.call({Method::get, "/openapi.yaml", {}, "", {}});
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "application/yaml; charset=utf-8");
  EXPECT_TRUE(answer.body.starts_with("openapi: \"3.1.0\"\ninfo:\n  title: conversed\n"));
  const auto read =
      yaml::read(answer.body, yaml::Schema::core, {.max_depth = 64, .max_memory = 128U << 20U});
  ASSERT_TRUE(read.faults.empty()) << read.faults.front().message;
  EXPECT_EQ(read.root->to_json(),
            json::parse(world.call({Method::get, "/openapi.json", {}, "", {}}).body));
}

TEST(OpenApi, SchemasOfFilesAreServedToEveryoneAndMayBeKept) {
  World world;
  for (const auto* path : {"/schemas/bundle.json", "/new/schemas/test.json"}) {
    const auto answer = world.call({Method::get, path, {}, "", {}});
    ASSERT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.content_type, "application/schema+json; charset=utf-8");
    EXPECT_EQ(test::header(answer, "Cache-Control"), "public, max-age=3600");
    const json schema = json::parse(answer.body);
    EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    EXPECT_EQ(schema["additionalProperties"], false);
  }
}

TEST(OpenApi, OperationsOfTheVersionEndWithIt) {
  each_operation(document(), [](const std::string& path, const auto&, const json& operation) {
    EXPECT_EQ(operation["operationId"].get<std::string>().ends_with("_2_0"),
              path.starts_with("/v2.0/"))
        << path;
  });
}

// Calls `visit` for each schema and each other object in the node.
template <typename Visit>
void each_object(const json& node, const std::string& at, const Visit& visit) {
  if (node.is_object()) visit(node, at);
  if (!node.is_structured()) return;
  for (const auto& [name, member] : node.items()) {
    if (name != "example" && name != "examples") each_object(member, at + "/" + name, visit);
  }
}

// Client generators make a type for each choice that stands beside properties. They make an empty
// type of an object without properties.
TEST(OpenApi, GeneratorsUnderstandItsObjects) {
  each_object(document(), "", [](const json& schema, const std::string& at) {
    const bool has_properties = schema.contains("properties") && schema.contains("type");
    EXPECT_FALSE(has_properties && (schema.contains("anyOf") || schema.contains("oneOf"))) << at;
    if (schema.value("type", json()) == "object") {
      EXPECT_TRUE(schema.contains("properties") || schema.contains("additionalProperties")) << at;
    }
  });
}

// Go's constructor of `Token` is `NewToken`. Generators for Go, Java and Rust read a text without
// its type as an object.
TEST(OpenApi, GeneratorsUnderstandItsNamesAndConstants) {
  const json& schemas = document()["components"]["schemas"];
  for (const auto& [name, schema] : schemas.items()) {
    EXPECT_FALSE(schemas.contains("New" + name)) << name;
  }
  each_object(document(), "", [](const json& schema, const std::string& at) {
    const bool is_constant = schema.contains("const") && schema["const"].is_string();
    if (is_constant) EXPECT_EQ(schema.value("type", json()), "string") << at;
  });
}

TEST(OpenApi, TimesHaveTheirForms) {
  const json& whole = document();
  const json& times = whole["components"]["schemas"]["ScheduleTimes"]["properties"];
  const auto fits = [&](const char* name, const std::string& text) {
    return std::regex_search(text, std::regex(times[name]["pattern"].get<std::string>()));
  };
  for (const char* at : {"2027-03-28T14:30", "2028-02-29t14:30:59Z", "2027-03-28 14:30+05:30"}) {
    EXPECT_TRUE(fits("at", at)) << at;
  }
  for (const char* at : {"0", "2027-03-28", "2027-02-30T14:30", "2027-03-28T24:00"}) {
    EXPECT_FALSE(fits("at", at)) << at;
  }
  EXPECT_TRUE(fits("in", "20m"));
  EXPECT_FALSE(fits("in", "20"));
  for (const char* cron : {"@daily", "0 9 * * mon-fri", "*/5 1,2 1-9/2 * 7"}) {
    EXPECT_TRUE(fits("cron", cron)) << cron;
  }
  EXPECT_FALSE(fits("cron", "0 9 * *"));
}

// All tests of operations rely on this check.
TEST(OpenApi, UndocumentedAnswersAreFound) {
  const std::string count = "/v2.0/organisations/chunkcount";
  const auto found = [&](int status, std::string type, std::string body) {
    return !test::undocumented(Method::get, count,
                               {.status = status,
                                .content_type = std::move(type),
                                .headers = {},
                                .body = std::move(body)})
                .empty();
  };
  EXPECT_FALSE(found(200, "application/json; charset=utf-8", R"({"chunkCount":3})"));
  EXPECT_TRUE(found(206, "application/json", R"({"chunkCount":3})")) << "status";
  EXPECT_TRUE(found(200, "text/html", R"({"chunkCount":3})")) << "media type";
  EXPECT_TRUE(found(200, "application/json", R"({"chunkCount":"3"})")) << "type";
  EXPECT_TRUE(found(200, "application/json", R"({"chunkCount":-1})")) << "range";
  EXPECT_TRUE(found(200, "application/json", R"({})")) << "required";
  EXPECT_TRUE(found(200, "application/json", R"({"chunkCount":3,"more":1})")) << "member";
  EXPECT_TRUE(found(404, "application/problem+json", "{}")) << "error";
  const Response ok{.status = 200, .content_type = "text/plain", .headers = {}, .body = "ok"};
  EXPECT_FALSE(test::undocumented(Method::get, "/hidden", ok).empty()) << "route";
}

}  // namespace
}  // namespace conversed::api
