// What single instructions compute, and what the parser refuses, from PTX text written here: runs without nvcc.
#include "../support/ptx/device.hpp"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

namespace ptx = neap::testing::ptx;

/// A kernel `k` with parameters `in` and `out`; `body` finds them in %in and %out, tid.x in %t, and in %i and %o the
/// addresses of the thread's own 32 bytes of each.
std::string kernel(std::string const& body) {
  return ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<32>; .reg .f32 %f<32>; .reg .f64 %e<16>;\n"
         ".reg .b64 %in, %out, %i, %o; .reg .b32 %t;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;\n"
         "mad.wide.u32 %i, %t, 32, %in; mad.wide.u32 %o, %t, 32, %out;\n" +
         body + "\nret;\n}\n";
}
using words = std::array<std::uint64_t, 4>;

/// Runs `body` for each element; checks that there is no fault.
std::vector<words> run(std::string const& body, std::vector<words> const& in, ptx::dim3 block = {}) {
  auto const m = ptx::parse(kernel(body));
  ptx::device d;
  auto const x = d.buffer(in), y = d.buffer(std::vector<words>(in.size()));
  if (block.count() == 1) block.x = static_cast<std::uint32_t>(in.size());
  auto const r = d.launch(m, "k", {}, block, 0, x, y);
  CHECK_MESSAGE(r.clean(), r.text());
  return d.read<words>(y);
}
std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
/// One instruction of three 32-bit operands and a 32-bit result.
std::uint32_t one(std::string const& op, std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0, int operands = 2) {
  std::string text =
      "ld.global.u32 %r1, [%i]; ld.global.u32 %r2, [%i+8]; ld.global.u32 %r3, [%i+16];\n" + op + " %r4, %r1";
  if (operands > 1) text += ", %r2";
  if (operands > 2) text += ", %r3";
  return static_cast<std::uint32_t>(run(text + "; st.global.u32 [%o], %r4;", {{a, b, c, 0}})[0][0]);
}
std::uint64_t one64(std::string const& op, std::uint64_t a, std::uint64_t b = 0, int operands = 2) {
  return run("ld.global.u64 %d1, [%i]; ld.global.u64 %d2, [%i+8];\n" + op + " %d4, %d1" +
                 (operands > 1 ? ", %d2" : "") + "; st.global.u64 [%o], %d4;",
             {{a, b, 0, 0}})[0][0];
}

TEST_CASE("ptx semantics: integers at their ends") {
  std::uint32_t const least = 0x80000000u;
  CHECK(one("div.s32", least, 0xffffffffu) == least);
  CHECK(one("rem.s32", least, 0xffffffffu) == 0);
  CHECK(one("div.s32", static_cast<std::uint32_t>(-7), 2) == static_cast<std::uint32_t>(-3));
  CHECK(one("div.u32", 7, 0) == 0xffffffffu);
  CHECK(one("add.sat.s32", 0x7fffffff, 1) == 0x7fffffff);
  CHECK(one("sub.sat.s32", least, 1) == least);
  CHECK(one("abs.s32", least, 0, 0, 1) == least);
  CHECK(one("min.s32", static_cast<std::uint32_t>(-1), 1) == 0xffffffffu);
  CHECK(one("min.u32", static_cast<std::uint32_t>(-1), 1) == 1);
  CHECK(one("mul.hi.s32", static_cast<std::uint32_t>(-5), 0x40000000) == static_cast<std::uint32_t>(-2));
  CHECK(one("mad.hi.u32", 0xffffffffu, 0xffffffffu, 3, 3) == 1);
  CHECK(one("mad.lo.s32", 0xffffffffu, 5, 7, 3) == 2);
  CHECK(one("sad.s32", 3, static_cast<std::uint32_t>(-4), 100, 3) == 107);
  CHECK(one("mul24.lo.s32", 0x00ffffff, 2) == static_cast<std::uint32_t>(-2));
  CHECK(one64("mul.lo.s64", 0x100000001ull, 0x100000001ull) == 0x200000001ull);
  CHECK(one64("mul.hi.u64", ~0ull, ~0ull) == ~0ull - 1);
  CHECK(one64("neg.s64", 5, 0, 1) == ~0ull - 4);
}

TEST_CASE("ptx semantics: shifts clamp, funnels wrap or clamp") {
  for (std::uint32_t const n : {0u, 1u, 31u, 32u, 33u, 0xffffffffu}) {
    std::uint32_t const x = 0x89abcdefu;
    CHECK(one("shl.b32", x, n) == (n > 31 ? 0 : x << n));
    CHECK(one("shr.u32", x, n) == (n > 31 ? 0 : x >> n));
    CHECK(one("shr.s32", x, n) == static_cast<std::uint32_t>(static_cast<std::int32_t>(x) >> std::min(n, 31u)));
    std::uint64_t const both = 0x0123456789abcdefull;
    CHECK(one("shf.l.wrap.b32", 0x89abcdefu, 0x01234567u, n, 3) == static_cast<std::uint32_t>(both << (n & 31) >> 32));
    CHECK(one("shf.r.clamp.b32", 0x89abcdefu, 0x01234567u, n, 3) ==
          static_cast<std::uint32_t>(both >> std::min(n, 32u)));
    CHECK(one("shf.r.wrap.b32", 0x89abcdefu, 0x01234567u, n, 3) == static_cast<std::uint32_t>(both >> (n & 31)));
  }
}

TEST_CASE("ptx semantics: bit fields, counts, permutations, lookup of three") {
  CHECK(one("bfe.u32", 0xabcd1234u, 8, 12, 3) == 0xd12);
  CHECK(one("bfe.s32", 0xabcd1234u, 8, 12, 3) == 0xfffffd12u);
  CHECK(one("bfe.s32", 0x80000000u, 28, 12, 3) == 0xfffffff8u);
  CHECK(one("bfe.u32", 0xffffffffu, 3, 0, 3) == 0);
  CHECK(one("brev.b32", 0x12345678u, 0, 0, 1) == 0x1e6a2c48u);
  CHECK(one("popc.b32", 0xf0f0f001u, 0, 0, 1) == 13);
  CHECK(one("clz.b32", 0, 0, 0, 1) == 32);
  CHECK(one("bfind.u32", 0x00800000u, 0, 0, 1) == 23);
  CHECK(one("bfind.s32", 0xfffffff0u, 0, 0, 1) == 3);
  CHECK(one("bfind.shiftamt.u32", 0x00800000u, 0, 0, 1) == 8);
  CHECK(one("bfind.u32", 0, 0, 0, 1) == 0xffffffffu);
  CHECK(one("prmt.b32", 0x33221100u, 0x77665544u, 0x7531, 3) == 0x77553311u);
  CHECK(one("prmt.b32", 0x00800000u, 0, 0xa, 3) == 0xff);
  CHECK(one("prmt.b32.f4e", 0x33221100u, 0x77665544u, 2, 3) == 0x55443322u);
  CHECK(one("prmt.b32.b4e", 0x33221100u, 0x77665544u, 1, 3) == 0x66770011u);
  CHECK(one("prmt.b32.rc16", 0x33221100u, 0, 1, 3) == 0x33223322u);
  CHECK(one("bmsk.clamp.b32", 4, 8) == 0xff0);
  CHECK(one("dp4a.s32.s32", 0xff020304u, 0x01010101u, 10, 3) == 18);
  auto const r = run(
      "ld.global.u32 %r1,[%i]; ld.global.u32 %r2,[%i+8]; ld.global.u32 %r3,[%i+16];\n"
      "lop3.b32 %r4, %r1, %r2, %r3, 0x96; st.global.u32 [%o], %r4; bfi.b32 %r5, %r1, %r2, 4, 8; st.global.u32 [%o+8], %r5;",
      {{0xf0f0f0f0u, 0xcccccccc, 0xaaaaaaaa, 0}})[0];
  CHECK(r[0] == (0xf0f0f0f0u ^ 0xccccccccu ^ 0xaaaaaaaau));
  CHECK(r[1] == 0xcccccf0cu);
}

TEST_CASE("ptx semantics: carries chain over 128 bits") {
  auto const r =
      run("ld.global.u64 %d1,[%i]; ld.global.u64 %d2,[%i+8]; ld.global.u64 %d3,[%i+16]; ld.global.u64 %d4,[%i+24];\n"
          "add.cc.u64 %d5,%d1,%d3; addc.u64 %d6,%d2,%d4; sub.cc.u64 %d7,%d1,%d3; subc.u64 %d8,%d2,%d4;\n"
          "st.global.v2.u64 [%o],{%d5,%d6}; st.global.v2.u64 [%o+16],{%d7,%d8};",
          {{~0ull, 1, 2, 3}})[0];
  CHECK(r == words{1, 5, ~0ull - 2, ~0ull - 1});
}

TEST_CASE("ptx semantics: roundings of f32 by the exact result") {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> d(-3, 3);
  for (int k = 0; k < 50; ++k) {
    float const a = d(random), b = d(random) * (k % 3 ? 1.0f : 1e-4f), c = d(random) * (k % 2 ? 1.0f : 1e-5f);
    long double const product = static_cast<long double>(a) * b, sum = static_cast<long double>(a) + b,
                      fused = product + c;
    auto const towards = [](long double x, int way) {  // -1 down, 1 up, 0 zero
      auto f = static_cast<float>(x);
      bool const down = way < 0 || (way == 0 && x > 0);
      if (down && f > x) f = std::nextafter(f, -INFINITY);
      if (!down && f < x) f = std::nextafter(f, INFINITY);
      return bits(f);
    };
    auto const both = [&](std::string const& op) {
      return one(op, std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b), std::bit_cast<std::uint32_t>(c),
                 op.starts_with("fma") ? 3 : 2);
    };
    for (auto [suffix, way] : {std::pair{"rm", -1}, {"rp", 1}, {"rz", 0}}) {
      CHECK(both(std::string("add.") + suffix + ".f32") == towards(sum, way));
      CHECK(both(std::string("mul.") + suffix + ".f32") == towards(product, way));
      CHECK(both(std::string("fma.") + suffix + ".f32") == towards(fused, way));
    }
    CHECK(both("fma.rn.f32") == bits(std::fma(a, b, c)));
    CHECK(both("div.rn.f32") == bits(a / b));
  }
  float const tiny = std::numeric_limits<float>::denorm_min();
  CHECK(one("add.ftz.f32", std::bit_cast<std::uint32_t>(tiny), std::bit_cast<std::uint32_t>(-0.0f)) == 0);
  CHECK(one("add.f32", std::bit_cast<std::uint32_t>(tiny), 0) == bits(tiny));
  CHECK(one("add.sat.f32", static_cast<std::uint32_t>(bits(0.75f)), static_cast<std::uint32_t>(bits(0.75f))) ==
        bits(1.0f));
}

TEST_CASE("ptx semantics: min, max and comparisons with NaN and zeros") {
  auto const nan = static_cast<std::uint32_t>(bits(std::numeric_limits<float>::quiet_NaN()));
  auto const x = static_cast<std::uint32_t>(bits(2.0f)), zero = 0u, minus_zero = 0x80000000u;
  CHECK(one("min.f32", nan, x) == x);
  CHECK(one("max.f32", x, nan) == x);
  CHECK(one("max.NaN.f32", x, nan) == 0x7fffffff);
  CHECK(one("min.f32", zero, minus_zero) == minus_zero);
  CHECK(one("max.f32", minus_zero, zero) == zero);
  auto const holds = [&](std::string const& op, std::uint32_t a, std::uint32_t b) {
    return run("ld.global.f32 %f1,[%i]; ld.global.f32 %f2,[%i+8]; setp." + op +
                   " %p1, %f1, %f2; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%o],%r1;",
               {{a, b, 0, 0}})[0][0] == 1;
  };
  CHECK_FALSE(holds("lt.f32", nan, x));
  CHECK(holds("ltu.f32", nan, x));
  CHECK(holds("neu.f32", nan, nan));
  CHECK_FALSE(holds("ne.f32", nan, nan));
  CHECK(holds("nan.f32", x, nan));
  CHECK_FALSE(holds("num.f32", x, nan));
  CHECK(holds("eq.f32", zero, minus_zero));
  auto const r =
      run("ld.global.u32 %r1,[%i]; ld.global.u32 %r2,[%i+8]; setp.eq.u32 %p3, %r1, %r1;\n"
          "setp.lt.and.s32 %p1|%p2, %r1, %r2, %p3; selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 1, 0, %p2;\n"
          "setp.lt.or.u32 %p4, %r1, %r2, !%p3; selp.u32 %r5, 1, 0, %p4; set.lt.u32.s32 %r6, %r1, %r2;\n"
          "st.global.v4.u32 [%o],{%r3,%r4,%r5,%r6};",
          {{static_cast<std::uint32_t>(-1), 1, 0, 0}})[0];
  CHECK(r[0] == 1);
  CHECK(r[1] == (0xffffffffull << 32));
}

TEST_CASE("ptx semantics: conversions saturate and round") {
  auto const to = [](std::string const& type, float x) {
    return static_cast<std::uint32_t>(run(
        "ld.global.f32 %f1,[%i]; cvt." + type + ".f32 %r1, %f1; st.global.u32 [%o],%r1;", {{bits(x), 0, 0, 0}})[0][0]);
  };
  CHECK(to("rni.s32", 2.5f) == 2);
  CHECK(to("rni.s32", 3.5f) == 4);
  CHECK(to("rzi.s32", -2.7f) == static_cast<std::uint32_t>(-2));
  CHECK(to("rmi.s32", -2.2f) == static_cast<std::uint32_t>(-3));
  CHECK(to("rpi.s32", 2.2f) == 3);
  CHECK(to("rzi.s32", 1e20f) == 0x7fffffff);
  CHECK(to("rzi.s32", std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(to("rzi.u32", -5.0f) == 0);
  auto const f = [](std::string const& op, float x) {
    return static_cast<std::uint32_t>(
        run("ld.global.f32 %f1,[%i]; " + op + " %f2, %f1; st.global.f32 [%o],%f2;", {{bits(x), 0, 0, 0}})[0][0]);
  };
  CHECK(f("cvt.rni.f32.f32", -0.4f) == bits(-0.0f));
  CHECK(f("cvt.sat.f32.f32", -3.0f) == bits(0.0f));
  CHECK(f("cvt.rna.tf32.f32", 1.0f + 1.0f / 2048) == bits(1.0f + 1.0f / 1024));
  CHECK(f("rcp.rn.f32", 3.0f) == bits(1 / 3.0f));
  CHECK(f("sqrt.rn.f32", 2.0f) == bits(std::sqrt(2.0f)));
  CHECK(f("ex2.approx.ftz.f32", 3.0f) == bits(8.0f));
  CHECK(f("lg2.approx.f32", 8.0f) == bits(3.0f));
  CHECK(f("tanh.approx.f32", 1.0f) == bits(static_cast<float>(std::tanh(1.0))));
  CHECK(f("neg.f32", 0.0f) == bits(-0.0f));
  CHECK(f("cos.approx.f32", 0.0f) == bits(1.0f));
  auto const h = run(
      "ld.global.f32 %f1,[%i]; ld.global.f32 %f2,[%i+8]; cvt.rn.f16x2.f32 %r1,%f1,%f2; cvt.rn.bf16x2.f32 %r2,%f1,%f2;\n"
      "cvt.rz.f16.f32 %h1,%f1; cvt.rn.relu.bf16.f32 %h2,%f2; st.global.v2.u32 [%o],{%r1,%r2}; st.global.v2.u16 [%o+8],{%h1,%h2};",
      {{bits(1.0f + 1.0f / 512 + 1.0f / 2048), bits(-2.0f), 0, 0}})[0];
  CHECK(h[0] == (0x3c02c000ull | 0x3f80c000ull << 32));
  CHECK(h[1] == 0x00003c02ull);
  CHECK(one64("cvt.rni.f64.f64", bits(2.5), 0, 1) == bits(2.0));
  CHECK(one64("cvt.rn.f64.s64", static_cast<std::uint64_t>(-3), 0, 1) == bits(-3.0));
  CHECK(one("cvt.sat.s8.s32", 1000, 0, 0, 1) == 127);
  CHECK(one("cvt.s32.s8", 0x1ff, 0, 0, 1) == 0xffffffffu);
  CHECK(one("cvt.u32.u8", 0x1ff, 0, 0, 1) == 0xff);
  CHECK(one("cvt.rz.f32.s32", 0x7fffffff, 0, 0, 1) == bits(2147483520.0f));
  CHECK(one("cvt.rn.f32.s32", 0x7fffffff, 0, 0, 1) == bits(2147483648.0f));
}

TEST_CASE("ptx semantics: every f16 and bf16 number survives f32 and back") {
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    double const h = ptx::to_double(ptx::half{static_cast<std::uint16_t>(b)}),
                 f = ptx::to_double(ptx::bfloat{static_cast<std::uint16_t>(b)});
    if (!std::isnan(h)) REQUIRE(ptx::from_double<ptx::half>(h).bits == b);
    if (!std::isnan(f)) REQUIRE(ptx::from_double<ptx::bfloat>(f).bits == b);
  }
  CHECK(ptx::from_double<ptx::half>(65520.0).bits == 0x7c00);  // the first that rounds to infinity
  CHECK(ptx::from_double<ptx::half>(65519.0).bits == 0x7bff);
  CHECK(ptx::from_double<ptx::half>(std::ldexp(1.0, -25)).bits == 0);
  CHECK(ptx::from_double<ptx::half>(std::ldexp(1.5, -25)).bits == 1);
  std::mt19937 random(1);
  for (int k = 0; k < 20000; ++k) {
    auto const x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(x)) continue;
    CHECK(std::bit_cast<float>(ptx::encode(static_cast<double>(x), 23, 8)) == x);
    double const y = static_cast<double>(x) * (1 + std::ldexp(static_cast<double>(random()), -60));
    REQUIRE(ptx::encode(y, 23, 8) == std::bit_cast<std::uint32_t>(static_cast<float>(y)));
  }
}

TEST_CASE("ptx semantics: packs, predicates, tables of branches, calls, 16-bit integers") {
  auto const r = run(
      "ld.global.u64 %d1,[%i]; mov.b64 {%r1,%r2}, %d1; mov.b32 {%h1,%h2}, %r1; mov.b64 %d2, {%r2,%r1}; mov.b32 %r3, {%h2,%h1};\n"
      "st.global.u64 [%o],%d2; st.global.u32 [%o+8],%r3; mul.wide.s16 %r4, %h1, %h2; st.global.u32 [%o+16], %r4;\n"
      "mov.b64 {%r5,_}, %d1; add.s16 %h3, %h1, %h1; shr.s16 %h4, %h3, 4; cvt.s32.s16 %r6, %h4; st.global.v2.u32 [%o+24], {%r5,%r6};",
      {{0x1122334455669988ull, 0, 0, 0}})[0];
  CHECK(r[0] == 0x5566998811223344ull);
  CHECK(r[1] == 0x99885566ull);
  CHECK(static_cast<std::int32_t>(r[2]) == static_cast<std::int16_t>(0x9988) * 0x5566);
  CHECK(static_cast<std::int32_t>(r[3] >> 32) == (static_cast<std::int16_t>(0x9988 * 2) >> 4));
  auto const cases = run(
      "rem.u32 %r1, %t, 3; ts: .branchtargets L0, L1, L2;\nbrx.idx %r1, ts;\nL0: mov.u32 %r2, 10; bra.uni E;\nL1: mov.u32 %r2, 20; bra.uni E;\n"
      "L2: { .reg .b32 %r2x; mov.u32 %r2x, 30; mov.u32 %r2, %r2x; }\nE: st.global.u32 [%o], %r2;",
      std::vector<words>(40));
  for (std::size_t i = 0; i < 40; ++i) CHECK(cases[i][0] == 10 * (i % 3 + 1));
}

TEST_CASE("ptx semantics: a function called by some lanes, with a loop of its own") {
  auto const m = ptx::parse(
      ".version 9.0\n.target sm_80\n.address_size 64\n"
      ".func (.param .b32 result) triangle(.param .b32 n)\n{ .reg .b32 %r<4>; .reg .pred %p;\n ld.param.u32 %r1,[n]; mov.u32 %r2,0;\n"
      "L: setp.eq.u32 %p,%r1,0; @%p bra D; add.u32 %r2,%r2,%r1; sub.u32 %r1,%r1,1; bra L;\nD: st.param.u32 [result],%r2; ret; }\n"
      ".visible .entry k(.param .u64 out) { .reg .b32 %r<5>; .reg .b64 %d<3>; .reg .pred %p; ld.param.u64 %d1,[out]; mov.u32 %r1,%tid.x;\n"
      "mul.wide.u32 %d2,%r1,4; add.u64 %d1,%d1,%d2; and.b32 %r2,%r1,1; setp.ne.u32 %p,%r2,0; mov.u32 %r3,7; @!%p bra N;\n"
      "{ .param .b32 a; st.param.b32 [a],%r1; .param .b32 b; call.uni (b), triangle, (a); ld.param.b32 %r3,[b]; }\n"
      "N: st.global.u32 [%d1],%r3; ret; }\n");
  for (std::uint64_t const seed : {0, 1, 2}) {
    ptx::device d;
    d.options.seed = seed;
    auto const out = d.buffer<std::uint32_t>(40);
    auto const r = d.launch(m, "k", {}, {40}, 0, out);
    CHECK_MESSAGE(r.clean(), r.text());
    auto const got = d.read<std::uint32_t>(out);
    for (std::uint32_t i = 0; i < 40; ++i) CHECK(got[i] == (i % 2 ? i * (i + 1) / 2 : 7));
  }
}

TEST_CASE("ptx semantics: bar.red, vote, elect, lane masks") {
  auto const r = run(
      "and.b32 %r1, %t, 1; setp.ne.u32 %p1, %r1, 0; bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;\n"
      "selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 1, 0, %p3; vote.sync.ballot.b32 %r5, !%p1, 0xffffffff; mov.u32 %r6, %lanemask_lt;\n"
      "elect.sync %r7|%p4, 0xffffffff; selp.u32 %r8, 1, 0, %p4;\n"
      "st.global.v4.u32 [%o],{%r2,%r3,%r4,%r5}; st.global.v2.u32 [%o+16],{%r6,%r8};",
      std::vector<words>(64));
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(r[i][0] == 32);
    CHECK(r[i][1] == (1 | 0x55555555ull << 32));
    CHECK(r[i][2] == (((1ull << i % 32) - 1) | static_cast<std::uint64_t>(i % 32 == 0) << 32));
  }
}

/// The message of the error that linking the kernel gives; empty if there is none.
std::string refusal(std::string const& text) {
  try {
    auto const m = ptx::parse(text);
    (void)ptx::link(m, "k");
  } catch (ptx::error const& e) { return e.what(); }
  return "";
}

TEST_CASE("ptx: what is not PTX, or is unknown, is refused with its line and name") {
  CHECK(refusal(kernel("tcgen05.mma.cta_group::1.kind::f16 %d1, %d2;")) ==
        "line 10: unknown opcode 'tcgen05.mma.cta_group::1.kind::f16'");
  CHECK(refusal(kernel("add.u128 %d1, %d2, %d3;")) == "line 10: unknown opcode 'add.u128'");
  CHECK(refusal(kernel("add.u32 %r1, %r2;")) == "line 10: operands do not fit 'add.u32'");
  CHECK(refusal(kernel("add.u32 %r1, %r2, %x3;")) == "line 10: unknown register '%x3'");
  CHECK(refusal(kernel("add.u32 %r1, %r2, somewhere;")) == "line 10: unknown name 'somewhere'");
  CHECK(refusal(kernel("bra NOWHERE;")) == "line 10: unknown label 'NOWHERE'");
  CHECK(refusal(kernel("L: L:")) == "line 10: the label 'L' stands twice");
  CHECK(refusal(kernel("add.u32 %r1, %r2, %r3")) == "line 10: ',' or ';' expected before 'ret'");
  CHECK(refusal(kernel("call.uni nothing_there;")) == "line 10: the function 'nothing_there' has no body");
  CHECK(
      refusal(
          kernel(
              "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};"))
          .find("operands do not fit") != std::string::npos);
  CHECK(refusal("nonsense") == "line 1: 'nonsense' begins no declaration");
  CHECK(refusal(".visible .entry k() { ret;") == "line 1: the text ends too early");
  CHECK(refusal(".func f() { call.uni f, (); ret; } .visible .entry k() { call.uni f, (); ret; }") ==
        "line 1: 'f' calls itself: recursion is not supported");
  CHECK(refusal("/* no end") == "line 1: a comment without end");
}

TEST_CASE("ptx faults in text: race, uninitialised and out of bounds without nvcc") {
  auto const m = ptx::parse(
      ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.shared .align 4 .b8 s[128];\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n"
      "ld.param.u64 %d1,[out]; mov.u32 %r1,%tid.x; shl.b32 %r2,%r1,2; mov.u32 %r3,s; add.u32 %r2,%r2,%r3;\n"
      "st.shared.u32 [%r2],%r1;\nld.shared.u32 %r1,[%r2+4];\nst.global.u32 [%d1],%r1;\nret;\n}\n");
  ptx::device d;
  auto const out = d.buffer<std::uint32_t>(1);
  auto const r = d.launch(m, "k", {}, {32}, 0, out);
  CHECK(r.faults.size() == 3);
  CHECK(
      r.faults[0].message.find(
          "race: line 10, block (0,0,0) thread (0,0,0): reads byte 4 of shared variable 's', which thread (1,0,0) wrote at line 9") ==
      0);
  CHECK(
      r.faults[1].message.find(
          "bounds: line 10, block (0,0,0) thread (31,0,0): 4 bytes at offset 128 of shared variable 's', which has 128") ==
      0);
  CHECK(r.faults[2].message.find("race: line 11") == 0);
  CHECK(r.counts.shared_requests == 2);
  CHECK(r.counts.bank_conflicts == 0);
}

TEST_CASE("ptx faults in text: constant data that the kernel writes, assertions, traps") {
  auto const launch = [](std::string const& body, std::uint32_t threads) {
    auto const m = ptx::parse(kernel(body));
    ptx::device d;
    auto const x = d.buffer(std::vector<words>(64)), y = d.buffer(std::vector<words>(64));
    return d.launch(m, "k", {}, {threads}, 0, x, y);
  };
  auto const nc =
      launch("st.global.u32 [%o], 5;\nbar.sync 0;\nld.global.nc.u32 %r1, [%o];\nld.global.nc.u32 %r2, [%i];", 64);
  REQUIRE(nc.faults.size() == 1);
  CHECK(nc.faults[0].kind == ptx::fault_kind::race);
  CHECK(nc.faults[0].line == 12);
  auto const trapped = launch("setp.eq.u32 %p1, %t, 3;\n@%p1 trap;\nst.global.u32 [%o], 5;", 64);
  REQUIRE(trapped.faults.size() == 1);
  CHECK(trapped.faults[0].message == "assertion: line 11, block (0,0,0) thread (3,0,0): trap");
  CHECK(trapped.faults[0].times == 1);
  auto const failed = launch("setp.gt.u32 %p1, %t, 7;\n@%p1 call.uni __assertfail, (a, b);\n", 8);
  CHECK(failed.clean());
}

TEST_CASE("ptx: counts of sectors and bank conflicts by stride") {
  for (unsigned const stride : {1u, 2u, 4u, 8u, 32u}) {
    auto const m = ptx::parse(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u32 stride)\n{\n.shared .align 4 .b8 s[4096];\n.reg .b32 %r<6>; .reg .b64 %d<4>;\n"
        "ld.param.u64 %d1,[in]; ld.param.u32 %r5,[stride]; mov.u32 %r1,%tid.x; mul.lo.u32 %r2,%r1,%r5; mad.wide.u32 %d2,%r2,4,%d1; ld.global.u32 %r3,[%d2];\n"
        "shl.b32 %r2,%r2,2; mov.u32 %r4,s; add.u32 %r2,%r2,%r4; st.shared.u32 [%r2],%r3;\nret;\n}\n");
    ptx::device d;
    auto const in = d.buffer(std::vector<std::uint32_t>(1024));
    auto const r = d.launch(m, "k", {}, {32}, 0, in, stride);
    CHECK_MESSAGE(r.clean(), r.text());
    CHECK(r.counts.global_sectors == std::min(32u, 4 * stride));
    CHECK(r.counts.shared_wavefronts == stride);
    CHECK(r.counts.bank_conflicts == stride - 1);
  }
}

TEST_CASE("ptx: the same seed gives the same run") {
  auto const m = ptx::parse(kernel("atom.global.add.u32 %r1, [%out], 1; st.global.u32 [%o+8], %r1;"));
  auto const order = [&](std::uint64_t seed) {
    ptx::device d;
    d.options.seed = seed;
    auto const x = d.buffer(std::vector<words>(128)), y = d.buffer(std::vector<words>(128));
    auto const r = d.launch(m, "k", {}, {128}, 0, x, y);
    CHECK_MESSAGE(r.clean(), r.text());
    return d.read<words>(y);
  };
  CHECK(order(3) == order(3));
  CHECK(order(3) != order(4));
}

TEST_CASE("ptx: the bytes that a launch reads and writes") {
  auto const m = ptx::parse(kernel(
      "ld.global.u32 %r1, [%i+4]; st.global.u64 [%o], %d1; ld.global.u32 %r2, [%o+4]; st.global.u8 [%o+8], %r1;"));
  ptx::device d;
  auto const x = d.buffer(std::vector<words>(2)), y = d.allocate("result", 64);
  for (int launch = 0; launch < 2; ++launch) {  // the second one sees nothing of the first
    CHECK(d.launch(m, "k", {}, {2}, 0, x, y).clean());
    auto const at = [](ptx::buffer b, std::uint64_t from, std::uint64_t to) {
      return ptx::access_range{b.address() + from, b.address() + to};
    };
    CHECK(d.accessed().reads == std::vector{at(x, 4, 8), at(x, 36, 40)});
    CHECK(d.accessed().writes == std::vector{at(y, 0, 9), at(y, 32, 41)});
  }
  d.release(y);
  auto const r = d.launch(m, "k", {}, {1}, 0, x, y);
  REQUIRE(!r.clean());
  CHECK(r.faults[0].kind == ptx::fault_kind::bounds);
  CHECK(r.faults[0].message.ends_with("8 bytes at offset 0 of result (freed), which has 0"));
  CHECK(d.allocate("other", 64).address() != y.address());
}

TEST_CASE("ptx: what a kernel and a module state of themselves") {
  auto const m = ptx::parse(
      ".version 9.0\n.target sm_90, debug\n.address_size 64\n.visible .entry k()\n.maxntid 64, 2\n.minnctapersm 2\n{\nret;\n}\n"
      ".visible .entry other()\n{\nret;\n}\n");
  CHECK(m.target == 90);
  CHECK(m.kernel("k").max_threads == 128);
  CHECK(m.kernel("other").max_threads == 1024);
}

}  // namespace
