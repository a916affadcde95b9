// GET /openapi.json and GET /openapi.yaml: the OpenAPI document of all operations, these included.
// GET /schemas/bundle.json and GET /schemas/test.json: the JSON Schemas of files for editors.
#include <map>
#include <memory>
#include <utility>

#include "api/auth/oauth_parameters.h"
#include "api/openapi/description.h"
#include "api/openapi/document.h"
#include "api/operations/all.h"
#include "api/operations/operations.h"
#include "api/services.h"
#include "flows/tools/schema.h"
#include "store/model/json.h"
#include "store/runtime/guarded.h"
#include "store/yaml/writer.h"

namespace conversed::api {
namespace {

using Text = std::shared_ptr<const std::string>;
using Write = std::string (*)(const Value& document);
using namespace openapi;

// Made at the first request and kept, one for each base path: it is constant and large, and
// strangers may request it again and again.
Text text_for(const std::string& base, std::string_view path, Write write) {
  using Key = std::pair<std::string, std::string_view>;
  static model::Guarded<std::map<Key, Text>> kept;
  const Key key{base, path};
  auto text = kept.with([&](auto& texts) { return texts[key]; });
  if (text) return text;
  text = std::make_shared<const std::string>(write(document(all_operations(), base)));
  kept.with([&](auto& texts) { texts[key] = text; });
  return text;
}

Response document_as(const Call& call, const DaemonServices& services, const char* type,
                     Write write) {
  // "/new" if the request had that base path, so that a generated client uses it, too.
  const auto base = base_of(call.request.path, services.options.api.base_path);
  return {.status = status::ok,
          .content_type = type,
          .body = *text_for(std::string(base), call.operation.path, write)};
}

model::Result<Response> document_as_json(const Call& call, DaemonServices& services) {
  return document_as(call, services, "application/json; charset=utf-8",
                     [](const Value& document) { return model::json_text(document); });
}

model::Result<Response> document_as_yaml(const Call& call, DaemonServices& services) {
  return document_as(call, services, "application/yaml; charset=utf-8", yaml::write);
}

Description describe_openapi(std::string_view type) {
  return {.summary = "Get the OpenAPI document",
          .details = "A request below the base path gets the paths below the base path.",
          .answers = {{.description = "This document.", .content = {{type, free_object()}}}}};
}

// Constant, so it is made once.
template <nlohmann::ordered_json (*make)()>
model::Result<Response> file_schema(const Call& /*call*/, DaemonServices& /*services*/) {
  static const std::string schema = make().dump();
  return Response{.status = status::ok,
                  .content_type = "application/schema+json; charset=utf-8",
                  .headers = {{"Cache-Control", "public, max-age=3600"}},
                  .body = schema};
}

Description describe_file_schema(std::string_view file) {
  return {.summary = "Get the JSON Schema of " + std::string(file),
          .details =
              "Editors complete and check the file with it: `# yaml-language-server: "
              "$schema=` and this address in its first line.",
          .answers = {{.description = "A schema (JSON Schema 2020-12).",
                       .content = {{"application/schema+json", free_object()}},
                       .headers = {{"Cache-Control", "It may be kept for an hour.", text(1)}}}}};
}

}  // namespace

Operations openapi_operations() {
  static constexpr Operation rows[] = {
      for_all("getOpenApiJson", Method::get, "/openapi.json", document_as_json,
              [] { return describe_openapi("application/json"); }),
      for_all("getOpenApiYaml", Method::get, "/openapi.yaml", document_as_yaml,
              [] { return describe_openapi("application/yaml"); }),
      for_all("getBundleSchema", Method::get, "/schemas/bundle.json",
              file_schema<flows::tools::bundle_schema>,
              [] { return describe_file_schema("bundles"); }),
      for_all("getTestFileSchema", Method::get, "/schemas/test.json",
              file_schema<flows::tools::test_file_schema>,
              [] { return describe_file_schema("flow tests"); }),
  };
  return rows;
}

}  // namespace conversed::api
