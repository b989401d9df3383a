# The modules through which Cohort calls MPI: one for each kind of MPI whose header is here, which
# Cohort opens when it runs (src/comm/mpi/load.c). Its own code needs none.
#
# Sets COHORT_MPIS, the kinds that are built, and COHORT_MPIEXEC_<kind>, the launcher of each.
include(CheckCSourceCompiles)
set(COHORT_MPIS)

# co_find_mpi(kind condition wrapper...): the first compiler wrapper of this kind, for whose header the
# condition holds; its folders of headers, and the launcher beside it.
function(co_find_mpi kind condition)
  foreach(wrapper ${ARGN})
    find_program(COHORT_MPICC_${kind}_${wrapper} ${wrapper})
    mark_as_advanced(COHORT_MPICC_${kind}_${wrapper})
    set(program ${COHORT_MPICC_${kind}_${wrapper}})
    if(NOT program)
      continue()
    endif()
    execute_process(COMMAND ${program} -show OUTPUT_VARIABLE line ERROR_QUIET)
    string(REGEX MATCHALL "-I *[^ \n]+" flags "${line}")
    list(TRANSFORM flags REPLACE "^-I *" "")
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    set(CMAKE_REQUIRED_INCLUDES ${flags})
    set(CMAKE_REQUIRED_QUIET ON)
    check_c_source_compiles("#include <mpi.h>
      #if !(${condition})
      #error another MPI
      #endif
      int x;" COHORT_HAS_${kind}_${wrapper})
    if(COHORT_HAS_${kind}_${wrapper})
      cmake_path(GET program PARENT_PATH folder)
      string(REPLACE "mpicc" "mpiexec" launcher ${wrapper})
      find_program(COHORT_MPIEXEC_${kind} ${launcher} HINTS ${folder} DOC "Launcher of ${kind}")
      mark_as_advanced(COHORT_MPIEXEC_${kind})
      set(COHORT_MPI_INCLUDES_${kind} "${flags}" PARENT_SCOPE)
      set(COHORT_MPIS ${COHORT_MPIS} ${kind} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

if(COHORT_MPI)
  co_find_mpi(openmpi "defined(OPEN_MPI)" mpicc.openmpi mpicc)
  co_find_mpi(mpich "defined(MPICH_VERSION) || defined(I_MPI_VERSION)" mpicc.mpich mpicc)
  if(NOT COHORT_MPIS AND COHORT_MPI STREQUAL "REQUIRED")
    message(FATAL_ERROR "Cohort: no MPI found: neither Open MPI nor MPICH has its mpicc here")
  elseif(NOT COHORT_MPIS)
    message(STATUS "Cohort: MPI not found: building no module for one "
                   "(Debian: libopenmpi-dev openmpi-bin, libmpich-dev mpich)")
  endif()
endif()
