//! Gives the memory that a long configuration took back to the system.
//!
//! Reading a configuration with a hundred thousand overrides takes many times the memory of the
//! compiled policy, in small pieces, which glibc's allocator would keep for years.

/// Makes all threads allocate from one arena: the allocator does not release others completely. The
/// daemon has few threads, which seldom allocate at the same time. Call it before any of them
/// starts.
///
/// Large tables get pages of their own, which go back as soon as a table is dropped. Without a fixed
/// threshold the allocator raises it up to 32 MiB, and then puts such tables between small ones,
/// where their memory stays: a renewed list of a million prefixes took 80 MiB more.
pub(super) fn prepare() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE: libc::c_int = 1 << 20;
        // SAFETY: mallopt(3) takes plain numbers, and no other thread runs yet.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        }
    }
}

/// Releases freed memory.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
