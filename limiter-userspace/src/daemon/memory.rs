//! Memory that a long configuration has taken, given back to the system.
//!
//! Reading a configuration with a hundred thousand overrides takes many times the memory of the
//! policy it comes to, in small pieces, which glibc's allocator would keep for years.

/// Has all threads allocate from one arena: of others the allocator does not give everything back.
/// The daemon has few threads, which seldom allocate at the same time. To be called before there
/// are any.
pub(super) fn prepare() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes numbers, and there is but this thread (mallopt(3)).
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives back what was freed.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time, from any thread (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}
