//! What the kernel said: it explains failures of loading in its log alone.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// The kernel's log from one moment on.
pub(crate) struct Log(Option<File>);

impl Log {
    /// From now on. A log that may not be read is empty.
    pub(crate) fn from_now(root: &Path) -> Self {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(root.join("dev/kmsg"))
            .and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file));
        Self(file.ok())
    }

    /// What was said of the module since then.
    pub(crate) fn of_module(self) -> Vec<String> {
        let Some(mut file) = self.0 else {
            return Vec::new();
        };
        let mut said = Vec::new();
        // Each read is one record; none is left when it would block. Others may write for ever.
        let mut record = [0u8; 8192];
        for _ in 0..1000 {
            match file.read(&mut record) {
                Ok(len @ 1..) => said.extend(message(&String::from_utf8_lossy(&record[..len]))),
                _ => break,
            }
        }
        said
    }
}

/// The text of a record (`PRIORITY,NUMBER,TIME,FLAGS;TEXT`), if it is of the module.
fn message(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    let text = text.lines().next()?;
    text.contains("piebald").then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_module_are_found() {
        let ours =
            "3,612,5106,-;piebald: kernel 6.1.0 is unknown; known: 6.12.*\n SUBSYSTEM=module\n";
        assert_eq!(
            message(ours).as_deref(),
            Some("piebald: kernel 6.1.0 is unknown; known: 6.12.*")
        );
        assert_eq!(message("6,1,5106,-;usb 1-1: new device\n"), None);
        assert_eq!(message("no record"), None);
    }

    #[test]
    fn a_log_that_is_not_there_says_nothing() {
        let root = tempfile::tempdir().unwrap();
        assert!(Log::from_now(root.path()).of_module().is_empty());
    }
}
