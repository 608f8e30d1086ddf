find_package(GTest REQUIRED)
include(GoogleTest)

# Before the names of a sanitizer build's tests, so that one ctest run over several builds says which one failed.
set(DROVER_TEST_PREFIX "")
if(DROVER_SANITIZE MATCHES "thread")
  set(DROVER_TEST_PREFIX "tsan.")
elseif(DROVER_SANITIZE MATCHES "address")
  set(DROVER_TEST_PREFIX "asan.")
endif()

# drover_test(<name> LABELS <label>… SOURCES <file>… PRIVATE <target>… [INTERNALS <folder>…] [TIMEOUT <seconds>]
#             [LOCK <resource>])
#
# A GoogleTest program, each of whose tests is one ctest entry with the given labels. INTERNALS lets it see the named
# folders' src/. Tests with the same LOCK never run at the same time. TIMEOUT (60) is stretched where sanitizers slow
# things down.
function(drover_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;LOCK" "LABELS;SOURCES;PRIVATE;INTERNALS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(DROVER_SANITIZE)
    math(EXPR arg_TIMEOUT "5 * ${arg_TIMEOUT}")
  endif()
  set(properties LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  if(arg_LOCK)
    list(APPEND properties RESOURCE_LOCK ${arg_LOCK})
  endif()
  drover_executable(${name} SOURCES ${arg_SOURCES} PRIVATE ${arg_PRIVATE} GTest::gtest GTest::gmock GTest::gtest_main)
  foreach(folder IN LISTS arg_INTERNALS)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/${folder}/src")
  endforeach()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_PREFIX "${DROVER_TEST_PREFIX}" PROPERTIES ${properties})
endfunction()
