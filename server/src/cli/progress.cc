#include "progress.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <utility>

namespace drover::cli {
namespace {

constexpr auto kTerminalPause = std::chrono::milliseconds(200);
constexpr auto kLinePause = std::chrono::milliseconds(5'000);

/// 1234567 as 1,234,567.
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace

Progress::Progress(std::string doing)
    : terminal_(isatty(STDERR_FILENO) != 0), doing_(std::move(doing)), thread_([this] { run(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void Progress::set(std::string doing, std::uint64_t items) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(doing);
  items_.store(items, std::memory_order_relaxed);
}

void Progress::run() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  bool shown = false;
  while (!end_.wait_for(lock, terminal_ ? kTerminalPause : kLinePause, [this] { return ending_; })) {
    const std::uint64_t items = items_.load(std::memory_order_relaxed);
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin).count();
    std::string line = doing_ + ": ";
    if (items > 0) line += grouped(items) + " items, ";
    line += std::to_string(seconds) + " s";
    std::cerr << (terminal_ ? "\r" + line + "\x1b[K" : line + '\n') << std::flush;
    shown = true;
  }
  if (shown && terminal_) std::cerr << "\r\x1b[K" << std::flush;  // what is said next begins at the left
}

}  // namespace drover::cli
