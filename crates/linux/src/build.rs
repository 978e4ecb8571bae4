//! Building the module for the running kernel, from a checkout of Piebald's sources.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Why the module was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// This program does not lie in a checkout.
    #[error(
        "{}: not in a checkout of Piebald, so the module cannot be built from here, and the package \
         piebald-dkms has not built it for this kernel; in a checkout, `kernel/build.sh {}` prints \
         the file to give to `piebald load FILE`",
        program.display(), headers.display()
    )]
    NoCheckout {
        /// This program.
        program: PathBuf,
        /// Where this kernel's headers are, or would be.
        headers: PathBuf,
    },
    /// The kernel's headers are not installed.
    #[error(
        "{}: no kernel headers there; {}",
        path.display(),
        headers_package(release)
    )]
    NoHeaders {
        /// Where they were sought.
        path: PathBuf,
        /// The kernel's release.
        release: String,
    },
    /// The script did not start.
    #[error("{}: {source}", path.display())]
    Start {
        /// The script.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The script failed; it has said why on standard error.
    #[error("{}: failed with {status}", path.display())]
    Failed {
        /// The script.
        path: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
    },
}

/// Where headers come from. Only kernels of Debian's own have a package of that name.
fn headers_package(release: &str) -> String {
    let debian = ["-amd64", "-cloud-amd64", "-rt-amd64"];
    match debian.iter().any(|ending| release.ends_with(ending)) {
        true => format!("Debian has them in the package linux-headers-{release}"),
        false => format!(
            "{release} is no kernel of Debian's: whoever built it has its headers, or its build tree"
        ),
    }
}

/// Where the headers of a kernel are.
pub fn headers_of(root: &Path, release: &str) -> PathBuf {
    root.join("lib/modules").join(release).join("build")
}

/// Endings of compressed modules, in forms that a kernel may unpack itself.
pub(crate) const COMPRESSED: [&str; 3] = ["xz", "zst", "gz"];

/// The module that the package piebald-dkms has built for a kernel, compressed or not; `None` if there is none.
pub fn installed_module(root: &Path, release: &str) -> Option<PathBuf> {
    let folder = root.join("lib/modules").join(release).join("updates/dkms");
    let compressed = COMPRESSED.map(|ending| folder.join(format!("piebald.ko.{ending}")));
    let mut files = std::iter::once(folder.join("piebald.ko")).chain(compressed);
    files.find(|file| file.is_file())
}

/// The checkout that a program was built in: the closest directory above it with
/// `kernel/build.sh`. Only these are looked at, since what is found is run as root.
pub fn checkout_above(program: &Path) -> Option<PathBuf> {
    let program = fs::canonicalize(program).ok()?;
    let mut above = program.ancestors().skip(1);
    above
        .find(|dir| dir.join("kernel/build.sh").is_file())
        .map(Path::to_owned)
}

/// Builds the module; answers its path. What goes on is told on standard error.
///
/// # Errors
/// If there are no headers, or the script fails.
pub fn build_module(checkout: &Path, headers: &Path, release: &str) -> Result<PathBuf, BuildError> {
    if !headers.join("Module.symvers").exists() {
        return Err(BuildError::NoHeaders {
            path: headers.to_owned(),
            release: release.to_owned(),
        });
    }
    let path = checkout.join("kernel/build.sh");
    // Through the shell: a checkout may be mounted without leave to execute.
    let built = Command::new("bash")
        .arg(&path)
        .arg(headers)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| BuildError::Start {
            path: path.clone(),
            source,
        })?;
    let said = String::from_utf8_lossy(&built.stdout);
    match said.lines().last() {
        Some(module) if built.status.success() => Ok(PathBuf::from(module)),
        _ => Err(BuildError::Failed {
            path,
            status: built.status,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A checkout whose script does `body`, and headers.
    fn checkout(body: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["kernel", "target/release", "headers"] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        let script = dir.path().join("kernel/build.sh");
        fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(dir.path().join("target/release/piebald"), "").unwrap();
        fs::write(dir.path().join("headers/Module.symvers"), "").unwrap();
        dir
    }

    fn build(dir: &Path) -> Result<PathBuf, BuildError> {
        build_module(dir, &dir.join("headers"), "6.12.1")
    }

    #[test]
    fn the_script_of_the_checkout_is_given_the_headers() {
        let dir = checkout("echo building; echo \"$1/piebald.ko\"");
        let root = fs::canonicalize(dir.path()).unwrap();
        let found = checkout_above(&dir.path().join("target/release/piebald"));
        assert_eq!(found, Some(root.clone()));
        assert_eq!(build(&root).unwrap(), root.join("headers/piebald.ko"));
    }

    #[test]
    fn a_failing_script_is_an_error_whatever_it_prints() {
        let dir = checkout("echo piebald.ko; exit 3");
        let error = build(dir.path()).expect_err("status 3").to_string();
        assert!(
            error.contains("build.sh: failed with exit status: 3"),
            "{error}"
        );
        let dir = checkout("exit 0");
        build(dir.path()).expect_err("no path was printed");
    }

    #[test]
    fn the_package_s_module_is_found_for_its_kernel_alone() {
        let root = tempfile::tempdir().expect("a directory");
        let folder = root.path().join("lib/modules/6.12.1-amd64/updates/dkms");
        std::fs::create_dir_all(&folder).expect("made");
        assert_eq!(installed_module(root.path(), "6.12.1-amd64"), None);
        std::fs::write(folder.join("piebald.ko.xz"), "").expect("written");
        assert_eq!(
            installed_module(root.path(), "6.12.1-amd64"),
            Some(folder.join("piebald.ko.xz"))
        );
        assert_eq!(installed_module(root.path(), "6.12.2-amd64"), None);
    }

    #[test]
    fn missing_headers_name_their_package() {
        let dir = checkout("echo piebald.ko");
        fs::remove_file(dir.path().join("headers/Module.symvers")).unwrap();
        let error = build(dir.path()).expect_err("no headers").to_string();
        assert!(
            !error.contains("linux-headers") && error.contains("6.12.1"),
            "{error}"
        );
        let package = headers_package("6.12.48+deb13-amd64");
        assert!(
            package.ends_with("linux-headers-6.12.48+deb13-amd64"),
            "{package}"
        );
        assert!(checkout_above(Path::new("/proc/self/exe-that-is-not")).is_none());
    }
}
