//! Files that are either whole or not there.

use std::{fs, io::Write, path::Path};

use crate::ReportError;

/// Writes `bytes` to `path` through a temporary file in the same directory, so
/// that a reader sees the old content or the new, never a part.
///
/// # Errors
/// [`ReportError::Write`] with the path; the old file is then untouched.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let failed = |source| ReportError::Write {
        path: path.to_owned(),
        source,
    };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".piebald-");
    // Temporary files are private by default; a report is an ordinary file, and
    // one that is replaced keeps its rights.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory).map_err(failed)?;
    if let Ok(old) = fs::metadata(path) {
        if old.is_dir() {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        file.as_file()
            .set_permissions(old.permissions())
            .map_err(failed)?;
    }
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_file_and_leaves_nothing_else_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.html");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn failure_names_the_path_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("no/such/report.html");
        let error = write_atomically(&missing, b"x").unwrap_err().to_string();
        assert!(error.contains("no/such/report.html"), "{error}");
        let error = write_atomically(dir.path(), b"x").unwrap_err().to_string();
        assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
