//! SRM-buffer written straight from section 3.2 and the room's list of what the paper
//! leaves open: plain vectors, every question answered by looking at everything.

use std::collections::BTreeSet;

use piebald_policy::{
    color_map::ColorMap,
    srm::{Answer, Holds, How, Limits, Supply, Taken},
};
use piebald_units::{Color, Pfn};

/// Who takes blocks: a file or a process by number.
pub type Who = usize;

/// A requester's colours, and whether they bind; and the supply.
#[derive(Clone, Debug)]
pub struct Ask {
    pub allowed: Option<BTreeSet<usize>>,
    pub hard: bool,
    pub supply: Supply,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stay {
    pub color: usize,
    pub blocks: u32,
}

#[derive(Clone, Debug)]
pub struct Oracle {
    map: ColorMap,
    origin: u64,
    frames: u64,
    limits: Limits,
    /// The first page of each list is taken next.
    pub lists: Vec<Vec<(u64, Holds)>>,
    pub holder: Vec<Option<Who>>,
    used: Vec<u64>,
    pub stays: Vec<Option<Stay>>,
    pub turns: Vec<usize>,
    blocks: u64,
    next: usize,
    spare_next: usize,
}

impl Oracle {
    pub fn new(map: &ColorMap, frames: u64, origin: u64, limits: Limits, who: usize) -> Self {
        let colors = map.colors() as usize;
        Self {
            map: map.clone(),
            origin,
            frames,
            limits,
            lists: vec![Vec::new(); colors],
            holder: vec![None; colors],
            used: vec![0; colors],
            stays: vec![None; who],
            turns: vec![0; who],
            blocks: 0,
            next: 0,
            spare_next: 0,
        }
    }

    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    fn colors(&self) -> usize {
        self.lists.len()
    }

    pub fn pages(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    fn is_long(&self, color: usize) -> bool {
        self.lists[color].len() > self.limits.threshold as usize
    }

    pub fn wants_pages(&self) -> bool {
        let short = (0..self.colors()).any(|c| !self.is_long(c));
        short && self.pages() < self.limits.max_pages as usize
    }

    /// Pages that have to come, one at a time and each of a short colour, until it wants none.
    pub fn missing_pages(&self) -> usize {
        let (mut missing, mut pages) = (0, self.pages());
        for list in &self.lists {
            let mut len = list.len();
            while len <= self.limits.threshold as usize && pages < self.limits.max_pages as usize {
                (len, pages, missing) = (len + 1, pages + 1, missing + 1);
            }
        }
        missing
    }

    fn color_of(&self, frame: u64) -> usize {
        usize::from(self.map.color(Pfn(frame)).0)
    }

    pub fn find(&self, frame: u64) -> Option<Holds> {
        let all = self.lists.iter().flatten();
        all.clone().find(|(f, _)| *f == frame).map(|(_, h)| *h)
    }

    /// Was it added?
    pub fn add(&mut self, frame: u64, holds: Holds) -> bool {
        let is_ours = (self.origin..self.origin + self.frames).contains(&frame);
        if !is_ours || self.find(frame).is_some() {
            return false;
        }
        let color = self.color_of(frame);
        match holds {
            Holds::Free => self.lists[color].insert(0, (frame, holds)),
            Holds::Cold => self.lists[color].push((frame, holds)),
        }
        true
    }

    pub fn remove(&mut self, frame: u64) -> Option<Holds> {
        let holds = self.find(frame)?;
        for list in &mut self.lists {
            list.retain(|(f, _)| *f != frame);
        }
        Some(holds)
    }

    fn from(&self, start: usize) -> Vec<usize> {
        let colors = self.colors();
        (0..colors).map(|i| (start + i) % colors).collect()
    }

    fn take(&mut self, color: usize, how: How) -> Answer {
        let (frame, holds) = self.lists[color].remove(0);
        Answer::Frame(Taken {
            frame: Pfn(frame),
            color: Color(color as u16),
            holds,
            how,
        })
    }

    pub fn end(&mut self, who: Who) {
        self.leave(who);
        self.stays[who] = None;
    }

    /// "remove the mark on the list in color c"
    fn leave(&mut self, who: Who) {
        for holder in &mut self.holder {
            if *holder == Some(who) {
                *holder = None;
            }
        }
    }

    pub fn declined(&mut self, file: Who, process: Who, blocks: u64) {
        let is_large = blocks > u64::from(self.limits.threshold);
        let who = if is_large { file } else { process };
        if let Some(stay) = &mut self.stays[who] {
            stay.blocks = stay.blocks.saturating_sub(1);
        }
    }

    pub fn file_fault(&mut self, file: Who, process: Who, blocks: u64, ask: &Ask) -> Answer {
        if blocks > u64::from(self.limits.threshold) {
            return self.block(file, ask);
        }
        self.end(file);
        self.block(process, ask)
    }

    fn block(&mut self, who: Who, ask: &Ask) -> Answer {
        let permits = |c: usize| ask.allowed.as_ref().is_none_or(|set| set.contains(&c));
        let refill = ask.supply == Supply::More && self.wants_pages();
        let stay = self.stays[who].clone();
        let own = stay.as_ref().map(|s| s.color);
        let going_on = stay
            .filter(|s| s.blocks < self.limits.threshold && permits(s.color))
            .map(|s| s.color);
        if let Some(color) = going_on {
            if !self.lists[color].is_empty() {
                return self.give(who, color, How::Meant);
            }
            if refill {
                return Answer::Refill;
            }
        }
        let found = match self.choose(who, own, &permits) {
            Some(found) => Some(found),
            None if refill => return Answer::Refill,
            None => self.make_do(who, ask),
        };
        let Some((color, how)) = found else {
            return Answer::Empty(going_on.map(|c| Color(c as u16)));
        };
        self.leave(who);
        self.holder[color] = Some(who);
        self.stays[who] = Some(Stay { color, blocks: 0 });
        self.next = (color + 1) % self.colors();
        self.give(who, color, how)
    }

    fn give(&mut self, who: Who, color: usize, how: How) -> Answer {
        self.blocks += 1;
        self.used[color] = self.blocks;
        self.stays[who].as_mut().unwrap().blocks += 1;
        self.take(color, how)
    }

    fn choose(
        &self,
        who: Who,
        own: Option<usize>,
        permits: &dyn Fn(usize) -> bool,
    ) -> Option<(usize, How)> {
        let long = |c: &usize| permits(*c) && self.is_long(*c);
        let other = |c: &usize| long(c) && Some(*c) != own;
        let mut unmarked = self.from(self.next);
        unmarked.retain(|c| other(c) && self.holder[*c].is_none());
        if let Some(c) = unmarked.first() {
            return Some((*c, How::Meant));
        }
        let mut idle: Vec<usize> = (0..self.colors()).filter(other).collect();
        idle.retain(|c| {
            self.holder[*c].is_some() && self.blocks - self.used[*c] > self.limits.idle_after
        });
        idle.sort_by_key(|c| self.used[*c]);
        if let Some(c) = idle.first() {
            return Some((*c, How::Idle));
        }
        own.filter(|c| long(c) && self.holder[*c].is_none_or(|h| h == who))
            .map(|c| (c, How::Meant))
    }

    fn make_do(&self, who: Who, ask: &Ask) -> Option<(usize, How)> {
        let all: Vec<usize> = (0..self.colors()).collect();
        let within: Vec<usize> = match &ask.allowed {
            None => all.clone(),
            Some(set) => set.iter().copied().filter(|c| *c < all.len()).collect(),
        };
        self.shorter(who, within).or_else(|| match ask.hard {
            true => None,
            false => self.shorter(who, all).map(|(c, _)| (c, How::Outside)),
        })
    }

    fn shorter(&self, who: Who, among: Vec<usize>) -> Option<(usize, How)> {
        let with_pages = |c: &&usize| !self.lists[**c].is_empty();
        let mut unmarked: Vec<usize> = among.iter().filter(with_pages).copied().collect();
        unmarked.retain(|c| self.holder[*c].is_none_or(|h| h == who));
        unmarked.sort_by_key(|c| std::cmp::Reverse(self.lists[*c].len()));
        if let Some(c) = unmarked.first() {
            return Some((*c, How::Short));
        }
        let mut marked: Vec<usize> = among.iter().filter(with_pages).copied().collect();
        marked.sort_by_key(|c| (!self.is_long(*c), self.used[*c]));
        marked.first().map(|c| (*c, How::Shared))
    }

    pub fn vm_fault(&mut self, who: Who, ask: &Ask) -> Answer {
        let permits = |c: &usize| ask.allowed.as_ref().is_none_or(|set| set.contains(c));
        let wish = self.from(self.turns[who]).into_iter().find(permits);
        let start = wish.unwrap_or(self.turns[who]);
        let has = |c: &usize| !self.lists[*c].is_empty();
        let found = if wish.is_some_and(|c| has(&c)) {
            wish.map(|c| (c, How::Meant))
        } else if ask.supply == Supply::More && self.wants_pages() {
            return Answer::Refill;
        } else {
            let mut order = self.from(start);
            order.retain(has);
            let within = order.iter().find(|c| permits(c)).map(|c| (*c, How::Next));
            let may_leave = ask.allowed.is_some() && !ask.hard;
            within.or_else(|| match may_leave {
                true => order.first().map(|c| (*c, How::Outside)),
                false => None,
            })
        };
        if let Some(c) = found.map(|f| f.0).or(wish) {
            self.turns[who] = (c + 1) % self.colors();
        }
        match found {
            Some((color, how)) => self.take(color, how),
            None => Answer::Empty(wish.map(|c| Color(c as u16))),
        }
    }

    pub fn take_any(&mut self) -> Option<Taken> {
        let order = self.from(self.spare_next);
        let free = |c: &usize| self.lists[*c].iter().any(|(_, h)| *h == Holds::Free);
        let first = |which: &dyn Fn(&usize) -> bool| order.iter().copied().find(|c| which(c));
        let color = first(&free)
            .or_else(|| first(&|c| self.is_long(*c)))
            .or_else(|| first(&|c| !self.lists[*c].is_empty()))?;
        self.spare_next = (color + 1) % self.colors();
        match self.take(color, How::Any) {
            Answer::Frame(taken) => Some(taken),
            _ => None,
        }
    }
}
