#include "daemon/ctl/output/output.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "store/model/json.h"
#include "store/text/terminal.h"

namespace conversed::ctl {

void say(std::string_view line) {
  std::cout << text::shown(line, text::Lines::one) << '\n';
}

void say_lines(std::string_view lines) {
  std::cout << text::shown(lines, text::Lines::many) << '\n';
}

void note(std::string_view line) {
  std::cerr << text::shown(line, text::Lines::one) << '\n';
}

int failed(const model::Error& error) {
  std::cerr << "conversectl: " << text::shown(error.message, text::Lines::many) << '\n';
  return 1;
}

int say_json(const nlohmann::json& value) {
  say(model::json_text(value));
  return 0;
}

}  // namespace conversed::ctl
