#include "store/sql/fts_rank.h"

#include <sqlite3.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "store/text/knowledge_words.h"

namespace conversed::store {
namespace {

constexpr double saturation = rank_saturation;
constexpr double length_share = rank_length_share;
constexpr double millionths = 1e6;

// Values that are the same for all rows of one query.
struct Weights {
  std::vector<double> of_phrase;
  double most = 0;  // above the rank of any row
  double average_length = 1;
};

struct Count {
  const GoOn* const* asked;
  std::int64_t rows = 0;
};

int count_row(const Fts5ExtensionApi*, Fts5Context*, void* counted) {
  constexpr std::int64_t rows_a_question = 256;
  auto& count = *static_cast<Count*>(counted);
  const bool asks = ++count.rows % rows_a_question == 0;
  return asks && !goes_on(*count.asked) ? SQLITE_INTERRUPT : SQLITE_OK;
}

int weigh(const Fts5ExtensionApi* api, Fts5Context* query, double rows, double terms,
          Weights& weights) {
  weights.average_length = rows > 0 && terms > 0 ? terms / rows : 1;
  const int phrases = api->xPhraseCount(query);
  for (int i = 0; i < phrases; ++i) {
    Count count{.asked = static_cast<const GoOn* const*>(api->xUserData(query))};
    if (!goes_on(*count.asked)) return SQLITE_INTERRUPT;
    if (const int code = api->xQueryPhrase(query, i, &count, count_row); code != SQLITE_OK) {
      return code;
    }
    weights.of_phrase.push_back(rank_weight(rows, static_cast<double>(count.rows)));
    weights.most += weights.of_phrase.back() * (saturation + 1);
  }
  return SQLITE_OK;
}

void delete_weights(void* weights) {
  delete static_cast<Weights*>(weights);
}

int score(const Fts5ExtensionApi* api, Fts5Context* query, const Weights& weights, double& total) {
  std::vector<double> times(weights.of_phrase.size(), 0);
  int hits = 0;
  if (const int code = api->xInstCount(query, &hits); code != SQLITE_OK) return code;
  for (int i = 0; i < hits; ++i) {
    int phrase = 0;
    int column = 0;
    int offset = 0;
    const int code = api->xInst(query, i, &phrase, &column, &offset);
    if (code != SQLITE_OK) return code;
    times[static_cast<std::size_t>(phrase)] += 1;
  }
  int length = 0;
  if (const int code = api->xColumnSize(query, -1, &length); code != SQLITE_OK) return code;
  const double longness = 1 - length_share + length_share * length / weights.average_length;
  for (std::size_t i = 0; i < times.size(); ++i) {
    total +=
        weights.of_phrase[i] * times[i] * (saturation + 1) / (times[i] + saturation * longness);
  }
  return SQLITE_OK;
}

int rank(const Fts5ExtensionApi* api, Fts5Context* query, double rows, double terms, double& ppm) {
  auto* weights = static_cast<Weights*>(api->xGetAuxdata(query, 0));
  if (weights == nullptr) {
    auto made = std::make_unique<Weights>();
    if (const int code = weigh(api, query, rows, terms, *made); code != SQLITE_OK) return code;
    weights = made.release();
    // On a failure, too, FTS5 deletes it.
    if (const int code = api->xSetAuxdata(query, weights, delete_weights); code != SQLITE_OK) {
      return code;
    }
  }
  double total = 0;
  if (const int code = score(api, query, *weights, total); code != SQLITE_OK) return code;
  ppm = weights->most > 0 ? millionths * total / weights->most : 0;
  return SQLITE_OK;
}

// C calls it, so nothing may be thrown.
void knowledge_rank(const Fts5ExtensionApi* api, Fts5Context* query, sqlite3_context* context,
                    int count, sqlite3_value** values) noexcept {
  if (count != 2) {
    sqlite3_result_error(context, "knowledge_rank takes the numbers of rows and terms", -1);
    return;
  }
  try {
    double ppm = 0;
    const int code =
        rank(api, query, sqlite3_value_double(values[0]), sqlite3_value_double(values[1]), ppm);
    if (code != SQLITE_OK) {
      sqlite3_result_error_code(context, code);
    } else {
      sqlite3_result_int64(context, std::llround(ppm));
    }
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

}  // namespace

int add_knowledge_rank(sqlite3* handle, const GoOn* const& go_on) {
  fts5_api* fts = nullptr;
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(handle, "SELECT fts5(?1)", -1, &statement, nullptr);
  if (code != SQLITE_OK) return code;
  sqlite3_bind_pointer(statement, 1, static_cast<void*>(&fts), "fts5_api_ptr", nullptr);
  sqlite3_step(statement);
  code = sqlite3_finalize(statement);
  if (code != SQLITE_OK) return code;
  if (fts == nullptr) return SQLITE_ERROR;
  // SQLite passes the pointer to the function unchanged.
  return fts->xCreateFunction(fts, "knowledge_rank", const_cast<GoOn**>(&go_on), knowledge_rank,
                              nullptr);
}

}  // namespace conversed::store
