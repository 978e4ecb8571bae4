//! The colored zone over the buddy allocator: free frames come by colour, and go back in
//! whole blocks.

use crate::kit::{VecBuddy, full_buddy, hard, map_of, plain_map, request};
use piebald_policy::{
    color_map::ColorMap,
    contract::Purpose,
    srm::{
        Answer, Config, FileFault, Limited, Link, List, Sequence, Sets, Slices, Srm, Supply, VmTurn,
    },
};
use piebald_units::{Color, ColorSet, Order, Pfn};

type Zone = Srm<Slices<ColorMap, Vec<Link>, Vec<List>, Box<Sets>>>;

const FRAMES: u64 = 8192;
const ORIGIN: u64 = 1 << 12;

struct Host {
    buddy: VecBuddy,
    zone: Zone,
    used: Vec<Pfn>,
}

impl Host {
    fn new(map: &ColorMap, threshold: u32) -> Self {
        let config = Config {
            threshold,
            ..Config::PAPER
        };
        let store = Slices::collect(map.clone(), FRAMES);
        Self {
            buddy: full_buddy(map, FRAMES, ORIGIN),
            zone: Srm::new(store, FRAMES, Pfn(ORIGIN), config).unwrap(),
            used: Vec::new(),
        }
    }

    /// What a host does at [`Answer::Refill`], as long as it has free memory.
    fn fill(&mut self) -> u32 {
        let buddy = &mut self.buddy;
        let give = |color: Color| {
            let mut one = ColorSet::EMPTY;
            one.insert(color);
            buddy.alloc(&hard(&one)).ok().map(|grant| grant.frame)
        };
        self.zone.fill(u32::MAX, give).unwrap()
    }

    /// Asks until there is a frame; `None` when memory is full.
    fn take(&mut self, mut ask: impl FnMut(&mut Zone, Limited<'_>) -> Answer) -> Option<Color> {
        let mut supply = Supply::More;
        loop {
            let limited = Limited {
                supply,
                ..Limited::default()
            };
            match ask(&mut self.zone, limited) {
                Answer::Frame(taken) => {
                    self.used.push(taken.frame);
                    return Some(taken.color);
                }
                Answer::Refill if self.fill() == 0 => supply = Supply::Spent,
                Answer::Refill => {}
                Answer::Empty(_) => return None,
            }
        }
    }

    fn block(&mut self, file: &mut Sequence) -> Option<Color> {
        self.take(|zone, limited| {
            zone.file_fault(FileFault {
                file,
                process: &mut { Sequence::NONE },
                file_blocks: u64::MAX,
                limited,
            })
        })
    }

    fn check(&self) {
        self.zone.validate().unwrap();
        self.buddy.validate().unwrap();
        let out = u64::from(self.zone.pages()) + self.used.len() as u64;
        assert_eq!(self.buddy.free_frames() + out, FRAMES);
    }
}

fn maps() -> [ColorMap; 2] {
    [plain_map(0, 6), map_of(&[0x111, 0x222, 0x444, 0x888])]
}

/// All of memory goes to files and programs, each frame once, though the colours of the
/// last ones are not those that were wished for.
#[test]
fn every_frame_of_the_buddy_can_be_had() {
    for map in maps() {
        let mut host = Host::new(&map, 8);
        let (mut file, mut turn) = (Sequence::NONE, VmTurn::default());
        let mut colors = Vec::new();
        while let Some(color) = host.block(&mut file) {
            colors.push(color);
            if colors.len() % 3 == 0 {
                host.take(|zone, limited| zone.vm_fault(&mut turn, limited));
            }
            if colors.len() % 97 == 0 {
                host.check();
            }
        }
        assert_eq!((host.buddy.free_frames(), host.zone.pages()), (0, 0));
        let mut frames: Vec<u64> = host.used.iter().map(|f| f.0).collect();
        frames.sort_unstable();
        assert!(frames.into_iter().eq(ORIGIN..ORIGIN + FRAMES));
        // Until memory runs out, a file lies in runs of eight.
        let runs = colors[..4000].chunks(8);
        assert!(runs.clone().all(|run| run.iter().all(|c| *c == run[0])));
        assert!(runs.clone().zip(runs.skip(1)).all(|(a, b)| a[0] != b[0]));
    }
}

/// The zone breaks blocks into frames; a host that needs a large block empties it, and the
/// blocks are whole again.
#[test]
fn an_emptied_zone_leaves_whole_blocks() {
    for map in maps() {
        let mut host = Host::new(&map, 100);
        let (mut file, before) = (Sequence::NONE, host.zone.pages());
        for _ in 0..500 {
            assert!(host.block(&mut file).is_some());
        }
        assert!(host.zone.pages() > before + 1000);
        while let Some(taken) = host.zone.take_any() {
            host.buddy.free(taken.frame, Order(0)).unwrap();
        }
        for frame in host.used.drain(..) {
            host.buddy.free(frame, Order(0)).unwrap();
        }
        host.check();
        for _ in 0..FRAMES / 1024 {
            let block = host.buddy.alloc(&request(10, Purpose::Anon));
            assert!(block.is_ok(), "memory is whole");
        }
    }
}
