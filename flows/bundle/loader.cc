#include "flows/bundle/loader.h"

#include <algorithm>
#include <utility>

#include "flows/fields.h"
#include "store/text/ascii.h"
#include "store/yaml/reader.h"

namespace conversed::flows {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

tl::unexpected<Problems> refuse(std::string_view file, Place place, std::string message) {
  return tl::unexpected<Problems>({{std::string(file), place, "", std::move(message)}});
}

Checked<Located> read_yaml(std::string_view text, std::string_view file, const LoadLimits& limits) {
  auto document = yaml::read(text, yaml::Schema::core,
                             {.max_depth = limits.max_depth, .max_memory = limits.max_memory});
  Problems problems;
  for (auto& fault : document.faults) {
    problems.push_back({std::string(file), fault.place, "", std::move(fault.message)});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  if (!document.root) return refuse(file, {}, "the file is empty");
  return *std::move(document.root);
}

bool ends_with_json(std::string_view name) {
  constexpr std::string_view suffix = ".json";
  return name.size() >= suffix.size() &&
         text::equals_ignoring_case(name.substr(name.size() - suffix.size()), suffix);
}

}  // namespace

Checked<Located> read_source(std::string_view text, std::string_view file_name,
                             const LoadLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return refuse(file_name, {},
                  "the file has " + std::to_string(text.size()) + " bytes; at most " +
                      std::to_string(limits.max_bytes) + " are taken");
  }
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (ends_with_json(file_name)) return read_json(text, file_name, limits);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    // JSON is tried first, because YAML reads JSON escapes such as surrogate pairs differently.
    if (auto json = read_json(text, file_name, limits)) return json;
  }
  return read_yaml(text, file_name, limits);
}

Checked<model::Bundle> load_bundle(std::string_view text, std::string_view file_name,
                                   const Environment& environment, const LoadLimits& limits) {
  auto located = read_source(text, file_name, limits);
  if (!located) return tl::unexpected<Problems>(std::move(located.error()));
  return load_bundle(*located, file_name, environment, limits);
}

Checked<model::Bundle> load_bundle(const Located& source, std::string_view file_name,
                                   const Environment& environment, const LoadLimits& limits) {
  Report report{std::string(file_name), limits.max_problems};
  model::Bundle bundle = read_bundle(View(source, report), environment, limits.variables);
  if (report.size() > 0) return tl::unexpected<Problems>(report.take());
  return bundle;
}

}  // namespace conversed::flows
