#pragma once

#include "api/http/http.h"
#include "api/openapi/description.h"
#include "api/services.h"
#include "flows/time/schedule_times.h"
#include "store/model/result.h"
#include "store/model/schedule.h"

// What routes that put things off have in common. They run on the management pool, so all of this
// may block.
namespace conversed::api {

// `at`, `in`, `cron` and `timezone` of the body. `invalid_argument` for other types.
[[nodiscard]] model::Result<flows::ScheduleWish> read_times(const Request& request);

// The schedule as it comes by the wish, which is stored unless it is a dry run, and told to the
// scheduler. Errors: `invalid_argument`, naming the member; those of store::Schedules.
enum class DryRun : bool { no, yes };
[[nodiscard]] model::Result<model::Schedule> move_schedule(SessionServices& services,
                                                           model::Schedule schedule,
                                                           const flows::ScheduleWish& wish,
                                                           DryRun dry_run);

// What the OpenAPI document says of that body.
[[nodiscard]] openapi::Schema schedule_times_schema();

}  // namespace conversed::api
