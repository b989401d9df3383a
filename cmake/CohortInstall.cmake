# What `cmake --install` puts where. Nothing installed names a path of the build machine.

# What the scripts before and after need to know.
string(CONCAT code
  "set(COHORT_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")\n"
  "set(COHORT_DATADIR \"${CMAKE_INSTALL_DATADIR}\")\n"
  "set(COHORT_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")\n"
  "set(COHORT_FOLDERS \"${CMAKE_INSTALL_BINDIR};${CMAKE_INSTALL_LIBDIR}/pkgconfig;"
  "${CMAKE_INSTALL_LIBDIR}/cmake/cohort;${CMAKE_INSTALL_LIBDIR}/cohort;${CMAKE_INSTALL_INCLUDEDIR}/cohort;"
  "${CMAKE_INSTALL_DATADIR}/cohort;${CMAKE_INSTALL_DOCDIR};${CMAKE_INSTALL_MANDIR}/man1;"
  "${CMAKE_INSTALL_DATADIR}/bash-completion/completions\")\n")
install(CODE "${code}")
install(SCRIPT cmake/InstallBegin.cmake)

# Programs and libraries find their modules by where they are themselves.
set_target_properties(cohort_shared PROPERTIES INSTALL_RPATH "\$ORIGIN/cohort")
foreach(kind ${COHORT_MPIS})
  install(TARGETS cohort_mpi_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/cohort)
endforeach()

install(TARGETS cohort_shared EXPORT cohort
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS cohort_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS cohort_plugin EXPORT cohort)
# find_package(cohort): the targets cohort::cohort and, headers alone, cohort::plugin
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cohort-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(EXPORT cohort NAMESPACE cohort:: FILE cohort-config.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)
install(FILES ${CMAKE_BINARY_DIR}/cohort-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)
if(TARGET cohort_cli)
  set_target_properties(cohort_cli PROPERTIES
    OUTPUT_NAME cohort RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/cohort")
  install(TARGETS cohort_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

install(FILES include/cohort.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/cohort DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cohort/configs
        FILES_MATCHING PATTERN "*.yaml")
install(FILES scripts/completion.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME cohort)

# As they lie in the source tree, so that links between them hold.
install(FILES README.md CONTRIBUTING.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.md" PATTERN "*.c" PATTERN "*.svg" PATTERN "*.png")

file(RELATIVE_PATH COHORT_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
# What a program that links libcohort.a needs besides: `pkg-config --static`. Names of libraries,
# not of packages: those would ask for the static dependencies of each package in turn.
list(JOIN LIBFYAML_LDFLAGS " " fyaml)
list(JOIN JANSSON_LDFLAGS " " jansson)
list(JOIN HWLOC_LDFLAGS " " hwloc)
list(JOIN LIBDEFLATE_LDFLAGS " " libdeflate)
list(JOIN LIBJPEG_LDFLAGS " " libjpeg)
list(JOIN LIBPNG_LDFLAGS " " libpng)
set(COHORT_PC_LIBS "${fyaml} ${jansson} ${hwloc} ${libdeflate} ${libjpeg} ${libpng}")
if(COHORT_ONEDNN)
  string(APPEND COHORT_PC_LIBS " -ldnnl")
endif()
find_package(OpenMP QUIET COMPONENTS C) # for loops that threads share
if(OpenMP_C_FOUND)
  string(APPEND COHORT_PC_LIBS " ${OpenMP_C_FLAGS}")
endif()
if(COHORT_ONNX)
  list(JOIN PROTOBUF_C_LDFLAGS " " protobuf_c)
  string(APPEND COHORT_PC_LIBS " ${protobuf_c}")
endif()
string(APPEND COHORT_PC_LIBS " -pthread -lm")
configure_file(cmake/cohort.pc.in cohort.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cohort.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(SCRIPT cmake/InstallEnd.cmake)
