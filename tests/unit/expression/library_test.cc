// Methods and functions.
#include "tests/unit/expression/evaluate.h"

namespace conversed::flows::expression {
namespace {

TEST(Library, TextsHaveTheirEverydayMethods) {
  check({{"'abc'.at(-1)", "\"c\""},
         {"'abc'.charAt(9)", "\"\""},
         {"'abcabc'.lastIndexOf('b')", "4"},
         {"'aaaa'.lastIndexOf('aa')", "2"},
         {"'abc'.slice(-2)", "\"bc\""},
         {"'abc'.substring(2, 0)", "\"ab\""},
         {"'a-b-c'.replace('-', '[$&$$]')", "\"a[-$]b-c\""},
         {"'a-b-c'.replaceAll('-', '')", "\"abc\""},
         {"'abc'.replaceAll('', '.')", "\".a.b.c.\""},
         {"'a,b,,c'.split(',')", R"(["a","b","","c"])"},
         {"'a,b'.split(',', 1)", "[\"a\"]"},
         {"''.split(',')", "[\"\"]"},
         {"''.split('')", "[]"},
         {"'\\u00a0\\ufeff x\\t'.trim()", "\"x\""},
         {"'straße'.toUpperCase()", "\"STRASSE\""},
         {"'ΑΣ'.toLowerCase()", "\"ας\""},
         {"'İ'.toLowerCase().length", "2"},
         {"'5'.padStart(3, '0')", "\"005\""},
         {"'a'.padEnd(6, 'xy')", "\"axyxyx\""},
         {"'ab'.repeat(3)", "\"ababab\""},
         {"'ab'.repeat(-1)", "error: column 6: repeat() takes a count from 0 on"},
         {"'abc'.concat(1, null)", "\"abc1null\""},
         {"'abc'.endsWith('b', 2)", "true"},
         {"'a😀b'.startsWith('b', 2)", "false"},
         {"'a😀b'.endsWith('😀', 2)", "false"},
         {"'a😀b'.indexOf('', 2)", "2"}});
}

TEST(Library, ArraysHaveTheirEverydayMethods) {
  check({{"[3, 20, 100].sort()", "[100,20,3]"},
         {"[3, 20, 100].sort((a, b) => b - a)", "[100,20,3]"},
         {"[2, undefined, 1].sort((a, b) => a - b)", "[1,2,null]"},
         {"[1, [2, [3, [4]]]].flat()", "[1,2,[3,[4]]]"},
         {"[1, [2, [3]]].flat(Infinity)", "[1,2,3]"},
         {"[1, 2, 3].at(-1)", "3"},
         {"[NaN].includes(NaN)", "true"},
         {"[NaN].indexOf(NaN)", "-1"},
         {"[1, null, [2, undefined]].join('-')", "\"1--2,\""},
         {"[1].concat([2, [3]], 4)", "[1,2,[3],4]"},
         {"[1, 2, 3].findLast(x => x < 3)", "2"},
         {"[1, 2, 3].slice(-2, -1)", "[2]"},
         {"['b', 'a'].map((x, i, all) => all.length + i + x)", "[\"2b\",\"3a\"]"},
         {"[1, 2, 3].reduceRight((a, b) => a + '' + b)", "\"321\""},
         {"[[1, 2], [3]].flatMap(x => x)", "[1,2,3]"}});
}

TEST(Library, SortingIsStableAndSurvivesAnyComparator) {
  check({{"[[1, 'b'], [0, 'x'], [1, 'a']].sort((a, b) => a[0] - b[0]).map(x => x[1]).join('')",
          "\"xba\""}});
  const std::string sorted =
      result_of("[5, 3, 9, 1, 7, 2, 8].sort(() => Math.random() - 0.5).length");
  EXPECT_EQ(sorted, "7");
  EXPECT_EQ(result_of("[5, 3, 9].sort(() => 1).length + [5, 3, 9].sort(() => NaN).length"), "6");
}

TEST(Library, JsonGoesBothWays) {
  check(
      {{R"(JSON.stringify({b: [1, "x", null, undefined], a: undefined}))",
        R"("{\"b\":[1,\"x\",null,null]}")"},
       {"JSON.stringify([1, {a: 2}], null, 2)", "\"[\\n  1,\\n  {\\n    \\\"a\\\": 2\\n  }\\n]\""},
       {"JSON.stringify(undefined)", "undefined"},
       {"JSON.stringify([])", "\"[]\""},
       {R"(JSON.stringify('\u0001\n"'))", R"("\"\\u0001\\n\\\"\"")"},
       {R"(JSON.parse('{"b": [1, 2.5, "x", true, null], "a": {}}'))",
        R"({"a":{},"b":[1,2.5,"x",true,null]})"},
       {R"(Object.keys(JSON.parse('{"b": 1, "a": 2, "b": 3}')))", R"(["b","a"])"},
       {R"(JSON.parse('12345678901234567890'))", "12345678901234567890"},
       {"JSON.parse('[1,')", "error: column 6: JSON.parse: not JSON at byte 4"},
       {R"(JSON.parse('[1]\u0000x'))", "error: column 6: JSON.parse: not JSON"}});
}

TEST(Library, ObjectsCanBeTakenApart) {
  check({{"Object.entries({a: 1, b: [2]})", R"([["a",1],["b",[2]]])"},
         {"Object.values({a: 1, b: 2})", "[1,2]"},
         {"Object.keys(['x', 'y'])", R"(["0","1"])"},
         {"Object.fromEntries([['a', 1], ['b', 2]])", R"({"a":1,"b":2})"},
         {"Object.keys(null)", "error: column 8: undefined and null have no properties"},
         {"'a' in {a: undefined}", "true"},
         {"1 in [5]", "false"},
         {"'length' in []", "true"},
         {"({a: 1}).hasOwnProperty('a')", "true"},
         {"Array.isArray([]) && !Array.isArray({})", "true"}});
}

TEST(Library, MathAndNumbersAreJavaScripts) {
  check({{"Math.round(2.5)", "3"},
         {"Math.round(-2.5)", "-2"},
         {"Math.round(0.49999999999999994)", "0"},
         {"Math.max() < 0", "true"},
         {"Math.min(1, 'x')", "null"},
         {"1 / Math.max(-0, 0) > 0", "true"},
         {"Math.sign(-3)", "-1"},
         {"Math.hypot(3, 4)", "5"},
         {"Math.trunc(-4.7)", "-4"},
         {"Number.isInteger(5.0)", "true"},
         {"Number.isInteger('5')", "false"},
         {"Number.MAX_SAFE_INTEGER", "9007199254740991"},
         {"isNaN('x')", "true"},
         {"Number.isNaN('x')", "false"},
         {"Math.PI.toFixed(5)", "\"3.14159\""}});
}

TEST(Library, DatesAreParsedAsUtc) {
  check({{"Date.parse('1970-01-01')", "0"},
         {"Date.parse('2024-02-29T12:00:00Z')", "1709208000000"},
         {"Date.parse('2024-02-29T12:00:00.250+02:00')", "1709200800250"},
         {"Date.parse('2024-02-29 12:00z')", "1709208000000"},
         {"Date.parse('2024-02-29 12:00:00.')", "null"},
         {"Date.parse('2024-02-30')", "null"},
         {"Date.parse('2024')", "1704067200000"},
         {"Date.parse('yesterday')", "null"},
         {"Date.parse('2024-01-01T24:00Z')", "1704153600000"},
         {"Date.parse('2024-01-01T25:00Z')", "null"}});
}

TEST(Library, UrisAreEncoded) {
  check({{"encodeURIComponent('a b&ü😀/')", "\"a%20b%26%C3%BC%F0%9F%98%80%2F\""},
         {"encodeURI('a b/?ü')", "\"a%20b/?%C3%BC\""},
         {"decodeURIComponent('%C3%BC%20')", "\"ü \""},
         {"decodeURIComponent('%C3')", "error: column 1: not URI encoded"},
         {"decodeURIComponent('%2')", "error: column 1: not URI encoded"},
         {"encodeURIComponent('\\ud800')", "error: column 1: half of a character"}});
}

}  // namespace
}  // namespace conversed::flows::expression
