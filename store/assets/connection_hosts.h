#pragma once

#include <sstream>
#include <string>
#include <vector>

// The stored form of a Connection's hosts: separated by blanks, which no host contains.
namespace conversed::store {

[[nodiscard]] inline std::string hosts_text(const std::vector<std::string>& hosts) {
  std::string text;
  for (const auto& host : hosts) text += text.empty() ? host : ' ' + host;
  return text;
}

[[nodiscard]] inline std::vector<std::string> hosts_of(const std::string& text) {
  std::vector<std::string> hosts;
  std::istringstream in(text);
  for (std::string host; in >> host;) hosts.push_back(host);
  return hosts;
}

}  // namespace conversed::store
