#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

constinit const NodeType stop_node{
    .name = "stop",
    .summary = "Ends the execution. The next input starts the Flow at its beginning.",
    .free_form = true,
    .example = "- stop: true\n",
    .create = [](NodeConfig& config) {
      config.never_continues();
      config.expect_true();
      return node_of([](Turn&) -> Step { return Stop{}; });
    }};

}  // namespace conversed::flows
