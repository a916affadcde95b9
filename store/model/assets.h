#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

// What the daemon reads of a project while it runs conversations. Immutable snapshots.
namespace conversed::model {

struct Endpoint {
  std::string id;
  std::string project_id;
  std::string organisation_id;
  std::string name;
  std::string flow_id;
  std::string url_token;
  std::chrono::milliseconds session_expiry{};
  bool active_only = false;
  std::string error_text;
  std::string webhook_url;  // empty: none. The secret is read by the deliverer alone.
};

struct FlowVersion {
  std::string flow_id;
  std::string project_id;
  std::string name;
  std::int64_t version = 0;  // from 1
  std::string definition;    // JSON text for Flow::compile
};

// Names that a Flow's Nodes refer to, as they are now; a deleted Connection is missing here.
struct ProjectAssets {
  std::string project_id;
  std::map<std::string, std::string, std::less<>> connection_ids;  // name → id
  std::map<std::string, std::string, std::less<>> tokens;          // label → script
  std::map<std::string, std::string, std::less<>> flow_ids;        // name → id
};

}  // namespace conversed::model
