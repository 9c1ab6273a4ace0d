//! The manual pages.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use limiter_userspace::cli::Cli;

/// The end of every page.
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
pub(crate) fn write(directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), directory)?;
    for page in fs::read_dir(directory)? {
        let mut page = OpenOptions::new().append(true).open(page?.path())?;
        page.write_all(EXIT_STATUS.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Returns the text of all pages, by the names of their files.
    fn written() -> BTreeMap<String, String> {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path()).unwrap();
        let pages = fs::read_dir(directory.path()).unwrap().map(|page| {
            let page = page.unwrap();
            let text = fs::read_to_string(page.path()).unwrap();
            (page.file_name().into_string().unwrap(), text)
        });
        pages.collect()
    }

    /// Returns the number of pages: one for the command and for each subcommand.
    fn count(command: &clap::Command) -> usize {
        1 + command.get_subcommands().map(count).sum::<usize>()
    }

    #[test]
    fn every_page_has_the_exit_codes() {
        let pages = written();
        assert_eq!(pages.len(), count(&Cli::command()));
        for text in pages.values() {
            assert_eq!(text.matches(".SH \"EXIT STATUS\"").count(), 1);
            assert!(text.starts_with(".ie"), "{text}");
        }
    }

    #[test]
    fn every_subcommand_has_a_page_with_its_options() {
        let pages = written();
        for subcommand in Cli::command().get_subcommands() {
            let name = subcommand.get_name();
            assert!(pages["limiter.1"].contains(name), "{name}");
            let text = &pages[&format!("limiter-{name}.1")];
            let arguments = subcommand.get_arguments();
            for argument in arguments.filter(|argument| !argument.is_hide_set()) {
                // A dash is escaped in roff.
                let long = argument.get_long().unwrap_or_default();
                assert!(
                    text.contains(&long.replace('-', "\\-")),
                    "limiter-{name}.1 lacks {long}"
                );
            }
        }
    }
}
