# Headers, targets, and a package that find_package(neap CONFIG) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/neap)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/neap DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.ipp" PATTERN "*.cuh")
target_include_directories(neap INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS neap EXPORT neap-targets)
install(EXPORT neap-targets NAMESPACE neap:: DESTINATION ${package_dir})
if(TARGET neap_import)
  install(TARGETS neap_import EXPORT neap-import-targets)
  install(EXPORT neap-import-targets NAMESPACE neap:: DESTINATION ${package_dir})
endif()
if(TARGET neap_highs)
  install(TARGETS neap_highs EXPORT neap-highs-targets)
  install(EXPORT neap-highs-targets NAMESPACE neap:: DESTINATION ${package_dir})
endif()
# Of its dependency only the name is written down: it is looked for where the package is used.
install(TARGETS neap_cuda neap_cublaslt EXPORT neap-cuda-targets)
install(EXPORT neap-cuda-targets NAMESPACE neap:: DESTINATION ${package_dir})
install(TARGETS neap_cudnn EXPORT neap-cudnn-targets)
install(EXPORT neap-cudnn-targets NAMESPACE neap:: DESTINATION ${package_dir})

write_basic_package_version_file(${PROJECT_BINARY_DIR}/neap-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/neap-config.cmake ${PROJECT_SOURCE_DIR}/cmake/neap-dependencies.cmake
              ${PROJECT_SOURCE_DIR}/cmake/neap-compile-apart.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindNeapOpenBLAS.cmake ${PROJECT_SOURCE_DIR}/cmake/FindNeapThrust.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindNeapHighs.cmake ${PROJECT_SOURCE_DIR}/cmake/FindNeapCudnn.cmake
              ${PROJECT_BINARY_DIR}/neap-config-version.cmake
        DESTINATION ${package_dir})
