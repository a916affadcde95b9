#include "daemon/ctl/output/fields.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const char* name, const char* expected) {
  throw BadAnswer(std::string("the daemon's answer has no ") + expected + " '" + name +
                  "': are conversectl and the daemon of one version?");
}

}  // namespace

Fields::Fields(const json& object) : object_(&object) {
  if (!object.is_object()) {
    throw BadAnswer("the daemon's answer is not a JSON object: is --url right?");
  }
}

const json& Fields::any(const char* name) const {
  const auto found = object_->find(name);
  if (found == object_->end()) refuse(name, "field");
  return *found;
}

const json& Fields::checked(const char* name, Is is, const char* expected) const {
  const json& value = any(name);
  if (!(value.*is)()) refuse(name, expected);
  return value;
}

bool Fields::has(const char* name) const {
  const auto found = object_->find(name);
  return found != object_->end() && !found->is_null();
}

std::string Fields::text(const char* name) const {
  return checked(name, &json::is_string, "text");
}

std::string Fields::text_if_any(const char* name) const {
  return has(name) ? text(name) : std::string();
}

std::vector<std::string> Fields::texts(const char* name) const {
  return checked(name, &json::is_array, "list");
}

std::int64_t Fields::number(const char* name) const {
  return checked(name, &json::is_number_integer, "whole number");
}

bool Fields::flag(const char* name) const {
  return checked(name, &json::is_boolean, "true or false");
}

std::optional<std::int64_t> Fields::time(const char* name) const {
  return !any(name).is_null() ? std::optional(number(name)) : std::nullopt;
}

std::vector<std::int64_t> Fields::times(const char* name) const {
  std::vector<std::int64_t> all;
  for (const json& value : checked(name, &json::is_array, "list")) {
    if (!value.is_number_integer()) refuse(name, "list of whole numbers");
    all.push_back(value);
  }
  return all;
}

Fields Fields::object(const char* name) const {
  return Fields(checked(name, &json::is_object, "object"));
}

std::vector<Fields> Fields::objects(const char* name) const {
  std::vector<Fields> all;
  for (const json& value : checked(name, &json::is_array, "list")) all.emplace_back(value);
  return all;
}

std::string problem_line(const Fields& problem, const std::string& kind) {
  const auto file = problem.text_if_any("file");
  const auto path = problem.text_if_any("path");
  const auto column = problem.has("column") ? problem.number("column") : 0;
  std::string line = (file.empty() ? "line " : file + ':') + std::to_string(problem.number("line"));
  if (column > 0) line += ':' + std::to_string(column);
  for (const auto& part : {kind, path}) {
    if (!part.empty()) line += ": " + part;
  }
  return line + ": " + problem.text("message");
}

}  // namespace conversed::ctl
