// expect: neap: no tensor has elements of this type: give double, float, neap::bf16, neap::f16, std::int64_t
#include <neap/model/tensor.hpp>

#include <vector>

auto const x = neap::tensor::from(std::vector<long long>{1, 2}, {2});
