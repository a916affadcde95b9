#include "flows/tools/schema.h"

#include <map>
#include <string>
#include <vector>

#include "flows/bundle/bundle_keys.h"
#include "flows/node_types.h"
#include "flows/tools/flow_test_file.h"
#include "flows/tools/node_pages.h"
#include "store/text/quantity.h"

namespace conversed::flows::tools {
namespace {

using Json = nlohmann::ordered_json;

Json typed(const char* type) {
  return {{"type", type}};
}

Json list_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

Json any_of(Json first, Json second) {
  return {{"anyOf", Json::array({std::move(first), std::move(second)})}};
}

Json map_to(Json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

Json scalar() {
  return {{"type", {"string", "number", "boolean"}}};
}

// The names of the locales are the project's.
Json local_text() {
  Json by_locale = map_to(typed("string"));
  by_locale["minProperties"] = 1;
  return any_of(typed("string"), std::move(by_locale));
}

Json nodes() {
  return {{"$ref", "#/$defs/nodes"}};
}

Json duration() {
  return {{"type", "string"}, {"pattern", "^" + std::string(text::duration_expression) + "$"}};
}

Json text_of(const KeyFacts& key) {
  if (!key.choices.empty()) return {{"enum", Json(key.choices)}};
  if (key.form == Form::text) return typed("string");
  return {{"type", "string"}, {"minLength", 1}, {"maxLength", max_name_characters}};
}

Json number_of(const KeyFacts& key) {
  Json number = {{"type", "integer"}, {"minimum", key.least}};
  if (key.most != 0) number["maximum"] = key.most;
  return number;
}

Json schema_of(const KeyFacts& key);

Json mapping_of(std::span<const Key> keys) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}};
  for (const Key& key : keys) {
    schema["properties"][std::string(key.name)] = schema_of(key);
    if (key.is_required) schema["required"].push_back(key.name);
  }
  schema["additionalProperties"] = false;
  return schema;
}

Json form_of_key(const KeyFacts& key) {
  switch (key.form) {
    case Form::anything:
    case Form::json_template:
      return Json::object();
    case Form::template_text:
    case Form::path:
    case Form::regex:
      return typed("string");
    case Form::text:
    case Form::name:
      return text_of(key);
    case Form::flag:
      return typed("boolean");
    case Form::number:
      return number_of(key);
    case Form::duration:
      return duration();
    case Form::number_or_duration:
      return any_of(number_of(key), duration());
    case Form::expression:
      return scalar();
    case Form::texts:
      return any_of(typed("string"),
                    {{"type", "array"}, {"items", typed("string")}, {"minItems", 1}});
    case Form::local_text:
      return local_text();
    case Form::local_texts:
      return any_of(local_text(), {{"type", "array"}, {"items", local_text()}, {"minItems", 1}});
    case Form::names:
      return list_of(text_of(key));
    case Form::any_mapping:
      return typed("object");
    case Form::text_map:
      return map_to(typed("string"));
    case Form::expressions:
      return map_to(scalar());
    case Form::nodes:
      return nodes();
    case Form::nodes_map:
      return map_to(nodes());
    case Form::mapping:
      return mapping_of(key.keys);
    case Form::mappings:
      return list_of(mapping_of(key.keys));
    case Form::mapping_or_mappings:
      return any_of(mapping_of(key.keys), list_of(mapping_of(key.keys)));
    case Form::text_or_mapping:
      return any_of(typed("string"), mapping_of(key.keys));
    case Form::text_or_mappings:
      return any_of(typed("string"), list_of(mapping_of(key.keys)));
    case Form::texts_and_mappings:
      return list_of(any_of(typed("string"), mapping_of(key.keys)));
    case Form::text_or_texts_and_mappings:
      return any_of(typed("string"), list_of(any_of(typed("string"), mapping_of(key.keys))));
  }
  return {};
}

Json schema_of(const KeyFacts& key) {
  Json schema = form_of_key(key);
  if (!key.default_word.empty()) schema["default"] = key.default_word;
  if (!key.default_number) return schema;
  const auto number = *key.default_number;
  if (key.form == Form::flag) {
    schema["default"] = number != 0;
  } else if (key.form == Form::duration) {
    schema["default"] = text::duration_text(std::chrono::milliseconds(number));
  } else {
    schema["default"] = number;
  }
  return schema;
}

Json described(Json schema, const std::string& description) {
  if (!description.empty()) schema["description"] = description;
  return schema;
}

bool takes_mapping(Form form) {
  return form == Form::anything || form == Form::json_template || form == Form::local_text ||
         form == Form::local_texts;
}

// Whether a Node of the type runs without a config: `handover:`.
bool takes_nothing(const NodeType& type) {
  nlohmann::json node;
  node[std::string(type.name)] = nullptr;
  return Flow::compile({{"name", "F"}, {"nodes", nlohmann::json::array({std::move(node)})}})
      .has_value();
}

Json config_of(const NodeType& type) {
  KeyFacts config_key;
  config_key.form = type.form;
  if (type.is_free_form()) return form_of_key(config_key);
  if (type.fields.empty()) return {{"enum", {true, nullptr}}};
  Json config = {{"type", "object"}, {"properties", Json::object()}};
  Json alone;
  for (const auto& field : type.fields) {
    const Json schema = described(schema_of(field), description_of(type.name, field.name));
    config["properties"][std::string(field.name)] = schema;
    if (field.is_required && !field.is_beside) config["required"].push_back(field.name);
    if (field.name != type.shorthand) continue;
    alone = schema;
    // A mapping is always the config.
    if (takes_mapping(field.form)) alone["not"] = typed("object");
  }
  config["additionalProperties"] = false;
  if (alone.is_null()) return config;
  Json either = any_of(std::move(alone), std::move(config));
  if (takes_nothing(type)) either["anyOf"].push_back(typed("null"));
  return either;
}

// The required keys of the type that stand beside its name or in its mapping.
Json required_beside(const NodeType& type) {
  Json all = Json::array();
  for (const auto& field : type.fields) {
    if (!field.is_required || !field.is_beside) continue;
    const Json has_it = {{"required", Json::array({field.name})}};
    Json inside = typed("object");
    inside.update(has_it);
    const Json in_mapping = {{"properties", {{std::string(type.name), std::move(inside)}}}};
    all.push_back(any_of(has_it, in_mapping));
  }
  return all;
}

// One key is the Node's type. The keys beside it belong to certain types.
Json node() {
  Json properties = {{"id", {{"type", "string"}, {"pattern", "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"}}}};
  Json one = Json::array();
  std::map<std::string, Json> owners;
  std::map<std::string, std::string> sentences;
  for (const NodeType* type : node_types()) {
    const std::string name(type->name);
    properties[name] = described(config_of(*type), description_of(name, ""));
    const Json is_of_type = {{"required", Json::array({name})}};
    one.push_back(is_of_type);
    if (Json all = required_beside(*type); !all.empty()) owners[name]["allOf"] = std::move(all);
    for (const auto& field : type->fields) {
      if (!field.is_beside) continue;
      const std::string beside(field.name);
      auto& text = sentences[beside];
      text += (text.empty() ? "`" : "\n`") + name + "`: " + description_of(name, beside);
      properties[beside] = described(schema_of(field), text);
      owners[beside]["anyOf"].push_back(is_of_type);
    }
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"additionalProperties", false},
          {"oneOf", std::move(one)},
          {"dependentSchemas", owners}};
}

Json document_of(const char* title, std::span<const Key> keys) {
  Json document = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  document.update(mapping_of(keys));
  return document;
}

}  // namespace

Json bundle_schema() {
  Json schema = document_of("A bundle of conversed", bundle_keys);
  schema["$defs"] = {{"nodes", list_of({{"$ref", "#/$defs/node"}})}, {"node", node()}};
  return schema;
}

Json test_file_schema() {
  return document_of("Flow tests of conversed", test_file_keys);
}

}  // namespace conversed::flows::tools
