//! `ablate show MODEL --safetensors FILE`: a model's weights, for other programs and for `start`.
//! Knows nothing of the store: it is handed a table.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use arrow::record_batch::RecordBatch;
use serde_json::json;

use super::{Exit, out};
use crate::diagnostic::Diagnostic;

/// Writes the file and says so. A file that is there is left alone.
pub fn safetensors(table: &RecordBatch, label: &str, file: &Path, json: bool) -> Result<(), Exit> {
    let bytes = stages::weights::to_safetensors(table).map_err(|failure| {
        Diagnostic::new(format!("`{label}` holds no weights"))
            .help(failure.message)
            .help(
                "--safetensors needs the output `weights` of a train or adversarial-retrain stage",
            )
    })?;
    write_new(file, &bytes).map_err(|error| {
        let name = file.display();
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Diagnostic::new(format!("`{name}` is there already"))
                    .help("pipelines may depend on it: give another name, or remove it first")
            }
            _ => Diagnostic::new(format!("cannot write `{name}`: {error}")),
        }
    })?;
    match json {
        true => out!(
            "{}",
            json!({ "stage": label, "file": file, "bytes": bytes.len() })
        ),
        false => out!("{label}: {} bytes in {}", bytes.len(), file.display()),
    }
    Ok(())
}

/// All bytes under that name, or nothing: they are written beside it and then get the name, which
/// nothing may have by then.
fn write_new(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Readable as any file of the user's is: without this it would be the user's alone.
    let open = std::fs::Permissions::from_mode(0o666);
    let mut temporary = tempfile::Builder::new()
        .permissions(open)
        .tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist_noclobber(file)?;
    Ok(())
}
