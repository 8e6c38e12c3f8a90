// Writes the recorded chat templates and snippets as inputs to begin fuzzing with.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

int count = 0;

void write(const std::filesystem::path& folder, const nlohmann::json& entries) {
  for (const nlohmann::json& entry : entries) {
    if (!entry.contains("source")) continue;
    std::ofstream file(folder / std::to_string(count++), std::ios::binary);
    file << entry["source"].get<std::string>();
  }
}

}  // namespace

// argv: the folder to write to.
int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const std::string golden = TROIKA_SOURCE_DIR "/tests/golden/";
  std::ifstream templates(golden + "chat-templates.json");
  write(folder, nlohmann::json::parse(templates)["templates"]);
  std::ifstream snippets(golden + "jinja-snippets.json");
  write(folder, nlohmann::json::parse(snippets)["cases"]);
  return count > 0 ? 0 : 1;
}
