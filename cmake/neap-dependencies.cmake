# What neap needs, found as packages. Used by our own build and, installed, by neap-config.cmake. Each macro leaves in
# `result` an empty string, or one line that says what is missing and which packages of Debian bring it.

macro(neap_find_each result)
  set(neap_names "")
  set(neap_packages "")
  foreach(neap_need ${ARGN})
    string(REPLACE "=" ";" neap_need "${neap_need}")
    list(GET neap_need 0 neap_name)
    list(GET neap_need 1 neap_package)
    find_package(${neap_name} QUIET)
    if(NOT ${neap_name}_FOUND)
      string(REPLACE "Neap" "" neap_name ${neap_name})
      list(APPEND neap_names ${neap_name})
      string(REPLACE "+" " " neap_package ${neap_package})
      list(APPEND neap_packages ${neap_package})
    endif()
  endforeach()
  set(${result} "")
  if(neap_names)
    list(JOIN neap_names ", " neap_names)
    list(JOIN neap_packages " " neap_packages)
    set(${result} "neap: ${neap_names} not found: apt-get install ${neap_packages}")
  endif()
endmacro()

macro(neap_find_dependencies result)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  # range-v3 without a version: its package accepts only the exact one.
  neap_find_each(${result} range-v3=librange-v3-dev TBB=libtbb-dev NeapOpenBLAS=libopenblas-dev
                 NeapThrust=libthrust-dev+libcub-dev Threads=libc6-dev)
endmacro()

macro(neap_find_import_dependencies result)
  neap_find_each(${result} nlohmann_json=nlohmann-json3-dev ZLIB=zlib1g-dev)
endmacro()

macro(neap_find_highs_dependencies result)
  find_package(NeapHighs QUIET)
  set(${result} "")
  if(NOT NeapHighs_FOUND)
    set(${result} "neap: HiGHS not found: pip install highsbox")
  endif()
endmacro()
