//! What programs must see, page by page, without frames or page tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use piebald_os_model::kernel::{Action, Actions};

/// One page's content: a number that the last store put there.
pub type Value = u64;

/// What lies behind a page of an object: its name and index.
pub type Behind = (u64, u64);

#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Value of a private page that was stored to.
    pub own: Option<Value>,
    pub behind: Option<Behind>,
    pub shared: bool,
}

pub const ANON: Page = Page {
    own: None,
    behind: None,
    shared: false,
};

/// A process as its program sees it.
#[derive(Clone, Default)]
pub struct Image {
    pub pages: BTreeMap<u64, Page>,
    /// Pages touched since access bits were last cleared.
    pub touched: BTreeSet<u64>,
}

impl Image {
    pub fn load(&mut self, vpn: u64, objects: &HashMap<Behind, Value>) -> Value {
        self.touched.insert(vpn);
        let p = *self.pages.entry(vpn).or_insert(ANON);
        let behind = p.behind.map(|b| objects.get(&b).copied().unwrap_or(0));
        p.own.or(behind).unwrap_or(0)
    }

    pub fn store(&mut self, vpn: u64, value: Value, objects: &mut HashMap<Behind, Value>) {
        self.touched.insert(vpn);
        let p = self.pages.entry(vpn).or_insert(ANON);
        match p.behind {
            Some(b) if p.shared => {
                objects.insert(b, value);
            }
            _ => p.own = Some(value),
        }
    }

    pub fn map(&mut self, first: u64, n: u64, page: impl Fn(u64) -> Page) {
        for i in 0..n {
            self.pages.insert(first + i, page(i));
            self.touched.remove(&(first + i));
        }
    }

    pub fn unmap(&mut self, first: u64, n: u64) {
        for v in first..first + n {
            self.pages.remove(&v);
            self.touched.remove(&v);
        }
    }

    pub fn discard(&mut self, first: u64, n: u64) {
        for (_, p) in self.pages.range_mut(first..first + n) {
            p.own = None;
        }
        self.touched.retain(|v| !(first..first + n).contains(v));
    }

    /// Grows, shrinks or moves; the tail continues what lies before it.
    pub fn remap(&mut self, from: u64, old: u64, to: u64, new: u64) {
        let kept = old.min(new);
        let moved: Vec<_> = (0..kept)
            .map(|i| self.pages.get(&(from + i)).copied())
            .collect();
        let touched: Vec<_> = (0..kept)
            .map(|i| self.touched.contains(&(from + i)))
            .collect();
        self.unmap(from, old);
        self.unmap(to, new);
        for (i, (p, t)) in (0..).zip(moved.iter().zip(touched)) {
            if let Some(p) = p {
                self.pages.insert(to + i, *p);
            }
            if t {
                self.touched.insert(to + i);
            }
        }
        let last = moved.last().copied().flatten().unwrap_or(ANON);
        for i in kept..new {
            let behind = last.behind.map(|(o, x)| (o, x + i + 1 - kept));
            let page = Page {
                own: None,
                behind,
                ..last
            };
            self.pages.insert(to + i, page);
        }
    }
}

/// Frames' contents, as the kernel's actions and the programs' stores leave
/// them.
#[derive(Default)]
pub struct Frames {
    content: HashMap<u64, Value>,
    swap: HashMap<u32, Value>,
}

impl Frames {
    /// Content of a frame; one that nobody ever wrote holds rubbish.
    pub fn get(&self, frame: u64) -> Value {
        self.content.get(&frame).copied().unwrap_or(Value::MAX)
    }

    pub fn set(&mut self, frame: u64, value: Value) {
        self.content.insert(frame, value);
    }

    /// Performs a kernel call's actions. User copies must be of whole pages.
    pub fn perform(&mut self, actions: &mut Actions) {
        for a in actions.as_slice() {
            match *a {
                Action::Zero { frame, frames } => {
                    for f in frame.0..frame.0 + u64::from(frames) {
                        self.set(f, 0);
                    }
                }
                Action::Copy { from, to } => self.set(to.0, self.get(from.0)),
                Action::CopyUser {
                    from,
                    from_offset,
                    to,
                    to_offset,
                    len,
                    ..
                } => {
                    assert_eq!((from_offset, to_offset, len), (0, 0, 4096));
                    self.set(to.0, self.get(from.0));
                }
                Action::SwapOut { frame, slot } => {
                    self.swap.insert(slot, self.get(frame.0));
                }
                Action::SwapIn { frame, slot } => {
                    let value = self.swap.get(&slot).copied();
                    self.set(frame.0, value.unwrap_or(Value::MAX));
                }
                _ => {}
            }
        }
        actions.clear();
    }
}
