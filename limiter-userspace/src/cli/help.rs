//! The text of `--help`: commands in groups, and examples of each.

use std::fmt::Write as _;

use clap::{Command, builder::StyledStr};

/// The groups of `limiter --help`, each with its commands.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Start",
        &["run", "check", "reload", "confirm", "detach", "completions"],
    ),
    (
        "See",
        &[
            "status",
            "top",
            "offenders",
            "connections",
            "explain",
            "lists",
            "sieve",
            "stats",
        ],
    ),
    ("Ban", &["ban", "unban", "bans"]),
    (
        "Change",
        &["trust", "untrust", "trusted", "reset", "refund"],
    ),
    ("Try", &["replay", "suggest", "names"]),
    ("Fleet", &["fleet"]),
];

/// The examples of each command.
const EXAMPLES: [(&str, &[&str]); 26] = [
    (
        "run",
        &[
            "limiter run -i eth0",
            "limiter run --confirm 60s new.yaml",
            "limiter run --pin -i 'vnet*'",
        ],
    ),
    (
        "check",
        &[
            "limiter check",
            "limiter check new.yaml --diff",
            "limiter check new.yaml --json",
        ],
    ),
    ("reload", &["limiter reload", "limiter reload --json"]),
    ("confirm", &["limiter confirm", "limiter confirm --json"]),
    (
        "detach",
        &["limiter detach", "limiter detach --pin /sys/fs/bpf/limiter"],
    ),
    (
        "completions",
        &[
            "limiter completions bash > /etc/bash_completion.d/limiter",
            "limiter completions zsh > ~/.zfunc/_limiter",
        ],
    ),
    (
        "status",
        &[
            "limiter status",
            "limiter status --watch 10s",
            "limiter status --check",
        ],
    ),
    (
        "top",
        &["limiter top", "limiter top --by range --sort drops"],
    ),
    (
        "offenders",
        &[
            "limiter offenders --within 10m",
            "limiter offenders --by name --limit Queries",
        ],
    ),
    (
        "connections",
        &[
            "limiter connections",
            "limiter connections --limit Open -n 50",
        ],
    ),
    (
        "explain",
        &[
            "limiter explain 192.0.2.1",
            "limiter explain 192.0.2.1 --server-name shop.example",
            "limiter explain 2001:db8::1 --dns-name www.example.com --dns-type AAAA",
        ],
    ),
    (
        "lists",
        &[
            "limiter lists",
            "limiter lists test 192.0.2.1",
            "limiter lists accept feed",
        ],
    ),
    ("sieve", &["limiter sieve", "limiter sieve main --json"]),
    ("stats", &["limiter stats", "limiter stats --json"]),
    (
        "ban",
        &[
            "limiter ban 192.0.2.1 --for 1h",
            "limiter ban 198.51.100.0/24 2001:db8::/48 --reason scan",
            "limiter ban --stdin --origin sshd < addresses.txt",
        ],
    ),
    (
        "unban",
        &[
            "limiter unban 192.0.2.1",
            "limiter unban --all --origin sshd",
        ],
    ),
    (
        "bans",
        &[
            "limiter bans",
            "limiter bans 192.0.2.0/24",
            "limiter bans --origin automatic",
        ],
    ),
    (
        "trust",
        &[
            "limiter trust 192.0.2.1 --for 30d",
            "limiter trust --stdin < customers.txt",
        ],
    ),
    (
        "untrust",
        &["limiter untrust 192.0.2.1", "limiter untrust 192.0.2.0/24"],
    ),
    ("trusted", &["limiter trusted", "limiter trusted 192.0.2.1"]),
    (
        "reset",
        &[
            "limiter reset 192.0.2.1",
            "limiter reset --all --limit Queries",
        ],
    ),
    (
        "refund",
        &["limiter refund 192.0.2.1 --limit Queries --cost 100"],
    ),
    (
        "replay",
        &[
            "limiter replay web.pcap -c new.yaml",
            "limiter replay web.pcap --plot web.svg",
        ],
    ),
    (
        "suggest",
        &[
            "limiter suggest -i eth0 --for 1h",
            "limiter suggest web.pcap --service tcp/443,udp/53",
            "limiter suggest --running",
        ],
    ),
    (
        "names",
        &["limiter names web.pcap", "limiter names web.pcap --json"],
    ),
    (
        "fleet",
        &[
            "limiter fleet status",
            "limiter fleet push new.yaml --dry-run",
            "limiter fleet push new.yaml --canary 1 --confirm 60s",
        ],
    ),
];

/// Adds the groups to `limiter --help`, and to each command its examples.
pub(super) fn with_help(mut command: Command) -> Command {
    for (name, examples) in EXAMPLES {
        let lines = examples.iter().map(|example| format!("\n  {example}"));
        let text = format!("Examples:{}", lines.collect::<String>());
        command = command.mut_subcommand(name, |command| command.after_help(text));
    }
    let groups = groups(&command);
    let header = *command.get_styles().get_header();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\
         {header}Options:{header:#}\n{{options}}",
        groups.ansi()
    ))
}

/// Returns the commands in their groups, one line each.
fn groups(command: &Command) -> StyledStr {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = StyledStr::new();
    let header = command.get_styles().get_header();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.cloned().unwrap_or_default();
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
        let _ = writeln!(text);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_command_is_in_one_group_and_has_examples() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
        let all: Vec<_> = visible.map(Command::get_name).collect();
        let all: BTreeSet<_> = all.into_iter().collect();
        let grouped: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        assert_eq!(grouped.len(), all.len());
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), all);
        let shown: BTreeSet<_> = EXAMPLES.iter().map(|(name, _)| *name).collect();
        assert_eq!(shown, all);
    }

    #[test]
    fn examples_are_commands_as_a_shell_takes_them() {
        for (name, examples) in EXAMPLES {
            for example in examples {
                let before_file = example
                    .split([' '])
                    .take_while(|word| !matches!(*word, "<" | ">"));
                let words = before_file.map(|word| word.trim_matches('\''));
                let words: Vec<_> = words.collect();
                assert_eq!(words[1], name, "{example}");
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{example}: {error}");
                }
            }
        }
    }

    #[test]
    fn old_names_of_commands_are_taken_and_not_shown() {
        for old in [
            "know 192.0.2.1",
            "forget 192.0.2.1",
            "known",
            "stats --flat",
        ] {
            let words = ["limiter"].into_iter().chain(old.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{old}");
        }
        let help = Cli::command().render_help().to_string();
        for name in ["know", "known", "forget"] {
            assert!(!help.contains(&format!("  {name} ")), "{help}");
        }
    }

    #[test]
    fn help_fits_a_terminal() {
        let help = Cli::command().render_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(help.lines().count() <= 50, "{help}");
    }
}
