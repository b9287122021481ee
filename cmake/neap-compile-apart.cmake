# neap_compile_apart(TARGET): what a program need not compile in each of its files is compiled once, in source files of
# its own, the parts of neap/src.hpp. All are optimised whatever the build type: kernels at -O0 are 15 times slower. A
# target that is linked to neap::import itself gets the part of graph files, too.
function(neap_compile_apart target)
  neap_compile_parts(${target} model search execution verify blocks operators kernels image_kernels import)
  target_compile_definitions(${target} PRIVATE NEAP_SEPARATE_COMPILATION)
endfunction()

# neap_compile_parts(TARGET part...): only these.
function(neap_compile_parts target)
  foreach(part ${ARGN})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}-neap-src-${part}.cpp)
    file(GENERATE OUTPUT ${source} CONTENT "#include <neap/src/${part}.hpp>\n")
    if(part STREQUAL "import")
      target_sources(${target} PRIVATE
        $<$<IN_LIST:neap::import,$<TARGET_PROPERTY:${target},LINK_LIBRARIES>>:${source}>)
    else()
      target_sources(${target} PRIVATE ${source})
    endif()
    # Under the sanitizers more optimisation takes longer to compile than it saves.
    set(level -O2)
    if(NEAP_SANITIZE AND part STREQUAL "model")
      set(level -O0)  # it runs briefly
    elseif(NEAP_SANITIZE)
      set(level -O1)
    endif()
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS $<$<NOT:$<CONFIG:Release,RelWithDebInfo>>:${level}>)
    set_property(SOURCE ${source} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()

# neap_compile_cuda(TARGET): the standard operators' kernels on a GPU, in a .cu file of their own. The project has CUDA
# among its languages.
function(neap_compile_cuda target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}-neap-src-cuda.cu)
  file(GENERATE OUTPUT ${source} CONTENT "#include <neap/src/cuda.hpp>\n")
  target_sources(${target} PRIVATE ${source})
endfunction()
