//! Every command in the pages exists and has the options shown there.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    process::Command,
};

use super::pages::{pages, quoted};

/// Returns a command's help; empty if there is no such command.
pub(super) fn help(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_limiter"));
    let output = command.args(words).arg("--help").output();
    let output = output.expect("the command was built for this test");
    String::from_utf8(output.stdout).expect("help is text")
}

/// Returns a command's help with that of its subcommands.
fn whole_help(command: &str) -> String {
    let subcommands: &[&str] = match command {
        "lists" => &["test", "accept"],
        _ => &[],
    };
    let of_subcommands = subcommands.iter().map(|name| help(&[command, name]));
    let texts = [help(&[command])].into_iter().chain(of_subcommands);
    texts.collect()
}

/// Returns the command lines of a page: inline code, and lines of code blocks.
fn command_lines(text: &str) -> Vec<String> {
    let parts: Vec<_> = text.split("```").collect();
    let blocks = parts.iter().skip(1).step_by(2);
    let lines = blocks.flat_map(|block| block.lines().map(str::to_owned));
    let prose: String = parts.iter().step_by(2).copied().collect();
    let inline = quoted(&prose).map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.chain(inline).collect()
}

#[test]
fn commands_and_their_options_exist() {
    let mut helps = BTreeMap::new();
    let mut options = 0;
    for page in pages() {
        for line in command_lines(&page.text) {
            let line = line.split(" # ").next().unwrap_or_default();
            let line = line.split('|').next().unwrap_or_default();
            let mut words = line.trim_start_matches("$ ").split_whitespace();
            if words.next() != Some("limiter") {
                continue;
            }
            // A command's name alone, or a line of the log.
            let Some(command) = words.next().filter(|word| {
                let mut letters = word.chars();
                letters.all(|letter| letter.is_ascii_lowercase())
            }) else {
                continue;
            };
            let help = match helps.entry(command.to_owned()) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(whole_help(command)),
            };
            let page = page.path.display();
            assert!(!help.is_empty(), "{page}: no such command: `{line}`");
            for word in words.filter(|word| word.starts_with("--")) {
                let option = word.split('=').next().unwrap_or_default();
                let is_one = help
                    .split([' ', ',', '=', '[', '\n'])
                    .any(|one| one == option);
                assert!(is_one, "{page}: `{line}` has no {option}");
                options += 1;
            }
        }
    }
    assert!(options > 25, "only {options} options found");
}
