include(GNUInstallDirs)

# What every target of the project is compiled with. Linked as $<BUILD_INTERFACE:…>, so neither warnings nor sanitizers
# leak into the installed package.
add_library(drover_flags INTERFACE)
target_compile_options(drover_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${DROVER_WERROR}>:-Werror>)
if(DROVER_SANITIZE)
  # -Wno-tsan: Asio's fences beside its mutexes, which ThreadSanitizer doesn't follow and needn't.
  target_compile_options(drover_flags INTERFACE -fsanitize=${DROVER_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(drover_flags INTERFACE -fsanitize=${DROVER_SANITIZE})
endif()

# drover_library(<folder> HEADERS <name.h>… SOURCES <name.cc>… [PUBLIC <target>…] [PRIVATE <target>…])
#
# Declares one folder's library: target drover_<folder>, alias drover::<folder>. HEADERS are promised
# (include/drover/<folder>/), SOURCES are not (src/). PUBLIC names what the headers need, PRIVATE what only the sources
# need; third-party libraries are always PRIVATE. Adds the install rule and the header verification.
function(drover_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;PUBLIC;PRIVATE")
  set(target drover_${folder})
  list(TRANSFORM arg_HEADERS PREPEND "include/drover/${folder}/")
  list(TRANSFORM arg_SOURCES PREPEND "src/")
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(drover::${folder} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder} CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON
    VERIFY_INTERFACE_HEADER_SETS ON)
  target_include_directories(${target} PRIVATE src)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC}
    PRIVATE ${arg_PRIVATE} Threads::Threads $<BUILD_INTERFACE:drover_flags>)
  install(TARGETS ${target} EXPORT drover FILE_SET HEADERS)
endfunction()

# drover_executable(<name> SOURCES <file>… PRIVATE <target>…): what programs and tests have in common.
function(drover_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PRIVATE")
  add_executable(${name} ${arg_SOURCES})
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${name} PRIVATE ${arg_PRIVATE} Threads::Threads drover_flags)
  if(DROVER_SANITIZE)
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/deploy/cmake/sanitizer_options.cc")
  endif()
endfunction()

# drover_program(<name> SOURCES <file>… PRIVATE <target>…): a program, with jemalloc where asked for.
function(drover_program name)
  drover_executable(${name} ${ARGN})
  if(DROVER_USE_JEMALLOC)
    find_library(DROVER_JEMALLOC jemalloc REQUIRED)
    target_link_options(${name} PRIVATE -Wl,--no-as-needed ${DROVER_JEMALLOC} -Wl,--as-needed)
  endif()
endfunction()
