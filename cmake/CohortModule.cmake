# Limits of ctest, for a machine with much else to do: a test that hangs has ended itself long before
# (tests/waits.h). The second is that of tests labelled `slow`.
set(COHORT_TEST_SECONDS 1200)
set(COHORT_SLOW_TEST_SECONDS 7200)
if(CMAKE_CROSSCOMPILING_EMULATOR) # an instruction becomes some tens
  set(COHORT_TEST_SECONDS ${COHORT_SLOW_TEST_SECONDS})
endif()

# co_missing(out module ...) - those of the modules that are not here, or lack one themselves.
function(co_missing out)
  get_property(incomplete GLOBAL PROPERTY COHORT_INCOMPLETE)
  set(missing)
  foreach(module ${ARGN})
    if(NOT TARGET co_${module} OR module IN_LIST incomplete)
      list(APPEND missing ${module})
    endif()
  endforeach()
  set(${out} "${missing}" PARENT_SCOPE)
endfunction()

# co_module(name SOURCES a.c ... [DEPS module ...] [LIBS target ...])
#   The static library co_<name> from this folder's sources. DEPS are modules below it; includes
#   go the same way. Where one is missing this one is compiled all the same, and nothing links it.
function(co_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  co_missing(missing ${arg_DEPS})
  if(missing)
    message(WARNING "Cohort: module ${name} is incomplete without: ${missing}")
    set_property(GLOBAL APPEND PROPERTY COHORT_INCOMPLETE ${name})
  endif()
  add_library(co_${name} STATIC ${arg_SOURCES})
  set(deps)
  foreach(dep ${arg_DEPS})
    if(TARGET co_${dep})
      list(APPEND deps co_${dep})
    endif()
  endforeach()
  target_link_libraries(co_${name} PRIVATE co_flags PUBLIC ${deps} ${arg_LIBS})
  set_property(GLOBAL APPEND PROPERTY COHORT_MODULES co_${name})
endfunction()

# co_add_test(name COMMAND command... [TIMEOUT s] [PROCESSORS n] [LABELS label...] [ENVIRONMENT ...])
#   The one way to a ctest entry. Exit status 77: skipped, and the output says why. TIMEOUT where it
#   needs more than COHORT_TEST_SECONDS. PROCESSORS where it computes on several cores most of the
#   time; ranks mostly wait, for each other or for a limit. LABELS: `clock` where it measures time or
#   waits for a limit, `threads` for `make tsan`.
function(co_add_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;PROCESSORS" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT arg_TIMEOUT OR arg_TIMEOUT LESS COHORT_TEST_SECONDS)
    set(arg_TIMEOUT ${COHORT_TEST_SECONDS})
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  list(APPEND arg_ENVIRONMENT OMP_WAIT_POLICY=passive) # threads that wait leave the core to other tests
  add_test(NAME ${name} COMMAND ${arg_COMMAND} COMMAND_EXPAND_LISTS)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS}
                       SKIP_RETURN_CODE 77 LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# co_test(name SOURCES a.c ... MODULES module ... [TIMEOUT s] [LABELS ...] [ARGS ...])
#   A cmocka program and its ctest entry, skipped where every test of the program was (tests/skips/skips.c).
function(co_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;MODULES;LABELS;ARGS" ${ARGN})
  co_missing(missing ${arg_MODULES})
  if(missing)
    message(WARNING "Cohort: no test ${name} without: ${missing}")
    return()
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  set(mods)
  foreach(mod ${arg_MODULES})
    list(APPEND mods co_${mod})
  endforeach()
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(test_${name} PRIVATE co_flags ${mods} test_skips cmocka m Threads::Threads)
  co_add_test(${name} COMMAND test_${name} ${arg_ARGS} TIMEOUT ${arg_TIMEOUT}
              LABELS ${arg_LABELS})
endfunction()
