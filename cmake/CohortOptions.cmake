# Compiler settings, and the libraries that Cohort stands on.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo" FORCE)
endif()

find_program(CCACHE ccache DOC "Compiler cache; optional")
mark_as_advanced(CCACHE)
if(CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
  message(STATUS "Cohort: built by ${CMAKE_C_COMPILER_ID}; by GCC, training is 1.5 to 2 times as fast")
endif()

option(COHORT_ONEDNN "Build the oneDNN backend, if oneDNN is found" ON)
# ON means "if found"; REQUIRED makes a missing MPI an error.
set(COHORT_MPI ON CACHE STRING "Build a module for each MPI: ON (if found), REQUIRED or OFF")
set_property(CACHE COHORT_MPI PROPERTY STRINGS ON REQUIRED OFF)
option(COHORT_CUDA "Build the device of NVIDIA's GPUs, if CUDA's headers are found" ON)
option(COHORT_ONNX "Build the export to ONNX, if its definition and protobuf-c are found" ON)
option(COHORT_FETCH "Build `cohort data get`, if headers of libcurl and libarchive are found" ON)
option(COHORT_WATCH "Build the server of `cohort watch`, if headers of libmicrohttpd are found" ON)
option(COHORT_TESTS "Have the target `tests`, which builds the tests" ON)
option(COHORT_FUZZ "Link the fuzz targets with libFuzzer (clang only)" OFF)
option(COHORT_WERROR "Treat compiler warnings as errors" OFF)

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(LIBFYAML REQUIRED IMPORTED_TARGET libfyaml)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(LIBDEFLATE REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(LIBJPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(LIBPNG REQUIRED IMPORTED_TARGET libpng)

# An optional library that is missing switches its part off. The normal variables set here hide
# the cache entries, so the rest of the build reads only what is really built.
if(COHORT_ONEDNN)
  find_package(OneDNN 2...<4 QUIET) # DNNL::dnnl
  if(OneDNN_FOUND)
    message(STATUS "Cohort: oneDNN ${OneDNN_VERSION}")
  else()
    if(OneDNN_VERSION)
      set(found ", but ${OneDNN_VERSION}")
    endif()
    message(STATUS "Cohort: oneDNN 2.x or 3.x not found${found}: building without its kernels "
                   "(Debian: libdnnl-dev)")
    set(COHORT_ONEDNN OFF)
  endif()
endif()
include(GNUInstallDirs)
include(CohortMPI)
# Where programs and libraries look for the modules that they open when they run.
set(CMAKE_BUILD_RPATH ${CMAKE_BINARY_DIR})
# A sanitizer's dlopen looks along the RUNPATH of its own library, but along an RPATH of the program.
if(CMAKE_C_FLAGS MATCHES "-fsanitize")
  add_link_options(LINKER:--disable-new-dtags)
endif()
if(COHORT_CUDA)
  set(folders PATHS /usr/local/cuda/include /opt/cuda/include ENV CUDA_PATH PATH_SUFFIXES include)
  find_path(CUDA_INCLUDE_DIR cuda.h ${folders} DOC "Folder of CUDA's cuda.h; optional")
  find_path(NVRTC_INCLUDE_DIR nvrtc.h ${folders} DOC "Folder of CUDA's nvrtc.h; optional")
  find_path(CUBLASLT_INCLUDE_DIR cublasLt.h ${folders} DOC "Folder of CUDA's cublasLt.h; optional")
  find_path(CUDNN_INCLUDE_DIR cudnn_graph.h ${folders} DOC "Folder of cudnn_graph.h; optional")
  find_path(NCCL_INCLUDE_DIR nccl.h ${folders} DOC "Folder of nccl.h; optional")
  mark_as_advanced(CUDA_INCLUDE_DIR NVRTC_INCLUDE_DIR CUBLASLT_INCLUDE_DIR CUDNN_INCLUDE_DIR NCCL_INCLUDE_DIR)
  set(version 0)
  if(CUDA_INCLUDE_DIR AND NVRTC_INCLUDE_DIR)
    file(STRINGS ${CUDA_INCLUDE_DIR}/cuda.h version REGEX "^#define CUDA_VERSION ")
    string(REGEX REPLACE "[^0-9]" "" version "${version}")
    set(CUDA_INCLUDE_DIRS ${CUDA_INCLUDE_DIR} ${NVRTC_INCLUDE_DIR})
    foreach(folder ${CUBLASLT_INCLUDE_DIR} ${CUDNN_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
      if(folder)
        list(APPEND CUDA_INCLUDE_DIRS ${folder})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES CUDA_INCLUDE_DIRS)
  endif()
  if(version LESS 12000)
    message(STATUS "Cohort: headers of CUDA 12 or later not found: building without GPUs "
                   "(CUDA's repository: cuda-driver-dev-13-0 cuda-nvrtc-dev-13-0)")
    set(COHORT_CUDA OFF)
  endif()
  if(COHORT_CUDA AND NOT CUBLASLT_INCLUDE_DIR)
    message(STATUS "Cohort: cublasLt.h not found: GPUs multiply matrices by kernels of our own "
                   "(CUDA's repository: libcublas-dev-13-0)")
  endif()
  if(COHORT_CUDA AND NOT CUDNN_INCLUDE_DIR)
    message(STATUS "Cohort: cudnn_graph.h not found: GPUs convolve by kernels of our own "
                   "(CUDA's repository: libcudnn9-dev-cuda-13)")
  endif()
  if(COHORT_CUDA AND NOT NCCL_INCLUDE_DIR)
    message(STATUS "Cohort: nccl.h not found: GPUs of several ranks exchange through the host's memory "
                   "(CUDA's repository: libnccl-dev)")
  endif()
endif()
if(COHORT_ONNX)
  find_path(ONNX_PROTO_DIR onnx.proto PATH_SUFFIXES onnx DOC "Folder of onnx.proto; optional")
  find_program(PROTOC_C protoc-c DOC "Compiler of protobuf-c; optional")
  mark_as_advanced(ONNX_PROTO_DIR PROTOC_C)
  pkg_check_modules(PROTOBUF_C IMPORTED_TARGET libprotobuf-c)
  if(NOT ONNX_PROTO_DIR OR NOT PROTOC_C OR NOT PROTOBUF_C_FOUND)
    message(STATUS "Cohort: onnx.proto or protobuf-c not found: building without the export to ONNX "
                   "(Debian: libonnx-dev protobuf-c-compiler libprotobuf-c-dev)")
    set(COHORT_ONNX OFF)
  endif()
endif()
if(COHORT_FETCH)
  # Headers alone: the libraries are opened when something is fetched.
  find_path(CURL_INCLUDE_DIR curl/curl.h DOC "Folder of libcurl's headers; optional")
  find_path(ARCHIVE_INCLUDE_DIR archive_entry.h DOC "Folder of libarchive's headers; optional")
  mark_as_advanced(CURL_INCLUDE_DIR ARCHIVE_INCLUDE_DIR)
  if(NOT CURL_INCLUDE_DIR OR NOT ARCHIVE_INCLUDE_DIR)
    message(STATUS "Cohort: headers of libcurl or libarchive not found: building without `data get` "
                   "(Debian: libcurl4-openssl-dev libarchive-dev)")
    set(COHORT_FETCH OFF)
  endif()
endif()
if(COHORT_WATCH)
  # Headers alone: the library is opened when a page is served.
  find_path(MICROHTTPD_INCLUDE_DIR microhttpd.h DOC "Folder of libmicrohttpd's headers; optional")
  mark_as_advanced(MICROHTTPD_INCLUDE_DIR)
  if(NOT MICROHTTPD_INCLUDE_DIR)
    message(STATUS "Cohort: headers of libmicrohttpd not found: `watch` without a page "
                   "(Debian: libmicrohttpd-dev)")
    set(COHORT_WATCH OFF)
  endif()
endif()
if(COHORT_TESTS)
  find_library(CMOCKA_LIBRARY cmocka)
  if(NOT CMOCKA_LIBRARY)
    message(STATUS "Cohort: cmocka not found: without the tests (Debian: libcmocka-dev)")
    set(COHORT_TESTS OFF)
    # Running nothing must not look like success.
    add_test(NAME no_tests_without_cmocka COMMAND ${CMAKE_COMMAND} -E false)
  endif()
endif()

# What every file of Cohort is compiled with. The x86-64 baseline on purpose: own kernels choose
# their instructions when the program starts, so one binary runs everywhere.
add_library(co_flags INTERFACE)
target_compile_definitions(co_flags INTERFACE _GNU_SOURCE)
target_compile_options(co_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -Wundef -ffp-contract=off -fno-math-errno -fno-trapping-math
  $<$<BOOL:${COHORT_WERROR}>:-Werror>)
# GCC 12 for ARM64 ends with an internal error where it makes vectors of a loop that takes fmax of its result.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64 AND CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(co_flags INTERFACE -fno-builtin-fmax)
endif()
target_include_directories(co_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
