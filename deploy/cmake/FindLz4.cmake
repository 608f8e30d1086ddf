# Finds liblz4 and offers it as Lz4::lz4 (Debian 12 packages it with pkg-config only).
find_path(LZ4_INCLUDE_DIR lz4frame.h)
find_library(LZ4_LIBRARY lz4)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Lz4 REQUIRED_VARS LZ4_LIBRARY LZ4_INCLUDE_DIR)
if(Lz4_FOUND AND NOT TARGET Lz4::lz4)
  add_library(Lz4::lz4 UNKNOWN IMPORTED GLOBAL)
  set_target_properties(Lz4::lz4 PROPERTIES
    IMPORTED_LOCATION "${LZ4_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LZ4_INCLUDE_DIR}")
endif()
