#include "gpt_training.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace neap;

gpt_options read_gpt_options(int argc, char const* const* argv) {
  gpt_options o;
  o.name = "train_gpt";
  bool samples = false;
  for (int i = 1; i < argc; ++i) {
    std::string const name = argv[i];
    if (name == "--help" || name == "-h") {
      std::printf(
          "train_gpt [--model demo|gpt2-small|gpt2-medium] [--text FILE] [--context N] [--width N] [--layers N]\n"
          "          [--heads N] [--vocabulary N] [--sample N]\n%s\n",
          training::help);
      std::exit(0);
    }
    if (i + 1 >= argc) throw_error({name, ": a value is missing"});
    std::string const value = argv[++i];
    if (name == "--model") {  // GPT-2's shapes; options that follow change them
      if (value == "gpt2-small") o.width = 768, o.layers = 12, o.heads = 12, o.batch = 8;
      else if (value == "gpt2-medium") o.width = 1024, o.layers = 24, o.heads = 16, o.batch = 4;
      else if (value != "demo") throw_error({"--model: \"", value, "\" is none of demo, gpt2-small and gpt2-medium"});
      if (value != "demo") o.vocabulary = 50257, o.context = 1024, o.rate = 3e-4;
    } else if (name == "--text") o.text = value;
    else if (name == "--sample") o.sample = static_cast<int>(training::number(name, value, 0, 1000000)), samples = true;
    else if (name == "--context") o.context = training::number(name, value, 2, 65536);
    else if (name == "--vocabulary") o.vocabulary = training::number(name, value, 256, 1 << 20);
    else if (name == "--width") o.width = training::number(name, value, 8, 65536);
    else if (name == "--layers") o.layers = training::number(name, value, 1, 1000);
    else if (name == "--heads") o.heads = training::number(name, value, 1, 1000);
    else if (!training::read(o, name, value)) throw_error({name, ": not an option; see --help"});
  }
  if (o.width % o.heads) throw_error({"--width: must be a multiple of --heads"});
  if (o.vocabulary > 256 && !samples) o.sample = 0;  // a large model is slow at once, and has seen little of the text
  if (o.threads == 0) o.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return o;
}

namespace {

/// The bytes of a file, or of the licences that every Debian system has; where there are none, of a made-up language.
std::string read_text(gpt_options const& o) {
  auto const read = [](std::filesystem::path const& path) {
    if (std::filesystem::is_directory(path)) throw_error({path.string(), ": cannot be read: it is a folder"});
    std::ifstream file(path, std::ios::binary);
    if (!file) throw_error({path.string(), ": cannot be read: ", std::strerror(errno)});
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::string text;
  if (!o.text.empty()) {
    text = read(o.text);
  } else {
    std::filesystem::path const folder = "/usr/share/common-licenses";
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (auto const& entry : std::filesystem::directory_iterator(folder, none))
      if (!entry.is_symlink() && entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (auto const& f : files) text += read(f);
    // Words of two to five syllables, drawn from 64.
    random_stream draw(99);
    while (static_cast<std::int64_t>(text.size()) < std::max<std::int64_t>(100'000, 4 * o.context) && files.empty()) {
      for (std::uint32_t left = 2 + draw.below(4); left > 0; --left) {
        auto const syllable = draw.below(64);
        text += "bdfgklmn"[syllable % 8];
        text += "aeiouyhr"[syllable / 8];
      }
      text += ' ';
    }
  }
  if (static_cast<std::int64_t>(text.size()) < o.context + 2)
    throw_error({o.text.empty() ? "the text" : o.text, ": needs at least ", o.context + 2, " bytes"});
  return text;
}

}  // namespace

text_batches::text_batches(gpt_options const& o) : text_(read_text(o)), batch_(o.batch), context_(o.context) {
  for (auto* t : {&ids_, &next_}) *t = tensor::zeros({batch_, context_}, dtype::i64);
}

std::pair<tensor, tensor> const& text_batches::operator()(int step) {
  random_stream draw(1234, static_cast<std::uint64_t>(step));
  auto* const ids = ids_.data<std::int64_t>();
  auto* const next = next_.data<std::int64_t>();
  for (std::int64_t b = 0; b < batch_; ++b) {
    auto const at = draw.below(static_cast<std::uint32_t>(text_.size() - static_cast<std::size_t>(context_) - 1));
    for (std::int64_t t = 0; t < context_; ++t) {
      ids[b * context_ + t] = static_cast<unsigned char>(text_[at + static_cast<std::size_t>(t)]);
      next[b * context_ + t] = static_cast<unsigned char>(text_[at + static_cast<std::size_t>(t) + 1]);
    }
  }
  pair_ = {ids_, next_};
  return pair_;
}

zoo::gpt make_gpt(gpt_options const& o) {
  eager_context const fresh({.seed = 42, .threads = 1});  // the same first weights each time
  zoo::gpt_config c;
  c.vocabulary = o.vocabulary, c.context = o.context, c.width = o.width, c.heads = o.heads, c.layers = o.layers;
  return zoo::gpt(c);
}

void describe(gpt_options const& o, zoo::gpt& model, std::size_t text_bytes) {
  std::int64_t weights = 0;
  for (auto const& w : parameters(model)) weights += w.type().bytes() / 4;
  std::printf(
      "GPT: %lld layers, width %lld, %.3g million parameters; batch %lld of %lld bytes; text of %zu bytes; %s, %d threads\n",
      static_cast<long long>(o.layers), static_cast<long long>(o.width), static_cast<double>(weights) / 1e6,
      static_cast<long long>(o.batch), static_cast<long long>(o.context), text_bytes, o.backend.c_str(), o.threads);
}

void write_sample(zoo::gpt const& model, std::string const& prompt, gpt_options const& o) {
  no_gradient const off;
  std::vector<std::int64_t> ids;
  for (char c : prompt) ids.push_back(static_cast<unsigned char>(c));
  random_stream draw(7);
  std::string written;
  for (int i = 0; i < o.sample; ++i) {
    auto const n = std::min<std::int64_t>(static_cast<std::int64_t>(ids.size()), std::min<std::int64_t>(o.context, 64));
    std::vector<std::int64_t> const window(ids.end() - n, ids.end());
    tensor const logits = model(tensor::from(window, {1, n}));
    float const* const last = logits.data<float>() + (n - 1) * o.vocabulary;
    float const most = *std::max_element(last, last + 256);  // bytes alone, though the vocabulary may have more
    double weight[256], sum = 0;
    for (int k = 0; k < 256; ++k) sum += weight[k] = std::exp((last[k] - most) / 0.6);
    double left = static_cast<double>(draw.uniform()) * sum;
    int next = 255;
    for (int k = 0; k < 256; ++k)
      if ((left -= weight[k]) <= 0) {
        next = k;
        break;
      }
    ids.push_back(next);
    written += next == '\n' || (next >= 32 && next < 127) ? static_cast<char>(next) : '?';
  }
  std::printf("\n---- written by the model after \"%s\"\n%s\n----\n", prompt.c_str(), written.c_str());
}

training::outcome train_gpt_on_host(gpt_options const& o) {
  host_backend backend(o.threads);
  roofline links = roofline::host(o.threads);
  // The spill file's. Swapping takes processor time, which training needs where it has all cores.
  links.to_host_bytes_per_second = links.to_device_bytes_per_second = 2e8;
  return train_gpt(o, backend, links, {2e8, true});
}
