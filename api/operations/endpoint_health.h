#pragma once

#include <string>
#include <string_view>

#include "api/openapi/shape.h"
#include "api/services.h"
#include "store/conversation/endpoint_health.h"
#include "store/model/result.h"

namespace conversed::api {

// How the Endpoint's webhook fails by all shards: as in the shard in which it fails longest, with
// the newest error. Paused if it is paused in one of them.
[[nodiscard]] model::Result<store::EndpointFailure> worst_health(store::Store& store,
                                                                 const std::string& endpoint_id);
// "works", "fails" or "paused".
[[nodiscard]] std::string_view webhook_state(const store::EndpointFailure& failure);
[[nodiscard]] openapi::Schema webhook_state_schema();
// The health of a webhook, with times by the wall clock. An Endpoint without a row works.
[[nodiscard]] const openapi::Shape<store::EndpointFailure>& webhook_health();
// The Endpoint's deliveries of the last minutes. Null: this daemon does not deliver.
[[nodiscard]] Value delivery_rate_json(const DeliveryRates& rates, const std::string& endpoint_id);
[[nodiscard]] openapi::Schema delivery_rate_schema();

}  // namespace conversed::api
