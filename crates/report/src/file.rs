//! Files that are either whole or not there.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use crate::ReportError;

/// Links that lead from one to the next; Linux follows as many.
const MAX_LINKS: usize = 40;

/// Writes `bytes` to `path` through a temporary file in the same directory, so
/// that a reader sees the old content or the new, never a part. A device or a pipe stays what it
/// is, and takes the bytes; so does a link, whose file is replaced.
///
/// # Errors
/// [`ReportError::Write`] with the path; the old file is then untouched.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    write(path, bytes).map_err(|source| failed(path, source))
}

/// Looks whether [`write_atomically`] could write to `path`: what takes hours to compute should not
/// be without a place in the end.
///
/// # Errors
/// [`ReportError::Write`] with the path.
pub fn check_file(path: &Path) -> Result<(), ReportError> {
    let check = || match fs::metadata(path) {
        Ok(old) if old.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(old) if !old.is_file() => Ok(()),
        _ => temporary(folder_of(&behind_links(path)?)).map(drop),
    };
    check().map_err(|source| failed(path, source))
}

/// Looks whether files could be written to the folder `path`, which need not be there yet.
///
/// # Errors
/// [`ReportError::Write`] with the path.
pub fn check_folder(path: &Path) -> Result<(), ReportError> {
    let there = path.ancestors().find(|p| p.exists());
    let there = match there {
        Some(there) => there,
        None => Path::new("."),
    };
    let check = || {
        if there.is_dir() {
            temporary(there).map(drop)
        } else {
            Err(ErrorKind::NotADirectory.into())
        }
    };
    check().map_err(|source| failed(path, source))
}

fn failed(path: &Path, source: io::Error) -> ReportError {
    let path = path.to_owned();
    ReportError::Write { path, source }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = fs::metadata(path).ok();
    match &old {
        Some(old) if old.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Some(old) if !old.is_file() => {
            return fs::OpenOptions::new()
                .write(true)
                .open(path)?
                .write_all(bytes);
        }
        _ => {}
    }
    let target = behind_links(path)?;
    let mut file = temporary(folder_of(&target))?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    // Errors of the handle itself name no path; the temporary one would say nothing.
    file.as_file_mut().write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|e| e.error)?;
    Ok(())
}

fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    if !folder.exists() {
        let problem = format!("there is no folder {}", folder.display());
        return Err(io::Error::new(ErrorKind::NotFound, problem));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".piebald-");
    // Temporary files are private by default; a report is an ordinary file, and
    // one that is replaced keeps its rights.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The temporary name says nothing to who named the file.
    builder.tempfile_in(folder).map_err(|e| {
        let text = e.to_string();
        let reason = text.split(" at path ").next().unwrap_or(&text);
        io::Error::new(e.kind(), reason)
    })
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The file that links lead to, which need not be there.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = folder_of(&at).join(next),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("links that lead in a circle"))
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

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_its_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, chain] = ["file", "link", "chain"].map(|name| dir.path().join(name));
        // The first write finds a link to nothing.
        std::os::unix::fs::symlink("file", &link).unwrap();
        std::os::unix::fs::symlink(&link, &chain).unwrap();
        for text in ["one", "two"] {
            check_file(&chain).unwrap();
            write_atomically(&chain, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
        }
        let circle = dir.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        assert!(write_atomically(&circle, b"x").is_err());
        assert!(fs::symlink_metadata(&circle).unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_takes_the_bytes_and_stays_one() {
        use std::{io::Read, os::unix::fs::FileTypeExt};
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        // Open at both ends, so that nothing waits.
        let mut reader = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&pipe)
            .unwrap();
        check_file(&pipe).unwrap();
        write_atomically(&pipe, b"abc").unwrap();
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        let mut bytes = [0; 3];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"abc");
    }

    #[test]
    fn what_could_not_be_written_is_known_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        check_file(&file).unwrap();
        check_file(&dir.path().join("new")).unwrap();
        check_folder(&dir.path().join("new/newer")).unwrap();
        for result in [
            check_file(dir.path()),
            check_file(&dir.path().join("none/new")),
            check_file(&file.join("below")),
            check_folder(&file),
            check_folder(&file.join("below")),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
        }
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
