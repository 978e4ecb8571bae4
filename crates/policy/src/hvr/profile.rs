//! What is known of one program over time, and when it is looked at next.

use piebald_units::Picos;

use super::{
    Unseen, Window,
    class::{Class, Facts, Mean, Wpd},
    config::MonitorConfig,
};

/// Most windows that are averaged.
pub const MAX_AVERAGED: usize = 8;

/// The last values of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ring {
    values: [u32; MAX_AVERAGED],
    len: u8,
    next: u8,
}

impl Ring {
    const EMPTY: Self = Self {
        values: [0; MAX_AVERAGED],
        len: 0,
        next: 0,
    };

    fn push(&mut self, value: u32, averaged: u8) {
        if let Some(slot) = self.values.get_mut(usize::from(self.next)) {
            *slot = value;
        }
        let next = self.next.saturating_add(1);
        self.next = if next < averaged { next } else { 0 };
        self.len = self.len.saturating_add(1).min(averaged);
    }

    /// The mean of the last `averaged` values; of none before there are so many.
    fn mean(&self, averaged: u8) -> Mean {
        if self.len < averaged {
            return Mean::NONE;
        }
        let values = self.values.iter().take(usize::from(averaged));
        Mean {
            sum: values.map(|v| u64::from(*v)).fold(0, u64::saturating_add),
            nr: u32::from(averaged),
        }
    }
}

/// What a program's windows have told so far. About 120 B; *exclusive*.
///
/// A program is classified when there are as many windows of both jobs as are averaged.
/// After that, another class must show in [`MonitorConfig::confirm`] windows of JOB2 one
/// after another before it is believed. A program whose windows disagree with its class
/// twice as often in a row, but never agree on another, gets the most assaulting of those
/// that they named: others are protected from the worst that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    hot: Ring,
    reuse: Ring,
    wpd: Wpd,
    class: Option<Class>,
    /// The class that the last windows named instead.
    rival: Option<Class>,
    streak: u8,
    /// Windows in a row that did not name `class`, and the most assaulting that they did.
    disputed: u8,
    worst: Option<Class>,
    /// Windows in a row that confirmed the class.
    grown: u32,
    interval: Picos,
}

impl Profile {
    /// Of a program that nothing is known of.
    pub const NEW: Self = Self {
        hot: Ring::EMPTY,
        reuse: Ring::EMPTY,
        wpd: Wpd { tenths: 0, used: 0 },
        class: None,
        rival: None,
        streak: 0,
        disputed: 0,
        worst: None,
        grown: 0,
        interval: Picos(0),
    };

    /// The class, once there is one.
    pub const fn class(&self) -> Option<Class> {
        self.class
    }

    /// Time from the last window of JOB2 to the next: the base before the program is
    /// classified, and whenever something speaks against its class; else it grows by one
    /// more step each time (section 8).
    pub fn interval(&self, config: &MonitorConfig) -> Picos {
        Picos(self.interval.0.max(config.interval.0))
    }

    /// The averages that a classification would see now.
    pub fn facts(&self, config: &MonitorConfig) -> Facts {
        Facts {
            hot_pages: self.hot.mean(config.averaged),
            reuse_centi: self.reuse.mean(config.averaged),
            wpd: self.wpd,
        }
    }

    /// JOB1: pages that were used in a window of some microseconds; of 0 see
    /// [`Unseen`](super::Unseen). If the average leads to another class
    /// than the program has, JOB2 is due at its base interval again.
    pub fn hot_pages(&mut self, config: &MonitorConfig, pages: u32) {
        if pages == 0 && config.unseen == Unseen::Slept {
            return;
        }
        self.hot.push(pages, config.averaged);
        if self.class.is_some() && self.class != self.named(config) {
            self.rest(config);
        }
    }

    /// JOB2: a window; of an idle one see [`Unseen`](super::Unseen). Returns whether the
    /// class changed.
    pub fn window(&mut self, config: &MonitorConfig, window: &Window) -> bool {
        if window.is_idle() && config.unseen == Unseen::Slept {
            return false;
        }
        self.wpd = window.distribution.wpd(&config.weights);
        if let Some(reuse) = window.reuse_centi {
            self.reuse.push(reuse, config.averaged);
        }
        match self.named(config) {
            Some(class) => self.judge(config, class),
            None => false,
        }
    }

    /// The class that the averages lead to; `None` before there are enough hot pages.
    fn named(&self, config: &MonitorConfig) -> Option<Class> {
        let facts = self.facts(config);
        let was_seen = self.wpd.used > 0 || config.unseen == Unseen::Ran;
        let is_known = facts.hot_pages.nr > 0 && was_seen && self.has_reuse(config);
        is_known.then(|| config.thresholds.classify(&facts))
    }

    /// Where windows may come without a re-use time, none is waited for.
    fn has_reuse(&self, config: &MonitorConfig) -> bool {
        let may_lack = config.never_reused == super::NeverReused::Nothing;
        may_lack || self.reuse.len >= config.averaged
    }

    fn judge(&mut self, config: &MonitorConfig, named: Class) -> bool {
        if self.class.is_none() {
            return self.adopt(config, named);
        }
        if self.class == Some(named) {
            self.forget_rivals();
            self.grow(config);
            return false;
        }
        self.rest(config);
        self.streak = match self.rival == Some(named) {
            true => self.streak.saturating_add(1),
            false => 1,
        };
        self.rival = Some(named);
        self.worst = self.worst.max(Some(named));
        self.disputed = self.disputed.saturating_add(1);
        if self.streak >= config.confirm {
            return self.adopt(config, named);
        }
        match self.worst {
            Some(worst) if self.disputed >= config.confirm.saturating_mul(2) => {
                self.adopt(config, worst)
            }
            _ => false,
        }
    }

    fn adopt(&mut self, config: &MonitorConfig, class: Class) -> bool {
        self.class = Some(class);
        self.forget_rivals();
        self.rest(config);
        true
    }

    fn forget_rivals(&mut self) {
        (self.rival, self.streak) = (None, 0);
        (self.worst, self.disputed) = (None, 0);
    }

    fn rest(&mut self, config: &MonitorConfig) {
        (self.grown, self.interval) = (0, config.interval);
    }

    /// The steps rise: 1, 2, 3 ... times [`MonitorConfig::step`].
    fn grow(&mut self, config: &MonitorConfig) {
        self.grown = self.grown.saturating_add(1);
        let step = config.step.0.saturating_mul(u64::from(self.grown));
        let next = self.interval(config).0.saturating_add(step);
        self.interval = Picos(next.min(config.max_interval.0));
    }
}
