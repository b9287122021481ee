// Convolutions of many channels as one matrix product: forward and the input's gradient, and the weight's.
#pragma once

#include <neap/backend/gemm_tiles.hpp>
#include <neap/backend/host.hpp>
#include <neap/backend/kernels/conv2d_axes.hpp>
#include <neap/backend/kernels/conv2d_lanes.hpp>
#include <neap/backend/kernels/conv2d_tiles.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

// A strip layout whose strips have at most `most` pixels, gaps included; what is cut for matrix products.
inline strip_layout short_strips(correlation_axis const& h, correlation_axis const& w, std::int64_t most) {
  constexpr std::int64_t channels = 16, lanes = 16;  // that a strip is made for
  auto s = strip_layout::of(h, w, channels, lanes, sizeof(float));
  std::int64_t const rows = std::clamp<std::int64_t>(most / s.pitch, 1, std::max<std::int64_t>(h.out, 1));
  if (rows < s.rows) {
    s.strips = (h.out + rows - 1) / rows;
    s.rows = (h.out + s.strips - 1) / s.strips;
  }
  return s;
}

// Rows of `width` elements, `pitch` apart, one behind another. Reads and writes up to 15 elements more.
inline void join_rows(float const* from, std::int64_t rows, std::int64_t width, std::int64_t pitch, float* to) {
  for (std::int64_t r = 0; r < rows; ++r, from += pitch, to += width)
    for (std::int64_t i = 0; i < width; i += 16) __builtin_memcpy(to + i, from + i, 16 * sizeof(float));
}

// A correlation from and to many channels as one matrix product, y [outs, pixels] = w [outs, ins * taps] x [ins * taps,
// pixels], for images of any size: strips of pixels without the gaps between their rows, several strips side by side. A
// tile holds 14 channels of y, whose pixels may be those of several strips; the correlation's own holds 8, computes the
// gaps too, and ends with each strip.
struct correlation_product {
  correlation_axis h, w;
  strip_layout strip;
  std::int64_t ins, outs, groups, taps, strips, unit;  // unit: pixels of a strip
  std::int64_t together;                               // strips side by side, for so many threads

  static constexpr std::int64_t max_pixels = 512, k_step = 256;

  // The shape decides, whatever machine there is: programs may be compiled with other flags than their kernels.
  static bool suits(correlation_axis const& h, correlation_axis const& w, std::int64_t images, std::int64_t ins,
                    std::int64_t outs, dtype element) {
    std::int64_t const taps = std::int64_t{h.taps} * w.taps;
    if (element != dtype::f32 || outs < 128 || ins * taps < 256 || images * h.out * w.out < 64) return false;
    if (w.out + w.high - w.low > max_pixels / 2) return false;  // a row and its gap must fit
    // Rows that fill few lanes, many planes to split, long sums without a tap to shift by. Elsewhere the correlation's own
    // tiles were quicker.
    return w.out <= 8 || (w.out <= 16 && (h.step * w.step > 1 || (taps == 1 && ins >= 512)));
  }
  correlation_product(correlation_axis const& h_, correlation_axis const& w_, std::int64_t images, std::int64_t ins_,
                      std::int64_t outs_, std::int64_t groups_, int threads)
      : h(h_),
        w(w_),
        strip(short_strips(h, w, max_pixels)),
        ins(ins_),
        outs(outs_),
        groups(groups_),
        taps(std::int64_t{h.taps} * w.taps),
        strips(images * strip.strips),
        unit(strip.rows * w.out) {
    std::int64_t const side = (strips + threads - 1) / threads;
    together = std::clamp<std::int64_t>(side, 1, std::max<std::int64_t>(max_pixels / unit, 1));
  }
  std::int64_t channels() const { return std::min(ins, (k_step + taps - 1) / taps + 1); }
  std::int64_t plane_floats() const { return channels() * together * strip.channel; }
  std::int64_t pixels() const { return (together * unit + 31) / 32 * 32; }
  bytes_t scratch_bytes() const {
    return round_up_64((plane_floats() + pixels() + 16 + outs * together * unit) * std::int64_t{sizeof(float)});
  }
  /// Of as many threads as there are at most; 0 for shapes that do not suit.
  static bytes_t workspace(correlation_axis const& h, correlation_axis const& w, std::int64_t images, std::int64_t ins,
                           std::int64_t outs, dtype element, int threads) {
    bytes_t most = 0;
    if (!suits(h, w, images, ins, outs, element)) return most;
    for (int t = 1; t <= threads; ++t) {
      correlation_product const p(h, w, images, ins, outs, 1, t);
      most = std::max(most, round_up_64(2 * p.taps * 8) + t * p.scratch_bytes());
    }
    return most;
  }

#if defined(NEAP_GEMM_TILES)
  /// weight[o][c][i][j] by strides, those of groups in front.
  void run(host_backend& backend, float const* weight, std::int64_t group, std::int64_t out, std::int64_t in,
           std::int64_t row, std::int64_t column, float const* bias, std::int64_t bias_step, tensor_ref const& from,
           tensor_ref const& to, void* workspace) const {
    auto* const offsets = static_cast<std::int64_t*>(workspace);
    auto* const weight_at = offsets + taps;
    auto* const scratch = static_cast<std::byte*>(workspace) + round_up_64(2 * taps * 8);
    tap_offsets(h, w, strip, offsets);
    bool contiguous = in == taps;
    for (int i = 0; i < h.taps; ++i)
      for (int j = 0; j < w.taps; ++j) {
        weight_at[i * w.taps + j] = h.tap[i] * row + w.tap[j] * column;
        contiguous = contiguous && weight_at[i * w.taps + j] == i * w.taps + j;
      }
    std::int64_t const blocks = (strips + together - 1) / together;
    backend.parallel_for(groups * blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const g = id / blocks, first = id % blocks * together;
        std::int64_t const count = std::min(together, strips - first), n = count * unit;
        auto* const planes = reinterpret_cast<float*>(scratch + worker * scratch_bytes());
        float* const line = planes + plane_floats();
        float* const y = line + pixels() + 16;
        float const* const w0 = weight + g * group;
        gemm_tiles::run(
            outs, n, ins * taps, k_step,
            [&](std::int64_t i, std::int64_t p, std::int64_t mc, std::int64_t kc, float* packed) {
              if (contiguous) return gemm_tiles::pack_left({w0, out, false}, i, p, mc, kc, packed);
              if (taps == 1 && out == 1) return gemm_tiles::pack_left({w0, in, true}, i, p, mc, kc, packed);
              pack_weights(w0, out, in, weight_at, i, p, mc, kc, packed);
            },
            [&](std::int64_t p, std::int64_t, std::int64_t kc, std::int64_t, float* packed) {
              pack_pixels(from, g * ins, first, count, p, kc, offsets, planes, line, packed);
            },
            false, y, n);
        for (std::int64_t o = 0; o < outs; ++o)
          write_channel(y + o * n, first, count, bias ? bias[(g * outs + o) * bias_step] : 0.f, g * outs + o, to);
      }
    });
  }

 private:
  void pack_weights(float const* weight, std::int64_t out, std::int64_t in, std::int64_t const* weight_at,
                    std::int64_t i, std::int64_t p, std::int64_t mc, std::int64_t kc, float* packed) const {
    for (std::int64_t r = 0; r < mc; r += gemm_tiles::rows) {
      std::int64_t const rows = std::min(gemm_tiles::rows, mc - r);
      float* to = packed + r * kc;
      for (std::int64_t k = p; k < p + kc; ++k) {
        float const* const from = weight + (i + r) * out + k / taps * in + weight_at[k % taps];
        for (std::int64_t l = 0; l < rows; ++l) *to++ = from[l * out];
      }
    }
  }
  void pack_pixels(tensor_ref const& x, std::int64_t channel, std::int64_t first, std::int64_t count, std::int64_t p,
                   std::int64_t kc, std::int64_t const* offsets, float* planes, float* line, float* packed) const {
    std::int64_t const c0 = p / taps, here = (p + kc - 1) / taps - c0 + 1;
    for (std::int64_t u = 0; u < count; ++u)
      for (std::int64_t c = 0; c < here; ++c)
        pack_channel(
            h, w, strip, (first + u) % strip.strips * strip.rows,
            x.as<float const>() + (first + u) / strip.strips * x.strides[0] + (channel + c0 + c) * x.strides[1],
            x.strides[2], x.strides[3], planes + (u * here + c) * strip.channel);
    constexpr std::int64_t width = gemm_tiles::columns;
    std::int64_t const n = count * unit, panels = (n + width - 1) / width;
    for (std::int64_t k = 0; k < kc; ++k) {
      std::int64_t const c = (p + k) / taps - c0, tap = (p + k) % taps;
      for (std::int64_t u = 0; u < count; ++u)
        join_rows(planes + (u * here + c) * strip.channel + offsets[tap], strip.rows, w.out, strip.pitch,
                  line + u * unit);
      std::fill(line + n, line + panels * width, 0.f);
      for (std::int64_t i = 0; i < panels; ++i)
        __builtin_memcpy(packed + (i * kc + k) * width, line + i * width, width * sizeof(float));
    }
  }
  void write_channel(float const* y, std::int64_t first, std::int64_t count, float bias, std::int64_t channel,
                     tensor_ref const& to) const {
    for (std::int64_t u = first; u < first + count; ++u, y += unit) {
      std::int64_t const row = u % strip.strips * strip.rows, rows = std::min(strip.rows, h.out - row);
      std::int64_t const step = w.out_step * to.strides[3];
      float* const out =
          to.as<float>() + u / strip.strips * to.strides[0] + channel * to.strides[1] + w.first * to.strides[3];
      for (std::int64_t r = 0; r < rows; ++r) {
        float const* const from = y + r * w.out;
        float* const at = out + (h.first + (row + r) * h.out_step) * to.strides[2];
        if (step == 1)
          for (std::int64_t c = 0; c < w.out; ++c) at[c] = from[c] + bias;
        else
          for (std::int64_t c = 0; c < w.out; ++c) at[c * step] = from[c] + bias;
      }
    }
  }
#endif
};

// The weight's gradient of many channels as one matrix product, dw [O, C * taps] = g [O, pixels] x [pixels, C * taps],
// for images of any size: pixels are cut every few units (images or strips of them). The tile's sums stay in registers for
// all pixels of a cut, where weight_gradient adds up lanes for each.
struct weight_product {
  conv2d_extents e;
  correlation_axis h, w;
  strip_layout strip;
  std::int64_t taps, columns, units, unit;  // unit: pixels of one
  std::int64_t together;                    // units of a cut
  std::int64_t passes;                      // as filter_passes says

  static constexpr std::int64_t max_pixels = 256, line_floats = max_pixels + 16;

  // The shape decides, whatever machine there is: programs may be compiled with other flags than their kernels.
  static bool suits(conv2d_extents const& e, conv2d_options const& o, dtype element) {
    if (element != dtype::f32 || e.og < 128 || e.cg * e.kh * e.kw < 128 || e.n * e.oh * e.ow < 64) return false;
    if (e.kh * e.kw == 1 && e.og < 256 && e.ow > 16) return false;
    weight_product const p(e, o);
    return p.unit <= max_pixels && p.units > 0;
  }
  weight_product(conv2d_extents const& e_, conv2d_options const& o)
      : e(e_),
        h(correlation_axis::forward(e.h, e.oh, e.kh, o.stride[0], o.padding[0], o.dilation[0])),
        w(correlation_axis::forward(e.w, e.ow, e.kw, o.stride[1], o.padding[1], o.dilation[1])),
        taps(e.kh * e.kw),
        columns(e.cg * taps) {
    strip = short_strips(h, w, max_pixels);
    unit = strip.rows * e.ow;
    units = e.n * strip.strips;
    together =
        std::clamp<std::int64_t>(max_pixels / std::max<std::int64_t>(unit, 1), 1, std::max<std::int64_t>(units, 1));
    passes = filter_passes(units * unit, units / together);
  }
  /// Channels of x that a block of columns touches, at most.
  std::int64_t channels() const { return std::min(e.cg, (1024 + taps - 1) / taps + 1); }
  std::int64_t planes() const { return channels() * together * strip.channel; }
  bytes_t scratch_bytes() const { return round_up_64((planes() + 16 * line_floats) * std::int64_t{sizeof(float)}); }
  filter_sums sums_by() const { return {e.o * columns, 1, passes}; }
  bytes_t sums_bytes() const { return sums_by().floats() * std::int64_t{sizeof(float)}; }
  bytes_t workspace(int threads) const { return round_up_64(taps * 8) + sums_bytes() + threads * scratch_bytes(); }

#if defined(NEAP_GEMM_TILES)
  void run(host_backend& backend, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw, bool accumulate,
           void* workspace) const {
    auto* const offsets = static_cast<std::int64_t*>(workspace);
    auto* const partials = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + round_up_64(taps * 8));
    auto* const scratch = reinterpret_cast<std::byte*>(partials) + sums_bytes();
    tap_offsets(h, w, strip, offsets);
    // Columns side by side, in whole panels.
    std::int64_t const panels = (columns + gemm_tiles::columns - 1) / gemm_tiles::columns;
    std::int64_t const parts = std::min<std::int64_t>(backend.threads(), panels);
    backend.parallel_for(e.groups * parts, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const g = id / parts, part = id % parts;
        std::int64_t const first = panels * part / parts * gemm_tiles::columns;
        std::int64_t const last = std::min(columns, panels * (part + 1) / parts * gemm_tiles::columns);
        auto* const to = reinterpret_cast<float*>(scratch + worker * scratch_bytes());
        std::int64_t const corner = g * e.og * columns + first;
        for (std::int64_t pass = 0; pass < passes; ++pass) {
          std::int64_t const u0 = units * pass / passes, u1 = units * (pass + 1) / passes;
          gemm_tiles::run(
              e.og, last - first, (u1 - u0) * unit, together * unit,
              [&](std::int64_t i, std::int64_t p, std::int64_t mc, std::int64_t kc, float* packed) {
                pack_slopes(dy, g * e.og + i, u0 + p / unit, kc / unit, mc, to + planes(), packed);
              },
              [&](std::int64_t p, std::int64_t j, std::int64_t kc, std::int64_t nc, float* packed) {
                pack_pixels(x, g * e.cg, first + j, u0 + p / unit, kc / unit, nc, offsets, to, to + planes(), packed);
              },
              passes == 1 && accumulate, (passes == 1 ? dw.as<float>() : partials) + corner, columns);
          for (std::int64_t i = 0; i < e.og && passes > 1; ++i)
            for (std::int64_t at = corner + i * columns; at < corner + i * columns + last - first; ++at) {
              float sum = 0;
              if (!sums_by().add_chunks(partials, pass, at, sum)) continue;
              float& into = dw.as<float>()[at];
              into = accumulate ? into + sum : sum;
            }
        }
      }
    });
  }

 private:
  // Strips of 14 rows o of g, unit after unit.
  void pack_slopes(tensor_ref const& dy, std::int64_t o, std::int64_t first, std::int64_t count, std::int64_t mc,
                   float* lines, float* packed) const {
    std::int64_t const kc = count * unit;
    for (std::int64_t i = 0; i < mc; i += gemm_tiles::rows) {
      std::int64_t const rows = std::min(gemm_tiles::rows, mc - i);
      float const* from[16];
      for (std::int64_t r = 0; r < rows; ++r) {
        float* to = lines + r * line_floats;
        from[r] = to;
        for (std::int64_t u = first; u < first + count; ++u) {
          std::int64_t const row = u % strip.strips * strip.rows, here = std::min(strip.rows, e.oh - row);
          float const* const in = dy.as<float const>() + u / strip.strips * dy.strides[0] + (o + i + r) * dy.strides[1];
          for (std::int64_t y = 0; y < strip.rows; ++y, to += e.ow) {
            if (y >= here) {
              std::fill(to, to + e.ow, 0.f);
              continue;
            }
            float const* const at = in + (row + y) * dy.strides[2];
            if (dy.strides[3] == 1) copy_row(at, e.ow, to);
            else
              for (std::int64_t k = 0; k < e.ow; ++k) to[k] = at[k * dy.strides[3]];
          }
        }
      }
      gemm_tiles::pack_lines(from, rows, kc, rows, packed + i * kc);
    }
  }
  // Panels of 32 columns (channel, tap) of x from column j on.
  void pack_pixels(tensor_ref const& x, std::int64_t channel, std::int64_t j, std::int64_t first, std::int64_t count,
                   std::int64_t nc, std::int64_t const* offsets, float* planes, float* buffer, float* packed) const {
    std::int64_t const c0 = j / taps, channels = (j + nc - 1) / taps - c0 + 1, kc = count * unit;
    for (std::int64_t u = 0; u < count; ++u)
      for (std::int64_t c = 0; c < channels; ++c)
        pack_channel(
            h, w, strip, (first + u) % strip.strips * strip.rows,
            x.as<float const>() + (first + u) / strip.strips * x.strides[0] + (channel + c0 + c) * x.strides[1],
            x.strides[2], x.strides[3], planes + (u * channels + c) * strip.channel);
    constexpr std::int64_t lanes = gemm_tiles::lanes, width = gemm_tiles::columns;
    for (std::int64_t at = 0; at < nc; at += lanes) {
      std::int64_t const lines = std::min(lanes, nc - at);
      float* const to = packed + at / width * width * kc + at % width;
      float const* from[16];
      for (std::int64_t l = 0; l < lines; ++l) {
        std::int64_t const column = j + at + l;
        from[l] = buffer + l * line_floats;
        for (std::int64_t u = 0; u < count; ++u)
          join_rows(planes + (u * channels + column / taps - c0) * strip.channel + offsets[column % taps], strip.rows,
                    e.ow, strip.pitch, buffer + l * line_floats + u * unit);
      }
      gemm_tiles::pack_lines(from, lines, kc, width, to);
    }
    if (std::int64_t const rest = nc % width; rest > 0)  // pack_lines may have filled up lanes with what it read last
      for (std::int64_t p = 0; p < kc; ++p)
        std::fill(packed + nc / width * width * kc + p * width + rest,
                  packed + nc / width * width * kc + (p + 1) * width, 0.f);
  }
#endif
};

}}}  // namespace neap::v0::detail
