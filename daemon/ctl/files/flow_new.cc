#include "daemon/ctl/files/flow_new.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "daemon/ctl/files/text_file.h"
#include "daemon/ctl/output/output.h"
#include "flows/bundle/loader.h"
#include "flows/tools/schema.h"

namespace conversed::ctl {
namespace {

// The folder of the schemas, beside the files.
constexpr const char* schema_folder = ".conversed";

// The first line of a file, by which editors find its schema.
std::string schema_line(const char* name) {
  return std::string("# yaml-language-server: $schema=") + schema_folder + '/' + name + '\n';
}

constexpr std::string_view bundle_head =
    R"(# A bundle: Flows and all that they use. `conversectl flow check` lists its problems,
# `flow chat` talks to it, `flow test` runs the conversations of its test file.
conversed: 1
)";

constexpr std::string_view bundle_body = R"(
flows:
  - name: Orders
    nodes:                         # Nodes run from the top; docs/flows/nodes.md describes each type
      - say: "Hello {{profile.name ?? 'there'}}!"
      - question:                  # waits for the answer
          text: "What is your order number?"
          type: integer
          storeIn: context.order   # later texts and conditions read it
          onNoAnswer:              # the user gave no number several times
            - say: "Without a number I can't find your order."
            - stop: true
      - if: context.order < 1000
        then:
          - say: "Order {{context.order}} is an old one. Please call us."
        else:
          - say: "Order {{context.order}} is on its way."

endpoints:                         # the entrances for users
  - {name: web, flow: Orders}
)";

constexpr std::string_view tests = R"(tests:
  - name: Tells where the order is
    profile: {name: Ann}
    steps:
      - user: Where is my order?
        expect: {text: [Hello Ann!, "What is your order number?"]}
      - user: "1234"
        expect: {text: Order 1234 is on its way., context: {order: 1234}, node: ""}
  - name: Sends old orders to the phone
    steps:
      - user: Hi
      - user: "17"
        expect: {text: /call us/}
)";

}  // namespace

int flow_new(const std::string& file, bool json) {
  std::filesystem::path path(file);
  if (path.extension() != ".yaml" && path.extension() != ".yml") path += ".yaml";
  std::filesystem::path name = path.stem();
  if (name.extension() == ".flow") name = name.stem();
  const auto test_path = path.parent_path() / (name.string() + ".test.yaml");
  const auto quoted = [](const std::filesystem::path& part) {
    return nlohmann::json(part.string()).dump();  // a text of JSON is one of YAML, too
  };
  std::string bundle = schema_line("bundle.json");
  bundle.append(bundle_head)
      .append("project: {name: ")
      .append(quoted(name))
      .append("}\n")
      .append(bundle_body);
  if (const auto loaded = flows::load_bundle(bundle, path.string(), {}); !loaded) {
    return failed({model::Errc::invalid_argument, flows::to_string(loaded.error())});
  }
  if (auto written = write_new_file(path.string(), bundle); !written) {
    return failed(written.error());
  }
  const auto test_file =
      schema_line("test.json") + "bundle: " + quoted(path.filename()) + '\n' + std::string(tests);
  if (auto written = write_new_file(test_path.string(), test_file); !written) {
    return failed(written.error());
  }
  const auto schemas = path.parent_path() / schema_folder;
  std::error_code failure;  // writing the files reports it
  std::filesystem::create_directories(schemas, failure);
  for (const auto& [schema_name, schema] :
       {std::pair("bundle.json", flows::tools::bundle_schema()),
        std::pair("test.json", flows::tools::test_file_schema())}) {
    auto written = write_file((schemas / schema_name).string(), schema.dump(2) + '\n');
    if (!written) return failed(written.error());
  }
  if (json) return say_json({{"bundle", path.string()}, {"tests", test_path.string()}});
  say("Wrote " + path.string() + " and " + test_path.string() + ". Go on with:");
  say("  conversectl flow chat " + path.string());
  say("  conversectl flow test " + test_path.string());
  return 0;
}

}  // namespace conversed::ctl
