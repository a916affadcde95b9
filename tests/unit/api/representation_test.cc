// JSON, HAL, XML and CSV of one document, and the choice between them.
// tests/integration/test_nine.py reads them with independent parsers.
#include <gtest/gtest.h>

#include "api/representation/document.h"
#include "api/representation/media_type.h"

namespace conversed::api {
namespace {

constexpr std::string_view nil = " xsi:nil=\"true\"";

Document object(Value value) {
  return {.name = "thing", .value = std::move(value), .list = std::nullopt};
}

Document list(ListForm::Json json) {
  Document document{.name = "things",
                    .value = Value::array({{{"a", 1}, {"b", {1, "x"}}}, {{"a", nullptr}}}),
                    .list = ListPage{.form = {.json = json, .root = "things", .item = "thing"},
                                     .columns = {"a", "b"},
                                     .total = 7,
                                     .next_cursor = "n",
                                     .previous_cursor = {}}};
  document.links = {.self = "/s", .next = "/n", .previous = {}};
  return document;
}

std::string to_csv(const Document& document) {
  return write(document, MediaType::csv);
}

// The XML without its declaration and its root element.
std::string inner_xml(const Document& document) {
  const std::string text = write(document, MediaType::xml);
  const std::string begin = "<" + std::string(document.name) +
                            " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">";
  const std::string end = "</" + std::string(document.name) + ">\n";
  EXPECT_TRUE(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + begin)) << text;
  EXPECT_TRUE(text.ends_with(end)) << text;
  const auto from = text.find(begin) + begin.size();
  return text.substr(from, text.size() - end.size() - from);
}

TEST(Negotiation, HighestWeightWinsThenTheMostExactThenTheFirst) {
  const std::pair<std::string_view, MediaType> rows[] = {
      {"", MediaType::json},
      {"*/*", MediaType::json},
      {"application/*", MediaType::json},
      {"text/*", MediaType::text_xml},
      {"application/json", MediaType::json},
      {"application/hal+json", MediaType::hal},
      {"application/xml", MediaType::xml},
      {"text/xml", MediaType::text_xml},
      {"text/csv", MediaType::csv},
      {"TEXT/CSV", MediaType::csv},
      {" text/csv ; charset=utf-8 ; q=0.3 , application/xml ; Q=0.4 ", MediaType::xml},
      {"text/csv;q=0.5, application/xml;q=0.9, */*;q=0.1", MediaType::xml},
      {"*/*, text/csv", MediaType::csv},
      {"application/*;q=0.8, text/csv;q=0.8", MediaType::csv},
      {"text/csv, application/xml", MediaType::csv},
      {"application/xml, text/csv", MediaType::xml},
      {"*/*, application/json;q=0", MediaType::hal},
      {"application/json;q=0, text/csv;q=0.001", MediaType::csv},
      {"application/xml;q=0.000, text/xml;q=1.000", MediaType::text_xml},
      {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", MediaType::xml},
      // An unsupported media type or an invalid media range has no effect.
      {"image/png", MediaType::json},
      {"*/*;q=0", MediaType::json},
      {"text/csv;q=2", MediaType::json},
      {"text/csv;q=0.5x, application/xml;q=0.1", MediaType::xml},
      {"text/csv;q=, ;;, /, csv", MediaType::json},
      {"text/plain;a=\"x,text/csv\", application/xml", MediaType::xml},
      {"*/xml", MediaType::json},
  };
  for (const auto& [accept, type] : rows) {
    Request request;
    request.headers = {{"accept", std::string(accept)}};
    EXPECT_EQ(negotiate(request), type) << accept;
  }
  EXPECT_EQ(negotiate(Request{}), MediaType::json);
}

TEST(Negotiation, SeveralHeadersAreOneList) {
  Request request;
  request.headers = {{"accept", "text/csv;q=0.2"}, {"x-other", "*/*"}, {"accept", "text/xml"}};
  EXPECT_EQ(negotiate(request), MediaType::text_xml);
  EXPECT_EQ(content_type(MediaType::text_xml), "text/xml; charset=utf-8");
}

TEST(Representation, ListsAsJsonAndHal) {
  EXPECT_EQ(write(list(ListForm::Json::bare_array), MediaType::json),
            R"([{"a":1,"b":[1,"x"]},{"a":null}])");
  EXPECT_EQ(write(list(ListForm::Json::object), MediaType::json),
            R"({"items":[{"a":1,"b":[1,"x"]},{"a":null}],"total":7,"nextCursor":"n",)"
            R"("previousCursor":null})");
  const std::string hal =
      R"({"_links":{"self":{"href":"/s"},"next":{"href":"/n"}},"total":7,"nextCursor":"n",)"
      R"("previousCursor":null,"_embedded":{"items":[{"a":1,"b":[1,"x"]},{"a":null}]}})";
  EXPECT_EQ(write(list(ListForm::Json::object), MediaType::hal), hal);
  EXPECT_EQ(write(list(ListForm::Json::bare_array), MediaType::hal), hal);
  EXPECT_EQ(write(object({{"b", 1}, {"a", 2}}), MediaType::hal),
            R"({"_links":{"self":{"href":""}},"b":1,"a":2})");
}

TEST(Representation, XmlHasAnElementAMember) {
  EXPECT_EQ(inner_xml(object({{"text", "a<b>&\r\n\t\"c\""},
                              {"yes", true},
                              {"n", -1.5},
                              {"none", nullptr},
                              {"empty", ""},
                              {"list", {1, "two", {3, 4}}},
                              {"nothing", Value::array()},
                              {"inner", {{"x", Value::object()}}}})),
            "<text>a&lt;b&gt;&amp;&#13;\n\t&quot;c&quot;</text><yes>true</yes><n>-1.5</n><none" +
                std::string(nil) +
                "/><empty></empty><list>1</list><list>two</list><list><item>3</item>"
                "<item>4</item></list><inner><x></x></inner>");
  EXPECT_EQ(inner_xml(list(ListForm::Json::object)),
            "<items><thing><a>1</a><b>1</b><b>x</b></thing><thing><a" + std::string(nil) +
                "/></thing></items><total>7</total><nextCursor>n</nextCursor><previousCursor" +
                std::string(nil) + "/>");
  EXPECT_EQ(inner_xml(list(ListForm::Json::bare_array)),
            "<thing><a>1</a><b>1</b><b>x</b></thing><thing><a" + std::string(nil) + "/></thing>");
}

TEST(Representation, WhatXmlForbidsIsReplacedInTextAndEscapedInNames) {
  const std::string nul(1, '\0');
  EXPECT_EQ(inner_xml(object({{"t", "a" + nul + "\x01\x1F\x7F\uFFFE\uFFFF\U0010FFFF\u00DF"}})),
            "<t>a\uFFFD\uFFFD\uFFFD\x7F\uFFFD\uFFFD\U0010FFFF\u00DF</t>");
  EXPECT_EQ(inner_xml(object({{"t", "a\xC3"}})), "<t>a\uFFFD</t>") << "the text is not UTF-8";
  const std::pair<std::string, std::string> names[] = {
      {"_id", "_id"},
      {"a b", "a_x0020_b"},
      {"1st", "_x0031_st"},
      {"a:b", "a_x003A_b"},
      {"x-1.2", "x-1.2"},
      {"-x", "_x002D_x"},
      {"_x0041_", "_x005F_x0041_"},
      {"\u00FC\U0001F600", "_x00FC__x1F600_"},
      {"<>", "_x003C__x003E_"},
      {"", "_"},
  };
  for (const auto& [member, name] : names) {
    EXPECT_EQ(inner_xml(object({{member, 1}})), "<" + name + ">1</" + name + ">");
  }
}

TEST(Representation, CsvQuotesNestsAndDisarms) {
  EXPECT_EQ(to_csv(list(ListForm::Json::bare_array)), "a,b\r\n1,\"[1,\"\"x\"\"]\"\r\n,\r\n");
  Document none = list(ListForm::Json::object);
  none.value = Value::array();
  EXPECT_EQ(to_csv(none), "a,b\r\n");
  EXPECT_EQ(to_csv(object({{"text", "a \"b\", c"},
                           {"lines", "x\r\ny"},
                           {"yes", true},
                           {"none", nullptr},
                           {"inner", {{"x", 1}}}})),
            "text,lines,yes,none,inner\r\n"
            "\"a \"\"b\"\", c\",\"x\r\ny\",true,,\"{\"\"x\"\":1}\"\r\n");
  for (const char* const formula : {"=1+1", "+1", "-1", "@x", "\tx"}) {
    EXPECT_EQ(to_csv(object({{"t", formula}})), "t\r\n'" + std::string(formula) + "\r\n");
  }
  // Spreadsheets skip an empty line before a formula.
  EXPECT_EQ(to_csv(object({{"t", "\r=1"}})), "t\r\n\"'\r=1\"\r\n");
  EXPECT_EQ(to_csv(object({{"t", "\n=1"}})), "t\r\n\"'\n=1\"\r\n");
  EXPECT_EQ(to_csv(object({{"n", -5}})), "n\r\n'-5\r\n");
  EXPECT_EQ(to_csv(object({{"t", "a=b"}})), "t\r\na=b\r\n");
  EXPECT_EQ(to_csv(object({{"t", "=a,\"b\""}})), "t\r\n\"'=a,\"\"b\"\"\"\r\n");
  EXPECT_EQ(to_csv(object({{"t", ""}})), "t\r\n\"\"\r\n") << "readers skip an empty line";
}

}  // namespace
}  // namespace conversed::api
