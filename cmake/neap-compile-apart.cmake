# neap_compile_apart(TARGET): what a program need not compile in each of its files is compiled once, in source files
# of its own, the parts of neap/src.hpp: what is no template, in three files; the standard operators; their kernels, in
# two (one reads Thrust's headers). All are optimised whatever the build type: kernels at -O0 are 15 times slower.
function(neap_compile_apart target)
  foreach(part model search execution operators kernels image_kernels)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}-neap-src-${part}.cpp)
    file(GENERATE OUTPUT ${source} CONTENT "#include <neap/src/${part}.hpp>\n")
    target_sources(${target} PRIVATE ${source})
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
  target_compile_definitions(${target} PRIVATE NEAP_SEPARATE_COMPILATION)
endfunction()

# neap_compile_cuda(TARGET): the standard operators' kernels on a GPU, in a .cu file of their own. The project has CUDA
# among its languages.
function(neap_compile_cuda target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}-neap-src-cuda.cu)
  file(GENERATE OUTPUT ${source} CONTENT "#include <neap/src/cuda.hpp>\n")
  target_sources(${target} PRIVATE ${source})
endfunction()
