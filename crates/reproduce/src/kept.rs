//! Results that are kept from one command to the next: a file of JSON lines for each system.
//!
//! A line has what was run, the sums of what it read, the executable that ran it, and the result.
//! Only lines of the same executable and the same inputs are used: a result depends on nothing else.
//! A file is locked while a command has it.

use std::{
    collections::{HashMap, HashSet},
    fs::{File, OpenOptions},
    hash::Hasher,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use twox_hash::XxHash3_64;

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    executable: String,
    run: Value,
    inputs: Value,
    result: Value,
}

/// Results of an earlier command: number of the line, what was read, and the result.
type Earlier = HashMap<String, Vec<(usize, Value, Value)>>;

/// What was read, written and left aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Results that were taken from the file, and that were added.
    pub used: usize,
    pub added: usize,
    /// Lines of another executable, and of other inputs.
    pub other_executable: usize,
    pub other_inputs: usize,
    /// Whether the last line was torn: it is taken out.
    pub torn: bool,
}

impl Tally {
    /// In words.
    pub(crate) fn told(&self) -> String {
        let mut text = format!(
            "Runs that were kept before: {}, kept now: {}; passed over: {} of another executable, {} \
             of other inputs",
            self.used, self.added, self.other_executable, self.other_inputs
        );
        if self.torn {
            text += "; the last line was torn and is left out";
        }
        text + "."
    }
}

/// The results of a system.
pub(crate) struct Kept {
    path: PathBuf,
    executable: String,
    earlier: Earlier,
    state: Mutex<State>,
}

struct State {
    file: File,
    tally: Tally,
    /// Runs whose lines of other inputs are counted.
    counted: HashSet<String>,
}

impl Kept {
    /// Reads what an executable, by its sum, has kept in a folder, and goes on there.
    ///
    /// # Errors
    /// The file cannot be read, is in use, or has a line that is none of these. Names it.
    pub(crate) fn open(folder: &Path, system: &str, executable: &str) -> Result<Self, String> {
        let path = folder.join(format!("{system}.jsonl"));
        let problem = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(&path);
        let mut file = file.map_err(problem)?;
        file.try_lock()
            .map_err(|e| format!("{}: in use by another command? {e}", path.display()))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(problem)?;
        let whole = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let mut tally = Tally {
            torn: whole < bytes.len(),
            ..Tally::default()
        };
        let mut earlier = Earlier::new();
        for (at, text) in (1..).zip(bytes[..whole].split_inclusive(|b| *b == b'\n')) {
            let line: Line = serde_json::from_slice(text)
                .map_err(|e| format!("{}: line {at}: {e}", path.display()))?;
            if line.executable != executable {
                tally.other_executable += 1;
                continue;
            }
            let of = earlier.entry(line.run.to_string()).or_default();
            of.push((at, line.inputs, line.result));
        }
        if tally.torn {
            file.set_len(whole as u64).map_err(problem)?;
        }
        Ok(Self {
            path,
            executable: executable.to_owned(),
            earlier,
            state: Mutex::new(State {
                file,
                tally,
                counted: HashSet::new(),
            }),
        })
    }

    /// A run's result, if it was kept.
    ///
    /// # Errors
    /// The line has no such result. Names file and line.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        run: &Value,
        inputs: &Value,
    ) -> Result<Option<T>, String> {
        let key = run.to_string();
        let Some(lines) = self.earlier.get(&key) else {
            return Ok(None);
        };
        let others = lines.iter().filter(|line| line.1 != *inputs).count();
        let mut state = self.lock();
        if state.counted.insert(key) {
            state.tally.other_inputs += others;
        }
        let Some((at, _, result)) = lines.iter().find(|line| line.1 == *inputs) else {
            return Ok(None);
        };
        state.tally.used += 1;
        let read = T::deserialize(result);
        read.map(Some)
            .map_err(|e| format!("{}: line {at}: {e}", self.path.display()))
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// It cannot be written. Names the file.
    pub(crate) fn keep<T: Serialize>(
        &self,
        run: Value,
        inputs: Value,
        result: &T,
    ) -> Result<(), String> {
        let problem = |e: &dyn std::fmt::Display| format!("{}: {e}", self.path.display());
        let line = Line {
            executable: self.executable.clone(),
            run,
            inputs,
            result: serde_json::to_value(result).map_err(|e| problem(&e))?,
        };
        let mut text = serde_json::to_string(&line).map_err(|e| problem(&e))?;
        text.push('\n');
        let mut state = self.lock();
        let written = state.file.write_all(text.as_bytes());
        written
            .and_then(|()| state.file.flush())
            .map_err(|e| problem(&e))?;
        state.tally.added += 1;
        Ok(())
    }

    pub(crate) fn tally(&self) -> Tally {
        self.lock().tally
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sum of a file's bytes.
///
/// # Errors
/// It cannot be read. Names it.
pub(crate) fn sum_of_file(path: &Path) -> Result<String, String> {
    let problem = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut file = File::open(path).map_err(problem)?;
    let mut hasher = XxHash3_64::new();
    let mut buffer = vec![0; 1 << 20];
    let mut all = 0u64;
    loop {
        match file.read(&mut buffer).map_err(problem)? {
            0 => return Ok(format!("{:016x}-{all}", hasher.finish())),
            n => {
                hasher.write(&buffer[..n]);
                all += n as u64;
            }
        }
    }
}

/// The sum of a text.
pub(crate) fn sum_of_text(text: &str) -> String {
    format!(
        "{:016x}-{}",
        XxHash3_64::oneshot(text.as_bytes()),
        text.len()
    )
}

/// The sum of the program that runs.
///
/// # Errors
/// Its file is not to be found or read.
pub(crate) fn executable() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    sum_of_file(&path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(folder: &tempfile::TempDir, executable: &str) -> Result<Kept, String> {
        Kept::open(folder.path(), "t", executable)
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn get(kept: &Kept, run: u32, inputs: &str) -> Option<u64> {
        kept.get(&json!({ "mix": run }), &json!([inputs]))
            .expect("a result")
    }

    fn keep(kept: &Kept, run: u32, inputs: &str, result: u64) {
        kept.keep(json!({ "mix": run }), json!([inputs]), &result)
            .expect("kept");
    }

    #[test]
    fn only_lines_of_the_same_executable_and_inputs_are_used() {
        let folder = folder();
        let kept = open(&folder, "one").expect("a file");
        keep(&kept, 1, "a", 7);
        keep(&kept, 1, "b", 8);
        keep(&kept, 2, "a", u64::MAX);
        assert_eq!(kept.tally().added, 3);
        assert!(open(&folder, "one").is_err_and(|e| e.contains("in use")));
        drop(kept);
        let kept = open(&folder, "one").expect("a file");
        assert_eq!(get(&kept, 1, "a"), Some(7));
        assert_eq!(get(&kept, 2, "a"), Some(u64::MAX));
        assert_eq!((get(&kept, 2, "c"), get(&kept, 3, "a")), (None, None));
        let tally = kept.tally();
        assert_eq!((tally.used, tally.other_inputs), (2, 1), "{tally:?}");
        drop(kept);
        let kept = open(&folder, "two").expect("a file");
        assert_eq!(get(&kept, 1, "a"), None);
        assert_eq!(kept.tally().other_executable, 3);
        assert!(kept.tally().told().contains("3 of another executable"));
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_what_comes_after_it_is_whole() {
        let folder = folder();
        let path = folder.path().join("t.jsonl");
        let kept = open(&folder, "one").expect("a file");
        keep(&kept, 1, "a", 7);
        keep(&kept, 2, "a", 8);
        drop(kept);
        let text = std::fs::read(&path).expect("the file");
        std::fs::write(&path, &text[..text.len() - 5]).expect("written");
        let kept = open(&folder, "one").expect("a file");
        assert!(kept.tally().torn && kept.tally().told().contains("torn"));
        assert_eq!((get(&kept, 1, "a"), get(&kept, 2, "a")), (Some(7), None));
        keep(&kept, 2, "a", 8);
        drop(kept);
        assert_eq!(std::fs::read(&path).expect("the file"), text);
        assert!(!open(&folder, "one").expect("a file").tally().torn);
    }

    #[test]
    fn what_is_no_line_is_named_with_its_place() {
        let folder = folder();
        let path = folder.path().join("t.jsonl");
        keep(&open(&folder, "one").expect("a file"), 1, "a", 7);
        let mut text = std::fs::read_to_string(&path).expect("the file");
        text += "no line\n";
        std::fs::write(&path, &text).expect("written");
        let error = open(&folder, "one").err().unwrap_or_default();
        assert!(error.contains("t.jsonl: line 2: "), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), text);
        // Another kind of result.
        std::fs::write(&path, text.replace("no line\n", "")).expect("written");
        let kept = open(&folder, "one").expect("a file");
        let read = kept.get::<String>(&json!({ "mix": 1 }), &json!(["a"]));
        let error = read.err().unwrap_or_default();
        assert!(error.contains("t.jsonl: line 1: "), "{error}");
        // No file at all can be there.
        std::fs::write(folder.path().join("f"), "").expect("written");
        assert!(Kept::open(&folder.path().join("f"), "t", "one").is_err());
    }

    #[test]
    fn sums_tell_files_apart() {
        let folder = folder();
        let path = folder.path().join("f");
        let sum = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            sum_of_file(&path).expect("a sum")
        };
        let long = vec![7; (3 << 20) + 5];
        assert_eq!(sum(b"abc"), sum_of_text("abc"));
        assert_ne!(sum(b"abc"), sum(b"abd"));
        assert_eq!(sum(&long), sum(&long));
        assert!(sum_of_file(&folder.path().join("none")).is_err_and(|e| e.contains("none")));
    }
}
