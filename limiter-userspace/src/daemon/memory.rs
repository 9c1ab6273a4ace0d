//! Memory that a long configuration has taken, given back to the system.

/// Gives back what was freed.
///
/// Reading a configuration with a hundred thousand overrides takes many times the memory of the
/// policy it comes to, in small pieces, which glibc's allocator would keep for years.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time, from any thread (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}
