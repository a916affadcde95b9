#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

constinit const NodeType cancel_follow_up_node{
    .name = "cancelFollowUp",
    .summary =
        "Cancels all follow-ups of the session. No journey begins before the user's next message.",
    .free_form = true,
    .example = "- cancelFollowUp: true\n",
    .create = ChangeNode<&Turn::cancel_follow_ups>::create};

}  // namespace conversed::flows
