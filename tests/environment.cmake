# CTest reads this file before it runs tests.
# The store's hashes of passwords take 20 ms of CPU each, and a suite signs in tens of thousands of times.
if(NOT DEFINED ENV{CONVERSED_TEST_CHEAP_PASSWORDS})
  set(ENV{CONVERSED_TEST_CHEAP_PASSWORDS} 1)
endif()
# AddressSanitizer keeps the calls that lead to each allocation. The default of 30 calls takes 5 to 8 % of the tests' time.
if(NOT DEFINED ENV{ASAN_OPTIONS})
  set(ENV{ASAN_OPTIONS} malloc_context_size=12)
endif()
# Losses of power that the tests of files play.
if(DEFINED ENV{CONVERSED_NIGHTLY} AND NOT DEFINED ENV{CONVERSED_TEST_CRASH_POINTS})
  set(ENV{CONVERSED_TEST_CRASH_POINTS} 20000)
endif()
