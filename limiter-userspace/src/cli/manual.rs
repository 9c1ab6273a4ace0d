//! The manual pages.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use clap::CommandFactory as _;

use super::Cli;

/// What every page says of exit codes.
const EXIT_STATUS: &str = r#".SH "EXIT STATUS"
.TP
0
Done; also with warnings, and whatever a question's answer is.
.TP
1
Failed or refused: stderr says why, and what to do. `limiter status` also exits 1 if an interface that should be is not attached, `limiter unban` if an address is still banned with its range.
.TP
2
Wrong usage.
.PP
`limiter status --check` exits as monitoring plugins do: 0 all is well, 1 a warning, 2 critical, 3 unknown.
.SH ENVIRONMENT
.TP
LIMITER_CONFIG
The configuration file where none is named, in place of /etc/limiter/limiter.yaml.
.TP
LIMITER_SOCKET
The control socket, in place of /run/limiter/control.sock.
.TP
COLUMNS
How wide tables may be, in place of the terminal's width.
.TP
NO_COLOR
Turns colours off.
"#;

/// Writes `limiter.1` and a page for each subcommand, such as `limiter-run.1`, to a directory.
pub fn write(directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), directory)?;
    for page in fs::read_dir(directory)? {
        let mut page = OpenOptions::new().append(true).open(page?.path())?;
        page.write_all(EXIT_STATUS.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_the_exit_codes() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path()).unwrap();
        let pages: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
        assert!(pages.len() > 20);
        for page in pages {
            let text = fs::read_to_string(page.unwrap().path()).unwrap();
            assert_eq!(text.matches(".SH \"EXIT STATUS\"").count(), 1);
            assert!(text.starts_with(".ie"), "{text}");
        }
    }
}
