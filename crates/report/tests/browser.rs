//! The report in a real browser: charts are laid out, nothing complains.
//!
//! Needs `chromium` on the path.

use crate::common;
use crate::sample as replay;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use piebald_report::{replay_to_html, to_html, write_atomically};

/// When the browser is not waited for any longer; on a busy machine it may take minutes.
const HANGS: Duration = Duration::from_secs(600);

/// A report in a directory of its own, and what the browser makes of it.
struct Page {
    directory: tempfile::TempDir,
}

impl Page {
    fn new(html: &str) -> Self {
        let page = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        write_atomically(&page.path("report.html"), html.as_bytes()).unwrap();
        page
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn browse(&self, extra: &[&str]) -> Output {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
            ])
            .args([
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--hide-scrollbars",
            ])
            .args(["--enable-logging=stderr", "--window-size=1240,4200"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(extra)
            .arg(format!("file://{}", self.path("report.html").display()))
            .stdout(fs::File::create(self.path("stdout")).unwrap())
            .stderr(fs::File::create(self.path("stderr")).unwrap());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("chromium: {error} (Debian package chromium)");
        });
        let end = Instant::now() + HANGS;
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > end => {
                    let _ = child.kill();
                    let _ = child.wait();
                    panic!("the browser does not end");
                }
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        let read = |name| fs::read(self.path(name)).unwrap();
        let output = Output {
            status,
            stdout: read("stdout"),
            stderr: read("stderr"),
        };
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{log}");
        let complaints: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE")).collect();
        assert!(complaints.is_empty(), "the page complains: {complaints:?}");
        output
    }

    fn screenshot(&self, extra: &[&str]) -> Image {
        let target = self.path("shot.png");
        let argument = format!("--screenshot={}", target.display());
        self.browse(&[&[argument.as_str()], extra].concat());
        Image::read(&target)
    }
}

/// Pixels as red, green, blue.
struct Image {
    pixels: Vec<[u8; 3]>,
}

impl Image {
    fn read(path: &Path) -> Self {
        let file = std::io::BufReader::new(fs::File::open(path).unwrap());
        let mut decoder = png::Decoder::new(file);
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        assert!(samples >= 3, "a grey screenshot");
        let pixels = bytes[..info.buffer_size()]
            .chunks_exact(samples)
            .map(|p| [p[0], p[1], p[2]]);
        Self {
            pixels: pixels.collect(),
        }
    }

    fn count(&self, color: [u8; 3]) -> usize {
        let near = |p: &&[u8; 3]| p.iter().zip(color).all(|(a, b)| a.abs_diff(b) <= 2);
        self.pixels.iter().filter(near).count()
    }
}

#[test]
#[ignore = "needs chromium: ./test.sh browser"]
fn the_browser_lays_out_every_chart() {
    let study = common::sample_study();
    let page = Page::new(&to_html(&study).unwrap());
    let output = page.browse(&["--dump-dom"]);
    let dom = String::from_utf8_lossy(&output.stdout);
    assert_eq!(dom.matches("<svg class=\"chart\"").count(), 14);
    // 9 slowdowns, and 18 bars in each of 7 charts: a bar and its tip each.
    // And a part of a lane for each program after each event of the course.
    assert_eq!(dom.matches("class=\"tip\"").count(), 9 + 18 * 7 + 24 + 5);
    assert!(dom.matches("<rect ").count() >= 2 * (9 + 18 * 7));
    assert!(dom.matches("class=\"cell\"").count() > 9);
    assert!(dom.contains("class=\"headline\"") && dom.contains("All numbers"));
}

#[test]
#[ignore = "needs chromium: ./test.sh browser"]
fn light_and_dark_show_their_own_colors() {
    let page = Page::new(&to_html(&common::sample_study()).unwrap());
    let light = page.screenshot(&[]);
    let dark = page.screenshot(&["--blink-settings=preferredColorScheme=0"]);
    let (white, night) = ([0xff; 3], [0x0f, 0x13, 0x18]);
    let half = light.pixels.len() / 2;
    assert!(light.count(white) > half, "light paper");
    assert!(dark.count(night) > half, "dark paper");
    assert_eq!(dark.count(white), 0, "white spots in the dark report");
    // Bars of the first program: solid areas in the theme's own blue.
    assert!(light.count([0x00, 0x72, 0xb2]) > 5_000, "bars in light");
    assert!(dark.count([0x3d, 0x9a, 0xd6]) > 5_000, "bars in dark");
    assert_eq!(
        dark.count([0x00, 0x72, 0xb2]),
        0,
        "a marker color is left in the dark report"
    );
}

#[test]
#[ignore = "needs chromium: ./test.sh browser"]
fn plots_of_a_replay_have_a_line_of_its_own_color_for_each_policy() {
    let page = Page::new(&replay_to_html(&replay::sample_replay()).unwrap());
    let light = page.screenshot(&[]);
    let dark = page.screenshot(&["--blink-settings=preferredColorScheme=0"]);
    assert_eq!(dark.count([0xff; 3]), 0, "white spots in the dark page");
    let lines = [
        ([0x00, 0x72, 0xb2], [0x3d, 0x9a, 0xd6]),
        ([0xe6, 0x9f, 0x00], [0xeb, 0xa9, 0x2c]),
        ([0x00, 0x9e, 0x73], [0x1f, 0xb5, 0x8b]),
        ([0xcc, 0x79, 0xa7], [0xd8, 0x8f, 0xb8]),
    ];
    for (by_day, by_night) in lines {
        assert!(light.count(by_day) > 500, "a line in light: {by_day:?}");
        assert!(dark.count(by_night) > 500, "a line in dark: {by_night:?}");
    }
}

#[test]
#[ignore = "needs chromium: ./test.sh browser"]
fn hostile_names_do_not_run() {
    let mut study = common::sample_study();
    let evil = "<script>document.title='owned';console.log('owned')</script><img src=x onerror=console.log(1)>";
    study.policies[0].programs[0].name = evil.to_owned();
    study.title = evil.to_owned();
    let output = Page::new(&to_html(&study).unwrap()).browse(&["--dump-dom"]);
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(!dom.contains("<script") && !dom.contains("<img"));
    assert!(!dom.contains("<title>owned"));
}
