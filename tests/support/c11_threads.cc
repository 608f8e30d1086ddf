// ThreadSanitizer follows POSIX threads but not C11's, which librdkafka is built on: it would crash in the first one,
// and then not know of any lock. Here C11's calls are POSIX's, in whatever program links this file; glibc makes both of
// the same types. Without the sanitizer nothing is defined.
#if defined(__SANITIZE_THREAD__)

#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>

namespace {

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t));

pthread_mutex_t* posix(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}
pthread_cond_t* posix(cnd_t* condition) {
  return reinterpret_cast<pthread_cond_t*>(condition);
}
int c11(int error) {
  if (error == 0) return thrd_success;
  if (error == ETIMEDOUT) return thrd_timedout;
  return error == EBUSY ? thrd_busy : thrd_error;
}

struct Start {
  thrd_start_t function;
  void* argument;
};

void* run(void* given) {
  const Start start = *static_cast<Start*>(given);
  delete static_cast<Start*>(given);
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(start.function(start.argument)));
}

}  // namespace

extern "C" {

int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  return c11(pthread_create(thread, nullptr, run, new Start{function, argument}));
}
int thrd_join(thrd_t thread, int* result) {
  void* returned = nullptr;
  const int error = pthread_join(thread, &returned);
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(returned));
  return c11(error);
}
int thrd_detach(thrd_t thread) {
  return c11(pthread_detach(thread));
}

int mtx_init(mtx_t* mutex, int type) noexcept {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if ((type & mtx_recursive) != 0) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  const int error = pthread_mutex_init(posix(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return c11(error);
}
int mtx_lock(mtx_t* mutex) {
  return c11(pthread_mutex_lock(posix(mutex)));
}
int mtx_trylock(mtx_t* mutex) noexcept {
  return c11(pthread_mutex_trylock(posix(mutex)));
}
int mtx_unlock(mtx_t* mutex) noexcept {
  return c11(pthread_mutex_unlock(posix(mutex)));
}
void mtx_destroy(mtx_t* mutex) noexcept {
  pthread_mutex_destroy(posix(mutex));
}

int cnd_init(cnd_t* condition) noexcept {
  return c11(pthread_cond_init(posix(condition), nullptr));
}
int cnd_signal(cnd_t* condition) noexcept {
  return c11(pthread_cond_signal(posix(condition)));
}
int cnd_broadcast(cnd_t* condition) noexcept {
  return c11(pthread_cond_broadcast(posix(condition)));
}
int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return c11(pthread_cond_wait(posix(condition), posix(mutex)));
}
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return c11(pthread_cond_timedwait(posix(condition), posix(mutex), until));
}
void cnd_destroy(cnd_t* condition) noexcept {
  pthread_cond_destroy(posix(condition));
}

}  // extern "C"

#endif
