// Writes inputs for paper_fuzz to begin with: the published figures of the program, few at a time.
//   paper_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "troika/published/catalogue.h"

int main(int argc, char** argv) {
  using namespace troika;
  if (argc != 2) {
    std::fputs("usage: paper_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const EmbeddedJson& entry : published::papers()) {
    nlohmann::json paper = nlohmann::json::parse(*entry.json);
    const nlohmann::json cases = paper["cases"];
    constexpr size_t kAtOnce = 6;
    for (size_t first = 0; first < cases.size(); first += kAtOnce) {
      paper["cases"] = nlohmann::json::array();
      for (size_t i = first; i < std::min(cases.size(), first + kAtOnce); ++i) {
        paper["cases"].push_back(cases[i]);
      }
      std::ofstream out(folder / fmt::format("{}-{}.json", entry.name, first), std::ios::binary);
      out << paper.dump();
      if (!out.flush()) {
        std::fputs("figures cannot be written\n", stderr);
        return 1;
      }
    }
  }
  return 0;
}
