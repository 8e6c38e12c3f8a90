// Runs a fuzzer without libFuzzer: every file given, then random mutations of them.
//   NAME_fuzz [-runs=N] [-seed=N] FILE_OR_FOLDER...
// Takes the arguments that libFuzzer takes. A failure is the fuzzer's abort; the input that caused
// it is then in crash-input.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Input = std::vector<uint8_t>;

Input read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<Input> read_inputs(const std::vector<fs::path>& paths) {
  std::vector<Input> inputs;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      inputs.push_back(read_file(path));
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) inputs.push_back(read_file(entry.path()));
    }
  }
  return inputs;
}

size_t below(std::mt19937_64& random, size_t n) { return static_cast<size_t>(random() % n); }

// A place in the input; twice as often as not in its first kilobyte, where headers are.
size_t place(std::mt19937_64& random, const Input& input) {
  constexpr size_t kHead = 1024;
  const size_t n = random() % 3 != 0 && input.size() > kHead ? kHead : input.size();
  return below(random, n);
}

void overwrite(std::mt19937_64& random, Input& input, uint64_t value, size_t width) {
  const size_t at = place(random, input);
  for (size_t i = 0; i < width && at + i < input.size(); ++i) {
    input[at + i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

void mutate_once(std::mt19937_64& random, Input& input) {
  constexpr uint64_t kInteresting[] = {0,
                                       1,
                                       0x7f,
                                       0xff,
                                       0xffff,
                                       0x7fffffff,
                                       0xffffffffu,
                                       uint64_t{1} << 61,
                                       ~uint64_t{0},
                                       uint64_t{1} << 63};
  if (input.empty()) input.push_back(0);
  switch (random() % 6) {
    case 0:
      input[place(random, input)] ^= static_cast<uint8_t>(1u << (random() % 8));
      break;
    case 1:
      input[place(random, input)] = static_cast<uint8_t>(random());
      break;
    case 2:
      overwrite(random, input, kInteresting[below(random, std::size(kInteresting))],
                size_t{1} << (random() % 4));
      break;
    case 3:
      input.resize(1 + below(random, input.size()));
      break;
    case 4: {
      const size_t at = place(random, input);
      const size_t n = std::min<size_t>(1 + random() % 32, input.size() - at);
      input.erase(input.begin() + static_cast<ptrdiff_t>(at),
                  input.begin() + static_cast<ptrdiff_t>(at + n));
      break;
    }
    default: {
      const size_t at = place(random, input);
      const size_t n = std::min<size_t>(1 + random() % 32, input.size() - at);
      const Input part(input.begin() + static_cast<ptrdiff_t>(at),
                       input.begin() + static_cast<ptrdiff_t>(at + n));
      const size_t to = place(random, input);
      input.insert(input.begin() + static_cast<ptrdiff_t>(to), part.begin(), part.end());
    }
  }
}

std::vector<uint8_t> running;  // the input under test, for write_crash

void write_crash(int) {
  std::ofstream("crash-input", std::ios::binary)
      .write(reinterpret_cast<const char*>(running.data()),
             static_cast<std::streamsize>(running.size()));
  std::fputs("The input is in crash-input.\n", stderr);
  std::_Exit(1);
}

void run(const Input& input) {
  running = input;
  LLVMFuzzerTestOneInput(running.data(), running.size());
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t runs = 0;
  uint64_t seed = 1;
  std::vector<fs::path> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.compare(0, 6, "-runs=") == 0) {
      runs = std::strtoull(arg.c_str() + 6, nullptr, 10);
    } else if (arg.compare(0, 6, "-seed=") == 0) {
      seed = std::strtoull(arg.c_str() + 6, nullptr, 10);
    } else if (arg.empty() || arg[0] != '-') {
      paths.emplace_back(arg);
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, write_crash);

  std::vector<Input> inputs = read_inputs(paths);
  if (inputs.empty()) inputs.emplace_back();
  for (const Input& input : inputs) run(input);
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < runs; ++i) {
    Input input = inputs[below(random, inputs.size())];
    for (uint64_t n = 1 + random() % 4; n > 0; --n) mutate_once(random, input);
    run(input);
  }
  std::printf("%zu inputs and %llu mutations run\n", inputs.size(),
              static_cast<unsigned long long>(runs));
  return 0;
}
