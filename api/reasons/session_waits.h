#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "store/conversation/calls.h"
#include "store/model/clock.h"
#include "store/model/reason.h"
#include "store/model/session.h"

// The reasons of sessions and their words. Pure.
namespace conversed::api {

[[nodiscard]] std::string name_of(const model::SessionKey& key);

// "The Flow Orders, at the Node main/3,"
[[nodiscard]] std::string place_of(const model::Session& session);

// A call that is being made, or waits for its next try. `place`: the subject's first words.
// `offset`: of the clock of timers.
[[nodiscard]] model::Wait wait_of_call(const store::Calls::Shown& call, const std::string& place,
                                       std::optional<model::Timestamp> calling_since,
                                       model::Timestamp now, std::chrono::milliseconds offset);

// A session that is not busy waits for an input, at most until its timer is due. Without a timer it
// waits as long as it takes.
[[nodiscard]] model::Wait wait_of_input(const std::string& timer_id, const std::string& place,
                                        std::optional<model::Timestamp> due);

// A session that is not busy, and waits at a Node whose timer is gone, or which has none.
[[nodiscard]] std::optional<model::Wait> wait_without_timer(const nlohmann::json& flow_state);

}  // namespace conversed::api
