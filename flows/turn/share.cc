#include "flows/turn/share.h"

#include "flows/expression/scope.h"

namespace conversed::flows {

std::uint64_t hash_of(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

double fixed_draw(const model::SessionKey& session, std::initializer_list<std::string_view> names) {
  std::uint64_t seed = hash_begin;
  const auto add = [&seed](std::string_view part) { seed = hash_of("\n", hash_of(part, seed)); };
  for (const auto* part :
       {&session.project_id, &session.endpoint_id, &session.user_id, &session.session_id}) {
    add(*part);
  }
  for (const auto name : names) add(name);
  return expression::Random(seed).next();
}

std::int64_t version_for(const model::ProjectAssets& assets, std::string_view flow_id,
                         const model::SessionKey& session) {
  const auto found = assets.ramps.find(flow_id);
  if (found == assets.ramps.end()) return 0;
  constexpr double percent = 100;
  const model::Ramp& ramp = found->second;
  const bool is_in = fixed_draw(session, {flow_id, "ramp"}) * percent < double(ramp.share);
  return is_in ? ramp.version : 0;
}

}  // namespace conversed::flows
