//! Scripts that fetch and build, with stand-ins for the programs that they call.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use piebald_house::root;

/// Writes a program.
pub fn program(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
}

/// A folder with the stand-ins, which come first on `PATH`, and one for the cache.
pub struct Scripts(tempfile::TempDir);

impl Scripts {
    /// With this for apt-get, and these by name for others. They see `$FAULT`, what is to fail, and
    /// `$FAKES`, their folder.
    pub fn new(apt_get: &str, others: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let fakes = folder.path().join("fakes");
        fs::create_dir(&fakes).expect("a folder");
        program(&fakes.join("apt-get"), apt_get);
        for (name, text) in others {
            program(&fakes.join(name), text);
        }
        Self(folder)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn fakes(&self) -> PathBuf {
        self.folder().join("fakes")
    }

    /// What the scripts keep.
    pub fn cache(&self) -> PathBuf {
        self.folder().join("cache/piebald")
    }

    /// The status, what is printed and what is said of a call of a script of the repository with a fault.
    pub fn call(&self, script: &str, fault: &str, words: &[&str]) -> (Option<i32>, String, String) {
        self.call_with((script, fault), words, &[])
    }

    /// The same with these variables.
    pub fn call_with(
        &self,
        (script, fault): (&str, &str),
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> (Option<i32>, String, String) {
        let path = std::env::var("PATH").expect("a PATH");
        let output = Command::new("bash")
            .arg(root().join(script))
            .args(words)
            .env("FAULT", fault)
            .env("FAKES", self.fakes())
            .env("PATH", format!("{}:{path}", self.fakes().display()))
            .env("XDG_CACHE_HOME", self.folder().join("cache"))
            .env_remove("PIEBALD_QEMU")
            .env_remove("PIEBALD_QEMU_SYSTEM")
            .env_remove("PIEBALD_GUEST_KERNEL")
            .envs(variables.iter().copied())
            .output()
            .expect("bash runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }
}
