//! `ablate key`: the user's signing key, and whose results are taken.

use clap::{Args, Subcommand};
use serde_json::json;

use super::exit::Exit;
use super::global::Global;
use super::print::out;
use crate::diagnostic::Diagnostic;
use crate::remote::keys::{Keys, PublicKey, Signer};

/// `ablate key …`.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Make your key, and print the half that others may know
    New,
    /// List your key and those that you trust
    List,
    /// Take results that this key has signed
    Trust {
        /// The public key: ed25519:…
        key: String,
        /// What to call its owner
        #[arg(long)]
        name: String,
        /// Take results of outside programs (`command` stages) too
        #[arg(long)]
        commands: bool,
    },
    /// Take nothing more that this key has signed
    Revoke {
        /// The public key, or what you call its owner
        key: String,
    },
}

/// Makes, lists, trusts and revokes keys.
pub fn key(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let mut keys = Keys::open().map_err(failed)?;
    match arguments.command.as_ref().unwrap_or(&Action::List) {
        Action::New => {
            let public = keys.create().map_err(failed)?.public();
            out!("{public}");
            Ok(())
        }
        Action::List => list(global, &keys),
        Action::Trust {
            key,
            name,
            commands,
        } => {
            let Some(read) = PublicKey::read(key) else {
                let what = format!("`{key}` is not a public key");
                let help = "it begins with ed25519: and is printed by `ablate key list`";
                return Err(Diagnostic::new(what).help(help).into());
            };
            if name.trim().is_empty() {
                return Err(Diagnostic::new("the owner of a key needs a name: --name NAME").into());
            }
            let of_other = |it: &&Signer| it.name == *name && it.key != read.to_string();
            if let Some(other) = keys.signers.iter().find(of_other) {
                let what = format!("you call the owner of another key `{name}`: {}", other.key);
                return Err(Diagnostic::new(what).help("choose another name").into());
            }
            let same = keys.signers.iter().find(|it| it.key == read.to_string());
            let was = same.map(|it| (it.revoked, it.commands));
            keys.signers.retain(|it| it.key != read.to_string());
            keys.signers.push(Signer {
                name: name.clone(),
                key: read.to_string(),
                commands: *commands,
                revoked: false,
            });
            keys.save().map_err(failed)?;
            if !global.quiet {
                let commands = match commands {
                    true => ", also of commands",
                    false => ", but not of commands",
                };
                let before = match was {
                    Some((true, _)) => ": the key was revoked, and is trusted again",
                    Some((_, true)) if commands.starts_with(", but") => {
                        ": until now those of commands were taken too"
                    }
                    _ => "",
                };
                out!("ablate: results that {name} has signed are taken{commands}{before}");
            }
            Ok(())
        }
        Action::Revoke { key } => {
            revoke(&mut keys, key)?;
            if !global.quiet {
                out!("ablate: nothing that {key} has signed is taken any more");
            }
            Ok(())
        }
    }
}

fn revoke(keys: &mut Keys, key: &str) -> Result<(), Exit> {
    let known = keys
        .signers
        .iter()
        .any(|it| it.key == key || it.name == key);
    match PublicKey::read(key) {
        // One that was never trusted, such as one's own.
        Some(read) if !known => keys.signers.push(Signer {
            name: "revoked".to_owned(),
            key: read.to_string(),
            commands: false,
            revoked: true,
        }),
        None if !known => return Err(failed(format!("you trust nobody called `{key}`"))),
        _ => {
            let same = keys.signers.iter_mut();
            same.filter(|it| it.key == key || it.name == key)
                .for_each(|it| it.revoked = true);
        }
    }
    keys.save().map_err(failed)
}

fn list(global: &Global, keys: &Keys) -> Result<(), Exit> {
    let line = |name: &str, key: &str, what: &str| -> Result<(), Exit> {
        match global.json {
            true => out!("{}", json!({ "name": name, "key": key, "trust": what })),
            false => out!("{name:<14} {key}  {what}"),
        }
        Ok(())
    };
    let own = keys
        .own()
        .map_err(failed)?
        .map(|own| own.public().to_string());
    if let Some(own) = &own {
        line(
            "you",
            own,
            if keys.is_revoked(own) {
                "revoked"
            } else {
                "all"
            },
        )?;
    }
    for signer in keys
        .signers
        .iter()
        .filter(|it| Some(&it.key) != own.as_ref())
    {
        let what = match (signer.revoked, signer.commands) {
            (true, _) => "revoked",
            (false, true) => "all",
            (false, false) => "all but commands",
        };
        line(&signer.name, &signer.key, what)?;
    }
    Ok(())
}

fn failed(why: String) -> Exit {
    Exit::Failed(Diagnostic::new(why))
}
