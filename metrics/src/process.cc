#include "process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include "families.h"

namespace drover::metrics {
namespace {

/// The fields of /proc/self/stat that are used, by their numbers in proc(5).
struct Stat {
  std::uint64_t user_ticks = 0;           // 14
  std::uint64_t system_ticks = 0;         // 15
  std::uint64_t threads = 0;              // 20
  std::uint64_t start_ticks = 0;          // 22, since the boot
  std::uint64_t virtual_size_bytes = 0;   // 23
  std::uint64_t resident_size_pages = 0;  // 24
};

bool read_stat(Stat& stat) {
  std::ifstream in("/proc/self/stat");
  const std::string line{std::istreambuf_iterator<char>(in), {}};
  const std::size_t name_end = line.rfind(')');  // the program's name may have spaces in it
  if (name_end == std::string::npos) return false;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int number = 3; fields >> field; ++number) {
    if (number == 14) stat.user_ticks = std::stoull(field);
    if (number == 15) stat.system_ticks = std::stoull(field);
    if (number == 20) stat.threads = std::stoull(field);
    if (number == 22) stat.start_ticks = std::stoull(field);
    if (number == 23) stat.virtual_size_bytes = std::stoull(field);
    if (number == 24) stat.resident_size_pages = std::stoull(field);
  }
  return stat.resident_size_pages > 0;
}

/// When the machine was booted, seconds since 1970; 0 if /proc doesn't say.
double boot_time_seconds() {
  std::ifstream in("/proc/stat");
  std::string word;
  while (in >> word) {
    if (word == "btime" && in >> word) return std::stod(word);
  }
  return 0;
}

std::size_t open_file_descriptors() {
  std::error_code error;
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return 0;
  const auto count = static_cast<std::size_t>(std::distance(begin(files), end(files)));
  return count - 1;  // the one that reads the directory
}

}  // namespace

void collect_process(std::vector<prometheus::MetricFamily>& out) {
  Stat stat;
  if (!read_stat(stat)) return;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page_size_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  rlimit file_limit{};
  getrlimit(RLIMIT_NOFILE, &file_limit);

  counter("process_cpu_seconds_total", "CPU time that the process has used, user and system.")
      .add({}, static_cast<double>(stat.user_ticks + stat.system_ticks) / ticks_per_second)
      .move_to(out);
  gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.")
      .add({}, stat.resident_size_pages * page_size_bytes)
      .move_to(out);
  gauge("process_virtual_memory_bytes", "Address space of the process.").add({}, stat.virtual_size_bytes).move_to(out);
  gauge("process_threads", "Threads of the process.").add({}, stat.threads).move_to(out);
  gauge("process_open_fds", "Open file descriptors.").add({}, open_file_descriptors()).move_to(out);
  gauge("process_max_fds", "File descriptors that may be open at most.").add({}, file_limit.rlim_cur).move_to(out);
  gauge("process_start_time_seconds", "When the process was started, seconds since 1970.")
      .add({}, boot_time_seconds() + static_cast<double>(stat.start_ticks) / ticks_per_second)
      .move_to(out);
}

}  // namespace drover::metrics
