#include "flows/problem.h"

namespace conversed::flows {

std::string to_string(const Problem& problem) {
  std::string line = problem.file;
  if (problem.place.line != 0) {
    if (!line.empty()) line += ':';
    line += std::to_string(problem.place.line) + ':' + std::to_string(problem.place.column);
  }
  if (!line.empty()) line += ": ";
  if (!problem.path.empty()) line += problem.path + ": ";
  return line + problem.message;
}

std::string to_string(const Problems& problems) {
  std::string lines;
  for (const auto& problem : problems) {
    if (!lines.empty()) lines += '\n';
    lines += to_string(problem);
  }
  return lines;
}

}  // namespace conversed::flows
