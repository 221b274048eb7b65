//! `ablate show MODEL --safetensors FILE`: a model's weights, for other programs and for `start`.

use std::path::Path;

use arrow::record_batch::RecordBatch;
use serde_json::json;

use super::exit::Exit;
use super::file;
use super::print::out;
use crate::diagnostic::Diagnostic;

/// Writes the file and says so. A file that is there is left alone.
pub fn write(table: &RecordBatch, label: &str, path: &Path, json: bool) -> Result<(), Exit> {
    let bytes = stages::tables::weights::to_safetensors(table).map_err(|failure| {
        Diagnostic::new(format!("`{label}` has no weights"))
            .help(failure.message)
            .help("--safetensors needs the weights of a trained model")
    })?;
    file::write_new(path, &bytes).map_err(|error| {
        let name = path.display();
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Diagnostic::new(format!("`{name}` already exists"))
                    .help("pipelines may depend on it: give another name, or remove it first")
            }
            _ => Diagnostic::new(file::unwritten(path, &error)),
        }
    })?;
    match json {
        true => out!(
            "{}",
            json!({ "stage": label, "file": path, "bytes": bytes.len() })
        ),
        false => out!("{label}: {} bytes in {}", bytes.len(), path.display()),
    }
    Ok(())
}
