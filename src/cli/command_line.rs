//! The shape of the command line: commands in groups, and shared options only where they mean something.
//! Knows nothing of what commands do.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory};

/// Commands by what they are for, as `--help` shows them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["init", "run", "plan", "explain", "data"]),
    ("Look", &["ls", "show", "runs", "diff", "compare", "serve"]),
    (
        "Trust",
        &["audit", "verify", "replay", "lock", "challenge", "certify"],
    ),
    (
        "Publish",
        &[
            "claims",
            "ablation",
            "multiverse",
            "report",
            "export",
            "lint",
            "render",
        ],
    ),
    ("Store", &["gc", "fsck", "remote", "push", "pull", "key"]),
    (
        SELDOM,
        &[
            "accept",
            "attack-stream",
            "attacks",
            "completions",
            "graph",
            "kinds",
            "predict",
            "schema",
            "sql",
            "tag",
            "worker",
        ],
    ),
];

/// Commands that help only names: it fits a screen.
const SELDOM: &str = "Also";

/// Shared options that a command has no use for.
const IGNORED: [(&str, &[&str]); 18] = [
    (
        "init",
        &["file", "store", "profile", "set", "memory", "quiet"],
    ),
    (
        "attacks",
        &["file", "store", "profile", "set", "memory", "quiet"],
    ),
    (
        "kinds",
        &["file", "store", "profile", "set", "memory", "quiet"],
    ),
    (
        "schema",
        &["file", "store", "profile", "set", "memory", "json", "quiet"],
    ),
    (
        "completions",
        &["file", "store", "profile", "set", "memory", "json", "quiet"],
    ),
    (
        "worker",
        &["file", "store", "profile", "set", "json", "quiet"],
    ),
    ("data", &["store", "memory"]),
    ("graph", &["store", "quiet"]),
    ("gc", &["profile", "set", "memory"]),
    ("fsck", &["profile", "set", "memory"]),
    ("lock", &["set", "memory"]),
    ("challenge", &["profile", "set", "memory", "quiet"]),
    ("serve", &["profile", "set"]),
    ("runs", &["memory", "quiet"]),
    ("diff", &["memory", "quiet"]),
    ("tag", &["memory", "json", "quiet"]),
    ("remote", &["profile", "set", "memory"]),
    (
        "key",
        &["file", "store", "profile", "set", "memory", "quiet"],
    ),
];

/// The command line with its groups, and with options hidden where they are ignored.
pub fn command<C: CommandFactory>() -> Command {
    let mut command = C::command();
    let shared: Vec<clap::Arg> = command
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .cloned()
        .collect();
    for (name, ignored) in IGNORED {
        for argument in &shared {
            if ignored.contains(&argument.get_id().as_str()) {
                let hidden = argument.clone().hide(true);
                command = command.mut_subcommand(name, |sub| sub.arg(hidden));
            }
        }
    }
    let template = format!(
        "{{about}}\n\nUsage: ablate <COMMAND> [OPTIONS]\n\n{}\n\
         Options of most commands (`ablate COMMAND --help` describes them):\n  {}{{after-help}}",
        groups(&command),
        options(&shared)
    );
    command.help_template(template)
}

/// Ends the program if an option was given that the command would ignore.
pub fn refuse_ignored(command: &mut Command, matches: &ArgMatches) {
    let Some((name, given)) = matches.subcommand() else {
        return;
    };
    let ignored = IGNORED.iter().find(|(known, _)| *known == name);
    for option in ignored.map_or(&[][..], |(_, options)| *options) {
        if given.value_source(option) == Some(ValueSource::CommandLine) {
            let what = format!("`ablate {name}` does not take --{option}");
            command.build();
            let kind = clap::error::ErrorKind::UnknownArgument;
            match command.find_subcommand_mut(name) {
                Some(sub) => sub.error(kind, what).exit(),
                None => command.error(kind, what).exit(),
            }
        }
    }
}

/// `-f FILE, --json, …`
fn options(shared: &[clap::Arg]) -> String {
    let each = shared.iter().map(|argument| {
        let name = match (argument.get_short(), argument.get_long()) {
            (Some(short), _) => format!("-{short}"),
            (None, long) => format!("--{}", long.unwrap_or_default()),
        };
        match argument.get_value_names() {
            Some([value]) if argument.get_action().takes_values() => format!("{name} {value}"),
            _ => name,
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Each group with its commands, one per line.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        if group == SELDOM {
            text.push_str(&format!("{group}: {}\n", names.join(", ")));
            continue;
        }
        text.push_str(&format!("{group}:\n"));
        for name in names {
            let Some(found) = command.find_subcommand(name) else {
                continue;
            };
            let about = found.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let aliases: Vec<&str> = found.get_visible_aliases().collect();
            let aliases = match aliases.is_empty() {
                true => String::new(),
                false => format!(" [alias: {}]", aliases.join(", ")),
            };
            text.push_str(&format!("  {name:<14} {about}{aliases}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_every_ignored_option_exists() {
        let command = crate::cli::Cli::command();
        let all: BTreeSet<&str> = command
            .get_subcommands()
            .map(|sub| sub.get_name())
            .collect();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        assert_eq!(grouped.len(), all.len());
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), all);
        for (name, ignored) in IGNORED {
            assert!(all.contains(name), "{name}");
            for option in ignored {
                let known = command
                    .get_arguments()
                    .any(|a| a.get_id() == *option && a.is_global_set());
                assert!(known, "{option}");
            }
        }
        super::command::<crate::cli::Cli>().debug_assert();
    }
}
