# SPDX-License-Identifier: MIT
#
# What an installation holds: headers, library, a relocatable CMake package and kvasir.pc. Plugins and the tool are
# installed where they are defined.
include(CMakePackageConfigHelpers)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/kvasir" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h")
install(TARGETS kvasir EXPORT kvasirTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")

set(kvasir_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kvasir")
install(EXPORT kvasirTargets NAMESPACE kvasir:: DESTINATION "${kvasir_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/src/cmake/kvasirConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/package/kvasirConfig.cmake" INSTALL_DESTINATION "${kvasir_package_dir}")
# Before 1.0 a minor version may change the ABI.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(kvasir_compatibility SameMinorVersion)
else()
  set(kvasir_compatibility SameMajorVersion)
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/kvasirConfigVersion.cmake"
  COMPATIBILITY ${kvasir_compatibility})

# kvasir.pc finds the prefix from its own place.
file(RELATIVE_PATH kvasir_pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" kvasir_pc_to_prefix "${kvasir_pc_to_prefix}")
file(RELATIVE_PATH kvasir_pc_libdir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
file(RELATIVE_PATH kvasir_pc_includedir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file("${PROJECT_SOURCE_DIR}/bindings/c/kvasir.pc.in" "${PROJECT_BINARY_DIR}/package/kvasir.pc" @ONLY)

install(FILES "${PROJECT_BINARY_DIR}/package/kvasirConfig.cmake"
  "${PROJECT_BINARY_DIR}/package/kvasirConfigVersion.cmake" DESTINATION "${kvasir_package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/package/kvasir.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
