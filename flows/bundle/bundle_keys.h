#pragma once

#include <array>

#include "flows/flow_compiler.h"
#include "flows/journey.h"
#include "flows/keys.h"

// The keys of a bundle. docs/flows/bundles.md and follow-ups.md describe them.
// Kept by: Reference.HasTheFactsOfTheCode.
namespace conversed::flows {

inline constexpr std::chrono::milliseconds shortest_bundle_time = std::chrono::seconds(1);
inline constexpr std::chrono::milliseconds longest_bundle_time = std::chrono::hours(24 * 366);

// Roles within a project. A project's file must not grant other roles.
inline constexpr std::array<std::string_view, 6> project_roles{
    "connectionAdmin", "conversationAdmin", "memberManager",
    "proactiveAdmin",  "projectAdmin",      "tokenAdmin"};
inline constexpr std::array<std::string_view, 7> token_types{
    "answer", "context", "custom", "flow-input", "flow-output", "input", "profile"};
inline constexpr std::array<std::string_view, 4> connection_types{"httpBasic", "httpBearer",
                                                                  "httpHeader", "llm"};

inline constexpr Key project_keys[]{must_have("name", Form::name),
                                    may_have("locales", Form::names)};
inline constexpr Key member_keys[]{must_have("email", Form::text), may_have("name", Form::name),
                                   may_have("roles", Form::names).one_of(project_roles),
                                   may_have("allowedLocales", Form::names)};
inline constexpr Key token_keys[]{
    must_have("label", Form::name),
    may_have("type", Form::text).one_of(token_types).by_default("custom"),
    may_have("script", Form::text)};
inline constexpr Key connection_keys[]{
    must_have("name", Form::name), must_have("type", Form::text).one_of(connection_types),
    may_have("hosts", Form::names), may_have("fields", Form::text_map)};
inline constexpr Key entry_keys[]{must_have("mainKeyphrase", Form::name),
                                  may_have("keyphrases", Form::names),
                                  may_have("slots", Form::names), may_have("data", Form::anything)};
inline constexpr Key lexicon_keys[]{must_have("name", Form::name), may_have("slots", Form::names),
                                    may_have("entries", Form::mappings).of(entry_keys)};
inline constexpr Key chunk_keys[]{must_have("text", Form::text), may_have("data", Form::anything)};
inline constexpr Key source_keys[]{must_have("name", Form::name),
                                   may_have("chunks", Form::mappings).of(chunk_keys)};
inline constexpr Key knowledge_store_keys[]{must_have("name", Form::name),
                                            may_have("sources", Form::mappings).of(source_keys)};
inline constexpr Key webhook_keys[]{must_have("url", Form::text), may_have("secret", Form::text)};
inline constexpr Key output_keys[]{may_have("webhook", Form::mapping).of(webhook_keys)};
inline constexpr Key endpoint_keys[]{must_have("name", Form::name),
                                     must_have("flow", Form::name),
                                     may_have("sessionExpiry", Form::duration)
                                         .within(shortest_bundle_time, longest_bundle_time)
                                         .by_default(std::chrono::minutes(30)),
                                     may_have("activeOnly", Form::flag).by_default(false),
                                     may_have("errorText", Form::text),
                                     may_have("onError", Form::name),
                                     may_have("urlToken", Form::text),
                                     may_have("output", Form::mapping).of(output_keys)};
inline constexpr Key quiet_hours_keys[]{must_have("from", Form::text), must_have("to", Form::text),
                                        must_have("timezone", Form::text)};
inline constexpr Key journey_keys[]{
    must_have("after", Form::duration).within(shortest_bundle_time, longest_bundle_time),
    may_have("text", Form::local_text),
    may_have("flow", Form::name),
    may_have("endpoint", Form::name),
    may_have("quietHours", Form::mapping).of(quiet_hours_keys),
    may_have("expiresAfter", Form::duration).within(shortest_bundle_time, longest_bundle_time),
    may_have("maxPerSession", Form::number).within(1, 1000).by_default(default_per_session),
    may_have("maxPerDay", Form::number).within(1, 1000)};
inline constexpr Key proactive_keys[]{must_have("journey", Form::mapping).of(journey_keys)};

inline constexpr Key bundle_keys[]{
    must_have("conversed", Form::number).within(1, 1),
    must_have("project", Form::mapping).of(project_keys),
    may_have("members", Form::mappings).of(member_keys),
    may_have("tokens", Form::mappings).of(token_keys),
    may_have("connections", Form::mappings).of(connection_keys),
    may_have("lexicons", Form::mappings).of(lexicon_keys),
    may_have("knowledgeStores", Form::mappings).of(knowledge_store_keys),
    may_have("flows", Form::mappings).of(flow_keys),
    may_have("endpoints", Form::mappings).of(endpoint_keys),
    may_have("proactive", Form::mapping).of(proactive_keys)};

}  // namespace conversed::flows
