//! Sources: files, pipes and standard input are read the same, again and again.

use super::*;
use std::path::PathBuf;

/// The reading end of a pipe, as a path that leads to it, and the writing end.
struct Ends {
    reader: io::PipeReader,
    writer: Option<io::PipeWriter>,
}

impl Ends {
    fn new() -> Self {
        let (reader, writer) = io::pipe().expect("a pipe");
        Self {
            reader,
            writer: Some(writer),
        }
    }

    fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        format!("/dev/fd/{}", self.reader.as_raw_fd()).into()
    }

    fn write(&mut self, bytes: &[u8]) {
        let writer = self.writer.as_mut().expect("not closed");
        writer.write_all(bytes).expect("written");
    }

    fn close(&mut self) {
        self.writer = None;
    }

    /// Writes more than a pipe holds from another thread.
    fn fill(&mut self, bytes: Vec<u8>) -> std::thread::JoinHandle<()> {
        let mut writer = self.writer.take().expect("not closed");
        std::thread::spawn(move || writer.write_all(&bytes).expect("written"))
    }
}

fn read_all(path: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    open(path)
        .expect("opens")
        .read_to_end(&mut all)
        .expect("reads");
    all
}

#[test]
fn a_second_reader_of_a_pipe_gets_the_same_bytes() {
    let mut ends = Ends::new();
    ends.write(b"one two three");
    ends.close();
    assert_eq!(first_bytes(&ends.path(), 3).expect("reads"), b"one");
    assert_eq!(read_all(&ends.path()), b"one two three");
    assert_eq!(read_all(&ends.path()), b"one two three");
}

#[test]
fn bytes_are_handed_out_before_the_pipe_ends() {
    let mut ends = Ends::new();
    ends.write(b"first");
    let mut source = open(&ends.path()).expect("opens");
    let mut out = [0; 5];
    source.read_exact(&mut out).expect("reads");
    assert_eq!(&out, b"first");
    ends.write(b" second");
    ends.close();
    let mut rest = Vec::new();
    source.read_to_end(&mut rest).expect("reads");
    assert_eq!(rest, b" second");
    assert_eq!(source.medium(), "pipe");
}

#[test]
fn what_is_longer_than_memory_goes_to_a_file_and_can_be_sought_in() {
    let bytes: Vec<u8> = (0..3 * MEMORY as u32).map(|n| (n % 251) as u8).collect();
    let mut ends = Ends::new();
    let path = ends.path();
    let writer = ends.fill(bytes.clone());
    let mut source = open(&path).expect("opens");
    assert_eq!(
        source.seek(SeekFrom::End(-7)).expect("seeks"),
        bytes.len() as u64 - 7
    );
    let mut last = Vec::new();
    source.read_to_end(&mut last).expect("reads");
    assert_eq!(last, bytes[bytes.len() - 7..]);
    writer.join().expect("written");
    assert!(read_all(&path) == bytes);
    let Whole::File(file) = open(&path).expect("opens").whole().expect("whole") else {
        panic!("in memory");
    };
    assert_eq!(file.metadata().expect("metadata").len(), bytes.len() as u64);
    assert_eq!(
        file.metadata().expect("metadata").nlink(),
        0,
        "it has a name"
    );
}

#[test]
fn after_the_last_pass_nothing_more_is_kept() {
    let bytes = vec![7; 2 * PULL];
    let mut ends = Ends::new();
    let path = ends.path();
    let writer = ends.fill(bytes.clone());
    assert_eq!(first_bytes(&path, 8).expect("reads"), [7; 8]);
    last_pass(&path).expect("a pipe");
    assert!(read_all(&path) == bytes);
    writer.join().expect("written");
    let mut again = Vec::new();
    let error = open(&path).expect("opens").read_to_end(&mut again);
    assert!(error.expect_err("gone").to_string().contains("not kept"));
    assert!(again.len() < bytes.len());
}

#[test]
fn a_folder_and_a_missing_file_are_errors() {
    let folder = std::env::temp_dir();
    let error = open(&folder).err().expect("a folder");
    assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    assert!(open(Path::new("/nonexistent/x")).is_err());
    last_pass(Path::new("/dev/null")).expect("without meaning");
}
