// A sample request for each operation, about given objects.
#pragma once

#include <optional>
#include <string>

#include "api/operation.h"
#include "tests/unit/api/authorization_world.h"

namespace conversed::api::test {

// The owner of the object that an operation works on. It decides where the role must be held.
enum class Scope {
  open,          // no role
  project,       // an object of a project: the role in the project or in the whole organisation
  named,         // a project by its name, which may be missing: both give the same answer
  membership,    // the role in any project
  account,       // the user's own account; accounts of others need userAdmin
  organisation,  // an object of the organisation outside its projects
  installation,  // an object outside the organisations
};

struct SampleRequest {
  Sent sent;
  Scope scope = Scope::project;
  int hidden_status = 404;  // the status for a foreign or missing object
  // Without the role the request is refused before the object is looked up.
  bool refused_unseen = false;
};

// The request follows from the operation's row in the table and the rules of the API. Some
// operations also need a body or a query from authorization_samples.cc. Nothing if that entry is
// missing.
[[nodiscard]] std::optional<SampleRequest> sample_request(const Operation& operation,
                                                          const Objects& objects);

}  // namespace conversed::api::test
