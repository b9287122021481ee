# The examples for a GPU against an installed neap, each by its own CMakeLists.txt: its files compile, kernels for one
# device. C++ is read and instantiated alone, in half of the time: machine code of these files is made by their own builds.
#   cmake -DEXAMPLES= -DPREFIX= -DSCRATCH= -DCXX= -DNVCC= -P cuda_examples.cmake
set(files_19_cuda_operator main.cpp unit_rows.cu)
set(files_train_gpt on_gpu.cpp)
set(files_train_resnet on_gpu.cpp train_resnet.cpp)
foreach(example 19_cuda_operator train_gpt train_resnet)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${EXAMPLES}/${example} -B ${SCRATCH}/${example} -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_FLAGS_RELEASE=-fsyntax-only -DCMAKE_CUDA_FLAGS_RELEASE=-O0 -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CUDA_COMPILER=${NVCC} -DCMAKE_CUDA_ARCHITECTURES=80-virtual
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "^[0-9]+_" "" program ${example})
  foreach(file ${files_${example}})
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/${example} --target CMakeFiles/${program}.dir/${file}.o
      COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
