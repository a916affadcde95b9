#include "daemon/ctl/fields.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

namespace conversed::ctl {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const char* name, const char* expected) {
  throw BadAnswer(std::string("the daemon's answer has no ") + expected + " '" + name +
                  "': are conversectl and the daemon of one version?");
}

std::int64_t whole_number(const json& value, const char* name) {
  if (!value.is_number_integer()) refuse(name, "whole number");
  return value.get<std::int64_t>();
}

std::string utc(std::int64_t unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return std::to_string(unix_seconds);
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

}  // namespace

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
  std::string all;
  for (const std::string& text : texts) {
    if (!all.empty()) all += between;
    all += text;
  }
  return all;
}

Fields::Fields(const json& object) : object_(&object) {
  if (!object.is_object()) {
    throw BadAnswer("the daemon's answer is not the JSON that was expected: is --url right?");
  }
}

const json& Fields::any(const char* name) const {
  const auto found = object_->find(name);
  if (found == object_->end()) refuse(name, "field");
  return *found;
}

const json& Fields::array(const char* name) const {
  const json& value = any(name);
  if (!value.is_array()) refuse(name, "list");
  return value;
}

bool Fields::has(const char* name) const {
  const auto found = object_->find(name);
  return found != object_->end() && !found->is_null();
}

std::string Fields::text(const char* name) const {
  const json& value = any(name);
  if (!value.is_string()) refuse(name, "text");
  return value.get<std::string>();
}

std::string Fields::text_if_any(const char* name) const {
  return has(name) ? text(name) : std::string();
}

std::vector<std::string> Fields::texts(const char* name) const {
  std::vector<std::string> all;
  for (const json& value : array(name)) {
    if (!value.is_string()) refuse(name, "list of texts");
    all.push_back(value.get<std::string>());
  }
  return all;
}

std::string Fields::list(const char* name) const {
  return joined(texts(name));
}

std::int64_t Fields::number(const char* name) const {
  return whole_number(any(name), name);
}

bool Fields::flag(const char* name) const {
  const json& value = any(name);
  if (!value.is_boolean()) refuse(name, "true or false");
  return value.get<bool>();
}

std::string Fields::time(const char* name) const {
  const json& value = any(name);
  return value.is_null() ? "-" : utc(whole_number(value, name));
}

std::vector<std::string> Fields::times(const char* name) const {
  std::vector<std::string> all;
  for (const json& value : array(name)) all.push_back(utc(whole_number(value, name)));
  return all;
}

Fields Fields::object(const char* name) const {
  const json& value = any(name);
  if (!value.is_object()) refuse(name, "object");
  return Fields(value);
}

std::vector<Fields> Fields::objects(const char* name) const {
  std::vector<Fields> all;
  for (const json& value : array(name)) {
    if (!value.is_object()) refuse(name, "list of objects");
    all.emplace_back(value);
  }
  return all;
}

}  // namespace conversed::ctl
