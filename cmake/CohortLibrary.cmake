# libcohort, shared and static: the objects of every module below the command line. Both show only
# what is marked CO_API.
get_property(modules GLOBAL PROPERTY COHORT_MODULES)

set(objects)
foreach(module ${modules})
  list(APPEND objects $<TARGET_OBJECTS:${module}>)
endforeach()

add_library(cohort_shared SHARED ${objects})
set_target_properties(cohort_shared PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME cohort)
# An archive shows what any of its objects shows another, so its only object is all of them, and what
# is hidden outside is local to it.
set(whole ${CMAKE_BINARY_DIR}/cohort.o)
add_custom_command(OUTPUT ${whole}
  COMMAND ${CMAKE_LINKER} -r -o ${whole} ${objects}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole}
  DEPENDS ${modules} ${objects}
  COMMENT "Joining the objects of libcohort.a"
  COMMAND_EXPAND_LISTS VERBATIM)
add_library(cohort_static STATIC ${whole})
set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
foreach(library cohort_shared cohort_static)
  set_target_properties(${library} PROPERTIES
    OUTPUT_NAME cohort
    LINKER_LANGUAGE C
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # The objects are already in; from the modules come only the libraries that they need.
  target_link_libraries(${library} PRIVATE ${modules})
endforeach()
# Clang leaves the runtime of its sanitizers to the program.
if(NOT COHORT_FUZZ)
  target_link_options(cohort_shared PRIVATE LINKER:--no-undefined)
endif()

# For plugins, which are not linked with the library: what they call is in the program that loads them.
add_library(cohort_plugin INTERFACE)
set_target_properties(cohort_plugin PROPERTIES EXPORT_NAME plugin)
target_include_directories(cohort_plugin INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
