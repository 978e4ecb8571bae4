//! Keys, and what a file of the store holds.

use std::{fmt, fs::File, io::Read, path::Path, time::Duration};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

/// Largest entry that is read, in bytes of JSON: more is no entry of ours.
const LARGEST: u64 = 1 << 30;
/// How hard entries are compressed: they are written once and are mostly text.
const LEVEL: i32 = 3;

/// Where an outcome lies: the sum of all that it depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Of a text that names all that an outcome depends on, and the epoch of the code.
    pub fn new(epoch: &str, text: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [epoch, text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(hasher.finalize().into())
    }

    /// Whether this is one of the keys of which one in `of` is: always the same ones.
    pub const fn is_one_in(&self, of: u8) -> bool {
        of > 0 && self.0[31].is_multiple_of(of)
    }
}

/// In hexadecimal.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// The sum of some bytes, in hexadecimal: what a key's text says of an input.
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// The same of a file's bytes.
///
/// # Errors
/// It cannot be read.
pub fn digest_of_file(path: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<T> {
    epoch: String,
    text: String,
    /// What it took to make the outcome. Older entries do not say.
    #[serde(default)]
    seconds: Option<f64>,
    outcome: T,
}

/// The bytes of an entry.
pub(crate) fn write<T: Serialize>(
    epoch: &str,
    text: &str,
    (outcome, took): (&T, Duration),
) -> std::io::Result<Vec<u8>> {
    let entry = Entry {
        epoch: epoch.to_owned(),
        text: text.to_owned(),
        seconds: Some(took.as_secs_f64()),
        outcome,
    };
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.include_checksum(true)?;
    serde_json::to_writer(&mut encoder, &entry)?;
    encoder.finish()
}

/// The outcome of an entry, if it is whole and says what is asked for, and the seconds that it took.
pub(crate) fn read<T: DeserializeOwned>(
    bytes: &[u8],
    epoch: &str,
    text: &str,
) -> Option<(T, Option<f64>)> {
    let entry: Entry<T> = parse(bytes)?;
    (entry.epoch == epoch && entry.text == text).then_some((entry.outcome, entry.seconds))
}

/// Of an entry of whatever epoch: the sum of its text, and the seconds that its outcome took.
pub(crate) fn read_cost(bytes: &[u8]) -> Option<([u8; 32], Option<f64>)> {
    let entry: Entry<IgnoredAny> = parse(bytes)?;
    Some((blake3::hash(entry.text.as_bytes()).into(), entry.seconds))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<Entry<T>> {
    let mut json = Vec::new();
    let decoder = zstd::Decoder::with_buffer(bytes).ok()?;
    decoder.take(LARGEST).read_to_end(&mut json).ok()?;
    serde_json::from_slice(&json).ok()
}
