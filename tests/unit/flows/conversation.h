#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/bundle/loader.h"
#include "flows/lexicon/lexicon.h"
#include "flows/turn/standing.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

// The Flow of a YAML list of Nodes, loaded as a bundle.
inline std::shared_ptr<const Flow> flow_of(const std::string& nodes,
                                           const std::string& connections = "") {
  std::string text = "conversed: 1\nproject: {name: Test, locales: [en, de]}\n" + connections +
                     "flows:\n  - name: Main\n    nodes:\n";
  std::size_t at = 0;
  while (at < nodes.size()) {
    const auto end = std::min(nodes.find('\n', at), nodes.size());
    text += "      " + nodes.substr(at, end - at) + "\n";
    at = end + 1;
  }
  text += "  - {name: Sub, nodes: []}\n";  // a target for Nodes that name another Flow
  auto bundle = load_bundle(text, "test.yaml", {});
  if (!bundle) {
    ADD_FAILURE() << to_string(bundle.error()) << "\n" << text;
    return nullptr;
  }
  auto flow = Flow::compile(bundle->flows.front().definition);
  if (!flow) {
    ADD_FAILURE() << to_string(flow.error());
    return nullptr;
  }
  return *flow;
}

// Flows and lexicons by name, set by the test.
class MapLibrary final : public Library {
 public:
  MapLibrary() = default;
  MapLibrary(const MapLibrary& other)
      : Library(),  // NOLINT(readability-redundant-member-init): GCC asks for it
        flows(other.flows),
        lexicons(other.lexicons) {}
  MapLibrary& operator=(const MapLibrary&) = delete;
  ~MapLibrary() override = default;

  model::Result<FoundFlow> flow(const std::string& name, std::int64_t version) const override {
    const auto found = flows.find(name);
    if (found == flows.end()) return model::fail(model::Errc::not_found, "no such Flow");
    const auto& versions = found->second;
    if (version > static_cast<std::int64_t>(versions.size())) {
      return model::fail(model::Errc::not_found, "no such version");
    }
    if (version == 0) version = static_cast<std::int64_t>(versions.size());
    return FoundFlow{versions[static_cast<std::size_t>(version - 1)], version};
  }
  model::Result<std::shared_ptr<const lexicon::Lexicon>> find_lexicon(
      const std::string& name) const override {
    const auto found = lexicons.find(name);
    if (found == lexicons.end()) return model::fail(model::Errc::not_found, "no such lexicon");
    return found->second;
  }

  std::map<std::string, std::vector<std::shared_ptr<const Flow>>> flows;  // versions from 1
  std::map<std::string, std::shared_ptr<const lexicon::Lexicon>> lexicons;
};

// A Flow with another name than that of `flow_of`, and the lexicons that it uses.
inline std::shared_ptr<const Flow> named_flow(const std::string& name, const std::string& nodes,
                                              const std::vector<std::string>& lexicons = {}) {
  const auto plain = load_bundle(
      "conversed: 1\nproject: {name: T}\n"
      "lexicons: [{name: Cities, slots: [city], entries: []}]\n"
      "flows:\n- name: " +
          name + "\n  nodes:\n" + nodes + "\n- {name: Main, nodes: []}\n",
      "test.yaml", {});
  if (!plain) {
    ADD_FAILURE() << to_string(plain.error());
    return nullptr;
  }
  auto definition = plain->flows.front().definition;
  if (!lexicons.empty()) definition["lexicons"] = lexicons;
  auto flow = Flow::compile(definition);
  EXPECT_TRUE(flow);
  return flow ? *flow : nullptr;
}

// A session that takes one event after the other, as the daemon runs it.
class Conversation {
 public:
  explicit Conversation(const std::string& nodes, const std::string& connections = "")
      : flow(flow_of(nodes, connections)) {
    assets.project_id = "project";
    assets.locales = {"en", "de"};
    endpoint.id = "endpoint";
    endpoint.name = "web";
    endpoint.flow_id = "flow";
    endpoint.url_token = std::string(64, 'a');
    endpoint.session_expiry = std::chrono::minutes(30);
    profile.project_id = "project";
    profile.user_id = "ann";
  }

  model::Event event(model::EventType type) {
    model::Event made;
    made.id = "event" + std::to_string(++events);
    made.type = type;
    made.session = {"project", "endpoint", "ann", "s1"};
    made.accepted_at = now;
    made.trace_id = std::string(32, 'b');
    return made;
  }

  // Runs a Turn and applies its effects.
  Result<model::Effects> take(const model::Event& taken) {
    auto effects = run_turn({.flow = *flow,
                             .assets = assets,
                             .endpoint = endpoint,
                             .session = session,
                             .profile = profile,
                             .event = taken,
                             .now = now,
                             .limits = limits,
                             .flow_version = 1,
                             .library = &library,
                             .is_overdue = is_overdue});
    if (effects) {
      session = effects->session;
      ++session.version;
      if (effects->profile) profile = *effects->profile;
      EXPECT_EQ(effects->execution_ended, !session.busy());
      EXPECT_EQ(effects->call.has_value(), session.busy());
    }
    return effects;
  }

  Result<model::Effects> say(std::string text,
                             model::EventType type = model::EventType::user_message) {
    auto made = event(type);
    made.text = std::move(text);
    return take(made);
  }

  Result<model::Effects> inject(nlohmann::json data) {
    auto made = event(model::EventType::inject);
    made.data = std::move(data);
    return take(made);
  }

  Result<model::Effects> answer_call(nlohmann::json body) {
    auto made = event(model::EventType::call_result);
    made.result = model::CallResult{.call_id = session.execution->pending_call_id,
                                    .status = 200,
                                    .body = std::move(body),
                                    .error_code = "",
                                    .error_message = ""};
    return take(made);
  }

  Result<model::Effects> fail_call(std::string code, std::string message, int status) {
    auto made = event(model::EventType::call_result);
    made.result = model::CallResult{.call_id = session.execution->pending_call_id,
                                    .status = status,
                                    .body = nullptr,
                                    .error_code = std::move(code),
                                    .error_message = std::move(message)};
    return take(made);
  }

  Result<model::Effects> fire_timer() {
    auto made = event(model::EventType::timer);
    made.claim = model::Claim{model::Claim::Kind::timer, session.execution->pending_call_id};
    return take(made);
  }

  // Fires the time-out of the waiting question.
  Result<model::Effects> let_question_time_out() {
    auto made = event(model::EventType::time_out);
    made.claim = model::Claim{model::Claim::Kind::timer, time_outs_of(session).at(0)};
    return take(made);
  }

  std::shared_ptr<const Flow> flow;
  MapLibrary library;
  model::ProjectAssets assets;
  model::Endpoint endpoint;
  model::Session session;
  model::Profile profile;
  Limits limits;
  std::function<bool()> is_overdue;
  model::Timestamp now = model::from_unix_ms(1'800'000'000'123);
  int events = 0;
};

inline std::vector<std::string> texts(const Result<model::Effects>& effects) {
  if (!effects) return {"error: " + effects.error().message};
  std::vector<std::string> list;
  for (const auto& output : effects->outputs) list.push_back(output.text);
  return list;
}

using Texts = std::vector<std::string>;

}  // namespace conversed::flows
