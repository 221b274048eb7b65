//! How models read rows: the parameters `vectors` and `dim`, and what becomes of connected word vectors.

use nn::models::Reads;

use super::entry::Data;
use crate::ParamError;
use crate::contract::description::Param;
use crate::params::settings::Settings;
use crate::tables::sequences::Form;

/// What training does to connected vectors.
pub const VECTORS: Param = Param::choice(
    "vectors",
    &["frozen", "trained"],
    "Whether connected word vectors are frozen or trained.",
);
/// The dimension of the model's own embedding.
pub const DIM: Param = Param::int(
    "dim",
    50,
    1,
    "Embedding dimension if no word vectors are connected.",
);

/// Whether training leaves connected vectors alone.
pub fn frozen(s: Settings<'_>) -> bool {
    s.text("vectors") == Some("frozen")
}

/// What a model with an embedding reads.
pub fn reads(s: Settings<'_>, data: &Data) -> Result<Reads, ParamError> {
    Ok(match (&data.form, &data.vectors) {
        (Form::Signals { channels }, _) => Reads::Vectors { dim: *channels },
        (_, Some((dim, _))) => Reads::Tokens {
            vocabulary: vocabulary(data),
            dim: *dim,
            frozen: frozen(s),
        },
        (_, None) => Reads::Tokens {
            vocabulary: vocabulary(data),
            dim: s.int("dim")?,
            frozen: false,
        },
    })
}

/// How many tokens there are; 0 for signals.
pub fn vocabulary(data: &Data) -> usize {
    match data.form {
        Form::Tokens { vocabulary, .. } | Form::Chars { vocabulary, .. } => vocabulary,
        Form::Signals { .. } => 0,
    }
}

/// The digest of the connected vectors, if they stay outside the weights.
pub fn outside<'a>(reads: &Reads, data: &'a Data) -> Option<&'a str> {
    let frozen = matches!(reads, Reads::Tokens { frozen: true, .. });
    let vectors = data.vectors.as_ref().filter(|_| frozen);
    vectors.map(|(_, digest)| digest.as_str())
}

/// The tokens at which decoding starts, padding, and ends.
pub fn start_and_end(data: &Data) -> (u32, u32) {
    let start = match data.form {
        Form::Tokens { pad, .. } => pad,
        Form::Chars { .. } | Form::Signals { .. } => 0,
    };
    (start, data.end.unwrap_or_default())
}
