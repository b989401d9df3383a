# Compiler settings, and the libraries that Cohort stands on.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(COHORT_ONEDNN "Build the oneDNN backend" ON)
option(COHORT_MPI "Build the MPI transport" ON)
option(COHORT_TESTS "Build the tests" ON)

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(LIBFYAML REQUIRED IMPORTED_TARGET libfyaml)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(LIBDEFLATE REQUIRED IMPORTED_TARGET libdeflate)

add_library(co_flags INTERFACE)
target_compile_definitions(co_flags INTERFACE _GNU_SOURCE)
target_compile_options(co_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -Wundef -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_include_directories(co_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
