# What `cmake --install` puts where. Nothing installed names a path of the build machine.
include(GNUInstallDirs)

install(TARGETS cohort_shared cohort_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET cohort_cli)
  set_target_properties(cohort_cli PROPERTIES
    OUTPUT_NAME cohort RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS cohort_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(FILES include/cohort.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/cohort DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cohort/configs
        FILES_MATCHING PATTERN "*.yaml")
install(FILES docs/cohort.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES scripts/completion.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME cohort)

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
  find_package(OpenMP REQUIRED COMPONENTS C) # sets the number of oneDNN's threads
  string(APPEND COHORT_PC_LIBS " -ldnnl ${OpenMP_C_FLAGS}")
endif()
if(COHORT_MPI)
  string(APPEND COHORT_PC_LIBS " -lmpi")
endif()
if(COHORT_ONNX)
  list(JOIN PROTOBUF_C_LDFLAGS " " protobuf_c)
  string(APPEND COHORT_PC_LIBS " ${protobuf_c}")
endif()
string(APPEND COHORT_PC_LIBS " -pthread -lm")
configure_file(cmake/cohort.pc.in cohort.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cohort.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
