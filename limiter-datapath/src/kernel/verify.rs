//! Has the kernel verify programs.

use std::io;

use aya::programs::ProgramError;

/// As often as libbpf tries (`PROG_LOAD_ATTEMPTS`).
const ATTEMPTS: u32 = 5;

/// Loads a program with `load`. The verifier gives up with `EAGAIN` when a signal reaches its thread, and also
/// while the kernel freezes processes (`do_check` in kernel/bpf/verifier.c): the program is then loaded again.
///
/// # Errors
///
/// The last attempt's.
pub fn verify(mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    for _ in 1..ATTEMPTS {
        match load() {
            Err(ProgramError::LoadError { io_error, .. }) if is_interruption(&io_error) => {}
            result => return result,
        }
    }
    load()
}

fn is_interruption(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAGAIN)
}

#[cfg(test)]
mod tests {
    use aya_obj::VerifierLog;

    use super::*;

    fn refused(errno: i32) -> Result<(), ProgramError> {
        Err(ProgramError::LoadError {
            io_error: io::Error::from_raw_os_error(errno),
            verifier_log: VerifierLog::new(String::new()),
        })
    }

    /// Returns the count of attempts, and whether the last one loaded the program.
    fn attempts(results: impl Fn(u32) -> Result<(), ProgramError>) -> (u32, bool) {
        let mut attempts = 0;
        let result = verify(|| {
            attempts += 1;
            results(attempts)
        });
        (attempts, result.is_ok())
    }

    #[test]
    fn an_interrupted_verification_is_repeated() {
        let interrupted_twice = |attempt| match attempt {
            1 | 2 => refused(libc::EAGAIN),
            _ => Ok(()),
        };
        assert_eq!(attempts(interrupted_twice), (3, true));
        assert_eq!(attempts(|_| refused(libc::EAGAIN)), (ATTEMPTS, false));
        assert_eq!(attempts(|_| refused(libc::EINVAL)), (1, false));
    }
}
