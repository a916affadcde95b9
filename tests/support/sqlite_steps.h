// Counts the steps of SQLite's virtual machine: a measure of work, not of time.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstdint>

namespace conversed::tests {

// The steps of all statements that have ended on counted connections. Set it to 0 before a count.
inline std::atomic<std::int64_t> steps{0};

inline int count_steps(unsigned /*event*/, void* /*context*/, void* statement,
                       void* /*nanoseconds*/) {
  steps += sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_VM_STEP, 1);
  return 0;
}

// SQLite calls this for every connection that it opens.
inline int count_connection(sqlite3* connection, char** /*error*/, const void* /*api*/) {
  return sqlite3_trace_v2(connection, SQLITE_TRACE_PROFILE, count_steps, nullptr);
}

// Counts the steps of each connection that is opened as long as it exists. One at a time.
struct CountedConnections {
  CountedConnections() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(count_connection)); }
  ~CountedConnections() { sqlite3_reset_auto_extension(); }
  CountedConnections(const CountedConnections&) = delete;
  CountedConnections& operator=(const CountedConnections&) = delete;
};

}  // namespace conversed::tests
