# CTest reads this file before it runs tests.
# The store's hashes of passwords take 20 ms of CPU each, and a suite signs in tens of thousands of times.
if(NOT DEFINED ENV{CONVERSED_TEST_CHEAP_PASSWORDS})
  set(ENV{CONVERSED_TEST_CHEAP_PASSWORDS} 1)
endif()
