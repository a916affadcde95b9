#include "store/knowledge.h"

#include "store/database.h"
#include "store/knowledge_index.h"
#include "store/sql.h"

namespace conversed::store {

std::unique_ptr<KnowledgeSearch> make_knowledge_search(Database& database) {
  switch (database.dialect()) {
    case Dialect::sqlite:
      return make_sqlite_knowledge_search(database);
    case Dialect::postgres:
      break;
  }
  return make_postgres_knowledge_search(database);
}

void index_knowledge(Connection& connection) {
  switch (connection.dialect()) {
    case Dialect::sqlite:
      return index_knowledge_in_sqlite(connection);
    case Dialect::postgres:
      break;
  }
  index_knowledge_in_postgres(connection);
}

}  // namespace conversed::store
