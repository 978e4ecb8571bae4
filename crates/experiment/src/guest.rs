//! What programs need beside themselves: memory, files, and how a guest is booted.

use std::{collections::HashSet, path::PathBuf};

use piebald_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{KeyPath, MemorySize, Problem, Text, Whole, words::words};

/// Most bytes of all made files, and of the disk that programs write to.
const MAX_FILES: u64 = 1 << 30;
/// Least bytes of a made file.
const MIN_FILE: u64 = 4096;
/// Least bytes of that disk.
const MIN_SCRATCH: u64 = 16 << 20;
/// Where a guest has that disk.
pub const SCRATCH: &str = "/scratch/";
/// Where else a directory can be, in the guest's memory: where nothing else is put.
const TREES: [&str; 3] = ["/usr/share/", "/opt/", "/srv/"];

/// The memory that a kernel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Its size: in a guest from 256MiB, in whole MiB, by default `"1GiB"`; for requests any, or a
    /// share of the footprint. For modelled programs at most the machine's, which is the default.
    pub size: Option<Text<MemorySize>>,
}

/// How a guest is booted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guest {
    /// Its virtual processors: the first hardware threads of the machine. Default: as many as
    /// programs name, and at least 2.
    pub vcpus: Option<Whole<1, 16>>,
    /// Seconds after which a boot is given up.
    pub timeout: Whole<10, 86_400>,
    /// More of the kernel's command line: words without quotation marks.
    pub append: String,
    /// An empty ext4 disk at /scratch, made anew for each boot: 16MiB to 1GiB. Default: none.
    pub scratch: Option<Text<Bytes>>,
    /// The kernel module, relative to the experiment's folder; it is loaded for policies that
    /// need it.
    pub module: Option<PathBuf>,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            vcpus: None,
            timeout: Whole::new(600),
            append: String::new(),
            scratch: None,
            module: None,
        }
    }
}

/// A file that is made before anything runs: random words, and a last line that alone has the
/// word `marmalade`. Programs find it in /data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MadeFile {
    /// Its name: letters, digits, dots, dashes and underlines.
    pub name: String,
    /// Its size: 4KiB or more, 1GiB for all files together.
    pub size: Text<Bytes>,
    /// Seed of its words.
    #[serde(default)]
    pub seed: Whole<0, { i64::MAX as u64 }>,
}

/// A directory of this computer that the guest has as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The directory here, relative to the experiment's folder.
    pub from: PathBuf,
    /// In the guest: /scratch/NAME, on that disk and with its owners; or below /usr/share, /opt or
    /// /srv, in memory, where all is root's.
    pub to: String,
}

words! {
    /// What of a program counts.
    pub enum Measure {
        /// The second of two runs, from its start to its end.
        SecondRun = "second-run",
        /// What the program marks as region 1 itself.
        Marks = "marks",
    }
}

impl Tree {
    /// Its name on the disk that programs write to, if it is there.
    pub fn on_disk(&self) -> Option<&str> {
        self.to.strip_prefix(SCRATCH)
    }

    /// May it be where it is to be?
    fn is_placed(&self, has_disk: bool) -> bool {
        let is_path = |below: &str| below.split('/').all(is_plain);
        match self.on_disk() {
            Some(name) => has_disk && is_plain(name),
            None => {
                let mut below = TREES.iter().filter_map(|root| self.to.strip_prefix(root));
                below.next().is_some_and(is_path)
            }
        }
    }

    fn is_apart(&self, other: &Self) -> bool {
        let holds = |a: &str, b: &str| format!("{b}/").starts_with(&format!("{a}/"));
        !holds(&self.to, &other.to) && !holds(&other.to, &self.to)
    }
}

/// Is it a name that needs no quoting anywhere?
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(plain)
}

/// Is it the name of a program, or its absolute path, whose last part needs no quoting?
pub fn is_command(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or("");
    is_plain(name) && (!word.contains('/') || word.starts_with('/'))
}

impl Guest {
    pub(crate) fn check(&self, problems: &mut Vec<Problem>) {
        let at = KeyPath::of("guest");
        if self.append.contains(['\n', '"']) {
            let value = format!("{:?}", self.append);
            let allowed = "words without quotation marks";
            problems.push(Problem::refuse(at.key("append"), value, allowed));
        }
        if let Some(Text(size)) = self.scratch
            && !(MIN_SCRATCH..=MAX_FILES).contains(&size.0)
        {
            let allowed = "16MiB to 1GiB";
            problems.push(Problem::refuse(at.key("scratch"), size, allowed));
        }
    }
}

pub(crate) fn check_files(files: &[MadeFile], problems: &mut Vec<Problem>) {
    let mut seen = HashSet::new();
    let mut total = 0u64;
    for (i, file) in files.iter().enumerate() {
        let at = KeyPath::of("file").item(i);
        if !is_plain(&file.name) || !seen.insert(&file.name) {
            let value = format!("\"{}\"", file.name);
            let allowed = "letters, digits, dots, dashes and underlines, each name once";
            problems.push(Problem::refuse(at.key("name"), value, allowed));
        }
        let Text(size) = file.size;
        total = total.saturating_add(size.0);
        if size.0 < MIN_FILE || total > MAX_FILES {
            let allowed = "4KiB or more, 1GiB for all files together";
            problems.push(Problem::refuse(at.key("size"), size, allowed));
        }
    }
}

pub(crate) fn check_trees(trees: &[Tree], has_disk: bool, problems: &mut Vec<Problem>) {
    for (i, tree) in trees.iter().enumerate() {
        let at = KeyPath::of("tree").item(i).key("to");
        let mut refuse = |allowed: &str| {
            let value = format!("\"{}\"", tree.to);
            problems.push(Problem::refuse(at.clone(), value, allowed));
        };
        if !tree.is_placed(has_disk) {
            refuse("/scratch/NAME, with guest.scratch, or below /usr/share, /opt or /srv");
        } else if !trees[..i].iter().all(|before| before.is_apart(tree)) {
            refuse("no directory inside another");
        }
    }
}
