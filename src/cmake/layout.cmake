# SPDX-License-Identifier: MIT
#
# Where things lie, the same in the build tree as in an install tree, so that the library finds its plugins and the
# tool finds the library in both: bin/, lib/, lib/kvasir/backends/.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(KVASIR_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/kvasir/backends")
set(KVASIR_PLUGIN_INSTALL_DIRECTORY "${CMAKE_INSTALL_LIBDIR}/kvasir/backends")

# Executables find the library relative to themselves, in the build tree and in a prefix that was moved.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
file(RELATIVE_PATH kvasir_bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
set(CMAKE_INSTALL_RPATH "$ORIGIN/${kvasir_bin_to_lib}")
