#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "store/model/receipt_text.h"

namespace conversed::tests {

// The text of a step (store/model/receipt_text.h), from its JSON.
inline std::string receipt_step(const nlohmann::json& step) {
  std::string text;
  for (const auto& [name, value] : step.items()) {
    const auto place = std::ranges::find(model::receipt_names, name) - model::receipt_names.begin();
    if (static_cast<std::size_t>(place) == model::receipt_names.size()) {
      throw std::invalid_argument("no member of a step: " + name);
    }
    text += model::receipt_name_at(static_cast<std::size_t>(place));
    text += ':' + value.dump() + '\x1f';
  }
  return text;
}

}  // namespace conversed::tests
