// Errors of sums of many f32 numbers, beside a bound. One CSV row a kernel and kind of values:
//
//   bench_sum_errors [--elements 10000000]
//
// case, type, values (all 0.1, or drawn from an interval), elements, error (the largest relative one, beside sums in
// double), bound. The program fails if an error is above its bound. tests/support/sum_cases.hpp has the cases of kernels;
// functions that are made of several are here.
#include "../tests/support/sum_cases.hpp"

#include <neap/neap.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

using namespace neap_test;

namespace {

/// A function of two tensors of `elements` (the second one -0.2, or 0.3 where `share`), and its value from f64 terms.
struct function_case {
  char const* name;
  neap::tensor (*f)(neap::tensor const&, neap::tensor const&);
  double (*term)(double x, double y);
  double (*end)(double sum, double n);
  bool share = false;  // of elements in (0, 1)
};

double plain_mean(double sum, double n) { return sum / n; }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

function_case const functions[]{
    {"l1_loss", [](auto& x, auto& y) { return neap::l1_loss(x, y); },
     [](double x, double y) { return std::abs(x - y); }, plain_mean},
    {"huber_loss", [](auto& x, auto& y) { return neap::huber_loss(x, y); },
     [](double x, double y) {
       double const d = std::abs(x - y);
       return d <= 1 ? d * d / 2 : d - 0.5;
     },
     plain_mean},
    {"binary_cross_entropy_with_logits_loss",
     [](auto& x, auto& y) { return neap::binary_cross_entropy_with_logits_loss(x, y); },
     [](double x, double y) { return softplus(x) - x * y; }, plain_mean, true},
    {"binary_cross_entropy_loss", [](auto& x, auto& y) { return neap::binary_cross_entropy_loss(x, y); },
     [](double x, double y) { return -y * std::log(x) - (1 - y) * std::log1p(-x); }, plain_mean, true},
    {"kl_divergence_loss", [](auto& x, auto& y) { return neap::kl_divergence_loss(x, y, {.mean_of_rows = false}); },
     [](double x, double y) { return y * (std::log(y) - x); }, plain_mean, true},
    {"norm", [](auto& x, auto&) { return neap::norm(x); }, [](double x, double) { return x * x; },
     [](double sum, double) { return std::sqrt(sum); }},
    {"norm of p = 1", [](auto& x, auto&) { return neap::norm(x, 1); }, [](double x, double) { return std::abs(x); },
     [](double sum, double) { return sum; }},
    {"norm of p = 3", [](auto& x, auto&) { return neap::norm(x, 3); },
     [](double x, double) { return std::abs(x * x * x); }, [](double sum, double) { return std::cbrt(sum); }},
    {"logsumexp", [](auto& x, auto&) { return neap::logsumexp(x); }, [](double x, double) { return std::exp(x); },
     [](double sum, double) { return std::log(sum); }},
};

/// The largest relative error of a function, and of the standard deviation where `f` is null.
double error_of(function_case const* f, std::int64_t elements, summed_values v) {
  f32_tensor x({elements}, v, 31), y({elements}, f && f->share ? 0.3f : -0.2f);
  if (f && f->share)
    for (auto& e : x.at) e = std::min(std::max(std::abs(e) / 2, 0.01f), 0.99f);
  auto const a = neap::tensor::from(x.at, {elements}), b = neap::tensor::from(y.at, {elements});
  auto const n = static_cast<double>(elements);
  double sum = 0, right = 0;
  if (f) {
    for (std::int64_t i = 0; i < elements; ++i) sum += f->term(x[i], y[i]);
    right = f->end(sum, n);
  } else {
    for (std::int64_t i = 0; i < elements; ++i) sum += x[i];
    for (std::int64_t i = 0; i < elements; ++i) right += (x[i] - sum / n) * (x[i] - sum / n);
    right = std::sqrt(right / (n - 1));
  }
  double const got = (f ? f->f(a, b) : neap::stddev(a)).values<double>()[0];
  return std::abs(got / right - 1);
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t elements = 10'000'000;
  for (int i = 1; i + 1 < argc; i += 2)
    if (std::string_view(argv[i]) == "--elements") elements = std::atoll(argv[i + 1]);
  neap::host_backend backend;
  int above = 0;
  auto const row = [&](char const* name, summed_values v, double error, double bound = 1e-6) {
    std::printf("\"%s\",f32,\"%s\",%lld,%.2e,%.0e\n", name, name_of(v), static_cast<long long>(elements), error, bound);
    std::fflush(stdout);
    above += !(error <= bound);
  };
  std::printf("case,type,values,elements,error,bound\n");
  for (auto const& c : sum_cases())
    for (auto const v : {summed_values::equal, summed_values::positive, summed_values::signed_ones})
      row(c.name.c_str(), v, c.run(backend, elements, v).error(), c.bound);
  for (auto const& f : functions)
    for (auto const v : {summed_values::equal, summed_values::positive, summed_values::signed_ones})
      row(f.name, v, error_of(&f, elements, v));
  for (auto const v : {summed_values::positive, summed_values::signed_ones})
    row("stddev", v, error_of(nullptr, elements, v));
  return above != 0;
}
