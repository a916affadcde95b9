#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api/openapi/description.h"
#include "api/operation.h"
#include "api/services.h"
#include "store/model/result.h"

namespace conversed::api {

// A job that works on all rows that fit a filter (daemon/jobs/bulk_work.h).
struct BulkJob {
  std::string_view type;
  std::string name;
  std::string project_id;
  nlohmann::json filter;  // store/conversation/filters.h
};

// Creates the job. Answers 202 with it, or 409 while the project has an unfinished one of its type.
[[nodiscard]] model::Result<Response> start_bulk_job(const Call& call, SessionServices& services,
                                                     const BulkJob& wanted);
// Its answer in the document.
[[nodiscard]] openapi::Success bulk_job_answer();

}  // namespace conversed::api
