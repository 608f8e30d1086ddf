# Finds librdkafka's C library and offers it as RdKafka::rdkafka.
#
# Upstream installs a CMake package, Debian 12's librdkafka 2.0.2 only a pkg-config file: the package is tried first.
find_package(RdKafka CONFIG QUIET)
if(NOT TARGET RdKafka::rdkafka)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(RDKAFKA QUIET IMPORTED_TARGET GLOBAL rdkafka>=2.0)
  endif()
  if(TARGET PkgConfig::RDKAFKA)
    add_library(RdKafka::rdkafka ALIAS PkgConfig::RDKAFKA)
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(RdKafka REQUIRED_VARS RDKAFKA_LINK_LIBRARIES VERSION_VAR RDKAFKA_VERSION)
