#include "api/operations/problems.h"

#include <nlohmann/json.hpp>

namespace conversed::api {

nlohmann::json to_json(const flows::Problems& problems) {
  nlohmann::json list = nlohmann::json::array();
  for (const flows::Problem& problem : problems) {
    list.push_back({{"file", problem.file},
                    {"line", problem.place.line},
                    {"column", problem.place.column},
                    {"path", problem.path},
                    {"message", problem.message}});
  }
  return list;
}

openapi::Schema problem_in_file() {
  using namespace openapi;
  return object({{"file", text()},
                 {"line", integer(0)},
                 {"column", integer(0)},
                 {"path", text()},
                 {"message", text(1)}});
}

}  // namespace conversed::api
