# Installs the libraries as a CMake package: find_package(drover CONFIG REQUIRED), then drover::store and the like.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/drover")
install(EXPORT drover NAMESPACE drover:: DESTINATION "${package_dir}" FILE droverTargets.cmake)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/droverConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/droverConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/droverConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/droverConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/droverConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindRdKafka.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindXxHash.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindLz4.cmake"
  DESTINATION "${package_dir}")
