// GET /management/history: the metrics of the last hour, for charts. They cover all organisations,
// so it requires the role platformAdmin.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/live/history.h"
#include "api/openapi/description.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "api/services.h"

namespace conversed::api {
namespace {

using model::Result;
using nlohmann::json;
using namespace openapi;

constexpr std::int64_t max_history_second = 253'402'300'799;  // of the year 9999

Schema any_number() {
  return {{"type", "number"}};
}

std::string_view figure_name(Figure figure) {
  switch (figure) {
    case Figure::value:
      return "value";
    case Figure::rate:
      return "rate";
    case Figure::median:
      return "median";
    case Figure::p99:
      return "p99";
  }
  return "";
}

Result<Response> show_history(const Call& call, DaemonServices& services) {
  const auto after = number_parameter(call.request, "after", 0, max_history_second, 0);
  if (!after) return model::fail(after.error());
  // Samples have milliseconds, and times in answers have none.
  const auto view = services.history.view(model::from_unix_ms(*after * 1000 + 999));
  json times = json::array();
  for (const auto at : view.times) times.push_back(unix_seconds(at));
  json series = json::array();
  for (const auto& each : view.series) {
    series.push_back({{"metric", each.name.metric},
                      {"figure", figure_name(each.name.figure)},
                      {"values", each.values}});  // NaN becomes null
  }
  return ok({{"interval", History::interval.count()},
             {"times", std::move(times)},
             {"series", std::move(series)}});
}

Description describe_history() {
  const auto series = object(
      {{"metric", described("As `/metrics` has it, with its labels.", text(1))},
       {"figure",
        described("`value` of a gauge; `rate` a second of a counter, or of a histogram's "
                  "observations; `median` and `p99` of the observations since the sample before.",
                  one_of({"value", "rate", "median", "p99"}))},
       {"values",
        described("One for each time; null: unknown.", list_of(nullable(any_number())))}});
  const auto body = object({{"interval", described("Between two samples, in seconds.", integer(1))},
                            {"times", list_of(unix_time())},
                            {"series", list_of(series)}});
  return {.summary = "Get the metrics of the last hour",
          .details = "In the memory of the daemon that answers, since its start.",
          .parameters = {query_parameter("after", "Only samples behind this time.",
                                         with_default(0, integer(0, max_history_second)))},
          .answers = {json_answer("The samples, the oldest first.", named("History", body))}};
}

}  // namespace

Operations history_operations() {
  static constexpr Operation rows[] = {
      for_operators("showHistory", Method::get, "/management/history", Role::platform_admin,
                    show_history, describe_history),
  };
  return rows;
}

}  // namespace conversed::api
