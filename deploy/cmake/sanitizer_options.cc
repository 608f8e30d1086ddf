// What the sanitizers are told, in every program of a sanitizer build, so that it also holds when one is run by hand.
// A suppression names a library that Debian ships uninstrumented, never code of ours, and says why.

extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_string_checks=1";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

// With a short history the other stack of a race is often lost, and with it what a suppression could match.
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1:history_size=7";
}

// enqueue_task: oneTBB hands a task to a worker through atomics inside libtbb, where ThreadSanitizer sees nothing, so
// the task object, written here and read there, looks like a race. What the task leads to is synchronised by
// store/src/executor.cc itself.
// micro_queue: the pages of a concurrent queue come from libtbb's allocator, which reuses them unseen.
// called_from_lib: what libtbb itself does to its own memory (memcmp, delete) is seen, what orders it is not.
extern "C" const char* __tsan_default_suppressions() {
  return "race:tbb::detail::d1::enqueue_task\n"
         "race:tbb::detail::d2::micro_queue\n"
         "called_from_lib:libtbb.so\n";
}
