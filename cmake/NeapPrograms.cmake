# How our own programs are compiled: neap_program_options, and neap_program(NAME source...).
include(CheckCXXCompilerFlag)

add_library(neap_program_flags INTERFACE)
target_compile_options(neap_program_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow>)
# g++ 12 sees overlapping copies in std::string's operator+ where there are none (GCC bug 105329).
target_compile_options(neap_program_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(NEAP_NATIVE)
  check_cxx_compiler_flag(-march=native NEAP_KNOWS_NATIVE)
  if(NEAP_KNOWS_NATIVE)
    target_compile_options(neap_program_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
  endif()
endif()
if(NEAP_SANITIZE)
  # Thrust binds references to null policies, and means no harm; a null pointer that is used is found all the same.
  set(sanitizers -fsanitize=${NEAP_SANITIZE} -fno-sanitize=null,object-size -fno-sanitize-recover=all)
  target_compile_options(neap_program_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${sanitizers} -fno-omit-frame-pointer>)
  target_link_options(neap_program_flags INTERFACE ${sanitizers})
endif()
if(NEAP_WERROR AND NOT (NEAP_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))  # it warns of what a sanitizer inserts
  target_compile_options(neap_program_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# A template library leaves much for the debugger that nobody reads: line tables are enough. Under the sanitizers they
# take a tenth of the time, and are left out: add -DCMAKE_CXX_FLAGS=-g1 for lines in reports.
set(debug_level -g1)
if(NEAP_SANITIZE)
  set(debug_level -g0)
endif()
target_compile_options(neap_program_flags INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Debug>>:${debug_level}>)

# Programs and tests are read; empty files are made in their place, and no objects, so that a build reads all anew.
if(NEAP_SYNTAX_ONLY)
  set(touch "${CMAKE_COMMAND} -E touch")
  set(CMAKE_CXX_COMPILE_OBJECT "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only <SOURCE>")
  set(CMAKE_CXX_LINK_EXECUTABLE "${touch} <TARGET>")
  set(CMAKE_CXX_ARCHIVE_CREATE "${touch} <TARGET>")
  set(CMAKE_CXX_ARCHIVE_FINISH "")
endif()

# All our programs share one compilation of the library, which takes longer than any of them.
# Readers of graph files are a library of their own, for programs that include them.
if(NEAP_SYNTAX_ONLY)
  add_library(neap_compiled INTERFACE)
  add_library(neap_compiled_import INTERFACE)
  target_link_libraries(neap_compiled_import INTERFACE neap::import)
else()
  add_library(neap_compiled STATIC EXCLUDE_FROM_ALL)
  target_link_libraries(neap_compiled PRIVATE neap::neap neap_program_flags)
  neap_compile_apart(neap_compiled)
  if(TARGET neap::import)
    add_library(neap_compiled_import STATIC EXCLUDE_FROM_ALL)
    target_link_libraries(neap_compiled_import PUBLIC neap::import PRIVATE neap_program_flags neap_compiled)
    target_compile_definitions(neap_compiled_import PRIVATE NEAP_SEPARATE_COMPILATION)
    neap_compile_parts(neap_compiled_import import)
  endif()
endif()

add_library(neap_program_options INTERFACE)
target_link_libraries(neap_program_options INTERFACE neap_program_flags neap_compiled)
target_compile_definitions(neap_program_options INTERFACE NEAP_SEPARATE_COMPILATION)

set(neap_fast_gpu_code "")
if(NEAP_FAST_GPU_CODE AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  set(neap_fast_gpu_code --Ofast-compile=mid)
endif()

# neap_compiles_for_gpus(TARGET): how its .cu files are compiled.
function(neap_compiles_for_gpus target)
  set(architectures ${NEAP_CUDA_ARCHITECTURES} 80-virtual)
  list(REMOVE_DUPLICATES architectures)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror>)
  if(NEAP_BUILD_TESTS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--no-compress>)
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${neap_fast_gpu_code}>)
endfunction()

# The kernels of a GPU, once as well. The PTX serves newer GPUs, and the simulated one of the tests, which reads it as text.
if(NEAP_HAS_CUDA AND TARGET neap::cuda AND NOT NEAP_SANITIZE)
  add_library(neap_compiled_cuda OBJECT EXCLUDE_FROM_ALL)
  target_link_libraries(neap_compiled_cuda PRIVATE neap::cuda)
  target_compile_definitions(neap_compiled_cuda PRIVATE NEAP_SEPARATE_COMPILATION)  # as the programs
  neap_compile_cuda(neap_compiled_cuda)
  neap_compiles_for_gpus(neap_compiled_cuda)
endif()

set(neap_program_dir ${PROJECT_BINARY_DIR}/bin)

# neap_left_out(RESULT NAME source...): RESULT is ON, and a line says why, if the program needs range-v3 and it is missing.
function(neap_left_out result name)
  set(${result} OFF PARENT_SCOPE)
  foreach(source ${ARGN})
    file(STRINGS ${source} includes REGEX "#include <range/v3/")
    if(includes AND NOT TARGET range-v3::range-v3)
      message(STATUS "neap: ${name} left out: apt-get install librange-v3-dev")
      set(${result} ON PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

function(neap_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE neap::neap neap_program_options)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${neap_program_dir})
  # Graph files and range-v3 need more libraries: only a program that includes them is linked to those.
  set(reads_files OFF)
  foreach(source ${ARGN})
    file(STRINGS ${source} includes REGEX "#include <neap/import/")
    if(includes)
      set(reads_files ON)
    endif()
    file(STRINGS ${source} includes REGEX "#include <range/v3/")
    if(includes)
      target_link_libraries(${name} PRIVATE range-v3::range-v3)
    endif()
  endforeach()
  if(reads_files)
    target_link_libraries(${name} PRIVATE neap_compiled_import)
  endif()
endfunction()

# neap_gpu_parts(NAME source...): object library of .cpp and .cu files, for programs with a GPU.
function(neap_gpu_parts name)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE neap::cuda neap_program_options)
  neap_compiles_for_gpus(${name})
endfunction()

# neap_gpu_program(NAME PARTS source...): a program of such parts (a list of them), with the kernels of a GPU.
function(neap_gpu_program name parts)
  list(TRANSFORM parts REPLACE "^.+$" "$<TARGET_OBJECTS:\\0>")
  add_executable(${name} ${ARGN} ${parts} $<TARGET_OBJECTS:neap_compiled_cuda>)
  target_link_libraries(${name} PRIVATE neap::cuda neap_program_options)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${neap_program_dir} LINKER_LANGUAGE CXX)
endfunction()

# What a bare compiler must be told to compile against neap, one option a line: for tests that call the compiler
# themselves, and for the include-cost bench.
get_target_property(neap_own_include neap INTERFACE_INCLUDE_DIRECTORIES)
set(dirs $<TARGET_PROPERTY:neap,INTERFACE_INCLUDE_DIRECTORIES>)
if(TARGET neap_import)
  set(dirs $<TARGET_PROPERTY:neap_import,INTERFACE_INCLUDE_DIRECTORIES>)
endif()
set(dirs $<REMOVE_DUPLICATES:${dirs}>)
set(dirs $<FILTER:${dirs},EXCLUDE,^${PROJECT_SOURCE_DIR}/include$|^/usr/include$>)
set(neap_compiler_options ${PROJECT_BINARY_DIR}/compiler-options.txt)
file(GENERATE OUTPUT ${neap_compiler_options} CONTENT
"-std=c++20
-I${PROJECT_SOURCE_DIR}/include
$<$<BOOL:${dirs}>:-isystem$<JOIN:${dirs},\n-isystem>>
-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP
")
