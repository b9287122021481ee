# OpenBLAS with its own cblas.h (the reference BLAS has one too, without openblas_set_num_threads): neap::openblas.
set(flavours openblas-pthread openblas-openmp openblas-serial openblas)
find_path(NeapOpenBLAS_INCLUDE_DIR openblas_config.h PATH_SUFFIXES ${flavours})
find_library(NeapOpenBLAS_LIBRARY openblas PATH_SUFFIXES ${flavours})
mark_as_advanced(NeapOpenBLAS_INCLUDE_DIR NeapOpenBLAS_LIBRARY)
unset(flavours)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NeapOpenBLAS REQUIRED_VARS NeapOpenBLAS_LIBRARY NeapOpenBLAS_INCLUDE_DIR)
if(NeapOpenBLAS_FOUND AND NOT TARGET neap::openblas)
  add_library(neap::openblas INTERFACE IMPORTED)
  target_include_directories(neap::openblas SYSTEM INTERFACE ${NeapOpenBLAS_INCLUDE_DIR})
  target_link_libraries(neap::openblas INTERFACE ${NeapOpenBLAS_LIBRARY})
endif()
