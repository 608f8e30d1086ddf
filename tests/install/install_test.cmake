# Goal: what `cmake --install` leaves is a whole package: no header, library or dependency is missing, nothing refers back
#   into the build or source tree, and the program runs from where it was installed.
# Method: install, move the folder, configure, build and run consumer/ against it.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/first")
file(RENAME "${WORK}/first" "${WORK}/moved")
run("${CMAKE_COMMAND}" -S "${CONSUMER}" -B "${WORK}/build" -G Ninja -D "CMAKE_PREFIX_PATH=${WORK}/moved"
  -D "CMAKE_CXX_COMPILER=${COMPILER}" -D CMAKE_BUILD_TYPE=Release -D "DROVER_VERSION=${VERSION}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer")
if(NOT output MATCHES "TS#2026-06-23T09:00:02Z")
  message(FATAL_ERROR "the consumer did not find its newest reading:\n${output}")
endif()
run("${WORK}/moved/bin/drover" --help)
