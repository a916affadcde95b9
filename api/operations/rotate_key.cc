// POST /management/key/rotate: a new master key, and every sealed value sealed anew by it. Answers
// when the old key is gone from the key file. Takes the role platformAdmin.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;

// For people; empty if this daemon is the only one.
std::string other_members(DaemonServices& services) {
  const auto members = services.members ? services.members() : std::vector<MemberView>();
  if (members.size() < 2) return {};
  std::string names;
  for (const MemberView& member : members) {
    if (member.name == services.options.member_name) continue;
    names += (names.empty() ? "" : ", ") + member.name;
  }
  return names;
}

Result<Response> rotate(const Call& /*call*/, DaemonServices& services) {
  // They read the key file at their start alone, and each has a file of its own.
  if (const auto others = other_members(services); !others.empty()) {
    return model::fail(Errc::conflict,
                       "the master key is in a file of each daemon, so that one daemon alone can "
                       "rotate it; stop the others first (" +
                           others + "), and then give them the new master.key");
  }
  auto done = services.store.key_rotation().rotate();
  if (!done) return model::fail(store_error(done.error()));
  return ok({{"key", done->key}, {"resealed", done->resealed}});
}

openapi::Description describe_rotate_key() {
  using namespace openapi;
  const auto answer =
      object({{"key", described("The number of the key that seals now.", integer(1))},
              {"resealed", described("Values that were sealed anew.", integer(0))}});
  return {.summary = "Rotate the master key",
          .details =
              "If it is interrupted, both keys stay, and the next start of the daemon goes on. "
              "Of several daemons all but one have to be stopped.",
          .answers = {{.description = "The old key is gone from the key file.",
                       .content = json_content(named("KeyRotation", answer))}},
          .errors = {409, 501}};
}

}  // namespace

constinit const Operation rotate_key_operation =
    for_operators("rotateKey", Method::post, "/management/key/rotate", Role::platform_admin, rotate,
                  describe_rotate_key);

}  // namespace conversed::api
