//! Files of `/sys/devices/system/cpu`, read and checked one by one.

use super::{cpus::CpuList, error::DeriveError};

/// What reads a file below `/sys/devices/system/cpu`: its text, `None` if there is no such file, or why a
/// file that is there could not be read.
pub type Read<'a> = &'a dyn Fn(&str) -> Result<Option<String>, String>;

/// What the caller gave to read files with.
pub(super) struct Source<'a> {
    pub(super) read: Read<'a>,
}

impl Source<'_> {
    pub(super) fn error(&self, path: &str, problem: impl Into<String>) -> DeriveError {
        DeriveError {
            path: path.into(),
            problem: problem.into(),
        }
    }

    /// A file's text without its line end; none if there is no such file.
    pub(super) fn optional(&self, path: &str) -> Result<Option<String>, DeriveError> {
        let read = (self.read)(path).map_err(|why| self.error(path, why))?;
        Ok(read.map(|text| text.trim().to_owned()))
    }

    pub(super) fn text(&self, path: &str) -> Result<String, DeriveError> {
        let text = self.optional(path)?;
        text.ok_or_else(|| self.error(path, "no such file"))
    }

    fn in_range(&self, path: &str, text: &str, low: u64, high: u64) -> Result<u64, DeriveError> {
        match text.parse() {
            Ok(n) if (low..=high).contains(&n) => Ok(n),
            _ => {
                let problem = format!("\"{text}\" is not a number from {low} to {high}");
                Err(self.error(path, problem))
            }
        }
    }

    pub(super) fn number(&self, path: &str, low: u64, high: u64) -> Result<u64, DeriveError> {
        self.in_range(path, &self.text(path)?, low, high)
    }

    /// A number from 0 on that Linux leaves out, or gives as 0, where it does not know it.
    pub(super) fn known(&self, path: &str, high: u64) -> Result<Option<u64>, DeriveError> {
        let Some(text) = self.optional(path)? else {
            return Ok(None);
        };
        let number = self.in_range(path, &text, 0, high)?;
        Ok((number != 0).then_some(number))
    }

    /// A size such as `48K` in bytes; none where Linux leaves it out, or gives 0.
    pub(super) fn size(&self, path: &str) -> Result<Option<u64>, DeriveError> {
        let Some(text) = self.optional(path)? else {
            return Ok(None);
        };
        let digits = text.trim_end_matches(['K', 'M', 'G']);
        let shift = match &text[digits.len()..] {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            _ => 64,
        };
        let bytes = digits.parse::<u64>().ok();
        let bytes = bytes.and_then(|n| n.checked_mul(1u64.checked_shl(shift)?));
        match bytes {
            Some(bytes) => Ok((bytes != 0).then_some(bytes)),
            None => Err(self.error(path, format!("\"{text}\" is not a size such as 48K"))),
        }
    }

    /// A list that names a processor at least.
    pub(super) fn cpus(&self, path: &str) -> Result<CpuList, DeriveError> {
        let text = self.text(path)?;
        if text.is_empty() {
            return Err(self.error(path, "names no processor"));
        }
        text.parse()
            .map_err(|e| self.error(path, format!("\"{text}\" {e}")))
    }
}
