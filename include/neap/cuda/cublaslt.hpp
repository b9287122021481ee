// Products of matrices by cuBLASLt (neap::cublaslt in CMake, where the toolkit has it):
//
//   neap::cuda_backend backend;
//   backend.use_products(std::make_shared<neap::cublaslt>(backend.device()));
//
// The library is asked once for each product which algorithm it takes; a step asks nothing. Algorithms can be written and
// read again (text, read), so that a later run takes the same ones without asking. Split-K may reduce in the type that
// sums have, or not at all: a product has the same bits each time, for one library and device. Epilogues (products.hpp)
// have algorithms of their own.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/device.hpp>
#include <neap/cuda/products.hpp>

#include <cublasLt.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace neap { inline namespace v0 {

struct cublaslt_options {
  bool tf32 = false;  // f32 products on tensor cores, with operands rounded to 10 bits of mantissa
};

class cublaslt final : public cuda_product_library {
 public:
  /// Throws neap::error, in one line, where the library cannot be used: without a driver or a device.
  explicit cublaslt(cuda_device const& device, cublaslt_options const& options = {},
                    std::source_location at = std::source_location::current())
      : options_(options),
        scratch_(device.major >= 9 ? bytes_t{32} << 20 : bytes_t{4} << 20) {
    cublasLtHandle_t made = nullptr;
    check(cublasLtCreate(&made), "no handle of the library", at);
    handle_.reset(made);
    place_ = "cuBLASLt " + std::to_string(cublasLtGetVersion()) + " on " + device.name + ", " +
             std::to_string(device.multiprocessors) + " multiprocessors" + (options.tf32 ? ", tf32" : "");
  }

  bytes_t scratch_bytes() const override { return scratch_; }

  /// By the library: f32, f16 and bf16 with k > 0, if it has an algorithm. Asks it at the first call for a product.
  cuda_library_way way(cuda_product const& p) override { return way(p, product_epilogue::none); }
  /// What an activation reads, or read, has rows of a multiple of 8 elements.
  cuda_library_way way(cuda_product const& p, product_epilogue e) override {
    if (p.element != dtype::f32 && p.element != dtype::f16 && p.element != dtype::bf16)
      return {false, "cuBLASLt is used for f32, f16 and bf16"};
    if (p.m == 0 || p.n == 0 || p.k == 0 || p.batches == 0) return {false, "the product has no elements"};
    if (p.stride_y == 0 && p.batches > 1) return {false, "batches are added to one another"};
    if (has_matrix(e) && (p.ldc % 8 != 0 || p.batches > 1))
      return {false, "cuBLASLt keeps single matrices whose rows are multiples of 8 elements"};
    if (e != product_epilogue::none && p.batches > 1 && gives_sums(e))
      return {false, "cuBLASLt sums operands of single products"};
    if (auto const& f = found(p, e); !f.exists)
      return {false, f.refused ? "cuBLASLt refuses such operands" : "cuBLASLt has no algorithm for it"};
    return {true, {}};
  }

  /// Throws neap::error if the library refuses the call.
  void run(cudaStream_t stream, cuda_product const& p, void const* a, void const* b, void* y, bool accumulate,
           void* scratch) override {
    make(stream, p, a, b, y, accumulate, scratch, {});
  }
  void run(cudaStream_t stream, cuda_product const& p, void const* a, void const* b, void* y,
           product_epilogue_call const& e, void* scratch) override {
    make(stream, p, a, b, y, false, scratch, e);
  }

  /// How often the library was asked for an algorithm.
  int questions() const { return questions_; }

  /// All algorithms, as text: the library and the device in the first line, then a CSV table: the product, the epilogue, the
  /// bytes of scratch memory, the algorithm in hexadecimal digits (none: there is no algorithm).
  std::string text() const {
    std::string out = "# " + place_ + '\n';
    out +=
        "element,m,n,k,transpose a,transpose b,lda,ldb,ldc,batches,stride a,stride b,stride y,alignment a,alignment b,"
        "alignment y,epilogue,scratch bytes,algorithm\n";
    for (auto const& [key, f] : problems_) {
      auto const& p = key.first;
      out += name_of(p.element);
      for (auto n : numbers_of(p)) out += ',' + std::to_string(n);
      out += ',' + std::to_string(static_cast<int>(key.second)) + ',' + std::to_string(f.workspace) + ',';
      if (f.exists) {
        constexpr char const* digits = "0123456789abcdef";
        std::array<unsigned char, sizeof f.algorithm> bytes;
        std::memcpy(bytes.data(), &f.algorithm, sizeof f.algorithm);
        for (unsigned char const x : bytes) out += digits[x >> 4], out += digits[x & 15];
      }
      out += '\n';
    }
    return out;
  }

  /// Takes the algorithms of a text. How many there are; or why none is taken: another library or device, or a line that
  /// is no algorithm. Ones that the library does not accept are asked for again.
  result<int> read(std::string_view text) {
    auto const line = [&] {
      auto const end = std::min(text.find('\n'), text.size());
      auto const l = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      return l;
    };
    auto const of = line();
    if (of != "# " + place_)
      return failure{"cublaslt: algorithms are of '" + std::string(of.substr(std::min<std::size_t>(2, of.size()))) +
                     "', this is " + place_};
    line();  // the table's head
    std::map<key_type, problem> taken;
    for (int number = 3; !text.empty(); ++number) {
      auto const l = line();
      key_type key;
      problem f;
      if (!parse(l, key, f)) return failure{"cublaslt: line " + std::to_string(number) + " is no algorithm"};
      taken.insert_or_assign(key, std::move(f));
    }
    int count = 0;
    for (auto& [key, f] : taken) {
      if (f.exists && !accepts(key, f)) continue;
      problems_.insert_or_assign(key, std::move(f));
      ++count;
    }
    return count;
  }

 private:
  static constexpr std::size_t fields = 15;  // of a product behind its element
  using key_type = std::pair<cuda_product, product_epilogue>;

  static bool has_matrix(product_epilogue e) {
    return e == product_epilogue::bias_gelu_kept || e == product_epilogue::gelu_grad ||
           e == product_epilogue::gelu_grad_sums;
  }
  static bool gives_sums(product_epilogue e) {
    return e == product_epilogue::sums_of_a || e == product_epilogue::sums_of_b;
  }

  template <class T, cublasStatus_t (*Destroy)(T)>
  struct destroyer {
    void operator()(T x) const { Destroy(x); }
  };
  using handle = std::unique_ptr<cublasLtContext, destroyer<cublasLtHandle_t, cublasLtDestroy>>;
  using layout =
      std::unique_ptr<cublasLtMatrixLayoutOpaque_t, destroyer<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
  using description =
      std::unique_ptr<cublasLtMatmulDescOpaque_t, destroyer<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
  using preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                                     destroyer<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

  static void check(cublasStatus_t status, std::string_view what, std::source_location at) {
    if (status != CUBLAS_STATUS_SUCCESS) throw_error(at, {"cublaslt: ", what, ": ", cublasLtGetStatusString(status)});
  }
  static cudaDataType type_of(dtype t) {
    return t == dtype::bf16 ? CUDA_R_16BF : t == dtype::f16 ? CUDA_R_16F : CUDA_R_32F;
  }

  /// What the library calls a product, made once.
  struct descriptors {
    description product;
    layout a, b, y;

    descriptors(cuda_product const& p, product_epilogue epilogue, bool tf32, std::source_location at) {
      cublasLtMatmulDesc_t d = nullptr;
      auto const compute = tf32 && p.element == dtype::f32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
      check(cublasLtMatmulDescCreate(&d, compute, CUDA_R_32F), "a description", at);
      product.reset(d);
      set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, at);
      set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, at);
      // The library's A is b, and its columns are rows here.
      static constexpr std::uint32_t kinds[] = {CUBLASLT_EPILOGUE_DEFAULT,   CUBLASLT_EPILOGUE_BIAS,
                                                CUBLASLT_EPILOGUE_GELU,      CUBLASLT_EPILOGUE_GELU_BIAS,
                                                CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                                                CUBLASLT_EPILOGUE_DGELU,     CUBLASLT_EPILOGUE_BGRADB,
                                                CUBLASLT_EPILOGUE_BGRADA,    CUBLASLT_EPILOGUE_DGELU_BGRAD};
      static_assert(std::size(kinds) == static_cast<std::size_t>(product_epilogue::count));
      if (epilogue != product_epilogue::none) set(CUBLASLT_MATMUL_DESC_EPILOGUE, kinds[static_cast<int>(epilogue)], at);
      if (has_matrix(epilogue)) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::max(p.ldc, p.n), at);
      a = layout_of(p, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.lda, p.stride_a, at);
      b = layout_of(p, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.ldb, p.stride_b, at);
      y = layout_of(p, p.n, p.m, p.ldc, p.stride_y, at);
    }
    template <class T>
    void set(cublasLtMatmulDescAttributes_t which, T const& value, std::source_location at) {
      check(cublasLtMatmulDescSetAttribute(product.get(), which, &value, sizeof value), "a description's attribute",
            at);
    }

   private:
    static layout layout_of(cuda_product const& p, std::int64_t length, std::int64_t lines, std::int64_t ld,
                            std::int64_t stride, std::source_location at) {
      cublasLtMatrixLayout_t made = nullptr;
      check(cublasLtMatrixLayoutCreate(&made, type_of(p.element), static_cast<std::uint64_t>(length),
                                       static_cast<std::uint64_t>(lines), std::max(ld, length)),
            "a layout", at);
      layout l(made);
      auto const batches = static_cast<std::int32_t>(p.batches);
      if (p.batches > 1) {
        check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches),
              "a layout's batches", at);
        check(
            cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
            "a layout's stride", at);
      }
      return l;
    }
  };
  struct problem {
    bool exists = false, refused = false;
    cublasLtMatmulAlgo_t algorithm{};
    bytes_t workspace = 0;
    std::unique_ptr<descriptors> shape;
  };
  static_assert(sizeof(cublasLtMatmulAlgo_t) == 64);

  void make(cudaStream_t stream, cuda_product const& p, void const* a, void const* b, void* y, bool accumulate,
            void* scratch, product_epilogue_call const& e) {
    auto const at = std::source_location::current();
    problem& f = found(p, e.kind);
    if (!f.exists) throw_error(at, {"cublaslt: ", text_of(p), ": there is no algorithm"});
    if (!f.shape) f.shape = std::make_unique<descriptors>(p, e.kind, options_.tf32, at);
    if (e.vector) f.shape->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, e.vector, at);
    if (has_matrix(e.kind)) f.shape->set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, e.matrix, at);
    float const alpha = 1, beta = accumulate ? 1 : 0;
    // In the library's terms matrices are stored by columns: y's transpose is b's times a's.
    check(cublasLtMatmul(handle_.get(), f.shape->product.get(), &alpha, b, f.shape->b.get(), a, f.shape->a.get(), &beta,
                         y, f.shape->y.get(), y, f.shape->y.get(), &f.algorithm, scratch,
                         static_cast<std::size_t>(f.workspace), stream),
          text_of(p), at);
  }

  problem& found(cuda_product const& p, product_epilogue epilogue) {
    auto const [it, is_new] = problems_.try_emplace({p, epilogue});
    if (is_new) {
      try {
        ask(p, epilogue, it->second);
      } catch (...) {
        problems_.erase(it);
        throw;
      }
    }
    return it->second;
  }

  void ask(cuda_product const& p, product_epilogue epilogue, problem& f) {
    auto const at = std::source_location::current();
    ++questions_;
    f.shape = std::make_unique<descriptors>(p, epilogue, options_.tf32, at);
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), "a preference", at);
    preference const wish(made);
    auto const set = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      check(cublasLtMatmulPreferenceSetAttribute(made, which, &value, sizeof value), "a preference's attribute", at);
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(scratch_));
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(p.alignment_b));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(p.alignment_a));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(p.alignment_y));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(p.alignment_y));
    cublasLtMatmulHeuristicResult_t best{};
    int count = 0;
    auto const outcome =
        cublasLtMatmulAlgoGetHeuristic(handle_.get(), f.shape->product.get(), f.shape->b.get(), f.shape->a.get(),
                                       f.shape->y.get(), f.shape->y.get(), made, 1, &best, &count);
    f.refused = outcome == CUBLAS_STATUS_INVALID_VALUE;  // versions differ in the epilogues that they take
    if (f.refused || outcome == CUBLAS_STATUS_NOT_SUPPORTED) return;
    check(outcome, text_of(p), at);
    f.exists = count > 0 && best.state == CUBLAS_STATUS_SUCCESS;
    if (!f.exists) return;
    f.algorithm = best.algo;
    f.workspace = static_cast<bytes_t>(best.workspaceSize);
  }
  bool accepts(key_type const& key, problem& f) {
    f.shape = std::make_unique<descriptors>(key.first, key.second, options_.tf32, std::source_location::current());
    cublasLtMatmulHeuristicResult_t what{};
    auto const outcome =
        cublasLtMatmulAlgoCheck(handle_.get(), f.shape->product.get(), f.shape->b.get(), f.shape->a.get(),
                                f.shape->y.get(), f.shape->y.get(), &f.algorithm, &what);
    if (outcome != CUBLAS_STATUS_SUCCESS || static_cast<bytes_t>(what.workspaceSize) > scratch_) return false;
    f.workspace = static_cast<bytes_t>(what.workspaceSize);
    return true;
  }

  static std::array<std::int64_t, fields> numbers_of(cuda_product const& p) {
    return {p.m,       p.n,        p.k,        p.transpose_a, p.transpose_b, p.lda,         p.ldb,        p.ldc,
            p.batches, p.stride_a, p.stride_b, p.stride_y,    p.alignment_a, p.alignment_b, p.alignment_y};
  }
  static std::string text_of(cuda_product const& p) {
    return std::string(name_of(p.element)) + " product of [" + std::to_string(p.m) + "," + std::to_string(p.k) +
           "] and [" + std::to_string(p.k) + "," + std::to_string(p.n) + "], " + std::to_string(p.batches) + " times";
  }
  static bool parse(std::string_view line, key_type& key, problem& f) {
    auto const next = [&]() -> std::string_view {
      auto const end = std::min(line.find(','), line.size());
      auto const part = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
      return part;
    };
    auto const number = [&](std::int64_t& n) {
      auto const part = next();
      auto const [end, wrong] = std::from_chars(part.data(), part.data() + part.size(), n);
      return wrong == std::errc{} && end == part.data() + part.size() && n >= 0;
    };
    auto const element = next();
    auto& p = key.first;
    bool known = false;
    for (dtype t : {dtype::f32, dtype::f16, dtype::bf16})
      if (element == name_of(t)) p.element = t, known = true;
    if (!known) return false;
    std::array<std::int64_t, fields> n{};
    for (auto& x : n)
      if (!number(x)) return false;
    p.m = n[0], p.n = n[1], p.k = n[2], p.transpose_a = n[3] != 0, p.transpose_b = n[4] != 0;
    p.lda = n[5], p.ldb = n[6], p.ldc = n[7], p.batches = n[8];
    p.stride_a = n[9], p.stride_b = n[10], p.stride_y = n[11];
    p.alignment_a = static_cast<int>(n[12]), p.alignment_b = static_cast<int>(n[13]);
    p.alignment_y = static_cast<int>(n[14]);
    std::int64_t epilogue = 0;
    if (!number(epilogue) || epilogue >= static_cast<int>(product_epilogue::count) || !number(f.workspace))
      return false;
    key.second = static_cast<product_epilogue>(epilogue);
    auto const algorithm = next();
    if (!line.empty()) return false;
    if (algorithm.empty()) return true;
    std::array<unsigned char, sizeof f.algorithm> bytes{};
    if (algorithm.size() != 2 * bytes.size()) return false;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      auto const* const at = algorithm.data() + 2 * i;
      auto const [end, wrong] = std::from_chars(at, at + 2, bytes[i], 16);
      if (wrong != std::errc{} || end != at + 2) return false;
    }
    std::memcpy(&f.algorithm, bytes.data(), sizeof f.algorithm);
    f.exists = true;
    return true;
  }

  cublaslt_options options_;
  bytes_t scratch_;
  handle handle_;
  std::string place_;
  std::map<key_type, problem> problems_;
  int questions_ = 0;
};

}}  // namespace neap::v0
