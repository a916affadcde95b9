// Syntax, precedence and coercion, by the tables of ECMA-262.
#include "tests/unit/expression/evaluate.h"

namespace conversed::flows::expression {
namespace {

TEST(Language, OperatorsBindAsInJavaScript) {
  check({{"1 + 2 * 3", "7"},
         {"(1 + 2) * 3", "9"},
         {"2 ** 3 ** 2", "512"},
         {"-(2 ** 2)", "-4"},
         {"10 - 4 - 3", "3"},
         {"1 + 1 == 2 && 3 > 2", "true"},
         {"1 | 2 ^ 3 & 2", "1"},
         {"1 || 0 && 0", "1"},
         {"!1 + 1", "1"},
         {"true ? 1 : false ? 2 : 3", "1"},
         {"1 << 2 + 1", "8"},
         {"'a' in {a: 1} == true", "true"},
         {"typeof 1 + 1", "\"number1\""},
         {"3 > 2 > 1", "false"},
         {"0 ?? (1 || 2)", "0"}});
}

TEST(Language, LooseEqualityCoerces) {
  check({{"null == undefined", "true"},
         {"null == 0", "false"},
         {"'' == 0", "true"},
         {"'1' == 1", "true"},
         {"true == '1'", "true"},
         {"true == 'true'", "false"},
         {"[] == ''", "true"},
         {"[1] == 1", "true"},
         {"[1,2] == '1,2'", "true"},
         {"({}) == '[object Object]'", "true"},
         {"NaN == NaN", "false"},
         {"[] == []", "false"},
         {"' \\n12 ' == 12", "true"},
         {"'0x10' == 16", "true"},
         {"undefined == 0", "false"},
         {"null == false", "false"},
         {"1 === 1.0", "true"},
         {"'a' === 'a'", "true"}});
}

TEST(Language, NumbersConvertAsInJavaScript) {
  check({{"Number('')", "0"},
         {"Number(' ')", "0"},
         {"Number('1_0')", "null"},
         {"Number('0b11')", "3"},
         {"Number('-0x1')", "null"},
         {"Number('1e400') > 1e308", "true"},
         {"Number('1e-400')", "0"},
         {"Number(null)", "0"},
         {"Number(undefined)", "null"},
         {"Number([])", "0"},
         {"Number([7])", "7"},
         {"Number({})", "null"},
         {"+true", "1"},
         {"Number('.5')", "0.5"},
         {"Number('5.')", "5"},
         {"Number('.')", "null"},
         {"Number('+Infinity') > 0", "true"},
         {"Number('inf')", "null"},
         {"parseInt('12px')", "12"},
         {"parseInt('0x1f')", "31"},
         {"parseInt('z', 36)", "35"},
         {"parseFloat('3.5.6')", "3.5"},
         {"parseInt('')", "null"},
         {"parseFloat('.5e1x')", "5"}});
}

TEST(Language, NumbersPrintAsInJavaScript) {
  check({{"String(1e21)", "\"1e+21\""},
         {"String(1e20)", "\"100000000000000000000\""},
         {"String(123456789012345680000)", "\"123456789012345680000\""},
         {"String(1e-6)", "\"0.000001\""},
         {"String(1e-7)", "\"1e-7\""},
         {"String(1.5e-9)", "\"1.5e-9\""},
         {"String(-0)", "\"0\""},
         {"String(5e-324)", "\"5e-324\""},
         {"String(1.7976931348623157e308)", "\"1.7976931348623157e+308\""},
         {"String(0.1)", "\"0.1\""},
         {"String(NaN)", "\"NaN\""},
         {"String(-Infinity)", "\"-Infinity\""},
         {"(255).toString(16)", "\"ff\""},
         {"(0.5).toString(2)", "\"0.1\""},
         {"(1.005).toFixed(2)", "\"1.00\""},
         {"(2.5).toFixed(0)", "\"3\""},
         {"(-1.5).toFixed(0)", "\"-2\""},
         {"(9.995).toFixed(2)", "\"9.99\""},
         {"(99.99).toFixed(0)", "\"100\""},
         {"(0).toFixed(2)", "\"0.00\""},
         {"1e21.toFixed(2)", "\"1e+21\""},
         {"(2.5).toPrecision(1)", "\"3\""},
         {"(99.9).toPrecision(2)", "\"1.0e+2\""}});
}

TEST(Language, ArithmeticIsIeeeAndBitsAre32) {
  check({{"5 % 3", "2"},          {"-5 % 3", "-2"},
         {"5.5 % 2", "1.5"},      {"1 / 0 > 1e308", "true"},
         {"0 / 0", "null"},       {"1 << 31", "-2147483648"},
         {"1 << 32", "1"},        {"-1 >>> 0", "4294967295"},
         {"-8 >> 1", "-4"},       {"~5.9", "-6"},
         {"2 ** 32 | 0", "0"},    {"1e20 | 0", "1661992960"},
         {"'3' * '4'", "12"},     {"'3' + 4", "\"34\""},
         {"3 + null", "3"},       {"3 + undefined", "null"},
         {"[1] + [2]", "\"12\""}, {"'a' - 1", "null"},
         {"1 ** NaN", "null"},    {"(-1) ** Infinity", "null"}});
}

TEST(Language, TextsCompareByUtf16Units) {
  check({{"'a' < 'b'", "true"},
         {"'B' < 'a'", "true"},
         {"'10' < '9'", "true"},
         {"'10' < 9", "false"},
         {"'a' < 1", "false"},
         {"'😀' < '｡'", "true"},
         {"'ab' > 'a'", "true"},
         {"null >= 0", "true"},
         {"undefined >= undefined", "false"},
         {"[2] > 1", "true"},
         {"'\\ud83d' < '😀'", "true"},
         {"'😀' < '\\ue000'", "true"}});
}

TEST(Language, TextsCountUtf16UnitsAndHalvesMeetAgain) {
  check({{"'😀'.length", "2"},
         {"'é'.length", "1"},
         {"'😀'.charCodeAt(1)", "56832"},
         {"'😀'[0] + '😀'[1]", "\"😀\""},
         {"'😀'.split('').join('')", "\"😀\""},
         {"'a😀b'.slice(1, 3)", "\"😀\""},
         {"'a😀b'.slice(2)",
          "\"\xEF\xBF\xBD"
          "b\""},
         {"[...'a😀']", "[\"a\",\"😀\"]"},
         {"'\\ud83d\\ude00' === '😀'", "true"},
         {"'\\u{1F600}'.codePointAt(0)", "128512"},
         {"'a😀b'.indexOf('b')", "3"},
         {"JSON.stringify('😀'[0])", "\"\\\"\\\\ud83d\\\"\""}});
}

TEST(Language, OptionalChainsEndAtTheirEnd) {
  check({{"null?.a.b.c", "undefined"},
         {"undefined?.[nowhere]", "undefined"},
         {"null?.a(nowhere).b", "undefined"},
         {"({a: 1}).b?.()", "undefined"},
         {"({a: [7]})?.a?.[0]", "7"},
         {"'x'.toUpperCase?.()", "\"X\""},
         {"(null?.a).b", "error: column 11: can't read 'b' of undefined"},
         {"({}).a.b?.c", "error: column 8: can't read 'b' of undefined"},
         {"true?.5:1", "0.5"}});
}

TEST(Language, LiteralsAreJavaScripts) {
  check({{"0xFF + 0b11 + 0o17", "273"},
         {"1_000.5", "1000.5"},
         {".5e1", "5"},
         {R"('\x41\u0042\u{43}\n\'\0'.length)", "6"},
         {"\"it's\"", "\"it's\""},
         {"`a${1 + 1}b${`c${3}`}`", "\"a2bc3\""},
         {"`\\``", "\"`\""},
         {"`$ {1}`", "\"$ {1}\""},
         {"{a: 1, 'b c': 2, 3: 4, ['x' + 1]: 5}", R"({"3":4,"a":1,"b c":2,"x1":5})"},
         {"{...{a: 1, b: 2}, b: 3}", R"({"a":1,"b":3})"},
         {"[1, ...[2, 3], ...'ab',]", R"([1,2,3,"a","b"])"},
         {"{...[5, 6], ...null}", R"({"0":5,"1":6})"},
         {"{...'ab'}", R"({"0":"a","1":"b"})"},
         {"Math.max(...[1, 5, 3])", "5"},
         {"Object.keys({b: 1, a: 2, 1: 3, 0: 4})", R"(["0","1","b","a"])"}});
}

TEST(Language, ArrowFunctionsServeMethods) {
  check(
      {{"[1, 2, 3].map((x, i) => x * i)", "[0,2,6]"},
       {"[1, 2].map(x => [3, 4].map(y => x * y))", "[[3,4],[6,8]]"},
       {"[1, 2].map(x => [x].map(x => x + 1)[0] + x)", "[3,5]"},
       {"Object.entries({a: 1}).map(([k, v]) => k + v)", "[\"a1\"]"},
       {"[{n: 1}].map(({n, m}) => [n, m ?? 2])", "[[1,2]]"},
       {"[1, 2].map(x => ({v: x}))", R"([{"v":1},{"v":2}])"},
       {"['1', '2', '3'].map(parseInt)", "[1,null,null]"},
       {"[1.5, 2.5].map(Math.floor)", "[1,2]"},
       {"[3, 1, 2].reduce((a, b) => a + b)", "6"},
       {"[0, 1, ''].filter(Boolean)", "[1]"},
       {"[1].map(5)", "error: column 5: this method takes a function, such as (item) => item.name"},
       {"[].reduce((a, b) => a)",
        "error: column 4: reduce() of an empty array needs an initial value"}});
}

TEST(Language, UnsupportedSyntaxIsAnErrorWithItsColumn) {
  check({{"", "error: column 1: expected an expression"},
         {"(1 + 2", "error: column 7: expected ')'"},
         {"a = 1", "error: column 3: assignment is not supported; '==' or '===' compares"},
         {"a += 1", "error: column 3: '+=' is not supported: an expression changes nothing"},
         {"a++", "error: column 2: '++' is not supported: an expression changes nothing"},
         {"x => x",
          "error: column 1: an arrow function can only be the first argument of a method such as "
          "map"},
         {"[1].map(x => { return x })",
          "error: column 14: function bodies are not supported; an object needs parentheses: => "
          "({...})"},
         {"new Date()", "error: column 1: 'new' is not supported"},
         {"/a/.test('a')", "error: column 1: regular expressions are not supported"},
         {"1 // one", "error: column 3: comments are not supported"},
         {"'abc", "error: column 1: a string that is not closed"},
         {"1 2", "error: column 3: unexpected '2'"},
         {"1; 2", "error: column 2: unexpected ';'"},
         {"{{context.a}} > 3", "error: column 2: unexpected '{'; {{ }} stands only in texts"},
         {"a and b", "error: column 3: unexpected 'and'; write '&&'"},
         {"a or b", "error: column 3: unexpected 'or'; write '||'"},
         {"(1, 2)", "error: column 3: the comma operator is not supported"},
         {"-2 ** 2", "error: column 4: parentheses must say what '**' belongs to"},
         {"1 ?? 2 || 3", "error: column 1: '?\?' next to '||' or '&&' needs parentheses"},
         {"[1,,2]", "error: column 4: an array can't have holes"},
         {"a instanceof b", "error: column 3: 'instanceof' is not supported"},
         {"010", "error: column 1: a number can't begin with 0 and a digit"},
         {"3px", "error: column 1: a number must not be followed by a name"},
         {"{a() {}}", "error: column 3: an object can't have functions"},
         {"a.1", "error: column 2: unexpected '.1'"},
         {"#", "error: column 1: unexpected character '#'"},
         {"1 +", "error: column 4: unexpected end"}});
  EXPECT_EQ(error_of("'\xff'"), model::Errc::invalid_argument);
}

TEST(Language, CallsOfOtherValuesThanFunctionsFailWhenTheyRun) {
  check({{"'a'.push(1)", "error: column 5: 'push' is not a function of this string"},
         {"[1].pop()", "error: column 5: 'pop' is not a function of this array"},
         {"nothing()", "error: column 1: nothing is not a function"},
         {"Math.nothing()", "error: column 6: Math.nothing is not a function"},
         {"false && Math.nothing()", "false"},
         {"Math", "error: column 1: Math is not a value"},
         {"1()", "error: column 2: this is not a function"}});
}

}  // namespace
}  // namespace conversed::flows::expression
