// expect: neap: no tensor has elements of this type: give double, float, neap::bf16, neap::f16, std::int64_t
#include <neap/model/tensor.hpp>

auto f(long long* x) { return neap::tensor::borrow(x, {2}); }
