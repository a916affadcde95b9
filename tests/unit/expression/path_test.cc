#include "flows/expression/path.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace conversed::flows::expression {
namespace {

using model::Errc;
using nlohmann::json;

// The root after `path = value`, or the error.
std::string assigned(std::string_view path, const char* root, json value = 1) {
  json changed = json::parse(root);
  const auto result = Path::compile(path)->assign(changed, std::move(value));
  return result ? changed.dump() : result.error().message;
}

std::string erased(std::string_view path, const char* root) {
  json changed = json::parse(root);
  return Path::compile(path)->erase(changed) ? changed.dump() : "not there";
}

TEST(Path, CreatesMissingObjectsOnTheWay) {
  EXPECT_EQ(assigned("context.a", "{}"), R"({"a":1})");
  EXPECT_EQ(assigned("context.a.b.c", "{}"), R"({"a":{"b":{"c":1}}})");
  EXPECT_EQ(assigned("context.a[2].b", R"({"a":null})"), R"({"a":[null,null,{"b":1}]})");
  EXPECT_EQ(assigned("profile['first name']", "null"), R"({"first name":1})");
  EXPECT_EQ(assigned("context.cart.items[0].price", R"({"cart":{"items":[{"name":"pen"}]}})"),
            R"({"cart":{"items":[{"name":"pen","price":1}]}})");
  EXPECT_EQ(assigned("context.a[1]", R"({"a":{"1":0}})"), R"({"a":{"1":1}})");
}

TEST(Path, ReplacesAPresentValue) {
  EXPECT_EQ(assigned("context.a", R"({"a":{"b":2}})", nullptr), R"({"a":null})");
  EXPECT_EQ(assigned("context.__proto__", "{}"), R"({"__proto__":1})");
}

TEST(Path, ChangesNothingWhereItCannotGo) {
  EXPECT_EQ(assigned("context.a.b", R"({"a":5})"), "context.a.b: can't set 'b' of a number");
  EXPECT_EQ(assigned("context.a.b", R"({"a":[5]})"), "context.a.b: can't set 'b' of an array");
  json root = json::parse(R"({"x":{"a":"text"}})");
  const json before = root;
  EXPECT_FALSE(Path::compile("context.x.a[3].b")->assign(root, 1));
  EXPECT_EQ(root, before);
}

TEST(Path, ErasesNamesAndClosesGaps) {
  EXPECT_EQ(erased("context.a.b", R"({"a":{"b":1,"c":2}})"), R"({"a":{"c":2}})");
  EXPECT_EQ(erased("context.a[0]", R"({"a":[1,2]})"), R"({"a":[2]})");
  EXPECT_EQ(erased("context.a[5]", R"({"a":[1,2]})"), "not there");
  EXPECT_EQ(erased("context.a.b.c", R"({"a":1})"), "not there");
}

TEST(Path, FindsThePlaceThatItAssigns) {
  const auto found = [](std::string_view path, const char* root) -> json {
    const json value = json::parse(root);
    const auto* at = Path::compile(path)->find(value);
    return at == nullptr ? json("not there") : *at;
  };
  EXPECT_EQ(found("context.a.b", R"({"a":{"b":null}})"), nullptr);
  EXPECT_EQ(found("context.a[1]", R"({"a":[1,2]})"), 2);
  EXPECT_EQ(found("context.a[1]", R"({"a":{"1":3}})"), 3);
  for (const auto* root : {"null", "{}", R"({"a":5})", R"({"a":[1]})", R"({"a":{"c":1}})"}) {
    EXPECT_EQ(found("context.a.b", root), "not there") << root;
    EXPECT_EQ(found("context.a[1]", root), "not there") << root;
  }
}

TEST(Path, MayOverlapWithinAPlaceAndBehindAnIndex) {
  const auto may = [](std::string_view one, std::string_view other) {
    const bool both = Path::compile(one)->may_overlap(*Path::compile(other));
    EXPECT_EQ(Path::compile(other)->may_overlap(*Path::compile(one)), both);
    return both;
  };
  EXPECT_TRUE(may("context.a", "context['a'].b"));
  EXPECT_TRUE(may("context.a[0]", "context.a[1].b"));
  EXPECT_TRUE(may("context.a[0]", "context.a['0']"));
  EXPECT_FALSE(may("context.a", "context.b"));
  EXPECT_FALSE(may("context.a.b", "context.a.c"));
  EXPECT_FALSE(may("context.a", "profile.a"));
}

TEST(Path, KnowsItsRoot) {
  EXPECT_EQ(Path::compile("context.a")->root(), Path::Root::context);
  EXPECT_EQ(Path::compile(" profile.a ")->root(), Path::Root::profile);
  EXPECT_EQ(Path::compile(" profile.a ")->text(), "profile.a");
}

TEST(Path, AnInvalidPathIsAnErrorWithItsColumn) {
  const auto message = [](std::string_view source) {
    return Path::compile(source).error().message;
  };
  EXPECT_EQ(message("input.text"),
            "column 1: a place to store to begins with 'context.' or 'profile.'");
  EXPECT_EQ(message("context"), "column 8: expected '.' and a name");
  EXPECT_EQ(message("context."), "column 9: expected a name after '.'");
  EXPECT_EQ(message("context[x]"), "column 9: expected an index or a quoted name");
  EXPECT_EQ(message("context.a[1.5]"), "column 11: expected an index or a quoted name");
  EXPECT_EQ(message("context.a[10000]"), "column 11: an index can be at most 9999");
  const std::string letters =
      " is no part of a name; a name has letters, digits and _. Write another name between [\" and "
      "\"]";
  EXPECT_EQ(message("context.a + 1"), "column 11: '+'" + letters);
  EXPECT_EQ(message("context.order-id"), "column 14: '-'" + letters);
  EXPECT_EQ(message("context.order id"), "column 15: a blank or another character" + letters);
  EXPECT_EQ(message("context.a["), "column 11: expected an index or a quoted name");
  EXPECT_EQ(message("context.a[0"), "column 12: expected ']'");
}

TEST(Path, IsBounded) {
  std::string deep = "context";
  for (int i = 0; i < 33; ++i) deep += ".a";
  EXPECT_EQ(Path::compile(deep).error().code, Errc::too_large);
  EXPECT_EQ(Path::compile("context." + std::string(2000, 'a')).error().code, Errc::too_large);
}

}  // namespace
}  // namespace conversed::flows::expression
