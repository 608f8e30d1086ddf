#pragma once

#include <mutex>

// libstdc++'s mutex has no thread-safety annotations; these thin wrappers make clang's -Wthread-safety work.
#if defined(__clang__)
#define DROVER_ANNOTATE(x) __attribute__((x))
#else
#define DROVER_ANNOTATE(x)
#endif
#define CAPABILITY(x) DROVER_ANNOTATE(capability(x))
#define SCOPED_CAPABILITY DROVER_ANNOTATE(scoped_lockable)
#define GUARDED_BY(x) DROVER_ANNOTATE(guarded_by(x))
#define REQUIRES_LOCK(x) DROVER_ANNOTATE(requires_capability(x))
#define ACQUIRES_LOCK(...) DROVER_ANNOTATE(acquire_capability(__VA_ARGS__))
#define RELEASES_LOCK(...) DROVER_ANNOTATE(release_capability(__VA_ARGS__))

namespace drover::model {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRES_LOCK() { mutex_.lock(); }
  void unlock() RELEASES_LOCK() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Mutex& mutex) ACQUIRES_LOCK(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~LockGuard() RELEASES_LOCK() { mutex_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace drover::model
