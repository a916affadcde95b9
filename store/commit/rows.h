#pragma once

namespace conversed::store {

class Committer;
class Database;

// The base of classes that keep rows: they read by connections of the database and write through
// the Committer. Both must outlive it.
class Rows {
 public:
  Rows(Database& database, Committer& committer) : database_(database), committer_(committer) {}

 protected:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
