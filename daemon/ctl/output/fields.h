#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

// Reads the daemon's answers.
namespace conversed::ctl {

// The daemon's answer does not have the expected form. `main` reports it and exits with 1.
class BadAnswer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The fields of a JSON object, which must outlive it. A field that is missing or has another type
// throws a BadAnswer with its name.
class Fields {
 public:
  explicit Fields(const nlohmann::json& object);

  // Whether the field exists and is not null.
  [[nodiscard]] bool has(const char* name) const;
  [[nodiscard]] std::string text(const char* name) const;
  // Empty if the field is null or missing.
  [[nodiscard]] std::string text_if_any(const char* name) const;
  [[nodiscard]] std::vector<std::string> texts(const char* name) const;
  [[nodiscard]] std::int64_t number(const char* name) const;
  [[nodiscard]] bool flag(const char* name) const;
  // Seconds of Unix; nothing for null.
  [[nodiscard]] std::optional<std::int64_t> time(const char* name) const;
  [[nodiscard]] std::vector<std::int64_t> times(const char* name) const;
  [[nodiscard]] Fields object(const char* name) const;
  [[nodiscard]] std::vector<Fields> objects(const char* name) const;
  [[nodiscard]] std::vector<Fields> items() const { return objects("items"); }
  [[nodiscard]] const nlohmann::json& any(const char* name) const;

 private:
  using Is = bool (nlohmann::json::*)() const noexcept;
  [[nodiscard]] const nlohmann::json& checked(const char* name, Is is, const char* expected) const;

  const nlohmann::json* object_;
};

// A problem of a bundle, such as `shop.yaml:3:7: warning: flows[0]: message`. `kind` may be empty.
[[nodiscard]] std::string problem_line(const Fields& problem, const std::string& kind);

}  // namespace conversed::ctl
