//! Remotes in Azure's blob storage, or rather in Azurite, Microsoft's own imitation of it (npm `azurite`), by the path of
//! its program in `ABLATE_AZURITE`. Skipped where there is none.

use crate::daemons::azurite::{ACCOUNT, KEY, Server};
use crate::lab::{CommandOutput, Lab, digests_of};
use crate::s3::write_noise;

const URL: &str = "az://box/some/prefix";

/// The program as somebody with settings and a store of their own, let in by one variable.
fn ablate(
    lab: &Lab,
    who: &str,
    server: &Server,
    (variable, value): (&str, &str),
    arguments: &[&str],
) -> CommandOutput {
    let mut command = lab.command(arguments);
    command
        .env("ABLATE_CONFIG", lab.path(&format!("config-{who}")))
        .env("AZURE_STORAGE_ACCOUNT", ACCOUNT)
        .env("AZURE_STORAGE_BLOB_ENDPOINT", &server.endpoint)
        .env(variable, value);
    if arguments.first() != Some(&"key") {
        command.args(["--store", who]);
    }
    CommandOutput::of(command.output().unwrap())
}

#[test]
fn a_container_of_azure_is_shared_and_never_believed() {
    let Some(server) = Server::start() else {
        return;
    };
    let lab = Lab::new(
        r#"
[axes]
n = [1, 2, 3, 4, 5, 6, 7, 8]

[stage.small]
kind = "table"
rows = [{ x = "${n}" }]

# More than goes in one request.
[stage.noise]
kind = "command"
run = ["sh", "-c", "cp noise.parquet $ABLATE_OUT/rows.parquet"]
files = ["noise.parquet"]
outputs = ["rows"]
timeout = 120
"#,
    );
    write_noise(&lab.path("noise.parquet"), 9_000_000);
    let ada =
        |arguments: &[&str]| ablate(&lab, "ada", &server, ("AZURE_STORAGE_KEY", KEY), arguments);
    let key = ada(&["key", "new"]).good().stdout;
    ada(&["remote", "add", "shared", URL]).good();
    ada(&["run", "-q"]).good();
    let pushed = ada(&["push"]).good().stdout;
    assert!(
        pushed.starts_with("ablate: 9 results in `shared`: 9 new objects"),
        "{pushed}"
    );
    let again = ada(&["push"]).good().stdout;
    assert!(
        again.starts_with("ablate: 9 results in `shared`: 0 new objects"),
        "{again}"
    );
    let examined = ada(&["remote", "fsck"]).good().stdout;
    assert!(
        examined.contains(" 9 entries are intact, 0 problems found"),
        "{examined}"
    );
    let expected = digests_of(&ada(&["runs", "last", "--json"]).good().stdout);

    // A token that lets its owner read, and not list.
    let token = ("AZURE_STORAGE_SAS_TOKEN", server.token.as_str());
    let bob = |arguments: &[&str]| ablate(&lab, "bob", &server, token, arguments);
    bob(&["remote", "add", "shared", URL]).good();
    bob(&["key", "trust", key.trim(), "--name", "ada", "--commands"]).good();
    bob(&["pull", "-q", "--all"]).good();
    assert_eq!(
        digests_of(&bob(&["runs", "last", "--json"]).good().stdout),
        expected
    );
    let listed = bob(&["remote", "fsck"]);
    assert_eq!(listed.code, 1);
    let why = "the container `box` does not let us list (AuthorizationPermissionMismatch): the credentials may be wrong";
    assert!(listed.stderr.contains(why), "{}", listed.stderr);

    // The key of somebody else.
    let wrong = ("AZURE_STORAGE_KEY", "bm90IGFkYSdzIGtleQ==");
    let eve = |arguments: &[&str]| ablate(&lab, "eve", &server, wrong, arguments);
    eve(&["key", "trust", key.trim(), "--name", "ada", "--commands"]).good();
    eve(&["remote", "add", "shared", URL]).good();
    let pulled = eve(&["pull"]);
    assert_eq!(pulled.code, 1, "{pulled:?}");
    let told = format!("{}{}", pulled.stdout, pulled.stderr);
    assert!(
        told.contains("does not let us read (AuthorizationFailure)"),
        "{told}"
    );
    assert!(!told.contains(wrong.1), "{told}");

    // A container that is not there is not one without results.
    let lost = "az://nowhere/x";
    let carl =
        |arguments: &[&str]| ablate(&lab, "carl", &server, ("AZURE_STORAGE_KEY", KEY), arguments);
    carl(&["key", "trust", key.trim(), "--name", "ada"]).good();
    carl(&["remote", "add", "shared", lost]).good();
    let pulled = carl(&["pull"]);
    assert_eq!(pulled.code, 1, "{pulled:?}");
    let told = format!("{}{}", pulled.stdout, pulled.stderr);
    assert!(
        told.contains("(ContainerNotFound): is there such a container?"),
        "{told}"
    );
}

#[test]
fn what_azure_needs_is_said() {
    let lab = Lab::new("");
    let add = |url: &str, set: &[(&str, &str)]| {
        let mut command = lab.command(&["remote", "add", "shared", url]);
        command.envs(set.iter().copied());
        CommandOutput::of(command.output().unwrap()).stderr
    };
    let account = ("AZURE_STORAGE_ACCOUNT", "ada");
    for (url, set, why) in [
        (
            "az://",
            &[][..],
            "an Azure URL names a container: az://CONTAINER/PREFIX",
        ),
        (
            "az://box",
            &[],
            "there is no account of Azure: set AZURE_STORAGE_ACCOUNT",
        ),
        (
            "az://box",
            &[account],
            "there are no credentials for Azure: set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
        ),
        (
            "az://box",
            &[account, ("AZURE_STORAGE_KEY", "?")],
            "the key in AZURE_STORAGE_KEY is not base 64",
        ),
    ] {
        let told = add(url, set);
        assert!(told.contains(why), "{told}");
    }
}
