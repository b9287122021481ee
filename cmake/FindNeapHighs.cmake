# HiGHS by its C interface: an own build, Debian's package, or PyPI's highsbox (pip install highsbox), which the python3 in
# PATH is asked for. NeapHighs_INCLUDE_DIR holds interfaces/highs_c_api.h. Makes neap::highs_c.
set(hints "")
if(NOT NeapHighs_INCLUDE_DIR)
  execute_process(COMMAND python3 -c "import highsbox, os; print(os.path.dirname(highsbox.__file__))"
                  OUTPUT_VARIABLE box ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(box)
    list(APPEND hints ${box}/highs_dist)
  endif()
endif()
find_path(NeapHighs_INCLUDE_DIR interfaces/highs_c_api.h HINTS ${hints} PATH_SUFFIXES highs include/highs)
find_library(NeapHighs_LIBRARY highs HINTS ${hints} PATH_SUFFIXES lib)
mark_as_advanced(NeapHighs_INCLUDE_DIR NeapHighs_LIBRARY)
unset(hints)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NeapHighs REQUIRED_VARS NeapHighs_LIBRARY NeapHighs_INCLUDE_DIR)
if(NeapHighs_FOUND AND NOT TARGET neap::highs_c)
  add_library(neap::highs_c INTERFACE IMPORTED)
  # highs_export.h stands beside the folder in some packages.
  cmake_path(GET NeapHighs_INCLUDE_DIR PARENT_PATH parent)
  target_include_directories(neap::highs_c SYSTEM INTERFACE ${NeapHighs_INCLUDE_DIR} ${parent})
  target_link_libraries(neap::highs_c INTERFACE ${NeapHighs_LIBRARY})
  unset(parent)
endif()
