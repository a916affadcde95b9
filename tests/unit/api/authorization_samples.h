// A sample request for each operation, about given objects.
#pragma once

#include <optional>
#include <string>

#include "api/operation.h"
#include "tests/unit/api/authorization_world.h"

namespace conversed::api::test {

// Whose the thing is that an operation works on, which decides what its role means.
enum class Scope {
  open,          // nobody is asked
  project,       // an object of a project: the role there, or in the whole organisation
  named,         // a project by its name, which need not be there yet: never told apart
  membership,    // any project will do
  account,       // one's own account; those of others take userAdmin
  organisation,  // what the organisation has beside its projects
  installation,  // what there is beside the organisations
};

struct SampleRequest {
  Sent sent;
  Scope scope = Scope::project;
  int hidden_status = 404;  // of what is foreign or missing
  // Without the role, what others have is refused before it is looked for.
  bool refused_unseen = false;
};

// What the operation's row in the table and the rules of the API say; a few operations need a body
// or a query beside it, which authorization_samples.cc has. Nothing when it has not.
[[nodiscard]] std::optional<SampleRequest> sample_request(const Operation& operation,
                                                          const Objects& objects);

}  // namespace conversed::api::test
