#include "tests/unit/api/documented.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "api/openapi/document.h"
#include "api/operations/all.h"
#include "store/text/utf8.h"

namespace conversed::api::test {
namespace {

// Patterns count characters, and some characters are above ASCII.
std::wstring wide(std::string_view text) {
  std::wstring characters;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = text::decode(text, at);
    characters += static_cast<wchar_t>(code);
    at += bytes;
  }
  return characters;
}

// Each pattern is compiled once a thread.
const std::wregex& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::wregex> all;
  const auto known = all.find(pattern);
  if (known != all.end()) return known->second;
  return all.emplace(pattern, std::wregex(wide(pattern))).first->second;
}

using nlohmann::json;
using Problems = std::vector<std::string>;

const json& document() {
  static const json parsed = json::parse(openapi::document(all_operations(), "").dump());
  return parsed;
}

const json& resolved(const json& node) {
  const auto reference = node.find("$ref");
  if (reference == node.end()) return node;
  return document().at(json::json_pointer(reference->get<std::string>().substr(1)));
}

// ---- Schemas: the part of JSON Schema that the document uses

bool is_of_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  return false;
}

bool is_of_some_type(const json& value, const json& types) {
  if (types.is_string()) return is_of_type(value, types);
  return std::any_of(types.begin(), types.end(),
                     [&](const json& type) { return is_of_type(value, type); });
}

// Whether an object may have members that its schema does not name. Another part of an allOf may
// name them.
enum class Others : std::uint8_t { wrong, allowed };

class Checker {
 public:
  void check(const json& value, const json& given, const std::string& at, Others others) {
    const json& schema = resolved(given);
    if (schema.contains("type") && !is_of_some_type(value, schema["type"])) {
      return add(at, "has the wrong type");
    }
    if (schema.contains("const") && value != schema["const"]) add(at, "is another constant");
    if (schema.contains("enum") && !contains(schema["enum"], value)) add(at, "is of no such value");
    for (const json& part : schema.value("allOf", json::array())) {
      check(value, part, at, Others::allowed);
    }
    if (schema.contains("anyOf")) check_any(value, schema["anyOf"], at);
    if (value.is_string()) check_text(value.get<std::string>(), schema, at);
    if (value.is_number_integer()) check_number(value.get<std::int64_t>(), schema, at);
    if (value.is_array()) check_items(value, schema, at);
    if (value.is_object()) check_members(value, schema, at, others);
  }
  [[nodiscard]] Problems take() { return std::move(problems_); }

 private:
  void add(const std::string& at, const std::string& what) { problems_.push_back(at + " " + what); }

  static bool contains(const json& list, const json& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  void check_any(const json& value, const json& choices, const std::string& at) {
    Problems all;
    for (const json& choice : choices) {
      Checker inner;
      inner.check(value, choice, at, Others::wrong);
      const auto problems = inner.take();
      if (problems.empty()) return;
      all.insert(all.end(), problems.begin(), problems.end());
    }
    problems_.insert(problems_.end(), all.begin(), all.end());
  }

  void check_text(const std::string& text, const json& schema, const std::string& at) {
    if (text.size() < schema.value("minLength", std::size_t{0})) add(at, "is too short");
    if (schema.contains("pattern") &&
        !std::regex_search(wide(text), compiled(schema["pattern"].get<std::string>()))) {
      add(at, "does not fit its pattern");
    }
  }

  void check_number(std::int64_t number, const json& schema, const std::string& at) {
    if (schema.contains("minimum") && number < schema["minimum"]) add(at, "is too small");
    if (schema.contains("maximum") && number > schema["maximum"]) add(at, "is too large");
  }

  void check_items(const json& list, const json& schema, const std::string& at) {
    if (schema.contains("maxItems") && list.size() > schema["maxItems"]) add(at, "is too long");
    if (!schema.contains("items")) return;
    for (const json& item : list) check(item, schema["items"], at + "/", Others::wrong);
  }

  void check_members(const json& object, const json& schema, const std::string& at, Others others) {
    for (const json& name : schema.value("required", json::array())) {
      if (!object.contains(name.get<std::string>()))
        add(at + "/" + name.get<std::string>(), "is missing");
    }
    if (!schema.contains("properties")) return;
    for (const auto& [name, member] : object.items()) {
      const auto known = schema["properties"].find(name);
      if (known != schema["properties"].end()) {
        check(member, *known, at + "/" + name, Others::wrong);
      } else if (others == Others::wrong) {
        add(at + "/" + name, "is not documented");
      }
    }
  }

  Problems problems_;
};

// ---- Operations

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  while (true) {
    const auto end = path.find('/');
    segments.push_back(path.substr(0, end));
    if (end == std::string_view::npos) return segments;
    path.remove_prefix(end + 1);
  }
}

bool fits(const std::vector<std::string_view>& wanted, const std::vector<std::string_view>& given) {
  return std::equal(wanted.begin(), wanted.end(), given.begin(), given.end(),
                    [](auto a, auto b) { return a == b || (a.starts_with('{') && !b.empty()); });
}

struct Path {
  std::string_view pattern;
  std::vector<std::string_view> segments;
  const json* item = nullptr;
};

const std::vector<Path>& paths() {
  static const std::vector<Path> all = [] {
    std::vector<Path> made;
    const auto& documented = document()["paths"].get_ref<const json::object_t&>();
    for (const auto& [pattern, item] : documented) {
      made.push_back({pattern, segments_of(pattern), &item});
    }
    return made;
  }();
  return all;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Null if the document has none. Literal paths go before paths with parameters.
const json* find_operation(Method method, std::string_view path) {
  constexpr std::string_view base = "/new";
  if (path.starts_with(std::string(base) + "/")) path.remove_prefix(base.size());
  // RFC 8414 §3.1: the path of the issuer follows the well-known path.
  if (path == "/.well-known/oauth-authorization-server/new") path.remove_suffix(base.size());
  const auto name = lower(method_name(method == Method::head ? Method::get : method));
  const json* found = nullptr;
  const auto segments = segments_of(path);
  for (const Path& each : paths()) {
    if (!each.item->contains(name) || !fits(each.segments, segments)) continue;
    found = &(*each.item)[name];
    if (each.pattern == path) return found;
  }
  return found;
}

Problems check_body(const json& content, const Response& response) {
  const auto type = response.content_type.substr(0, response.content_type.find(';'));
  const auto schema = content.find(type);
  if (schema == content.end()) return {"the media type " + type + " is not documented"};
  const json body =
      type.ends_with("json") ? json::parse(response.body, nullptr, false) : json(response.body);
  if (body.is_discarded()) return {"the body is no JSON"};
  // The tests of representations compare XML and CSV with their data.
  if (!type.ends_with("json") && !type.starts_with("text/plain")) return {};
  Checker checker;
  checker.check(body, (*schema)["schema"], "", Others::wrong);
  return checker.take();
}

}  // namespace

Problems undocumented(Method method, std::string_view path, const Response& response) {
  if (method == Method::options) return {};
  const json* operation = find_operation(method, path);
  if (operation == nullptr) {
    if (response.status == 404 || response.status == 405) return {};
    return {"there is no such operation"};
  }
  // The path may match a path with parameters, although the router knows no such path.
  const auto& responses = (*operation)["responses"];
  const auto documented = responses.find(std::to_string(response.status));
  if (documented == responses.end()) {
    if (response.status == 404 && path.find('/', 1) == std::string_view::npos) return {};
    return {"the status " + std::to_string(response.status) + " is not documented"};
  }
  const json& answer = resolved(*documented);
  if (!answer.contains("content")) {
    return response.body.empty() ? Problems{} : Problems{"a body is not documented"};
  }
  return check_body(answer["content"], response);
}

}  // namespace conversed::api::test
